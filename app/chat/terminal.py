"""The conversation in a terminal: what one types, and both answers side by side, or below each other where
there is no room."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from app.chat import messages
from app.chat.messages import MAX_TEXT
from app.chat.talking import Chat
from app.common.text import safe
from app.sapo.families import FAMILIES

HELP = """\
Type a question, or
  /puzzle [FAMILY [LEVEL]]   a fresh puzzle for both, with the verdict on each answer
  /families                  what there are puzzles of
  /forget                    begin the conversation anew
  /quit                      leave (also Ctrl-D)"""
_SIDE_BY_SIDE = 76
"""Columns from which on both answers stand beside each other."""
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def converse(open_chat: Callable[[], Chat], source: TextIO, console: Console | None = None) -> int:
    """Talks until the input ends. Returns the exit code; raises EngineError where there is no model."""
    console = console or Console()
    with busy(console, "Loading the model"):
        chat = open_chat()
    asks = source.isatty() and console.is_terminal
    try:
        console.print(greeting(chat.opened()))
        if asks:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - gives input() its history and its keys
        for number in itertools.count(1):
            try:
                line = _ask() if asks else source.readline(MAX_TEXT + 2)
                if not line:
                    return 0
                if not _follow(chat, console, number, line.strip()):
                    return 0
            except KeyboardInterrupt:
                if not asks:
                    raise
                console.print("[bright_black]Stopped. /quit leaves.[/]")
    finally:
        chat.close()
    return 0


def _ask() -> str:
    """A line, "" at the end of the input."""
    try:
        return input("\n› ") + "\n"
    except EOFError:
        print()
        return ""


def _follow(chat: Chat, console: Console, number: int, line: str) -> bool:
    """Does what a line asks for; whether to go on."""
    word, *rest = line.split() or [""]
    match word.lower():
        case "":
            return True
        case "/quit" | "/exit" | "/q":
            return False
        case "/help" | "/?":
            console.print(Text(HELP, style="bright_black"))
        case "/families":
            rows = "\n".join(
                f"  {one.name:<24} {one.title}, levels 1 to {len(one.levels)}" for one in FAMILIES.values()
            )
            console.print(Text(rows, style="bright_black"))
        case "/forget":
            _show(chat, console, messages.Forget(number=number))
            console.print("[bright_black]The conversation begins anew.[/]")
        case "/puzzle":
            _puzzle(chat, console, number, rest)
        case _ if word.startswith("/"):
            console.print(Text(f"There is no command {word[:40]}: /help lists them.", style="yellow"))
        case _:
            _show(chat, console, messages.Ask(number=number, text=line[:MAX_TEXT]))
    return True


def _puzzle(chat: Chat, console: Console, number: int, rest: list[str]) -> None:
    level = rest[1] if len(rest) > 1 else ""
    if len(rest) > 2 or (level and not (level.isdecimal() and 1 <= int(level) <= 64)):
        console.print(Text("This is /puzzle FAMILY LEVEL, as in /puzzle gcd 2.", style="yellow"))
        return
    request = messages.Draw(
        number=number, family=rest[0][:64] if rest else None, level=int(level) - 1 if level else None
    )
    drawn = _show(chat, console, request)
    if drawn is not None:
        _show(chat, console, messages.Solve(number=number, puzzle=drawn.puzzle))


def _show(chat: Chat, console: Console, request: messages.Request) -> messages.Drawn | None:
    """Shows the replies to a request; the puzzle that was drawn, if one was."""
    drawn: messages.Drawn | None = None
    said: list[messages.Said] = []
    replies = chat.do(request)
    while True:
        with busy(console, "Answering"):
            reply = next(replies, None)
        match reply:
            case None | messages.Done():
                return drawn
            case messages.Drawn():
                drawn = reply
                console.print(puzzle(reply))
            case messages.Said():
                said.append(reply)
                if len(said) == 2:
                    console.print(answers(said, console.width))
            case messages.Solution():
                console.print(Text.assemble((" right: ", "bright_black"), reply.text))
            case messages.Noted() | messages.Failed():
                console.print(Text(safe(reply.sentence), style="yellow"))


def greeting(opened: messages.Opened) -> RenderableType:
    engine = opened.engine
    line = Text.assemble(
        (" Shoal ", "bold black on cyan"), f" {safe(opened.model)}", f" · {engine.name} on {engine.device}"
    )
    line.append(
        f" · after {opened.learned} rounds" if opened.learned is not None else " · nothing learned here yet",
        style="bright_black",
    )
    return Group(line, Text(" /puzzle asks both a puzzle, /help tells more.", style="bright_black"))


def puzzle(drawn: messages.Drawn) -> RenderableType:
    title = f"{drawn.title}, level {drawn.level + 1} of {drawn.levels}"
    if drawn.unseen:
        title += ", never trained on"
    return Panel(Text(drawn.text), title=title, title_align="left", border_style="bright_black")


def answers(said: list[messages.Said], width: int) -> RenderableType:
    """Both answers."""
    panels = [_answer(one) for one in said]
    if width < _SIDE_BY_SIDE:
        return Group(*panels)
    table = Table.grid(expand=True, padding=0)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(*panels)
    return table


def _answer(said: messages.Said) -> Panel:
    name = "before" if said.side == "before" else "after"
    if said.learned is not None:
        name += f" {said.learned} rounds"
    title = Text(f" {name} ")
    if said.solved is not None:
        title.append("✓ right " if said.solved else "✗ wrong ", style="bold green" if said.solved else "red")
    text = said.text or "(empty)"
    text += "" if said.finished else " …"
    below = f"{said.tokens} tokens, {said.seconds:.1f} s" + ("" if said.finished else ", cut off")
    return Panel(
        Text(text),
        title=title,
        title_align="left",
        subtitle=Text(f" {below} ", style="bright_black"),
        subtitle_align="right",
        border_style="cyan" if said.side == "after" else "bright_black",
    )


@contextlib.contextmanager
def busy(console: Console, what: str) -> Iterator[None]:
    """Shows on a terminal that something goes on, and for how long."""
    if not console.is_terminal:
        yield
        return
    began = time.monotonic()

    def picture() -> Text:
        seconds = time.monotonic() - began
        sign = _SPINNER[int(seconds * 10) % len(_SPINNER)]
        return Text(f"{sign} {what} … {seconds:.0f} s", style="bright_black") if seconds > 0.3 else Text("")

    with Live(console=console, get_renderable=picture, refresh_per_second=8, transient=True):
        yield
