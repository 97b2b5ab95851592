"""Puzzles for a person in a terminal: a question, an answer, the verdict of the scorer that judges models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.text import Text

from app.chat import scorebook
from app.chat.board import Grid, Look, board
from app.chat.puzzles import Puzzle, Verdicts, draw
from app.chat.terminal import busy
from app.common.text import safe
from app.models.shelf import locate
from app.sapo.asking import MAX_ANSWER
from app.sapo.families import FAMILIES
from engines.models.architecture import read_settings

_LEAVE = ("/quit", "/exit", "/q")
_SKIP = ("", "/skip")


def solve(
    family: str | None, level: int | None, count: int | None, home: Path, source: TextIO, console: Console
) -> int:
    """Asks puzzles, without a family those of the starter, until `count` are answered or the input ends.
    Returns the exit code.

    Raises QuestionError, SandboxError, and OSError where the scores cannot be kept."""
    scores, complaint = scorebook.read(home)
    if complaint:
        console.print(Text(complaint, style="yellow"))
    usual: Mapping[str, int] = read_settings(locate("starter")).families or dict.fromkeys(FAMILIES, 0)
    verdicts, begun = Verdicts(), scores.total
    asks = source.isatty() and console.is_terminal
    try:
        if asks:
            console.print(Text("Type the answer. Enter skips a puzzle, /quit leaves.", style="bright_black"))
        while count is None or scores.total.answered - begun.answered < count:
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
            scores = scores.after(puzzle.family, puzzle.level, solved)
            scorebook.write(home, scores)
            _tell(puzzle, solved, scores, console)
    except KeyboardInterrupt:
        console.print()
    finally:
        verdicts.close()
    console.print(Text(closing(scores, begun)))
    return 0


def closing(scores: scorebook.Scores, begun: scorebook.FamilyScore) -> str:
    """
    >>> closing(scorebook.Scores().after("gcd", 0, True), scorebook.FamilyScore())
    'You solved 1 of 1; 1 of 1 in all, at best 1 in a row.'
    """
    total = scores.total
    if not total.answered:
        return "No puzzle answered."
    right, answered = total.right - begun.right, total.answered - begun.answered
    return (
        f"You solved {right} of {answered}; {total.right} of {total.answered} in all, "
        f"at best {scores.best} in a row."
    )


def _show(puzzle: Puzzle, console: Console) -> None:
    console.print()
    console.print(Text(f"{puzzle.title}, level {puzzle.level + 1} of {puzzle.levels}", style="bold cyan"))
    console.print(Text(safe(puzzle.for_people)))
    if grid := board(puzzle.family, puzzle.text):
        console.print()
        console.print(drawn(grid))


def drawn(grid: Grid) -> Text:
    """A grid in cells of equal width; walls are blocks, and what is empty is a point.

    >>> print(drawn([[("", "empty"), ("12", "plain")], [("3", "plain"), ("10", "plain")]]))
      ·  12
      3  10
    >>> print(drawn([[("E", "goal"), ("", "empty"), ("", "wall")]]))
      E · ██
    """
    walls = any(look in ("wall", "twice") for row in grid for _, look in row)
    width = max(2 if walls else 1, *(len(sign) for row in grid for sign, _ in row))
    signs: Mapping[Look, str] = {"wall": "█" * width, "twice": "▓" * width, "empty": "·"}
    styles: Mapping[Look, str] = {"goal": "bold cyan", "empty": "bright_black"}
    return Text("\n").join(
        Text("  ")
        + Text("" if walls else " ").join(
            Text(signs.get(look, sign).ljust(width), style=styles.get(look, "")) for sign, look in row
        )
        for row in grid
    )


def _answer(asks: bool, source: TextIO) -> str | None:
    """What was typed, None at the end of the input."""
    if not asks:
        line = source.readline(MAX_ANSWER + 2)
        return line.strip() if line else None
    try:
        return input("› ").strip()
    except EOFError:
        return None


def _tell(puzzle: Puzzle, solved: bool, scores: scorebook.Scores, console: Console) -> None:
    tally = scores.families[puzzle.family][puzzle.level]
    so_far = f"{tally.right} of {tally.answered} at this level"
    if solved:
        row = f", {scores.streak} in a row" if scores.streak > 1 else ""
        console.print(Text.assemble(("✓ right", "bold green"), (f"  {so_far}{row}", "bright_black")))
    else:
        right = safe(puzzle.solution)
        console.print(
            Text.assemble(("✗ wrong", "red"), f"  the answer is {right}", (f"  {so_far}", "bright_black"))
        )
