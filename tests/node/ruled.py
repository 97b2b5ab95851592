"""A node under rules, with facts that a test sets: everything else is real but the engine."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import psutil

from app.desktop.facts import DesktopFacts
from app.node.data.home import identity, lock_data_folder
from app.node.governing import Governor
from app.node.node import Node
from app.node.record import events
from app.node.record.records import Probe, Round
from app.node.record.snapshot import Phase
from app.node.round.peers import NodeSwarm
from tests.node.bench import FAKE, SETTINGS, Bench, Event, of

PATIENCE_S = 240.0
CALM = DesktopFacts(
    idle_s=10_000.0,
    on_battery=False,
    saver=False,
    full_screen=False,
    cpu_others=0.02,
    gpu_others=0.0,
    memory_free=0.6,
    memory_stalled=0.0,
    temperature_c=50.0,
    too_hot=False,
)
IN_USE = msgspec.structs.replace(CALM, idle_s=0.0)


class Told:
    """A provider that knows what it is told."""

    def __init__(self, facts: DesktopFacts = CALM) -> None:
        self.facts = facts
        self.closed = False

    def start(self) -> None:
        pass

    def gather(self) -> DesktopFacts:
        return self.facts

    def close(self) -> None:
        self.closed = True


class Ruled:
    """One start of a node with its governor."""

    def __init__(self, bench: Bench, facts: DesktopFacts, swarm: NodeSwarm | None, **changes: object) -> None:
        self.seen: list[events.Event] = []
        self.facts = Told(facts)
        settings = msgspec.structs.replace(SETTINGS, **{"rounds": None, **changes})
        own = identity(bench.home, settings.seed)
        self.node = Node(
            settings,
            bench.model,
            bench.home,
            own,
            self._hear,
            (sys.executable, str(FAKE)),
            swarm,
            governed=True,
        )
        self.governor = Governor(bench.home, lambda say: self.facts, self.node.obey, self.node.forward_event)

    def _hear(self, event: events.Event) -> None:
        self.seen.append(event)
        if isinstance(event, events.CheckpointSaved | Probe):
            self.governor.round_finished()

    @property
    def phase(self) -> Phase:
        return self.node.snapshot.phase

    @property
    def rounds(self) -> list[int]:
        return [event.round for event in of(Round, self.seen)]

    def of(self, kind: type[Event]) -> list[Event]:
        return of(kind, self.seen)

    async def until(self, holds: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, (self.node.snapshot.ruling, self.seen[-3:])
            assert not self.task.done(), self.task
            await asyncio.sleep(0.002)

    async def paused(self) -> None:
        await self.until(lambda: self.phase is Phase.PAUSED)
        assert trainers() == []

    async def another_round(self) -> None:
        before = len(self.rounds)
        await self.until(lambda: len(self.rounds) > before)


def trainers() -> list[psutil.Process]:
    """The trainers that this process has."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if str(FAKE) in child.cmdline():
                found.append(child)
    return found


@asynccontextmanager
async def ruled(
    bench: Bench, facts: DesktopFacts = CALM, swarm: NodeSwarm | None = None, **changes: object
) -> AsyncIterator[Ruled]:
    """Runs until the block is left, which stops the node as Ctrl-C does."""
    with lock_data_folder(bench.home):
        running = Ruled(bench, facts, swarm, **changes)
        running.task = asyncio.create_task(running.node.run())
        await asyncio.sleep(0)
        ruling = asyncio.create_task(running.governor.run())
        try:
            yield running
            if ruling.done():
                ruling.result()
        finally:
            running.task.cancel()
            await asyncio.wait({running.task})
            ruling.cancel()
            await asyncio.wait({ruling})
    assert trainers() == [] and running.facts.closed
