"""Measures the cost of a relay: processor time per round, memory per connection, latency, bytes per node.

A round is one publish of a signed 4 KB group, which the relay checks, and one sample of eight. The baseline, in
the same run and under the same load, is aiohttp's bare websocket answering with prepared bytes: the lower bound
for a relay built on it.

Three parts. Saturated: a few hundred connections do one round after another; the relay's processor time is
divided by the number of rounds. Open: many connections, with rounds at a fixed rate independent of the relay's
answers; latency counts from the moment a frame was due. Sizes: one node in swarms of 10 to thousands."""

from __future__ import annotations

import argparse
import contextlib
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

from app.bench.harness import BenchError, Figures, Tell, in_turns, machine, warn_if_busy
from app.bench.relay.joining import FAMILIES, SWARM, BlockingConnection, join, publish_frames
from app.bench.relay.loading import LoadResult, compile_generator, percentile_ms, run_load
from app.bench.relay.served import StartedServer
from app.common.home import home
from app.common.text import bounded_integer
from app.swarm.wire.body import unseal
from app.swarm.wire.frames import decode_envelope, to_frame
from app.swarm.wire.limits import STALE_AFTER_S
from app.swarm.wire.protocol import AskStats, Sample, SampleReply

SUMMARY = "the relay: processor time a round, memory a connection, waiting times, bytes a node"
TARGETS = {"own_cpu_us_per_round": 100.0, "kb_per_connection": 20.0, "sample_p99_ms": 50.0, "mb_per_hour": 2.5}
"""What the figures should reach. The relay's own share is everything but websocket, hash and signature; the
budget assumes a machine where those take 105 us."""

K = 8
SPARE_DESCRIPTORS = 300
STATS_PER_HOUR = 360
FILL_KEYS = 200
"""Keys that fill the window before the measurement, so that it does not grow during it and batches are full."""
GONE_KEYS = 40
"""Nodes that publish and leave before a small swarm's bytes are counted, so that there is always enough to
sample."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for name, most, default, what in (
        ("--connections", 60_000, 5_000, "of the open load"),
        ("--rate", 100_000, 500, "rounds/s of the open load"),
        ("--seconds", 600, 10, "of one open load"),
        ("--rounds", 10**6, 6_000, "of one saturated load"),
        ("--busy", 10_000, 200, "connections of the saturated load"),
        ("--fill", 10**5, 10_000, "groups in the window before"),
        ("--repeats", 99, 5, "of every load; medians count"),
    ):
        kind = bounded_integer(2 if name in ("--connections", "--busy") else 1, most)
        parser.add_argument(name, type=kind, default=default, metavar="N", help=f"{what} (default: {default})")
    parser.add_argument(
        "--sizes",
        type=lambda text: tuple(bounded_integer(2, 60_000)(part) for part in text.split(",") if part),
        default=(10, 100, 1_000, 5_000),
        metavar="N,N,..",
        help="swarms whose nodes' bytes are counted (default: 10,100,1000,5000)",
    )
    parser.add_argument("--home", type=Path, metavar="DIR", help="where the compiled load generator is kept")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    files = raise_file_limit()
    connections = min(args.connections, files - SPARE_DESCRIPTORS)
    if connections < args.connections:
        tell(f"A process may have {files} descriptors here: {connections} connections, not {args.connections}.")
    if connections < 2:
        raise BenchError(f"A process may have {files} descriptors here, too few: raise it with ulimit -n.")
    program = compile_generator(home(args.home) / "cache")
    load = warn_if_busy(tell)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        put = LoadRunner(Path(name), program)
        tell("Groups are being written and signed ...")
        fill = list(publish_frames(min(FILL_KEYS, args.busy), args.fill, 1))
        figures = measure_saturated_load(put, args, fill, tell)
        figures |= measure_open_load(put, args, connections, fill, tell)
        figures |= measure_traffic(
            put, [size for size in args.sizes if size <= connections], figures["stats_bytes"], tell
        )
    return {
        **{
            name: rounded(figures.pop(name))
            for name in ("cpu_us_per_round", "kb_per_connection", "sample_p99_ms")
        },
        "connections": connections,
        "connections_asked": args.connections,
        "descriptor_limit": files,
        "rate": args.rate,
        "repeats": args.repeats,
        **{name: rounded(figure) for name, figure in figures.items()},
        "machine": machine(load),
        "budget": TARGETS,
    }


class LoadRunner:
    """Runs loads and checks that each was complete."""

    def __init__(self, folder: Path, program: Path) -> None:
        self._folder = folder
        self._program = program

    def __call__(
        self,
        wires: Sequence[BlockingConnection],
        rounds: Sequence[bytes],
        *,
        rate: float = 0.0,
        items: float = K - 0.5,
    ) -> LoadResult:
        load = run_load(
            self._folder,
            self._program,
            [wire.release_socket() for wire in wires],
            rounds,
            to_frame(SAMPLE),
            rate=rate,
        )
        load.check(len(rounds), items)
        return load


SAMPLE = Sample(rid=1, k=K, families=FAMILIES, max_age_s=STALE_AFTER_S)


def costing(server: StartedServer, put: Callable[[], LoadResult], rounds: int) -> tuple[Figures, LoadResult]:
    """The cost of one load: the processor time of the server and of its child processes in microseconds a
    round, and the load's seconds; and the load itself."""
    before, helpers = server.cpu_s(), server.helpers_cpu_s()
    load = put()
    return {
        "seconds": load.counts.seconds,
        "cpu_us": (server.cpu_s() - before) / rounds * 1e6,
        "helpers_us": (server.helpers_cpu_s() - helpers) / rounds * 1e6,
    }, load


def measure_saturated_load(
    put: LoadRunner, args: argparse.Namespace, fill: Sequence[bytes], tell: Tell
) -> Figures:
    """Measures the relay, the bare websocket, and one that checks hash and signature, in turn, at full load."""
    numbers = {kind: count(1) for kind in ("relay", "raw", "least")}
    with contextlib.ExitStack() as stack:
        servers = {kind: stack.enter_context(StartedServer(kind)) for kind in numbers}
        servers["relay"].give_standing(args.busy)
        wires = {
            kind: stack.enter_context(joined(server, args.busy, signed=kind == "relay"))
            for kind, server in servers.items()
        }
        put(wires["relay"], fill, items=0)

        def measure(kind: str) -> Figures:
            rounds = list(publish_frames(args.busy, args.rounds, 10**6 * next(numbers[kind])))
            return costing(servers[kind], partial(put, wires[kind], rounds), len(rounds))[0]

        found, _ = in_turns({kind: partial(measure, kind) for kind in numbers}, args.repeats, tell)
    for kind, one in found.items():
        if "missing" in one:
            raise BenchError(f"{kind}: {one['missing']}")
    ours, raw, least = (found[kind]["cpu_us"] for kind in numbers)
    return {
        "cpu_us_per_round": ours,
        "raw_cpu_us_per_round": raw,
        "least_cpu_us_per_round": least,
        "cpu_ratio_to_raw": ours / raw,
        "cpu_ratio_to_least": ours / least,
        "own_cpu_us_per_round": ours - least,
        "helpers_cpu_us_per_round": found["relay"]["helpers_us"],
        "saturated_rounds_per_s": args.rounds / found["relay"]["seconds"],
        "raw_saturated_rounds_per_s": args.rounds / found["raw"]["seconds"],
        "saturated_connections": args.busy,
    }


def measure_open_load(
    put: LoadRunner, args: argparse.Namespace, connections: int, fill: Sequence[bytes], tell: Tell
) -> Figures:
    """Measures many connections: their memory, and the latency at a given rate."""
    figures: Figures = {}
    many = args.rate * args.seconds
    for kind in ("relay", "raw"):
        name = "" if kind == "relay" else "raw_"
        with StartedServer(kind) as server:
            with joined(server, min(FILL_KEYS, args.busy), signed=kind == "relay") as wires:
                put(wires, fill, items=0)
            empty = server.rss()
            server.give_standing(connections)
            with joined(server, connections, signed=kind == "relay") as wires:
                figures[name + "kb_per_idle_connection"] = (server.rss() - empty) / connections / 1024
                costs = []
                for repeat in range(args.repeats):
                    rounds = list(publish_frames(connections, many, 10**6 * (repeat + 100)))
                    costs.append(costing(server, partial(put, wires, rounds, rate=args.rate), many))
                    p99 = percentile_ms(costs[-1][1].sample_us, 99)
                    tell(f"{connections} connections, {repeat + 1} of {args.repeats}: {kind}: p99 {p99:.1f} ms")
                figures[name + "kb_per_connection"] = (server.rss() - empty) / connections / 1024
                if kind == "relay":
                    figures["stats_bytes"] = _looked_at(server.url, connections + 1)
        for what in ("publish", "sample"):
            for percent in (50, 99):
                figures[f"{name}{what}_p{percent}_ms"] = median(
                    percentile_ms(getattr(load, f"{what}_us"), percent) for _, load in costs
                )
        figures[name + "sample_max_ms"] = max(percentile_ms(load.sample_us, 100) for _, load in costs)
        figures[name + "sent_late_p99_ms"] = median(percentile_ms(load.late_us, 99) for _, load in costs)
        figures[name + "cpu_us_per_round_at_rate"] = median(cost["cpu_us"] for cost, _ in costs)
        figures[name + "items_per_batch"] = median(load.counts.items_per_batch for _, load in costs)
    return figures


def measure_traffic(put: LoadRunner, swarms: Sequence[int], stats_bytes: int, tell: Tell) -> dict[str, Any]:
    """Measures one node's traffic in bytes, both directions, in swarms of these sizes."""
    each: dict[str, dict[str, float]] = {}
    for size in swarms:
        rounds = max(2, 300 // size)
        with StartedServer("relay") as server:
            server.give_standing(size + GONE_KEYS)
            with joined(server, GONE_KEYS, first=size) as wires:
                put(wires, list(publish_frames(GONE_KEYS, 10 * GONE_KEYS, 1, first_key=size)), items=0)
            with joined(server, size) as wires:
                counts = put(wires, list(publish_frames(size, rounds * size, 1))).counts
        a_round = (counts.bytes_in + counts.bytes_out) / (rounds * size)
        an_hour = (60 * a_round + STATS_PER_HOUR * stats_bytes) / 1e6
        each[str(size)] = {
            "kb_per_round": round(a_round / 1000, 2),
            "items_per_batch": round(counts.items_per_batch, 3),
            "mb_per_hour": round(an_hour, 3),
        }
        tell(f"A swarm of {size}: {a_round / 1000:.1f} KB a round and node, {an_hour:.2f} MB an hour.")
    per_round = [one["kb_per_round"] for one in each.values()]
    return {
        "traffic": each,
        "traffic_largest_to_smallest": max(per_round) / min(per_round) if per_round else None,
        "mb_per_hour": max((one["mb_per_hour"] for one in each.values()), default=None),
    }


_ROWS = {
    "processor time, saturated (us/round)": "cpu_us_per_round",
    "  websocket, hash and signature": "least_cpu_us_per_round",
    "  all else": "own_cpu_us_per_round",
    "  of its child processes": "helpers_cpu_us_per_round",
    "rounds, saturated (1/s)": "saturated_rounds_per_s",
    "processor time at this rate (us/round)": "cpu_us_per_round_at_rate",
    "memory, after traffic (KB/connection)": "kb_per_connection",
    "memory, idle (KB/connection)": "kb_per_idle_connection",
    "sample, median (ms)": "sample_p50_ms",
    "sample, p99 (ms)": "sample_p99_ms",
    "sample, longest (ms)": "sample_max_ms",
    "publish, median (ms)": "publish_p50_ms",
    "publish, p99 (ms)": "publish_p99_ms",
    "sent late by the load, p99 (ms)": "sent_late_p99_ms",
}


def table(figures: dict[str, Any]) -> list[str]:
    lines = [f"{'':<40}{'relay':>10} {'bare ws':>10}  budget"]
    for name, key in _ROWS.items():
        ours, raw = (f"{figures[one]:>10.1f}" if one in figures else " " * 10 for one in (key, f"raw_{key}"))
        lines.append(f"{name:<40}{ours} {raw}  {figures['budget'].get(key, '')}".rstrip())
    lines += [
        f"The relay takes {figures['cpu_ratio_to_raw']:.2f} times the processor time of the bare websocket, "
        f"{figures['cpu_ratio_to_least']:.2f} times that of one which also checks hash and signature.",
        f"{figures['connections']} connections ({figures['descriptor_limit']} descriptors a process), "
        f"{figures['rate']} rounds/s; {figures['saturated_connections']} when saturated; "
        f"medians of {figures['repeats']}.",
    ]
    for size, one in figures["traffic"].items():
        lines.append(
            f"A node in a swarm of {size:>5}: {one['kb_per_round']:.1f} KB a round of "
            f"{one['items_per_batch']:.2f} peer groups, {one['mb_per_hour']:.2f} MB an hour at one round a "
            f"minute (budget {TARGETS['mb_per_hour']:g})."
        )
    return [*lines, figures["machine"]]


@contextlib.contextmanager
def joined(
    server: StartedServer, many: int, *, first: int = 0, signed: bool = True
) -> Iterator[list[BlockingConnection]]:
    wires: list[BlockingConnection] = []
    try:
        for wire in join(server.url, range(first, first + many), signed=signed):
            wires.append(wire)
        yield wires
    finally:
        for wire in wires:
            wire.close()


def _looked_at(url: str, number: int) -> int:
    """Takes one batch as a node would, verifying every signature, and returns the bytes of a stats frame."""
    wire = next(join(url, [number]))
    try:
        wire.say(to_frame(SAMPLE))
        batch = wire.message()
        if not isinstance(batch, SampleReply) or len(batch.items) < K or batch.window < 1:
            raise BenchError(f"After the load a batch has not {K} groups: {str(batch)[:200]}.")
        for raw in batch.items:
            unseal(decode_envelope(raw), SWARM)
        wire.say(to_frame(AskStats()))
        return len(wire.hear()) + 4
    finally:
        wire.close()


def raise_file_limit() -> int:
    """Raises the limit of open files as far as possible, for this process and its children, and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, 65_536)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def rounded(figure: Any) -> Any:
    return round(figure, 3) if isinstance(figure, float) else figure
