"""The metrics for a monitoring system: `/metrics` on a separate listener, off by default.

Every value is read from the relay at the time of the scrape; only the event loop's lag is sampled in between,
twice a second."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from app.common import signing
from app.relay.server.server import Server

PATH = "/metrics"
LAG_EVERY_S = 0.5  # seconds; a scrape is rarer
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "relay_"


class LoopLag:
    """Measures the event loop's lag; `take` returns the worst delay since its last call, in seconds."""

    def __init__(self) -> None:
        self._worst = 0.0

    async def run(self) -> None:
        """Measures the lag until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LAG_EVERY_S
            await asyncio.sleep(LAG_EVERY_S)
            self._worst = max(self._worst, loop.time() - due)

    def take(self) -> float:
        worst, self._worst = self._worst, 0.0
        return worst


class RelayFigures(Collector):
    """The Prometheus collector of one relay."""

    def __init__(self, server: Server, lag: LoopLag) -> None:
        self._server = server
        self._lag = lag

    def collect(self) -> Iterator[Metric]:
        server, state = self._server, self._server.state
        tally, window = state.tally, state.window
        window.expire()
        now = state.clock()
        oldest = next(iter(window), None)
        families: dict[str, float] = {}
        for (family, _), groups in window.sizes.items():
            families[family] = families.get(family, 0) + groups
        turned = tally.ended + server.sockets.turned
        yield _gauge("connections", "Open websockets, signed in or not", server.connections)
        yield _gauge("sockets", "Open sockets of every kind", len(server.sockets))
        yield _gauge("peers", "Keys signed in", len(state.presence))
        yield _gauge("uptime_seconds", "Since the start", now - tally.started)
        yield _counters("auth", "Sign-ins by their result", "result", tally.sign_ins)
        yield _counters("pub", "Groups that clients brought, by the answer's code", "code", state.counts)
        yield _counters("turned", "Connections turned away or ended by the relay", "reason", turned)
        yield _counter("sample", "Batches given out", tally.samples)
        yield _counter("items_out", "Groups in these batches", tally.items)
        yield _counter("bytes_in", "Bytes of the messages received", tally.bytes_in)
        yield _counter("bytes_out", "Bytes of the messages sent", tally.bytes_out)
        yield _counter("outbound_dropped", "Clients that did not take what was sent", tally.ended["slow"])
        yield _counter("stored", "Groups ever stored", state.store.backing.stored)
        yield _gauge("verify_seconds", "One signature check, tried now", _verify_s())
        yield _gauge("loop_lag_seconds", "Worst lateness of the loop since the last scrape", self._lag.take())
        yield _gauges("window_size", "Groups in the window", "family", families)
        yield _gauge("window_bytes", "Bytes of the groups in the window", window.size)
        yield _gauge("window_age_seconds", "Age of the oldest group", now - oldest.arrived if oldest else 0)
        yield _gauge("unique_sources", "Keys with groups in the window", len(window.peers))
        yield _gauge("bans", "Keys and addresses shut out", len(state.standings.bans.all(time.time())))
        yield _gauge("engine_up", "Whether the store takes groups", float(state.store.backing.ready))
        yield SummaryMetricFamily(
            f"{_PREFIX}engine_publish_seconds",
            "How long the store took for the groups that had to wait for it; in memory none has to.",
            count_value=state.store.waited,
            sum_value=state.store.waited_s,
        )
        for name, help in _ENGINE.items():
            value = getattr(state.store.backing, name, None)
            if value is not None:
                yield _gauge(name, help, float(value))
        if state.checker is not None:
            checker = state.checker
            yield _counters("checks", "Groups scored again, by what was found", "finding", checker.counts)
            yield _gauge("checks_waiting", "Groups that wait for a check", checker.waiting_groups)
            yield _gauge("checks_up", "Whether groups can be scored here", float(checker.working))
        yield from _process()


_ENGINE = {
    "mirror_resets": "How often the mirror of the store was set up anew",
    "mirror_lag_messages": "What the store had a second ago and the mirror has not",
}
"""Metrics that only some stores have, with their help texts."""


def _process() -> Iterator[Metric]:
    """File descriptors, memory and CPU time of this process, where the system provides them."""
    yield _counter("cpu_seconds", "Processor time of this process", time.process_time())
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        files = len(os.listdir("/proc/self/fd"))
    except OSError:
        return
    yield _gauge("rss_bytes", "Memory of this process", pages * os.sysconf("SC_PAGE_SIZE"))
    yield _gauge("open_fds", "Open descriptors", files)


_SEED = bytes(32)
_KEY = signing.public_key(_SEED)
_SIGNATURE = signing.sign(_SEED, _SEED)


def _verify_s() -> float:
    before = time.perf_counter()
    signing.verifies(_KEY, _SEED, _SIGNATURE)
    return time.perf_counter() - before


def _gauge(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, help + ".", value=value)


def _counter(name: str, help: str, value: float) -> Metric:
    return CounterMetricFamily(_PREFIX + name, help + ".", value=value)


def _gauges(name: str, help: str, label: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(_PREFIX + name, help + ".", labels=(label,))
    for key, value in sorted(values.items()):
        family.add_metric((key,), value)
    return family


def _counters(name: str, help: str, label: str, values: dict[str, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, help + ".", labels=(label,))
    for key, value in sorted(values.items()):
        family.add_metric((key,), value)
    return family


def metrics_application(figures: RelayFigures) -> web.Application:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(figures)

    async def scrape(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": _TYPE})

    application = web.Application()
    application.add_routes([web.get(PATH, scrape)])
    return application
