"""What a window may say: every command, every kind of nonsense, and how a stream is cut into lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.node.record import commands
from app.node.record.commands import MAX_LINE, CommandError, Lines, decode, name

COMMANDS = {
    b'{"command":"stop"}': commands.Stop(),
    b'{"command":"finish"}': commands.Finish(),
    b'{"command":"begin"}': commands.Begin(),
    b'{"command":"skip"}': commands.Skip(),
    b'{"command":"pause"}': commands.Pause(),
    b' {"command" : "resume"} ': commands.Resume(),
    b'{"command":"snooze","seconds":3600}': commands.SnoozeFor(seconds=3600.0),
    b'{"command":"snooze","tomorrow":true}': commands.SnoozeFor(tomorrow=True),
    b'{"command":"contribute_when_idle","on":false}': commands.WhenIdle(on=False),
    b'{"command":"dial","to":"quiet"}': commands.SetDial(to="quiet"),
    b'{"command":"settings","changed":{"idle_s":5}}': commands.ChangeSettings(changed={"idle_s": 5}),
}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_read(line: bytes) -> None:
    assert decode(line) == COMMANDS[line]
    assert name(decode(line)).encode() in line


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (b"nonsense", ""),
        (b"", ""),
        (b"\xff\xfe", ""),
        (b"[]", ""),
        (b"[1]", ""),
        (b'{"command":["stop"]}', ""),
        (b'{"command":"dance"}', "dance"),
        (b'{"command":"' + b"x" * 500 + b'"}', "x" * 40),
        (b'{"command":"pause","for":3}', "pause"),
        (b'{"command":"snooze"}', "snooze"),
        (b'{"command":"snooze","seconds":5,"tomorrow":true}', "snooze"),
        (b'{"command":"snooze","seconds":"long"}', "snooze"),
        (b'{"command":"contribute_when_idle","on":"yes"}', "contribute_when_idle"),
        (b'{"command":"settings","changed":[]}', "settings"),
        (b'{"command":"pause"' + b" " * MAX_LINE + b"}", ""),
        (b"[" * 10_000, ""),
    ],
)
def test_what_is_no_command_is_refused_with_a_sentence(line: bytes, wanted: str) -> None:
    with pytest.raises(CommandError, match=r"\.$") as refused:
        decode(line)
    assert refused.value.name == wanted


@given(st.lists(st.binary(max_size=8)))
def test_however_a_stream_comes_the_same_lines_come_out(pieces: list[bytes]) -> None:
    lines = Lines()
    found = [line for piece in pieces for line in lines.feed(piece)]
    *whole, _ = b"".join(pieces).split(b"\n")
    assert found == [line for line in whole if line.strip()]


def test_a_line_without_end_is_refused_once_and_the_next_one_is_read() -> None:
    lines = Lines()
    found = [line for _ in range(100) for line in lines.feed(b"x" * 4096)]
    assert len(found) == 1  # already: its end is not waited for
    found += lines.feed(b'tail\n{"command":"stop"}\n')
    assert len(found) == 2 and decode(found[1]) == commands.Stop()
    with pytest.raises(CommandError, match="bytes long"):
        decode(found[0])
