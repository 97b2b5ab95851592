"""The commands of a window to its node: typed commands, one JSON object a line on the node's standard input.

{"command":"stop"}                                 ends the node now, safely; so does the end of the input
{"command":"leave"}                                closes every connection now, and ends the node as soon as the
                                                   round, measurement or placement in flight is safe
{"command":"finish"}                               after the round in flight: ends it; with rules, pauses it
{"command":"begin"}                                with --hold: the first round may begin
{"command":"skip"}                                 starts to learn without the rest of the placement
{"command":"pause"}  {"command":"resume"}          with rules: until resumed; resuming also ends a snooze
{"command":"snooze","seconds":3600}                with rules
{"command":"snooze","tomorrow":true}
{"command":"insist","seconds":600}                 with rules: it learns that long, whatever else runs
{"command":"contribute_when_idle","on":true}
{"command":"dial","to":"quiet"}
{"command":"settings","changed":{"idle_s":300}}    keys and values of app.node.rules.preferences; all or none of
                                                   them

A line that is no command is answered with a "refused" event and has no other effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

MAX_LINE = 16_384
"""Maximum bytes of a line; fifty names of programs need less."""


class _Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", forbid_unknown_fields=True):
    pass


class Stop(_Command, frozen=True, tag="stop"):
    pass


class Leave(_Command, frozen=True, tag="leave"):
    pass


class Finish(_Command, frozen=True, tag="finish"):
    pass


class Begin(_Command, frozen=True, tag="begin"):
    pass


class Skip(_Command, frozen=True, tag="skip"):
    pass


class Pause(_Command, frozen=True, tag="pause"):
    pass


class Resume(_Command, frozen=True, tag="resume"):
    pass


class SnoozeFor(_Command, frozen=True, tag="snooze"):
    """Snoozes for some seconds, or until tomorrow; exactly one of the two must be given."""

    seconds: float | None = None
    tomorrow: Literal[True] | None = None

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.tomorrow is None):
            raise ValueError("a snooze needs either seconds or tomorrow")
        if self.seconds is not None and not math.isfinite(self.seconds):
            raise ValueError("a snooze has an end")


class Insist(_Command, frozen=True, tag="insist"):
    seconds: float


class WhenIdle(_Command, frozen=True, tag="contribute_when_idle"):
    on: bool


class SetDial(_Command, frozen=True, tag="dial"):
    to: str


class ChangeSettings(_Command, frozen=True, tag="settings"):
    changed: dict[str, Any]


Command = (
    Stop
    | Leave
    | Finish
    | Begin
    | Skip
    | Pause
    | Resume
    | SnoozeFor
    | Insist
    | WhenIdle
    | SetDial
    | ChangeSettings
)

_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)


class CommandError(ValueError):
    """A line is not a valid command. The message says why; `name` is the command's name, if it could be
    read.
    """

    def __init__(self, sentence: str, name: str = "") -> None:
        super().__init__(sentence)
        self.name = name


def decode(line: bytes) -> Command:
    """Parses one line. Raises CommandError."""
    if len(line) > MAX_LINE:
        raise CommandError(f"A command is at most {MAX_LINE} bytes long.")
    try:
        return _commands.decode(line)
    except _NO_JSON as error:
        raise CommandError(f"This is no command: {str(error).rstrip('.')}.", _name(line)) from error


def name(command: Command) -> str:
    """Returns the command's name in JSON.

    >>> name(Stop()), name(SetDial(to="quiet"))
    ('stop', 'dial')
    """
    return str(command.__struct_config__.tag)


def _name(line: bytes) -> str:
    try:
        found = msgspec.json.decode(line)["command"]
    except (*_NO_JSON, KeyError, TypeError, IndexError):
        return ""
    return found[:40] if isinstance(found, str) else ""


class Lines:
    """Splits a stream into lines, buffering at most MAX_LINE bytes. A longer line is cut to its first MAX_LINE
    + 1 bytes, and the rest of it is dropped."""

    def __init__(self) -> None:
        self._rest = b""
        self._dropping = False

    def feed(self, content: bytes) -> Iterator[bytes]:
        """Yields the non-empty lines that `content` completes."""
        *ended, open_end = content.split(b"\n")
        for part in ended:
            line, dropped = self._rest + part, self._dropping
            self._rest, self._dropping = b"", False
            if not dropped and line.strip():
                yield line[: MAX_LINE + 1]
        if not self._dropping:
            self._rest += open_end
            if len(self._rest) > MAX_LINE:
                yield self._rest[: MAX_LINE + 1]
                self._rest, self._dropping = b"", True
