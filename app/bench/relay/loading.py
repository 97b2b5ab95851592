"""Generates the load: frames made beforehand, sent over open connections by a compiled program.

A generator in Python would cost more than the relay it measures. `load.c` is compiled once into a folder and
named by the hash of its source."""

from __future__ import annotations

import array
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.bench.harness import BenchError
from app.bench.relay.joining import masked
from app.common.files import replace

SOURCE = Path(__file__).with_name("load.c")
HEAD = struct.Struct("=8sIIQdddQ")
MAGIC = b"shoal-1\n"

Us = array.array  # of 32-bit microseconds


class LoadCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a load. `items`: groups in the `counted` batches; `others`: refusals by code and other
    messages by type; `overrun`: rounds not sent because a connection had too many unanswered; `late`: number of
    recorded send delays."""

    accepted: int
    batches: int
    counted: int
    items: int
    unanswered: int
    dead: int
    overrun: int
    bytes_in: int
    bytes_out: int
    seconds: float
    cpu_s: float
    published: int
    sampled: int
    late: int
    others: dict[str, int]

    @property
    def items_per_batch(self) -> float:
        return self.items / max(1, self.counted)


class LoadResult(NamedTuple):
    counts: LoadCounts
    publish_us: Us[int]
    sample_us: Us[int]
    late_us: Us[int]

    def check(self, rounds: int, least_items: float) -> None:
        """Raises BenchError unless every publish was accepted and every sample answered with a batch, with at
        least `least_items` groups on average."""
        counts = self.counts
        met = ", ".join(f"{n} x {name}" for name, n in counts.others.items() if name not in ("stats", "notice"))
        if (
            met
            or counts.unanswered
            or counts.dead
            or counts.overrun
            or counts.accepted != rounds
            or counts.batches != rounds
        ):
            raise BenchError(
                f"Of {rounds} rounds {counts.accepted} were accepted and {counts.batches} got a batch; "
                f"{counts.unanswered} had no answer, {counts.overrun} could not be sent, {counts.dead} "
                f"connections were lost{'; refused: ' + met if met else ''}: this would be no measurement."
            )
        if counts.items_per_batch < least_items:
            raise BenchError(
                f"A batch had {counts.items_per_batch:.2f} groups on average, not "
                f"{least_items:g}: the window was too empty for this measurement."
            )


def percentile_ms(times_us: Sequence[int], percent: float) -> float:
    """The nearest-rank percentile, in milliseconds.

    >>> percentile_ms([1000, 3000, 2000, 4000], 50), percentile_ms([1000, 3000, 2000, 4000], 99)
    (2.0, 4.0)
    """
    ordered = sorted(times_us)
    return (
        ordered[max(0, -(-len(ordered) * percent // 100).__trunc__() - 1)] / 1000 if ordered else float("nan")
    )


def compile_generator(cache: Path) -> Path:
    """Compiles the load program if needed and returns its path. Raises BenchError if that fails."""
    compiler = os.environ.get("CC") or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or not sys.platform.startswith("linux"):
        raise BenchError("The load for the relay needs Linux and a C compiler: install one, for example gcc.")
    program = cache / f"load-{sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    if program.exists():
        return program
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        made = Path(folder, "load")
        try:
            done = subprocess.run(
                [compiler, "-O2", "-std=c11", "-o", str(made), str(SOURCE), "-lm"],
                capture_output=True,
                text=True,
            )
        except OSError as error:
            raise BenchError(f"{compiler} does not start ({error.strerror}): name another by CC.") from error
        if done.returncode:
            words = (done.stderr.strip().splitlines() or ["nothing"])[0][:200]
            raise BenchError(f"The load cannot be compiled, {compiler} says: {words}")
        replace(made, program)
    return program


def write_plan(
    path: Path,
    sockets: Sequence[socket.socket],
    rounds: Sequence[bytes],
    sample: bytes,
    *,
    rate: float = 0.0,
    seconds: float = 600.0,
    patience: float = 30.0,
) -> None:
    """Writes the load program's input. `rounds` are published in order, round i on connection i % connections.
    With a `rate` the load is open, at `rate` rounds/s; otherwise every connection does one round after another.
    No round starts after `seconds`, and a relay silent for `patience` seconds is given up on."""
    frames = [masked(frame) for frame in rounds]
    sample = masked(sample)
    ends = array.array("Q", [0])
    for frame in frames:
        ends.append(ends[-1] + len(frame))
    fds = array.array("i", [one.fileno() for one in sockets])
    with path.open("wb") as file:
        file.write(
            HEAD.pack(
                MAGIC, len(sockets), len(sample), len(frames), rate, seconds, patience, 0x9E3779B97F4A7C15
            )
        )
        file.write(fds.tobytes() + bytes(-len(fds) * 4 % 8))
        file.write(ends.tobytes())
        file.writelines(frames)
        file.write(sample)


def run_load(
    folder: Path,
    program: Path,
    sockets: Sequence[socket.socket],
    rounds: Sequence[bytes],
    sample: bytes,
    *,
    rate: float = 0.0,
    seconds: float = 600.0,
) -> LoadResult:
    """Runs one load over these sockets, which stay open, and returns its results."""
    plan, times = folder / "plan", folder / "times"
    write_plan(plan, sockets, rounds, sample, rate=rate, seconds=seconds)
    done = subprocess.run(
        [str(program), str(plan), str(times)],
        capture_output=True,
        pass_fds=[one.fileno() for one in sockets],
        cwd=SOURCE.parents[2],
    )
    if done.returncode:
        raise BenchError(f"The load generator failed: {done.stderr.decode(errors='replace').strip()[-300:]}")
    counts = msgspec.json.decode(done.stdout, type=LoadCounts)
    us: Us[int] = array.array("I")
    us.frombytes(times.read_bytes())
    plan.unlink()
    times.unlink()
    ends = counts.published, counts.published + counts.sampled
    return LoadResult(counts, us[: ends[0]], us[ends[0] : ends[1]], us[ends[1] :])
