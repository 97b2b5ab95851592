"""The live view in a terminal. It only reads snapshots and draws them."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from app.common.text import in_bytes, rounded_duration, safe_line
from app.models.catalogue import title
from app.node.record import records
from app.node.record.reasons import Reason
from app.node.record.records import GroupRow
from app.node.record.snapshot import Phase, Snapshot, SwarmView, curve_sentence, progress_line
from app.node.terminal.chart import ChartKind, chart

_STYLES = {
    ChartKind.AXIS: "bright_black",
    ChartKind.ERROR: "cyan dim",
    ChartKind.LINE: "bold cyan",
    ChartKind.EMPTY: "",
}
_NOTE_S = 60
_SWARM_LINES = 4
_FIXED_LINES = 8
"""Lines for header, phase, two footers, the keys, and the two borders and title of the answers."""
_LOW = 20
"""Minimum lines of a terminal that shows the latest round; in a lower one the keys take its place."""


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

    def open(self) -> None:
        self._live.start()
        self.refresh()

    def refresh(self) -> None:
        """Draws if anything changed since the last call; call it a few times a second."""
        snapshot, now = self._read(), time.time()
        state = (snapshot, int(now), self._console.size)
        if state != self._drawn:
            self._drawn = state
            self._live.update(draw_view(snapshot, *self._console.size, now, self.keys), refresh=True)

    def close(self) -> None:
        self._live.stop()
        snapshot = self._read()
        if snapshot.curve:
            self._console.print(_curve(snapshot, min(80, self._console.width), 12))


def _noted(snapshot: Snapshot, said: str) -> Snapshot:
    if snapshot.note:
        return snapshot
    return msgspec.structs.replace(snapshot, note=said, noted_at=snapshot.started_at)


def draw_view(snapshot: Snapshot, width: int, height: int, now: float, keys: bool = True) -> RenderableType:
    """Draws the whole view for a terminal of this size, at least 40 columns and 14 lines."""
    width, height = max(40, width), max(14, height)
    swarm = swarm_panel(snapshot.swarm, width) if snapshot.swarm is not None else None
    low = height < _LOW
    room = height - _FIXED_LINES + low - (_SWARM_LINES if swarm is not None else 0)
    answer_lines = max(2, min(8, (room - 8) // 2))
    return Group(
        _header(snapshot, width),
        _phase(snapshot, width, now),
        _curve(snapshot, width, room - answer_lines),
        *([swarm] if swarm is not None else []),
        _answers(snapshot.answers, width, answer_lines),
        *([] if low else [_last_round(snapshot, width)]),
        _footer(snapshot, width, now),
        _key_line(snapshot, width, keys),
    )


def _header(snapshot: Snapshot, width: int) -> Text:
    line = Text(" Shoal ", style="bold black on cyan", end="")
    line.append(f" {safe_line(title(snapshot.model))}", style="bold")
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


def swarm_panel(view: SwarmView, width: int) -> Panel:
    """Draws where this node is connected, and what it sends and receives."""
    lines = [_link(view), _shared(view)]
    return Panel(
        Group(*(one_line(line, width - 4) for line in lines)),
        title=f"swarm [bold magenta]{view.name}[/]" if view.name else "swarm",
        title_align="left",
        subtitle=f"sent {in_bytes(view.bytes_per_hour)} in the last hour",
        subtitle_align="right",
        border_style="bright_black",
        height=_SWARM_LINES,
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
        left = max(room // 3, min(room - 3 - len(completion), room * 2 // 3))
        shown = question if len(question) <= left else f"…{question[1 - left :]}"
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
    for key, does in (("p", "resume" if paused else "pause"), ("q", "quit")):
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
