"""Chat and puzzles in a terminal: reads questions and shows the answers of both sides as they grow, side by
side, or below each other if the terminal is narrow; and asks a person puzzles, scored like a model's."""

from __future__ import annotations

import contextlib
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from app.chat import messages
from app.chat.messages import MAX_TEXT, Said, Side, Sides, expand_sides
from app.chat.puzzles import AnswerScorer, Puzzle, draw
from app.chat.talking import Chat
from app.common.process.streams import bare
from app.common.text import safe_text
from app.models import catalogue
from app.models.shelf import locate
from app.sapo.asking import MAX_ANSWER
from app.sapo.families import FAMILIES
from engines import remedy
from engines.models.folder import read_settings

HELP = """\
Type something, or
  /both /before /after       who answers: the model as it came, as it is now, or both
  /puzzle [FAMILY [LEVEL]]   a fresh puzzle, with the verdict on each answer
  /families                  what there are puzzles of
  /forget                    start a new conversation
  /quit                      leave (also Ctrl-D); Ctrl-C stops an answer"""
_SIDE_BY_SIDE = 76
"""Minimum terminal width in columns for two answers side by side."""
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def converse(open_chat: Callable[[], Chat], source: TextIO, console: Console | None = None) -> int:
    """Reads and answers lines until the input ends. Returns the exit code. Raises EngineError if the model
    cannot be opened."""
    console = console or Console(file=bare(sys.stdout))
    with spinner(console, "Loading the model"):
        chat = open_chat()
    asks = source.isatty() and console.is_terminal
    try:
        console.print(greeting(chat.opened()))
        if asks:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - gives input() its history and its keys
        talk = _Talk(chat, console, asks)
        for number in itertools.count(1):
            try:
                line = _typed(asks, source, MAX_TEXT, "\n› ")
                if line is None or not talk.follow(number, line):
                    return 0
            except KeyboardInterrupt:
                if not asks:
                    raise
                console.print("[bright_black]Stopped. /quit leaves.[/]")
    finally:
        chat.close()
    return 0


def _typed(asks: bool, source: TextIO, most: int, prompt: str = "› ") -> str | None:
    """Reads a typed line; None at the end of the input."""
    if not asks:
        line = source.readline(most + 2)
        return line.strip() if line else None
    try:
        return input(prompt).strip()
    except EOFError:
        print()
        return None


class _Talk:
    """Carries out typed lines: commands and questions."""

    def __init__(self, chat: Chat, console: Console, asks: bool) -> None:
        self._chat, self._console, self._asks = chat, console, asks
        self._sides: Sides = "both"

    def follow(self, number: int, line: str) -> bool:
        """Carries out one line; returns whether to continue."""
        word, *rest = line.split() or [""]
        match word.lower():
            case "":
                return True
            case "/quit" | "/exit" | "/q":
                return False
            case "/help" | "/?":
                self._tell(HELP)
            case "/families":
                rows = (
                    f"  {one.name:<24} {one.title}, levels 1 to {len(one.levels)}" for one in FAMILIES.values()
                )
                self._tell("\n".join(rows))
            case "/both":
                self._answering("both", "Both answer now.")
            case "/before":
                self._answering("before", "The model as it came answers now.")
            case "/after":
                self._answering("after", "The model as it is now answers.")
            case "/forget":
                self._show(messages.Forget(number=number))
                self._tell("A new conversation.")
            case "/puzzle":
                self._puzzle(number, rest)
            case _ if word.startswith("/"):
                self._warn(f"There is no command {word[:40]}: /help lists them.")
            case _:
                self._show(messages.Ask(number=number, text=line[:MAX_TEXT], sides=self._sides))
        return True

    def _answering(self, sides: Sides, said: str) -> None:
        self._sides = sides
        self._tell(said)

    def _tell(self, text: str) -> None:
        self._console.print(Text(text, style="bright_black"))

    def _warn(self, sentence: str) -> None:
        self._console.print(Text(safe_text(sentence), style="yellow"))

    def _puzzle(self, number: int, rest: list[str]) -> None:
        level = rest[1] if len(rest) > 1 else ""
        if len(rest) > 2 or (level and not (level.isdecimal() and 1 <= int(level) <= 64)):
            self._warn("This is /puzzle FAMILY LEVEL, as in /puzzle gcd 2.")
            return
        request = messages.Draw(
            number=number, family=rest[0][:64] if rest else None, level=int(level) - 1 if level else None
        )
        drawn = self._show(request)
        if drawn is not None:
            self._show(messages.Solve(number=number, puzzle=drawn.puzzle, sides=self._sides))

    def _show(self, request: messages.Request) -> messages.PuzzleDrawn | None:
        """Carries out a request and shows its replies. Returns the puzzle, if one was drawn."""
        drawn: messages.PuzzleDrawn | None = None
        said: list[Said] = []
        growing: dict[Side, str] = {}

        def picture() -> RenderableType | None:
            shown = growing or said
            return answer_panels(said, self._console.width, growing, self._console.height) if shown else None

        with spinner(self._console, "Answering", picture), interruptible(self._asks) as stop:

            def tell(side: Side, text: str) -> bool:
                growing[side] = text
                return not stop.is_set()

            for reply in self._chat.handle(request, tell):
                if isinstance(reply, Said):
                    growing.pop(reply.side, None)
                    said.append(reply)
                    if len(said) < len(expand_sides(self._sides)) and not reply.stopped:
                        continue  # the other one stands beside it
                if said:
                    self._console.print(answer_panels(said, self._console.width))
                    said.clear()
                match reply:
                    case messages.PuzzleDrawn():
                        drawn = reply
                        self._console.print(puzzle_panel(reply))
                    case messages.Solution():
                        self._console.print(Text.assemble((" right: ", "bright_black"), reply.text))
                    case messages.OnlyPuzzles():
                        self._warn(only_puzzles())
                    case messages.ChatNote() | messages.ChatFailed():
                        self._warn(reply.sentence)
        return drawn


def only_puzzles() -> str:
    """Returns the sentence shown when someone talks to a model that can only solve puzzles."""
    talker = catalogue.entries()[0]
    return (
        "This model only solves puzzles: try /puzzle. To talk, get a bigger one: "
        f"{remedy.command(f'models get {talker.short}')}"
    )


@contextlib.contextmanager
def interruptible(wanted: bool) -> Iterator[threading.Event]:
    """Makes the first Ctrl-C set the yielded event, which stops an answer; the second one raises
    KeyboardInterrupt. Does nothing unless `wanted`."""
    event = threading.Event()

    def note(signum: int, frame: FrameType | None) -> None:
        if event.is_set():
            raise KeyboardInterrupt
        event.set()

    before = signal.signal(signal.SIGINT, note) if wanted else None
    try:
        yield event
    finally:
        if wanted:
            signal.signal(signal.SIGINT, before)


def greeting(opened: messages.ModelOpened) -> RenderableType:
    engine = opened.engine
    line = Text.assemble(
        (" Shoal ", "bold black on cyan"), f" {safe_text(opened.model)}", f" · {engine.name} on {engine.device}"
    )
    line.append(
        f" · after {opened.learned} rounds" if opened.learned is not None else " · nothing learned here yet",
        style="bright_black",
    )
    hint = " Say something, or /puzzle; /help tells more." if engine.talks else " /puzzle; /help tells more."
    return Group(line, Text(hint, style="bright_black"))


def puzzle_panel(drawn: messages.PuzzleDrawn) -> RenderableType:
    title = f"{drawn.title}, level {drawn.level + 1} of {drawn.levels}"
    if drawn.unseen:
        title += ", never trained on"
    return Panel(Text(drawn.text), title=title, title_align="left", border_style="bright_black")


def answer_panels(
    said: list[Said], width: int, growing: dict[Side, str] | None = None, height: int = 0
) -> RenderableType:
    """Lays out finished and growing answers; growing ones show their last lines, so that all fit into `height`
    lines."""
    panels = [_answer(one) for one in said]
    beside = width >= _SIDE_BY_SIDE
    for side, text in (growing or {}).items():
        room = max(1, height - 8) * max(20, width // (2 if beside else 1) - 6)
        panels.append(Panel(Text(text[-room:] + " ▌"), title=f" {side} ", title_align="left"))
    if len(panels) < 2 or not beside:
        return Group(*panels)
    table = Table.grid(expand=True, padding=0)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(*panels)
    return table


def _answer(said: Said) -> Panel:
    name = "before" if said.side == "before" else "after"
    if said.learned is not None:
        name += f" {said.learned} rounds"
    title = Text(f" {name} ")
    if said.solved is not None:
        title.append("✓ right " if said.solved else "✗ wrong ", style="bold green" if said.solved else "red")
    text = said.text or "(empty)"
    text += "" if said.finished else " …"
    below = f"{said.tokens} tokens, {said.seconds:.1f} s"
    below += "" if said.finished else ", stopped" if said.stopped else ", cut off"
    return Panel(
        Text(text),
        title=title,
        title_align="left",
        subtitle=Text(f" {below} ", style="bright_black"),
        subtitle_align="right",
        border_style="cyan" if said.side == "after" else "bright_black",
    )


@contextlib.contextmanager
def spinner(
    console: Console, what: str, growing: Callable[[], RenderableType | None] = lambda: None
) -> Iterator[None]:
    """While the block runs, shows a spinner with `what` and the elapsed seconds, or the result of `growing`
    once that is not None."""
    if not console.is_terminal:
        yield
        return
    began = time.monotonic()

    def picture() -> RenderableType:
        if (shown := growing()) is not None:
            return shown
        seconds = time.monotonic() - began
        sign = _SPINNER[int(seconds * 10) % len(_SPINNER)]
        return Text(f"{sign} {what} … {seconds:.0f} s", style="bright_black") if seconds > 0.3 else Text("")

    with Live(console=console, get_renderable=picture, refresh_per_second=8, transient=True):
        yield


_LEAVE = ("/quit", "/exit", "/q")
_SKIP = ("", "/skip")


def solve(family: str | None, level: int | None, count: int | None, source: TextIO, console: Console) -> int:
    """Asks puzzles on the terminal until `count` are answered or the input ends; without a `family`, from those
    of the starter model. Returns the exit code. Raises QuestionError and SandboxError."""
    usual: Mapping[str, int] = read_settings(locate("starter")).families or dict.fromkeys(FAMILIES, 0)
    verdicts, right, answered = AnswerScorer(), 0, 0
    asks = source.isatty() and console.is_terminal
    try:
        if asks:
            console.print(Text("Type the answer. Enter skips a puzzle, /quit leaves.", style="bright_black"))
        while count is None or answered < count:
            with spinner(console, "Making a puzzle"):
                puzzle = draw(family, level, usual)
            _show(puzzle, console)
            answer = _typed(asks, source, MAX_ANSWER)
            if answer is None or answer in _LEAVE:
                break
            if answer in _SKIP:
                console.print(
                    Text(f"skipped; the answer is {safe_text(puzzle.solution)}", style="bright_black")
                )
                continue
            with spinner(console, "Judging"):
                solved = verdicts.solved(puzzle, answer)
            right, answered = right + solved, answered + 1
            if solved:
                console.print(Text("✓ right", style="bold green"))
            else:
                console.print(
                    Text.assemble(("✗ wrong", "red"), f"  the answer is {safe_text(puzzle.solution)}")
                )
    except KeyboardInterrupt:
        console.print()
    finally:
        verdicts.close()
    console.print(Text(f"You solved {right} of {answered}." if answered else "No puzzle answered."))
    return 0


def _show(puzzle: Puzzle, console: Console) -> None:
    console.print()
    console.print(Text(f"{puzzle.title}, level {puzzle.level + 1} of {puzzle.levels}", style="bold cyan"))
    console.print(Text(safe_text(puzzle.text_for_people)))
