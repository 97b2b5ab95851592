"""Reports what a node does: writes the snapshot for views, and sends events to the history and to listeners."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Sequence

import msgspec

from app.node.record import events
from app.node.record.records import LogEntry, Probe
from app.node.record.settings import Settings
from app.node.record.snapshot import FamilyView, Phase, Ruling, Snapshot, SwarmView
from app.node.record.state import NodeState, SafeRound
from app.sapo.families import FAMILIES
from engines.contract import EngineInfo

_ANSWERS = 8  # as many as fit a view


class SnapshotWriter:
    """The only writer of the snapshot; every change creates a new frozen value."""

    def __init__(self, settings: Settings, home: str) -> None:
        self.snapshot = Snapshot(
            model=settings.model, recipe=settings.recipe, home=home, solo=settings.solo, started_at=time.time()
        )
        self._phase_began = time.monotonic()
        self._drawn = 0
        """The latest ordinary round."""

    def report(self, phase: Phase, done: int = 0, total: int = 0) -> None:
        """Records that a phase has begun, or that `done` of its `total` completions are done."""
        if phase is not self.snapshot.phase or total != self.snapshot.total:
            self._phase_began, self._done_before = time.monotonic(), done  # a lesson may resume half-way
        now = self.snapshot
        if phase is Phase.DRAWING:
            self._drawn = now.round
        lesson = (phase is Phase.LEARNING or now.lesson) and now.safe_round > 0 and self._drawn != now.round
        left = self._left(phase, done, total)
        self._change(phase=phase, lesson=lesson, done=done, total=total, eta_s=left)

    def show_ready(
        self, engine: EngineInfo, state: NodeState, probes: Sequence[Probe], last_round: int | None
    ) -> None:
        self._change(
            engine=engine,
            round=state.round + 1,
            last_round=last_round,
            safe_round=state.round,
            safe_at=state.saved_at or None,
        )
        self.show_probes(state, probes)

    def show_probes(self, state: NodeState, probes: Sequence[Probe]) -> None:
        self._change(curve=tuple(probes), families=_families(state, probes))

    def show_groups(self, kept: SafeRound, probes: Sequence[Probe]) -> None:
        """Shows the first groups of a round, own ones before peers'. They are selected by position, so they are
        neither the best nor the worst."""
        own = [group for group in kept.groups if group.peer is None]
        peers = [group for group in kept.groups if group.peer is not None]
        self._change(
            round=kept.state.round + 1,
            safe_round=kept.state.round,
            safe_at=kept.row.at,
            families=_families(kept.state, probes),
            answers=(*own[:_ANSWERS], *peers[:_ANSWERS]),
            last=kept.row,
        )

    def show_placement(self, waiting: tuple[str, ...]) -> None:
        self._change(waiting=waiting)

    def show_ruling(self, ruling: Ruling) -> None:
        self._change(ruling=ruling)

    def show_paused(self, state: NodeState) -> None:
        """Shows where a node will continue that was paused before it had a trainer."""
        self._change(round=state.round + 1, safe_round=state.round, safe_at=state.saved_at or None)

    def show_swarm(self, view: SwarmView) -> None:
        self._change(swarm=view)

    def note(self, sentence: str) -> None:
        self._change(note=sentence, noted_at=time.time())

    def _left(self, phase: Phase, done: int, total: int) -> float | None:
        """Estimates the seconds left of a phase, from its own pace, or before that from the last round's. None
        for a placement, which ends as soon as suitable puzzles are found."""
        if phase in (Phase.PLACING, Phase.GATHERING):
            return None
        if new := max(0, done - self._done_before):
            return (time.monotonic() - self._phase_began) / new * (total - done)
        last = self.snapshot.last
        return last.sample_s if last is not None and phase is Phase.SAMPLING else None

    def _change(self, **fields: object) -> None:
        self.snapshot = msgspec.structs.replace(self.snapshot, **fields)


def _families(state: NodeState, probes: Sequence[Probe]) -> tuple[FamilyView, ...]:
    first = probes[0].families if probes else {}
    latest = probes[-1].families if probes else {}
    return tuple(
        FamilyView(
            name=progress.family,
            title=FAMILIES[progress.family].title,
            level=progress.level,
            levels=len(FAMILIES[progress.family].levels),
            practised=progress.solved_share,
            first=first.get(progress.family),
            latest=latest.get(progress.family),
        )
        for progress in state.curriculum.families
    )


class EventFanout:
    """Sends events to listeners and to the history. `keep` adds a row to the history; `round_` returns the last
    saved round."""

    def __init__(
        self,
        watch: SnapshotWriter,
        hears: Callable[[events.Event], None],
        keep: Callable[[LogEntry], None],
        round_: Callable[[], int],
    ) -> None:
        self._watch, self._hears, self._keep, self._round = watch, hears, keep, round_

    def note(self, sentence: str) -> None:
        """Tells the owner a sentence."""
        self.say("note", events.NodeNote(round=self._round(), sentence=sentence))

    def say(
        self,
        kind: str,
        event: events.NodeNote
        | events.PlacementDone
        | events.SkillLearned
        | events.ProgressStalled
        | events.TrainerRestarted,
    ) -> None:
        """Sends an event, and stores its sentence in the history under this kind."""
        self._watch.note(event.sentence)
        self._record(kind, event.sentence)
        self._hears(event)

    def forward_event(self, event: events.Event) -> None:
        """Forwards events of the swarm and the rules, filling in the round; their sentences are stored in the
        history."""
        if isinstance(event, events.NodeNote):
            self.note(event.sentence)
            return
        if isinstance(
            event, events.SwarmDone | events.RulingChanged | events.SettingsNow | events.CommandRefused
        ):
            event = msgspec.structs.replace(event, round=self._round())
        if isinstance(event, events.RulingChanged):
            self._record("decision", event.sentence)
        self._hears(event)

    def _record(self, kind: str, sentence: str) -> None:
        with contextlib.suppress(sqlite3.Error):  # losing a sentence is better than losing a round
            self._keep(LogEntry(at=time.time(), round=self._round(), kind=kind, sentence=sentence))
