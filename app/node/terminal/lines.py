"""Output of a node without a view in this terminal: JSON lines for a window in another process, or plain log
lines.

    out   {"event":"snapshot","snapshot":{..}}      when it has changed; large parts only when they have changed
          {"event":"round",..} and "probe"          complete records, as written to the history
    in    {"command":"stop"}                        and the others of app.node.record.commands

The node ends when its input does, however the window ended. It and its trainer run at low priority unless the
owner insists.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any, TextIO

import msgspec

from app.models.catalogue import title
from app.node.record import commands, events
from app.node.record.records import Probe, Round
from app.node.record.snapshot import Snapshot

_LARGE = ("answers", "swarm")
_READ = ("curve", "families", "last")
"""Fields that a window gets from the history and the records instead."""
_PIECE = 4096  # bytes read at a time


class SnapshotLines:
    """Writes snapshots as JSON lines. Used like the terminal view: `refresh` is called a few times a second."""

    def __init__(self, stream: TextIO, read: Callable[[], Snapshot]) -> None:
        self._stream, self._read = stream, read
        self._last: Snapshot | None = None

    def open(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Writes the snapshot if it has changed. Raises BrokenPipeError if the reader is gone."""
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


def read_commands(
    descriptor: int, order: Callable[[commands.Command], None], refuse: Callable[[commands.CommandError], None]
) -> None:
    """Passes incoming commands to `order`, from a daemon thread, and invalid lines to `refuse`; the end of the
    input is an order to stop. It reads the descriptor directly: a thread inside Python's standard input is
    fatal when the process ends."""

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
    """Returns an event as a line for people; None for events without news."""
    match event:
        case events.Started():
            at = f"continuing after round {event.round}" if event.round else "starting fresh"
            where = f"{event.engine.name} ({event.engine.device}, {event.engine.dtype})"
            return f"{title(event.model)} on {where}, {event.recipe} recipe, {at}."
        case Round():
            return f"Round {event.round}: {'; '.join(event.short_phrases)}; {event.seconds:.1f} s."
        case Probe():
            return f"{event.subject} after round {event.round}: {event} of {event.questions}."
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
