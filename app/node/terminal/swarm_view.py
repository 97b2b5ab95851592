"""The swarm in the terminal: where this node is connected, what it sends and receives, and what it refused."""

from __future__ import annotations

from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from app.common.text import safe_line
from app.node.record.snapshot import SwarmView

_ROOMY = 22
"""Minimum lines of a terminal in which refusals get a line of their own."""
_SHOWN_REASONS = 3


def panel(view: SwarmView, width: int, height: int) -> Panel:
    """Three or four lines high; its `height` says which."""
    lines = [_link(view), _figures(view)]
    if height >= _ROOMY and view.refused:
        lines.append(_refusals(view))
    return Panel(
        Group(*(cut(line, width - 4) for line in lines)),
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


def _figures(view: SwarmView) -> Text:
    line = Text("learned from ", style="bright_black")
    line.append(counted(view.taken, "puzzle"), style="bold")
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
    """The latest reasons first."""
    latest = list(view.refused.items())[::-1][:_SHOWN_REASONS]
    reasons = ", ".join(f"{reason.replace('_', ' ').replace('-', ' ')} {n}" for reason, n in latest)
    more = ", …" if len(view.refused) > _SHOWN_REASONS else ""
    total = sum(view.refused.values())
    return Text(f"refused {total} of {view.received}: {reasons}{more}", style="bright_black")


def counted(number: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "peer"), counted(3, "peer")
    ('1 peer', '3 peers')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def cut(line: Text, width: int) -> Text:
    """The text shortened to one line, with an ellipsis if it is longer."""
    line.no_wrap, line.overflow, line.end = True, "ellipsis", "\n"
    line.truncate(width, overflow="ellipsis")
    return line
