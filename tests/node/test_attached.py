"""A node under another process's window: snapshots out, orders in."""

from __future__ import annotations

import io
import json
import os
import queue

import msgspec

from app.node import commands
from app.node.attached import SnapshotLines, listen
from app.node.snapshot import Phase
from tests.node.test_views import POINTS, SNAPSHOT


def test_a_line_for_every_change_and_large_parts_only_when_they_changed() -> None:
    out, now = io.StringIO(), [SNAPSHOT]
    lines = SnapshotLines(out, lambda: now[0])
    lines.open()
    lines.refresh()
    now[0] = msgspec.structs.replace(SNAPSHOT, phase=Phase.LEARNING)
    lines.refresh()
    now[0] = msgspec.structs.replace(now[0], curve=POINTS[:3])
    lines.close()
    first, second, third = (json.loads(line)["snapshot"] for line in out.getvalue().splitlines())
    assert len(first["curve"]) == 6 and first["families"] and first["answers"]
    assert second["phase"] == "learning" and not {"curve", "families", "answers"} & set(second)
    assert len(third["curve"]) == 3 and "families" not in third


def test_commands_come_in_what_is_none_is_refused_and_the_end_is_a_stop() -> None:
    reading, writing = os.pipe()
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()
    listen(
        reading, lambda command: heard.put(commands.name(command)), lambda error: heard.put(error.name or "?")
    )
    with os.fdopen(writing, "wb") as to:
        to.write(b'{"command":"finish"}\nnonsense\n{"command":"dance"}\n{"command":"stop"}\n')
    assert [heard.get(timeout=10) for _ in range(5)] == ["finish", "?", "dance", "stop", "stop"]
