"""A node under another process's window: snapshots out, orders in."""

from __future__ import annotations

import io
import json
import os
import queue

import msgspec

from app.node.record import commands
from app.node.record.events import Event, JsonLines
from app.node.record.records import Round
from app.node.record.snapshot import Phase, SwarmView
from app.node.terminal.lines import SnapshotLines, read_commands
from app.swarm.wire.limits import LoggedMessage
from tests.node.record.test_views import POINTS, SNAPSHOT


def test_a_line_for_every_change_and_large_parts_only_when_they_changed() -> None:
    out, now = io.StringIO(), [SNAPSHOT]
    lines = SnapshotLines(out, lambda: now[0])
    lines.open()
    lines.refresh()
    now[0] = msgspec.structs.replace(SNAPSHOT, phase=Phase.LEARNING)
    lines.refresh()
    now[0] = msgspec.structs.replace(now[0], curve=POINTS[:3], answers=())
    lines.close()
    first, second, third = (json.loads(line)["snapshot"] for line in out.getvalue().splitlines())
    assert len(first["answers"]) == 1 and second["phase"] == "learning" and "answers" not in second
    assert third["answers"] == [], "of the curve and the rounds a window hears as they are written"
    assert not {"curve", "families", "last"} & (set(first) | set(third))


def test_a_window_gets_records_whole_and_others_what_is_promised() -> None:
    record, lines = (
        Round(round=3, run=2, at=9.5, seconds=1.0, informative_own=1, train_solved=0.5),
        io.StringIO(),
    )
    JsonLines(lines, whole=True)(record)
    JsonLines(lines)(record)
    whole, told = lines.getvalue().splitlines()
    assert msgspec.json.decode(whole, type=Round) == record
    assert {"run", "at"} & set(json.loads(told)) == set() and json.loads(told)["stepped"] is False
    assert msgspec.json.decode(told, type=Event) == msgspec.structs.replace(record, run=0, at=0.0)


def test_a_swarms_messages_come_only_when_there_are_others() -> None:
    one = LoggedMessage(at=1.0, outgoing=True, kind="sample", size=9, text='{"t":"sample"}')
    views = [
        SwarmView(name="calm-crane-0002"),
        SwarmView(name="calm-crane-0002", messages=(one,), bytes_per_hour=9),
        SwarmView(name="calm-crane-0002", messages=(one,), bytes_per_hour=9, ready=3),
        SwarmView(name="calm-crane-0002", messages=(one, one), bytes_per_hour=18),
    ]
    out, now = io.StringIO(), [SNAPSHOT]
    lines = SnapshotLines(out, lambda: now[0])
    for view in views:
        now[0] = msgspec.structs.replace(SNAPSHOT, swarm=view)
        lines.refresh()
    told = [json.loads(line)["snapshot"]["swarm"] for line in out.getvalue().splitlines()]
    assert [len(swarm.get("messages", "unchanged")) for swarm in told] == [0, 1, 9, 2]
    assert told[2]["ready"] == 3 and told[1]["messages"][0] == msgspec.to_builtins(one)


def test_commands_come_in_what_is_none_is_refused_and_the_end_is_a_stop() -> None:
    reading, writing = os.pipe()
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()
    read_commands(
        reading, lambda command: heard.put(commands.name(command)), lambda error: heard.put(error.name or "?")
    )
    with os.fdopen(writing, "wb") as to:
        to.write(b'{"command":"finish"}\nnonsense\n{"command":"dance"}\n{"command":"stop"}\n')
    assert [heard.get(timeout=120) for _ in range(5)] == ["finish", "?", "dance", "stop", "stop"]
