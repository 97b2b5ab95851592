"""The live view in a terminal. It only reads snapshots and draws them."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from app.common.text import rounded_duration, safe_line
from app.node.record import records
from app.node.record.reasons import Reason
from app.node.record.records import GroupRow
from app.node.record.snapshot import FamilyView, Phase, Snapshot, SwarmView, curve_sentence, progress_line
from app.node.terminal.chart import ChartKind, chart

_STYLES = {
    ChartKind.AXIS: "bright_black",
    ChartKind.ERROR: "cyan dim",
    ChartKind.LINE: "bold cyan",
    ChartKind.EMPTY: "",
}
_FAMILIES_WIDTH, _FIGURES_WIDTH = 36, 24
"""Minimum columns of the table of families, and the columns of its figures and borders."""
_CURVE_WIDTH = 53
"""Minimum columns of the curve; additional columns first go to the families until their names fit."""
_NOTE_S = 60  # long enough to be read
_NARROW = 64
"""Below this many columns only the curve is shown, without the table of families."""
_FIXED_LINES = 8
"""Lines for header, phase, two footers, the keys, and the two borders and title of the answers."""
_LOW = 20
"""Minimum lines of a terminal that shows the latest round; in a lower one the keys take its place."""
_ROOMY = 22
"""Minimum lines of a terminal in which refusals get a separate line."""
_SHOWN_REASONS = 3
"""Maximum number of reasons for refusals that are named; the latest ones."""
_EXPLAINED = (
    ("p", "pauses: the model leaves the memory, the last saved round stays. Again resumes."),
    ("q", "stops safely and leaves this view. Ctrl-C does too."),
    ("?", "shows or hides this help."),
    ("", ""),
    (
        "new puzzles solved",
        "puzzles no Shoal ever trains on (held-out), and how exact that is",
    ),
    ("practice", "answers to the puzzles it is learning from, of late"),
    ("✓", "an answer that is right"),
    ("taught it something", "some answers to the puzzle were right and some wrong (informative groups)"),
    ("saved", "the last checkpoint: nothing before it can get lost"),
)
"""Help text: keys and terms."""


class Terminal:
    """Draws the newest snapshot on the whole terminal; `close` leaves the last picture of the curve. `said`: an
    earlier sentence that this view would cover; it is shown until there is a newer one."""

    def __init__(self, console: Console, read: Callable[[], Snapshot], said: str = "") -> None:
        self._console = console
        self._read = (lambda: _noted(read(), said)) if said else read
        self._live = Live(console=console, auto_refresh=False, screen=True)
        self._drawn: tuple[object, ...] = ()
        self.keys = False
        """Whether key presses are read."""
        self.explains = False

    def open(self) -> None:
        self._live.start()
        self.refresh()

    def refresh(self) -> None:
        """Draws if anything changed since the last call; call it a few times a second."""
        snapshot, now = self._read(), time.time()
        state = (snapshot, int(now), self._console.size, self.explains)
        if state != self._drawn:
            self._drawn = state
            draw = help_view if self.explains else draw_view
            self._live.update(draw(snapshot, *self._console.size, now, self.keys), refresh=True)

    def close(self) -> None:
        self._live.stop()
        snapshot = self._read()
        if snapshot.curve:
            self._console.print(_curve(snapshot, min(80, self._console.width), 12))


def _noted(snapshot: Snapshot, said: str) -> Snapshot:
    if snapshot.note:
        return snapshot
    return msgspec.structs.replace(snapshot, note=said, noted_at=snapshot.started_at)


def help_view(snapshot: Snapshot, width: int, height: int, now: float, keys: bool = True) -> RenderableType:
    """Draws the help over the view, with the engine and the data folder."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold cyan", no_wrap=True)
    table.add_column()
    for what, meaning in _EXPLAINED:
        table.add_row(what, meaning)
    table.add_row("", "")
    if (engine := snapshot.engine) is not None:
        threads = f", {counted(engine.threads, 'thread')}" if engine.device == "CPU" else ""
        table.add_row("engine", f"{engine.name} on {engine.device}, {engine.dtype}{threads}")
    table.add_row("recipe", snapshot.recipe)
    table.add_row("data", snapshot.home)
    panel = Panel(
        table, title="help", title_align="left", border_style="bright_black", height=height - 3, width=width
    )
    return Group(
        _header(snapshot, width), _phase(snapshot, width, now), panel, _key_line(snapshot, width, keys)
    )


def draw_view(snapshot: Snapshot, width: int, height: int, now: float, keys: bool = True) -> RenderableType:
    """Draws the whole view for a terminal of this size, at least 40 columns and 14 lines."""
    width, height = max(40, width), max(14, height)
    swarm = swarm_panel(snapshot.swarm, width, height) if snapshot.swarm is not None else None
    low = height < _LOW
    room = height - _FIXED_LINES + low - (swarm.height or 0 if swarm is not None else 0)
    answer_lines = max(2, min(8, (room - 8) // 2))
    middle = room - answer_lines
    families_width = _families_width(snapshot.families, width)
    curve_width = width if width < _NARROW else width - families_width
    body = Table.grid(padding=0)
    body.add_column(width=curve_width)
    cells: list[RenderableType] = [_curve(snapshot, curve_width, middle)]
    if width >= _NARROW:
        body.add_column(width=families_width)
        cells.append(_families(snapshot.families, families_width, middle))
    body.add_row(*cells)
    return Group(
        _header(snapshot, width),
        _phase(snapshot, width, now),
        body,
        *([swarm] if swarm is not None else []),
        _answers(snapshot.answers, width, answer_lines),
        *([] if low else [_last_round(snapshot, width)]),
        _footer(snapshot, width, now),
        _key_line(snapshot, width, keys),
    )


def _header(snapshot: Snapshot, width: int) -> Text:
    line = Text(" Shoal ", style="bold black on cyan", end="")
    line.append(f" {safe_line(snapshot.model)}", style="bold")
    line.append(" · learning on its own" if snapshot.swarm is None else " · learning with others")
    return one_line(line, width)


def _phase(snapshot: Snapshot, width: int, now: float) -> Text:
    span = f" of {snapshot.last_round}" if snapshot.last_round else ""
    line = Text(" ")
    style = (
        "bold yellow"
        if snapshot.phase in (Phase.WAITING, Phase.NO_ROOM, Phase.PAUSED, Phase.STOPPING)
        else "bold green"
    )
    if snapshot.phase in (Phase.STARTING, Phase.LOADING):
        since = "" if snapshot.last is not None else f" {now - snapshot.started_at:.0f} s"  # not after a pause
        line.append(f"{snapshot.phase.value} …{since}", style=style)
    else:
        where = (
            f"After round {snapshot.safe_round}"
            if snapshot.phase is Phase.PROBING
            else f"Round {snapshot.round}"
        )
        line.append(f"{where}{span}", style="bold")
        line.append(f"  {progress_line(snapshot)}", style=style)
    return one_line(line, width)


def _curve(snapshot: Snapshot, width: int, height: int) -> Panel:
    lines = Text()
    if snapshot.curve:
        for row in chart(snapshot.curve, width - 4, height - 2):
            for text, kind in row:
                lines.append(text, style=_STYLES[kind])
            lines.append("\n")
        lines.rstrip()
    else:
        lines.append("\n  The first measurement comes soon.", style="bright_black")
    title = "new puzzles solved"
    if snapshot.curve:
        title = snapshot.curve[-1].subject.lower()
        title += f" [bold cyan]{snapshot.curve[-1]}[/]"
    return Panel(
        lines, title=title, title_align="left", border_style="bright_black", height=height, width=width
    )


def _families_width(families: tuple[FamilyView, ...], width: int) -> int:
    """Returns a width for the longest name, if the curve has columns to spare."""
    wanted = _FIGURES_WIDTH + max((len(family.title) for family in families), default=0)
    return max(_FAMILIES_WIDTH, min(wanted, width - _CURVE_WIDTH))


def _families(families: tuple[FamilyView, ...], width: int, height: int) -> Panel:
    table = Table.grid(padding=(0, 1, 0, 0))
    for justify in ("left", "right", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_row(*(Text(name, style="bright_black") for name in ("", "level", "new", "practice")))
    room = height - 3
    shown = families if len(families) <= room else families[: room - 1]
    for family in shown:
        table.add_row(
            one_line(Text(family.title), width - _FIGURES_WIDTH),
            f"{family.level + 1}/{family.levels}",
            Text(_share(family.latest), style=_trend(family)),
            Text(_share(family.practised), style="bright_black"),
        )
    if len(shown) < len(families):
        table.add_row(Text(f"and {len(families) - len(shown)} more", style="bright_black"))
    return Panel(
        table,
        title="kinds of puzzles",
        title_align="left",
        border_style="bright_black",
        height=height,
        width=width,
    )


def _trend(family: FamilyView) -> str:
    if family.first is None or family.latest is None:
        return ""
    return "green" if family.latest > family.first else ""


def swarm_panel(view: SwarmView, width: int, height: int) -> Panel:
    """Draws where this node is connected, what it sends and receives, and what it refused. Three or four lines
    high; its `height` says which."""
    lines = [_link(view), _shared(view)]
    if height >= _ROOMY and view.refused:
        lines.append(_refusals(view))
    return Panel(
        Group(*(one_line(line, width - 4) for line in lines)),
        title=f"swarm [bold magenta]{view.name}[/]" if view.name else "swarm",
        title_align="left",
        border_style="bright_black",
        height=len(lines) + 2,
        width=width,
    )


def _link(view: SwarmView) -> Text:
    if not view.connected:
        line = Text("○ ", style="bold yellow")
        return line.append(safe_line(view.sentence) or "Not connected.", style="yellow")
    line = Text("● ", style="bold green")
    line.append(safe_line(view.relay), style="bold")
    others = "no one else is here yet" if view.online == 0 else f"{counted(view.online, 'peer')} online"
    line.append(f" · {others}")
    return line.append(f" · {counted(view.ready, 'puzzle')} of theirs ready", style="bright_black")


def _shared(view: SwarmView) -> Text:
    line = Text("learned from ", style="bright_black")
    line.append(f"{view.taken}", style="bold")
    if view.sources:
        line.append(f" of {counted(view.sources, 'peer')}", style="bright_black")
    if view.taken:
        line.append(f", {view.taken_last} last round", style="bright_black")
    line.append(" · shared ", style="bright_black").append(f"{view.given}", style="bold")
    if view.waiting:
        line.append(f", {view.waiting} waiting", style="" if view.connected else "yellow")
    if view.pupils:
        says = "says yours taught it" if view.pupils == 1 else "say yours taught them"
        line.append(f" · {counted(view.pupils, 'peer')} {says}", style="bright_black")
    return line


def _refusals(view: SwarmView) -> Text:
    """Returns the latest refusal reasons with their counts, latest first."""
    latest = list(view.refused.items())[::-1][:_SHOWN_REASONS]
    reasons = ", ".join(f"{reason.replace('_', ' ').replace('-', ' ')} {n}" for reason, n in latest)
    more = ", …" if len(view.refused) > _SHOWN_REASONS else ""
    total = sum(view.refused.values())
    return Text(f"refused {total} of {view.received}: {reasons}{more}", style="bright_black")


def counted(number: int, what: str) -> str:
    """Formats a number with its noun.

    >>> counted(1, "peer"), counted(3, "peer")
    ('1 peer', '3 peers')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def one_line(line: Text, width: int) -> Text:
    """Shortens the text to one line, with an ellipsis if it is longer."""
    line.no_wrap, line.overflow, line.end = True, "ellipsis", "\n"
    line.truncate(width, overflow="ellipsis")
    return line


def _answers(groups: tuple[GroupRow, ...], width: int, lines: int) -> Panel:
    room = width - 6
    rows = []
    for group in groups[:lines]:
        question, completion, solved = (
            safe_line(group.question or ""),
            safe_line(group.completions_G[0]),
            group.rewards_G[0],
        )
        left = max(12, min(len(question), room - 3 - len(completion), room * 2 // 3))
        shown = shorten_question(question, max(left, room // 3))
        row = Text("✓ " if solved else "· ", style="bold green" if solved else "bright_black")
        row.append(shown, style="bright_black")
        row.append("  " + completion, style="green" if solved else "")
        rows.append(one_line(row, width - 4))
    if not rows:
        rows = [Text("No answers yet.", style="bright_black")]
    return Panel(
        Group(*rows), title="newest answers", title_align="left", border_style="bright_black", height=lines + 2,
        width=width,
    )  # fmt: skip


def _last_round(snapshot: Snapshot, width: int) -> Text:
    parts = snapshot.last.short_phrases if snapshot.last is not None else []
    return one_line(Text(" " + " · ".join(parts), style="bright_black"), width)


def _footer(snapshot: Snapshot, width: int, now: float) -> Text:
    if snapshot.note and now - snapshot.noted_at < _NOTE_S:
        return one_line(Text(" " + safe_line(snapshot.note), style="yellow"), width)
    parts = []
    if snapshot.safe_at is not None:
        parts.append(
            f"round {snapshot.safe_round} saved {rounded_duration(max(0.0, now - snapshot.safe_at))} ago"
        )
    if snapshot.last is not None:
        parts.append(f"{snapshot.last.speed:,.0f} tokens/s".replace(",", " "))
        parts.append(f"{snapshot.last.seconds:.1f} s a round")
    return one_line(Text(" " + " · ".join(parts), style="bright_black"), width)


def _key_line(snapshot: Snapshot, width: int, keys: bool) -> Text:
    if not keys:
        return one_line(Text(" Ctrl-C stops safely", style="bright_black"), width)
    paused = snapshot.ruling is not None and snapshot.ruling.reason == Reason.PAUSED.value
    line = Text(" ", style="bright_black")
    for key, does in (("p", "resume" if paused else "pause"), ("q", "quit"), ("?", "help")):
        line.append(f" {key} ", style="bold black on bright_black").append(f" {does}   ")
    return one_line(line, width)


def closing_sentence(snapshot: Snapshot) -> str:
    """Returns the sentence shown when the node ends: the state of the curve, and what is saved."""
    safe = (
        f"Round {snapshot.safe_round} is saved in {snapshot.home}."
        if snapshot.safe_round
        else "No round is saved yet."
    )
    rise = snapshot.curve[-1].everyday_rise if snapshot.curve and snapshot.safe_round else None
    speaks = f" {records.language_sentence(rise)}" if rise is not None else ""
    return f"{curve_sentence(snapshot.curve)}{speaks} {safe}"


def shorten_question(question: str, room: int) -> str:
    """Returns the characteristic part of a long question, around its last number if it has one.

    >>> shorten_question("Simplify the fraction 57/95 to its lowest terms. Give only the fraction.", 20)
    '… fraction 57/95 to…'
    >>> shorten_question("Spell this word backward: salmon", 16), shorten_question("1 + 1 =", 20)
    ('…ackward: salmon', '1 + 1 =')
    """
    if len(question) <= room:
        return question
    numbers = [at for at, char in enumerate(question) if char.isdecimal()]
    end = min(len(question), numbers[-1] + 4) if numbers else len(question)
    end = max(end, room - 1)
    cut_after = "…" if end < len(question) else ""
    start = max(0, end - room + 1 + len(cut_after))
    return ("…" if start else "") + question[start:end] + cut_after


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
