"""Milestones in words, and where the answers behind them are."""

from __future__ import annotations

from app.common.text import safe_line
from app.node.history.milestones import Milestone, MilestoneKind
from app.sapo.families import FAMILIES
from app.ui.frame.frame import Actions
from app.ui.language.texts import counted, number, tr


def told(one: Milestone) -> str:
    """A milestone as a sentence; it names a peer as what came before, not as the cause."""
    title = tr(FAMILIES[one.family].title) if one.family in FAMILIES else one.family
    match one.kind:
        case MilestoneKind.FIRST:
            said = counted(
                "{family}: the first right answer, after a wrong one.",
                "{family}: the first right answer, after {n} wrong ones.",
                one.tried,
                family=title,
            )
            if one.peer:
                said += " " + tr("It had seen answers of {peer} before.", peer=safe_line(one.peer))
            return said
        case MilestoneKind.LEVEL:
            return tr("{family}: reached level {n}.", family=title, n=number(one.level + 1))
        case MilestoneKind.HALF:
            return tr("{family}: half of its answers are right now.", family=title)
        case MilestoneKind.MEASURED_HALF:
            return tr("It solves half of all new puzzles.")


def open_(one: Milestone, actions: Actions) -> None:
    """Shows the answers of that round. A measurement keeps no answers, so its curve is shown."""
    if one.kind is MilestoneKind.MEASURED_HALF:
        actions.go("skills")
    else:
        actions.show_round(one.round)
