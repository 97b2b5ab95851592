"""Hours of everything that can go wrong at random: a window with its node, trainer and scorer, a relay, and
simulated peers. Processes are killed and stopped, lines cut, disks filled, clocks put forward and back.

    ./shoal bench soak --hours 0.5 --out DIR

The same command goes on where the last piece ended, on the same homes; the page that it prints, DIR/page.md, is
of all pieces together. A piece ends with a quiet time in which outboxes empty, so that what was created can be
held against what the relay stored. All processes are real; only the wall clock jumps, by a preloaded library,
and the disk is a small one in memory where this user may mount one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sqlite3
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import psutil

from app.bench import ROOT, BenchError, Tell, read_json_lines
from app.bench.runs.window import prepare
from app.swarm.client.outbox import OutboxCounts
from tests.bench.soak_page import page, summed
from tests.bench.soak_place import Proxy, clock_library, disk

SUMMARY = "hours of kills, cut lines, full disks and clock jumps; goes on where it was, and prints one page"
QUIET_S = 45.0
"""Seconds of quiet at the end of a piece: longer than a peer's pauses and than the waits between tries to
connect."""
LOOK_S = 10.0
STUCK_S = 90.0
"""Seconds without a node after which its owner opens the window again."""
MARKS = {
    "node": "--snapshots",
    "trainer": "app.node.trainer.process",
    "scorer": "app.sapo.scoring.child",
}
_WEIGHTS = {"kill": 8, "stop": 2, "cut": 3, "full": 1, "clock": 2}
_JUMPS_S = (-7200, -600, -30, 30, 600, 7200)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hours", type=float, default=0.5, help="of this piece (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="homes, figures and the page")
    parser.add_argument("--peers", type=int, default=20, help="simulated peers (default: %(default)s)")
    parser.add_argument(
        "--every", type=float, default=40.0, help="seconds between events (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the events (default: %(default)s)")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    out: Path = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    pieces = read_json_lines(out / "pieces.jsonl")
    with disk(out, tell) as place:
        piece = SoakRun(out, place, args.peers, Random(f"{args.seed} {len(pieces)}"), tell)
        try:
            piece.play(args.hours * 3600, args.every)
        finally:
            piece.close()
        pieces.append(piece.counted())
    with (out / "pieces.jsonl").open("a") as file:
        file.write(json.dumps(pieces[-1]) + "\n")
    return summed(pieces, read_json_lines(out / "memory.jsonl"), out)


def table(figures: dict[str, Any]) -> list[str]:
    return page(figures)


class SoakRun:
    """One run of the whole company on the homes in `place`."""

    def __init__(self, out: Path, place: Path, peers: int, rng: Random, tell: Tell) -> None:
        self._out, self._place, self._peers, self._rng, self._tell = out, place, peers, rng, tell
        self._clock = out / "clock"
        self._clock.write_bytes(struct.pack("q", 0))
        self._shim = clock_library(out)
        self._began = time.monotonic()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._rounds_before = _rounds(place / "window")
        self._events: Counter[str] = Counter()
        self._port = 0
        self._alone_since: float | None = None
        (place / "window").mkdir(parents=True, exist_ok=True)
        if not (place / "window" / "settings.json").exists():
            prepare(place / "window")
        self._open_relay()
        self._way = Proxy(self._port)
        self._open_peers()
        self._open_window()

    def play(self, seconds: float, every_s: float) -> None:
        """Events for so long, then quiet."""
        end, look = time.monotonic() + seconds, 0.0
        event = time.monotonic() + every_s
        while (now := time.monotonic()) < end:
            self._keep_up()
            if now >= look:
                self._look()
                look = now + LOOK_S
            if now >= event and end - now > every_s:
                self._happen()
                event = time.monotonic() + self._rng.uniform(0.5, 1.5) * every_s
            time.sleep(1.0)
        self._calm()

    def close(self) -> None:
        """Ends everything, the window first, as its owner does."""
        with contextlib.suppress(subprocess.SubprocessError, OSError):
            subprocess.run(
                [*_command("window", "--quit"), "--home", str(self._place / "window")],
                env=self._environment(), cwd=ROOT, timeout=60, capture_output=True,
            )  # fmt: skip
        window = self._processes.get("window")
        with contextlib.suppress(subprocess.TimeoutExpired):
            if window is not None:
                window.wait(30)
        for process in self._processes.values():
            for one in _family(process.pid):
                with contextlib.suppress(psutil.Error):
                    one.kill()
            process.wait()
        self._way.close()

    def counted(self) -> dict[str, Any]:
        """What became of every group that any home ever made, and of the relay's own count. Nothing runs any
        more."""
        found = [_counts(path) for path in sorted(self._place.rglob("outbox.sqlite"))]
        total = {name: sum(getattr(one, name) for one in found) for name in OutboxCounts.__struct_fields__}
        with contextlib.closing(sqlite3.connect(self._place / "relay" / "journal.sqlite3")) as db:
            (stored,) = db.execute("SELECT is_ FROM facts WHERE what = 'stored'").fetchone()
            (sound,) = db.execute("PRAGMA integrity_check").fetchone()
        acknowledged = total["accepted"] + total["duplicate"]
        return {
            "hours": round((time.monotonic() - self._began) / 3600, 3),
            "events": dict(self._events),
            "rounds": _rounds(self._place / "window") - self._rounds_before,
            **total,
            "acknowledged": acknowledged,
            "stored": stored,
            "lost": max(0, acknowledged - stored),
            "journal": sound,
        }

    def _happen(self) -> None:
        """One event, to its end."""
        kind = self._rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        deeds: dict[str, Callable[[], str]] = {
            "kill": self._kill,
            "stop": self._stop,
            "cut": self._cut,
            "full": self._fill,
            "clock": self._jump,
        }
        what = deeds[kind]()
        self._note(what)

    def _note(self, what: str) -> None:
        self._events[what.partition(" ")[0] if not what.startswith("kill") else what] += 1
        with (self._out / "events.jsonl").open("a") as file:
            file.write(json.dumps({"at": round(time.time(), 1), "what": what}) + "\n")
        self._tell(f"{(time.monotonic() - self._began) / 60:6.1f} min  {what}")

    def _kill(self) -> str:
        roles = self._roles()
        role = self._rng.choice(sorted(roles))
        with contextlib.suppress(psutil.Error):
            roles[role].kill()
        return f"kill {role}"

    def _stop(self) -> str:
        roles, seconds = self._roles(), self._rng.uniform(3.0, 15.0)
        role = self._rng.choice(sorted(roles))
        with contextlib.suppress(psutil.Error):
            roles[role].suspend()
            time.sleep(seconds)
            roles[role].resume()
        return f"stop {role}, {seconds:.0f} s"

    def _cut(self) -> str:
        seconds = self._rng.uniform(5.0, 60.0)
        self._way.cut()
        time.sleep(seconds)
        self._way.heal()
        return f"cut line, {seconds:.0f} s"

    def _fill(self) -> str:
        if not (self._place / ".small").exists():
            return "unfilled disk: this user may not mount a small one"
        seconds, filler = self._rng.uniform(5.0, 20.0), self._place / "filler"
        with contextlib.suppress(OSError), filler.open("wb", 0) as file:
            while True:
                file.write(bytes(2**16))
        time.sleep(seconds)
        filler.unlink(missing_ok=True)
        return f"full disk, {seconds:.0f} s"

    def _jump(self) -> str:
        if self._shim is None:
            return "unmoved clock: there is no C compiler"
        seconds = self._rng.choice(_JUMPS_S)
        self._clock_at(seconds)
        time.sleep(self._rng.uniform(10.0, 30.0))
        self._clock_at(0)
        return f"clock by {seconds} s and back"

    def _clock_at(self, seconds: int) -> None:
        with self._clock.open("r+b") as file:
            file.write(struct.pack("q", seconds))

    def _calm(self) -> None:
        """What was in flight arrives."""
        end = time.monotonic() + QUIET_S
        while time.monotonic() < end:
            self._keep_up()
            self._look()
            time.sleep(LOOK_S)

    def _keep_up(self) -> None:
        """Starts again what was killed, as a system's supervisor and an owner do."""
        for role, start in (
            ("relay", self._open_relay),
            ("peers", self._open_peers),
            ("window", self._open_window),
        ):
            if self._processes[role].poll() is not None:
                time.sleep(self._rng.uniform(0.2, 3.0))
                start()
        if "node" in self._roles():
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > STUCK_S:
            self._note("owner opens the window anew: no node ran")
            self._processes["window"].kill()
            self._alone_since = None

    def _look(self) -> None:
        """Memory of each process, in MB of its own pages."""
        for role, process in self._roles().items():
            with contextlib.suppress(psutil.Error), (self._out / "memory.jsonl").open("a") as file:
                life, mb = (
                    f"{role} {process.pid} {process.create_time():.0f}",
                    process.memory_full_info().uss / 2**20,
                )
                age = time.time() - process.create_time()
                file.write(
                    json.dumps({"role": role, "life": life, "age_s": round(age), "mb": round(mb, 1)}) + "\n"
                )

    def _roles(self) -> dict[str, psutil.Process]:
        """Every process that runs, by what it is."""
        found = {}
        for role, process in self._processes.items():
            if process.poll() is None:
                with contextlib.suppress(psutil.Error):
                    found[role] = psutil.Process(process.pid)
        for one in _family(self._processes["window"].pid)[1:] if "window" in found else []:
            with contextlib.suppress(psutil.Error):
                words = one.cmdline()
                for role, mark in MARKS.items():
                    if mark in words:
                        found[role] = one
        return found

    def _open_relay(self) -> None:
        process = self._start("relay", "--port", str(self._port), "--state", str(self._place / "relay"))
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:
            self._port = int(json.loads(line)["url"].rsplit(":", 1)[1].partition("/")[0])
        elif not self._port:
            raise BenchError(f"The relay does not open: {self._out / 'relay.log'} says why.")

    def _open_peers(self) -> None:
        folder = str(self._place / "peers")
        words = [
            sys.executable,
            "-m",
            "app.bench.relay.simulated",
            self._way.url,
            folder,
            f"honest={self._peers}",
        ]
        self._spawn("peers", words)

    def _open_window(self) -> None:
        self._start("window", "--home", str(self._place / "window"), "--join", self._way.url)

    def _start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        return self._spawn(role, [*_command(role), *options])

    def _spawn(self, role: str, words: list[str]) -> subprocess.Popen[bytes]:
        with (self._out / f"{role}.log").open("ab") as log:
            piped = subprocess.PIPE if role == "relay" else log
            self._processes[role] = process = subprocess.Popen(
                words, cwd=ROOT, env=self._environment(), stdin=subprocess.DEVNULL, stdout=piped, stderr=log
            )
        return process

    def _environment(self) -> dict[str, str]:
        jumps = {"LD_PRELOAD": str(self._shim), "SHOAL_SOAK_CLOCK": str(self._clock)} if self._shim else {}
        return {
            **os.environ,
            **jumps,
            "PYTHONPATH": str(ROOT),
            "QT_QPA_PLATFORM": "offscreen",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "app.cli", *words]


def _family(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _counts(path: Path) -> OutboxCounts:
    with contextlib.closing(sqlite3.connect(path)) as db:
        kept = dict(db.execute("SELECT what, n FROM counts").fetchall())
        (waiting,) = db.execute("SELECT count(*) FROM messages").fetchone()
    return msgspec.convert({**kept, "waiting": waiting}, OutboxCounts)


def _rounds(home: Path) -> int:
    total = 0
    for path in home.glob("models/*/history.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.Error):
            total += db.execute("SELECT count(*) FROM rounds").fetchone()[0]
    return total
