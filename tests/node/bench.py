"""A node with a fake trainer: everything is real but the engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from app.node.data.home import identity, lock_data_folder
from app.node.history.checkpoint import STATE_FILE, CheckpointManifest
from app.node.node import Node
from app.node.record import events
from app.node.record.settings import Settings
from app.node.round.peers import NodeSwarm
from app.skills.skill import Skill

Event = TypeVar("Event", bound=events.Event)
FAKE = Path(__file__).with_name("fake_trainer.py")
SETTINGS = Settings(
    model="tiny",
    families={"chain_sum": 1},
    groups=4,
    external=0,
    max_tokens=32,
    learning_rate=1e-3,
    rank=None,
    recipe="default",
    probe_every=2,
    probe_questions=12,
    solo=False,
    rounds=3,
    seed=1,
    shuffled_rewards=False,
)


class Bench:
    """One data folder and one model; `run` is one node from start to end."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.model = folder / "model"
        self.model.mkdir(exist_ok=True)
        (self.model / "config.json").write_text("{}")
        (self.model / "model.safetensors").write_bytes(b"weights")
        self.events: list[events.Event] = []
        self.node: Node | None = None
        self.sets: Sequence[Path] = ()
        self.skills: Sequence[Skill] = ()

    @property
    def checkpoints(self) -> Path:
        (found,) = self.home.glob("models/*/checkpoints")
        return found

    @property
    def history(self) -> Path:
        (found,) = self.home.glob("models/*/history.sqlite")
        return found

    def steps(self, round: int) -> tuple[int, int]:
        """The optimiser steps in a checkpoint: those the engine took, and those the node counted. A round
        played twice without going back in between would part them."""
        folder = self.checkpoints / f"round-{round:06d}"
        manifest = msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=CheckpointManifest)
        return json.loads((folder / "adapter.json").read_text())["steps"], manifest.state.steps

    def run(
        self,
        stop_when: Callable[[events.Event], bool] = lambda event: False,
        swarm: NodeSwarm | None = None,
        **changes: object,
    ) -> list[events.Event]:
        """Runs a node and returns its events. It is stopped, as by Ctrl-C, at an event that `stop_when` is true
        of."""
        seen: list[events.Event] = []

        async def live() -> None:
            def tell(event: events.Event) -> None:
                seen.append(event)
                self.events.append(event)
                if stop_when(event):
                    task.cancel()

            settings = msgspec.structs.replace(SETTINGS, **changes)
            with lock_data_folder(self.home):
                own = identity(self.home, settings.seed)
                fake = (sys.executable, str(FAKE))
                self.node = Node(
                    settings, self.model, self.home, own, tell, fake, swarm, sets=self.sets, skills=self.skills
                )
                task = asyncio.create_task(self.node.run())
                with contextlib.suppress(asyncio.CancelledError):
                    await task

        asyncio.run(live())
        return seen


def of(kind: type[Event], seen: list[events.Event]) -> list[Event]:
    """The events of one kind."""
    return [event for event in seen if isinstance(event, kind)]


def rows(bench: Bench, query: str) -> list[tuple]:
    """What the history says."""
    with sqlite3.connect(bench.history) as db:
        return db.execute(query).fetchall()
