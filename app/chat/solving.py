"""Terminal commands: puzzles for a person, scored like a model's, and a race between base and trained model,
one line per puzzle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO, TextIO

import msgspec
from rich.console import Console
from rich.text import Text

from app.chat import messages
from app.chat.messages import Result
from app.chat.puzzles import Puzzle, Verdicts, draw
from app.chat.talking import Chat, ChatError
from app.chat.terminal import busy
from app.common.text import safe
from app.models.shelf import locate
from app.sapo.asking import MAX_ANSWER
from app.sapo.families import FAMILIES
from engines.models.folder import read_settings

_LEAVE = ("/quit", "/exit", "/q")
_SKIP = ("", "/skip")


def solve(family: str | None, level: int | None, count: int | None, source: TextIO, console: Console) -> int:
    """Asks puzzles on the terminal until `count` are answered or the input ends; without a `family`, from those
    of the starter model. Returns the exit code. Raises QuestionError and SandboxError."""
    usual: Mapping[str, int] = read_settings(locate("starter")).families or dict.fromkeys(FAMILIES, 0)
    verdicts, right, answered = Verdicts(), 0, 0
    asks = source.isatty() and console.is_terminal
    try:
        if asks:
            console.print(Text("Type the answer. Enter skips a puzzle, /quit leaves.", style="bright_black"))
        while count is None or answered < count:
            with busy(console, "Making a puzzle"):
                puzzle = draw(family, level, usual)
            _show(puzzle, console)
            answer = _answer(asks, source)
            if answer is None or answer in _LEAVE:
                break
            if answer in _SKIP:
                console.print(Text(f"skipped; the answer is {safe(puzzle.solution)}", style="bright_black"))
                continue
            with busy(console, "Judging"):
                solved = verdicts.solved(puzzle, answer)
            right, answered = right + solved, answered + 1
            if solved:
                console.print(Text("✓ right", style="bold green"))
            else:
                console.print(Text.assemble(("✗ wrong", "red"), f"  the answer is {safe(puzzle.solution)}"))
    except KeyboardInterrupt:
        console.print()
    finally:
        verdicts.close()
    console.print(Text(f"You solved {right} of {answered}." if answered else "No puzzle answered."))
    return 0


def _show(puzzle: Puzzle, console: Console) -> None:
    console.print()
    console.print(Text(f"{puzzle.title}, level {puzzle.level + 1} of {puzzle.levels}", style="bold cyan"))
    console.print(Text(safe(puzzle.for_people)))


def _answer(asks: bool, source: TextIO) -> str | None:
    """Reads the typed answer; None at the end of the input."""
    if not asks:
        line = source.readline(MAX_ANSWER + 2)
        return line.strip() if line else None
    try:
        return input("› ").strip()
    except EOFError:
        return None


def race(chat: Chat, puzzles: int, seed: int | None, console: Console | None, out: BinaryIO) -> int:
    """Runs a race and prints each puzzle, then the score; without a console, writes JSON lines to `out`.
    Returns the exit code. Raises ChatError."""
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
    """Returns the score of a race as a sentence.
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
