"""A node without a view in this terminal: under a window of another process, or with one plain line for what is
worth a line in a log. For a window snapshots go out as JSON lines, and orders come in as JSON lines.

out   {"event":"snapshot","snapshot":{..}}     whenever it changed, large parts only when they did
      {"event":"round",..} and "probe"         whole, as they have just been written into the history
in    {"command":"stop"}                       and the others of app.node.record.commands

It ends when its input does, however the window went, and it works at low priority unless its owner insists, as
does the trainer that it starts.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

from app.node.record import commands, events
from app.node.record.records import Probe, Round
from app.node.record.snapshot import Snapshot

_LARGE = ("answers", "swarm")
_READ = ("curve", "families", "last")
"""Fields that a window gets from the history and its records instead."""
_PIECE = 4096


class SnapshotLines:
    """A view like the terminal's: `refresh` is called a few times a second."""

    def __init__(self, stream: TextIO, read: Callable[[], Snapshot]) -> None:
        self._stream, self._read = stream, read
        self._last: Snapshot | None = None

    def open(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Writes a changed snapshot. Raises BrokenPipeError when nobody reads any more."""
        snapshot, last = self._read(), self._last
        if snapshot == last:
            return
        shown: dict[str, Any] = msgspec.to_builtins(snapshot)
        for name in _LARGE:
            if last is not None and getattr(snapshot, name) == getattr(last, name):
                del shown[name]
        for name in _READ:
            del shown[name]
        if "swarm" in shown and _same_messages(snapshot, last):
            del shown["swarm"]["messages"]
        self._last = snapshot
        line = msgspec.json.encode({"event": "snapshot", "snapshot": shown}).decode()
        self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        self.refresh()


def _same_messages(snapshot: Snapshot, last: Snapshot | None) -> bool:
    now, before = snapshot.swarm, None if last is None else last.swarm
    return now is not None and before is not None and now.messages == before.messages


def listen(
    descriptor: int, order: Callable[[commands.Command], None], refuse: Callable[[commands.CommandError], None]
) -> None:
    """Passes on commands as they come, from a thread that ends with the process, and invalid lines to `refuse`;
    the end of the input is an order to stop. It reads the descriptor itself: a thread inside Python's standard
    input is fatal when the process ends.
    """

    def work() -> None:
        lines = commands.Lines()
        with contextlib.suppress(OSError):
            while content := os.read(descriptor, _PIECE):
                for line in lines.feed(content):
                    try:
                        command = commands.decode(line)
                    except commands.CommandError as error:
                        refuse(error)
                    else:
                        order(command)
        order(commands.Stop())

    threading.Thread(target=work, name="orders", daemon=True).start()


def log_line(event: events.Event) -> str | None:
    """An event for people, None if it says nothing new."""
    match event:
        case events.Started():
            at = f"continuing after round {event.round}" if event.round else "starting fresh"
            where = f"{event.engine.name} ({event.engine.device}, {event.engine.dtype})"
            return f"{event.model} on {where}, {event.recipe} recipe, {at}."
        case Round():
            return f"Round {event.round}: {'; '.join(event.gist)}; {event.seconds:.1f} s."
        case Probe():
            return f"New puzzles solved after round {event.round}: {event} of {event.questions}."
        case (
            events.TrainerRestarted()
            | events.NodeNote()
            | events.PlacementDone()
            | events.SkillLearned()
            | events.ProgressStalled()
            | events.RulingChanged()
            | events.CommandRefused()
        ):
            return event.sentence
        case events.IdentityNamed():
            return f"Others see you as {event.name}."
        case events.LinkChanged():
            alone = "" if event.state == "connected" else " It keeps learning on its own; nothing is lost."
            return f"{event.sentence}{alone}"
        case (
            events.CheckpointSaved()
            | events.SwarmDone()
            | events.WaitingToBegin()
            | events.SettingsNow()
            | events.NodeEnded()
        ):
            return None
