"""Two relays on three NATS servers under one load: how long answers take, what a killed server stops, and how
many bytes go between the servers.

Everything is real and on this computer: the servers keep every group three times, each relay has half of the
connections and mirrors what the other was given. Rounds come when they come, as in `bench relay`. After the
steady loads one server is killed with -9 in the middle of another load.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from app.bench import BenchError, Tell, warn_if_busy
from app.bench.relay.joining import BlockingConnection, join, publish_frames
from app.bench.relay.loading import LoadResult, compile_generator, percentile_ms, run_load
from app.bench.relay.relay import SAMPLE, SPARE_DESCRIPTORS, machine_description, raise_file_limit
from app.bench.relay.served import StartedServer
from app.common.home import home
from app.common.text import bounded_integer
from app.swarm.wire.frames import to_frame
from tests.relay.natsserver import Cluster, find_nats_server

SUMMARY = "two relays on three NATS servers: waiting times, a killed server, bytes between them"
_SETTLED_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--connections",
        type=bounded_integer(4, 60_000),
        default=10_000,
        help="of both relays (default: %(default)s)",
    )
    add("--rate", type=bounded_integer(1, 100_000), default=500, help="rounds/s of both (default: %(default)s)")
    add("--seconds", type=bounded_integer(1, 600), default=20, help="of one load (default: %(default)s)")
    add("--repeats", type=bounded_integer(1, 99), default=3, help="of the steady load (default: %(default)s)")
    add("--home", type=Path, metavar="DIR", help="where the compiled load generator is kept")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    if find_nats_server() is None:
        raise BenchError("There is no nats-server: ./shoal setup --nats installs one.")
    connections = 2 * (min(args.connections, raise_file_limit() - SPARE_DESCRIPTORS) // 2)
    program, load = compile_generator(home(args.home) / "cache"), warn_if_busy(tell)
    rounds = args.rate * args.seconds
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-bench-")))
        cluster = Cluster(folder / "nats")
        stack.callback(cluster.kill)
        cluster.start()
        servers = [f"nats://127.0.0.1:{one.port}" for one in cluster.servers]
        relays = [stack.enter_context(StartedServer("relay", servers)) for _ in range(2)]
        wires = _joined(relays, connections, stack)
        tell(f"{connections} connections are open.")
        number = 0

        def put() -> LoadResult:
            nonlocal number
            number += 1
            frames = list(publish_frames(connections, rounds, 10**6 * number))
            sockets = [wire.release_socket() for wire in wires]
            return run_load(folder, program, sockets, frames, to_frame(SAMPLE), rate=args.rate)

        put().check(rounds, 0)  # fills the window
        time.sleep(_SETTLED_S)
        steady, spent, before = [], [relay.cpu_s() for relay in relays], _carried(cluster)
        for repeat in range(args.repeats):
            steady.append(put())
            steady[-1].check(rounds, 7.5)
            tell(f"{repeat + 1}/{args.repeats}: sample p99 {percentile_ms(steady[-1].sample_us, 99):.1f} ms.")
        all_rounds = args.repeats * rounds
        carried = {what: now - before[what] for what, now in _carried(cluster).items()}
        cpu_us = [(relay.cpu_s() - then) / all_rounds * 2e6 for relay, then in zip(relays, spent, strict=True)]
        timer = threading.Timer(args.seconds / 3, cluster.servers[0].kill)
        timer.start()
        struck = put()
        timer.join()
    refused = sum(struck.counts.others.values())
    return {
        "connections": connections,
        "rate": args.rate,
        "rounds": all_rounds,
        "publish_p50_ms": median(percentile_ms(one.publish_us, 50) for one in steady),
        "publish_p99_ms": median(percentile_ms(one.publish_us, 99) for one in steady),
        "sample_p50_ms": median(percentile_ms(one.sample_us, 50) for one in steady),
        "sample_p99_ms": median(percentile_ms(one.sample_us, 99) for one in steady),
        "longest_ms": max(percentile_ms([*one.publish_us, *one.sample_us], 100) for one in steady),
        "relay_cpu_us_per_own_round": cpu_us,
        "bytes_a_round_between_servers": carried["between"] / all_rounds,
        "bytes_a_round_from_and_to_relays": carried["clients"] / all_rounds,
        "killed": {
            "rounds": rounds,
            "accepted": struck.counts.accepted,
            "refused": refused,
            "answers": struck.counts.others,
            "unanswered": struck.counts.unanswered,
            "lost_connections": struck.counts.dead,
            "publish_p99_ms": percentile_ms(struck.publish_us, 99),
            "sample_p99_ms": percentile_ms(struck.sample_us, 99),
            "longest_ms": percentile_ms([*struck.publish_us, *struck.sample_us], 100),
        },
        "machine": machine_description(load),
    }


def _joined(
    relays: list[StartedServer], connections: int, stack: contextlib.ExitStack
) -> list[BlockingConnection]:
    """Connections to both relays by turns; key n has the n-th."""
    halves: list[list[BlockingConnection]] = []
    for at, relay in enumerate(relays):
        relay.give_standing(connections)
        halves.append([])
        for wire in join(relay.url, range(at, connections, len(relays))):
            stack.callback(wire.close)
            halves[-1].append(wire)
    return [wire for pair in zip(*halves, strict=True) for wire in pair]


def _carried(cluster: Cluster) -> dict[str, float]:
    """Bytes that servers have sent to each other, and exchanged with the relays."""
    between = clients = 0.0
    for server in cluster.servers:
        sent = sum(route["out_bytes"] for route in server.told("routez")["routes"])
        between += sent
        clients += sum(one["in_bytes"] + one["out_bytes"] for one in server.told("connz")["connections"])
    return {"between": between, "clients": clients}


def table(figures: dict[str, Any]) -> list[str]:
    killed = figures["killed"]
    first, second = figures["relay_cpu_us_per_own_round"]
    return [
        f"{figures['connections']} connections, {figures['rate']} rounds/s, {figures['rounds']} rounds in all.",
        f"Publish: median {figures['publish_p50_ms']:.1f} ms, p99 {figures['publish_p99_ms']:.1f} ms. Sample: "
        f"median {figures['sample_p50_ms']:.1f} ms, p99 {figures['sample_p99_ms']:.1f} ms. Longest of all: "
        f"{figures['longest_ms']:.1f} ms.",
        f"A relay takes {first:.0f} and {second:.0f} us a round of its own, mirroring the other's included.",
        f"Bytes a round: {figures['bytes_a_round_between_servers'] / 1000:.1f} KB between the three servers, "
        f"{figures['bytes_a_round_from_and_to_relays'] / 1000:.1f} KB between them and the relays.",
        f"One server killed with -9: {killed['accepted']} of {killed['rounds']} rounds accepted, "
        f"{killed['refused']} told to come again, {killed['unanswered']} without an answer, "
        f"{killed['lost_connections']} connections lost; longest answer {killed['longest_ms']:.0f} ms, p99 of "
        f"publishing {killed['publish_p99_ms']:.0f} ms.",
        figures["machine"],
    ]
