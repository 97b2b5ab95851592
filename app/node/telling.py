"""Tells what happens in a node: to views by the snapshot, to the history, and to whoever hears its events."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable

import msgspec

from app.node.record import events
from app.node.record.records import Happening
from app.node.round.watch import SnapshotWriter


class Telling:
    """`keep` puts a row into the history; `round_` is the last round that is safe."""

    def __init__(
        self,
        watch: SnapshotWriter,
        hears: Callable[[events.Event], None],
        keep: Callable[[Happening], None],
        round_: Callable[[], int],
    ) -> None:
        self._watch, self._hears, self._keep, self._round = watch, hears, keep, round_

    def note(self, sentence: str) -> None:
        """A sentence for the owner."""
        self.say("note", events.NodeNote(round=self._round(), sentence=sentence))

    def say(
        self, kind: str, event: events.NodeNote | events.Placed | events.Flat | events.TrainerRestarted
    ) -> None:
        """An event with its sentence, which is kept in the history as of that kind."""
        self._watch.note(event.sentence)
        self._record(kind, event.sentence)
        self._hears(event)

    def hear(self, event: events.Event) -> None:
        """What the swarm and the rules tell, which know no rounds; their sentences are kept in the history."""
        if isinstance(event, events.NodeNote):
            self.note(event.sentence)
            return
        if isinstance(event, events.SwarmDone | events.Decided | events.SettingsNow | events.CommandRefused):
            event = msgspec.structs.replace(event, round=self._round())
        if isinstance(event, events.Decided):
            self._record("decision", event.sentence)
        self._hears(event)

    def _record(self, kind: str, sentence: str) -> None:
        with contextlib.suppress(sqlite3.Error):  # a sentence is not worth a round
            self._keep(Happening(at=time.time(), round=self._round(), kind=kind, sentence=sentence))
