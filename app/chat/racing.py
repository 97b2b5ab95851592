"""A race in a terminal: one line a puzzle, and what it comes to."""

from __future__ import annotations

from typing import BinaryIO

import msgspec
from rich.console import Console
from rich.text import Text

from app.chat import messages
from app.chat.race import Result
from app.chat.talking import Chat, ChatError


def run(chat: Chat, puzzles: int, seed: int | None, console: Console | None, out: BinaryIO) -> int:
    """Returns the exit code. Without a console, JSON lines go to `out`. Raises ChatError."""
    result = Result()
    if console is not None:
        console.print(Text("  before  after", style="bright_black"))
    for reply in chat.do(messages.Race(number=1, puzzles=puzzles, seed=seed), lambda side, text: True):
        match reply:
            case messages.Lap():
                result = result.plus(reply.before.solved, reply.after.solved)
                if console is not None:
                    console.print(_line(reply))
                else:
                    out.write(messages.to_line(reply))
            case messages.ChatFailed():
                raise ChatError(reply.sentence)
    if console is not None:
        console.print(Text(summary(result)))
    else:
        told = {"type": "race", **msgspec.to_builtins(result), "error": result.error, "chance": result.chance}
        out.write(msgspec.json.encode(told) + b"\n")
    out.flush()
    return 0


def summary(result: Result) -> str:
    """
    >>> summary(Result(puzzles=20, before=4, after=10, won=7, lost=1))
    'After solves 10 of 20, before 4: 6 more ± 2.5. That could still be chance: 100 puzzles tell more.'
    """
    more = "more" if result.lead >= 0 else "fewer"
    said = f"After solves {result.after} of {result.puzzles}, before {result.before}: "
    said += f"{abs(result.lead)} {more} ± {result.error:.1f}."
    return said if result.sure else said + " That could still be chance: 100 puzzles tell more."


def _line(lap: messages.Lap) -> Text:
    def sign(solved: bool) -> tuple[str, str]:
        return ("✓", "green") if solved else ("✗", "red")

    return Text.assemble("    ", sign(lap.before.solved), "       ", sign(lap.after.solved), f"    {lap.title}")
