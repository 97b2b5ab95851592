"""The fleet as a table: one line a node. Reads members and draws; knows nothing of processes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from app.common.text import safe_line, span
from app.node.terminal.fleet import Fleet, Member
from app.node.terminal.swarm_view import counted, cut

_WIDE = 92


def picture(fleet: Fleet, rounds: int, notes: Sequence[str], width: int) -> RenderableType:
    """For a terminal of this width; at least 60 columns are assumed."""
    width = max(60, width)
    table = Table.grid(padding=(0, 2, 0, 0))
    wide = width >= _WIDE
    heads = ["", "node", "round", "own", "peers'", "held out", "waiting"] + (
        ["from", "s/round"] if wide else []
    )
    for head in heads:
        table.add_column(justify="left" if head in ("", "node") else "right", no_wrap=True)
    table.add_row(*(Text(head, style="bright_black") for head in heads))
    for member in fleet.members:
        table.add_row(*_cells(member, rounds)[: len(heads)])
    taken = sum(member.taken for member in fleet.members)
    given = sum(member.acknowledged for member in fleet.members)
    title = Text(" Shoal ", style="bold black on cyan", end="")
    title.append(f" {counted(len(fleet.members), 'node')} and a relay", style="bold")
    title.append(f" at {fleet.url or '…'} · {span(time.monotonic() - fleet.began)}", style="bright_black")
    below = Text(
        f" {given} puzzles shared, learned from {taken} · Ctrl-C ends all of them safely", style="bright_black"
    )
    lines = [cut(Text(f" {safe_line(note)}", style="yellow"), width) for note in notes[-3:]]
    states = [
        cut(_state(member), width) for member in fleet.members if member.state not in ("learning", "done")
    ]
    return Group(
        cut(title, width),
        Panel(table, border_style="bright_black", width=width, title="swarm", title_align="left"),
        *states,
        *lines,
        cut(below, width),
    )


def _cells(member: Member, rounds: int) -> list[Text]:
    light = (
        "bold green" if member.connected else "bright_black" if member.state != "learning" else "bold yellow"
    )
    held_out, rounds_done = Text(""), member.rounds
    if member.probes:
        share, error, stderr = str(member.probes[-1]).partition(" ±")
        better = member.probes[-1].share > member.probes[0].share
        held_out.append(share, style="bold green" if better else "bold").append(
            error + stderr, style="bright_black"
        )
    sign = "●" if member.connected else "✓" if member.state == "done" else "○"
    return [
        Text(sign, style="bold green" if sign == "✓" else light),
        Text(member.name or f"node {member.number}", style="bold magenta" if member.name else "bright_black"),
        Text(f"{len(rounds_done)}/{rounds}"),
        Text(str(sum(one.informative_own for one in rounds_done)), style="bright_black"),
        Text(str(member.taken), style="bold" if member.taken else "bright_black"),
        held_out,
        Text(str(member.waiting), style="yellow" if member.waiting else "bright_black"),
        Text(counted(len(set().union(*(one.peers for one in rounds_done))), "peer"), style="bright_black"),
        Text(f"{rounds_done[-1].seconds:.1f}" if rounds_done else "", style="bright_black"),
    ]


def _state(member: Member) -> Text:
    style = "red" if member.failed else "bright_black"
    return Text(f" {member.name or f'node {member.number}'}: {safe_line(member.state)}", style=style)
