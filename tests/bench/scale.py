"""One relay's part of swarms of 10^5 and 10^6 nodes: the relay's own window and sampler, without sockets.

Every node publishes a group and samples eight once a minute. The relay serves `--clients` of them and mirrors
a part of the swarm's subjects; the rest is arithmetic, which app/relay/SCALE.md spells out. A tenth of the keys
are an attacker's: from a hundredth of the networks they publish ten times as much. No one has standing, which
is the worst case: a swarm whose keys are all new.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from random import Random
from statistics import mean
from typing import Any

import msgspec

from app.bench import Tell
from app.common.text import bounded_integer
from app.relay.session.sampling import Sampler
from app.relay.store.jetstream import SHARDS
from app.relay.store.turns import SampleQuery
from app.relay.store.window import Window, WindowLimits

SUMMARY = "a relay of a very large swarm: what its window covers, whom its samples are of, what they cost"
K, BYTES, ROUND_S = 8, 4_400, 60.0
LEVELS = 160
"""Families times levels that are played."""
KEYS_PER_NETWORK = 8
"""Honest keys of one network."""
FOES, FOES_SITES, FOES_RATE = 0.1, 0.01, 10
SPLIT_SIZES = ((100_000, 1), (100_000, 4), (1_000_000, 1), (1_000_000, SHARDS))
"""Nodes, and one of how many parts of the subjects a relay mirrors."""


class RelayResult(msgspec.Struct):
    """The figures of one relay's run."""

    nodes: int
    parts: int
    window_groups: int
    window_s: float
    keys: int
    batch_keys: float
    batch_sites: float
    foes_published: float
    foes_given: float
    given_twice: float
    add_us: float
    sample_us: float
    mirror_mbit_s: float
    serve_mbit_s: float
    mirror_core: float
    sample_core: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--clients",
        type=bounded_integer(10, 100_000),
        default=10_000,
        help="of the relay (default: %(default)s)",
    )
    add(
        "--samples",
        type=bounded_integer(10, 10**6),
        default=500,
        help="drawn in each swarm (default: %(default)s)",
    )


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    seen = []
    for nodes, parts in SPLIT_SIZES:
        seen.append(play(nodes, parts, args.clients, args.samples))
        tell(f"{nodes} nodes, a relay with one part of {parts}: {seen[-1].window_s:.0f} s in its window.")
    return {"clients": args.clients, "samples": args.samples, "swarms": msgspec.to_builtins(seen)}


def play(nodes: int, parts: int, clients: int, samples: int) -> RelayResult:
    """The window is filled once over, then samples are drawn while it turns on at the swarm's pace."""
    rng, now = Random(nodes + parts), [0.0]
    window = Window(WindowLimits(), lambda: now[0])
    sampler = Sampler(window, rng, askers=clients)
    here = nodes // parts
    foes = int(FOES * here)
    sites = here // KEYS_PER_NETWORK
    rate = (here - foes + FOES_RATE * foes) / ROUND_S
    raw, number = bytes(BYTES), [0]

    def publish() -> None:
        number[0] += 1
        foe = rng.random() < FOES_RATE * foes / (here - foes + FOES_RATE * foes)
        who = rng.randrange(foes) if foe else foes + rng.randrange(here - foes)
        place = who % max(1, int(FOES_SITES * sites)) if foe else who // KEYS_PER_NETWORK
        now[0] += 1 / rate
        window.add(
            id=number[0].to_bytes(32, "little"),
            key=who.to_bytes(32, "big"),
            address=f"{place + foe * 2**32:016x}",
            family=f"family{rng.randrange(LEVELS // 4)}",
            level=rng.randrange(4),
            raw=raw,
        )

    limits = window.limits.whole
    filling = min(limits.groups, limits.bytes // BYTES, int(rate * window.limits.age_s))
    began = time.process_time()
    for _ in range(filling):
        publish()
    add_us = (time.process_time() - began) / filling * 1e6
    published = [int.from_bytes(group.key, "big") < foes for group in window]
    oldest = next(iter(window)).arrived
    covered, between = now[0] - oldest, rate * ROUND_S / clients
    given, keys, places, spent, owed = Counter[bytes](), list[int](), list[int](), 0.0, 0.0
    bad = total = 0
    for turn in range(samples):
        owed += between
        while owed >= 1:
            publish()
            owed -= 1
        ask = SampleQuery(key=(2**64 + turn % clients).to_bytes(32, "big"), k=K, max_bytes=1 << 19)
        began = time.process_time()
        drawn = sampler.sample(ask, lambda key: 1.0).groups
        spent += time.process_time() - began
        given.update(group.id for group in drawn)
        keys.append(len({group.key for group in drawn}))
        places.append(len({group.address for group in drawn}))
        bad += sum(int.from_bytes(group.key, "big") < foes for group in drawn)
        total += len(drawn)
    sample_us = spent / samples * 1e6
    return RelayResult(
        nodes=nodes,
        parts=parts,
        window_groups=len(window),
        window_s=covered,
        keys=len(window.peers),
        batch_keys=mean(keys),
        batch_sites=mean(places),
        foes_published=mean(published),
        foes_given=bad / max(1, total),
        given_twice=sum(times > 1 for times in given.values()) / max(1, len(given)),
        add_us=add_us,
        sample_us=sample_us,
        mirror_mbit_s=rate * BYTES * 8 / 1e6,
        serve_mbit_s=clients / ROUND_S * K * BYTES * 8 / 1e6,
        mirror_core=rate * add_us / 1e6,
        sample_core=clients / ROUND_S * sample_us / 1e6,
    )


def table(figures: dict[str, Any]) -> list[str]:
    """For people."""
    heads = f"{'nodes':>9} {'part':>5} {'window':>14} {'keys':>7} {'attacker in, out':>17} {'mirror':>14}"
    lines = [f"{heads} {'core':>6}"]
    for one in figures["swarms"]:
        lines.append(
            f"{one['nodes']:>9} 1/{one['parts']:<3} {one['window_groups']:>6} {one['window_s']:>5.0f} s "
            f"{one['keys']:>7} {100 * one['foes_published']:>8.0f} %, {100 * one['foes_given']:.1f} % "
            f"{one['mirror_mbit_s']:>7.0f} Mbit/s {one['mirror_core'] + one['sample_core']:>6.2f}"
        )
    return lines
