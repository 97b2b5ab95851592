"""The view without a terminal: one plain line for what is worth a line in a log."""

from __future__ import annotations

from app.node import events
from app.node.swarm_view import counted


def sentence(event: events.Event) -> str | None:
    """An event for people, None where it says nothing new."""
    match event:
        case events.Started():
            at = f"going on after round {event.round}" if event.round else "starting with a fresh adapter"
            where = f"{event.engine.name} ({event.engine.device}, {event.engine.dtype})"
            return f"{event.model} on {where}, {event.recipe} recipe, {at}."
        case events.RoundDone():
            learned = "" if event.stepped else ", nothing to learn from"
            return (
                f"Round {event.round}: "
                f"{event.informative_own} of {event.own_groups} groups informative{learned}, "
                f"{_peers(event)}training answers right {100 * event.train_solved:.0f} %, "
                f"showing work {100 * event.worked_share:.0f} %, {event.seconds:.1f} s."
            )
        case events.ProbeDone():
            return (
                f"Held-out questions solved after round {event.round}: "
                f"{100 * event.pass_at_1:.1f} % ± {100 * event.stderr:.1f} of {event.questions}."
            )
        case events.TrainerRestarted() | events.Noted() | events.Decided() | events.Refused():
            return event.sentence
        case events.Named():
            return f"This node is {event.name}."
        case events.LinkChanged():
            alone = "" if event.state == "connected" else " Learning goes on alone, and nothing is lost."
            return f"{event.sentence}{alone}"
        case (
            events.Checkpointed()
            | events.SwarmDone()
            | events.Holding()
            | events.SettingsNow()
            | events.Ended()
        ):
            return None


def _peers(event: events.RoundDone) -> str:
    if not event.informative_peer:
        return ""
    return f"{event.informative_peer} more from {counted(len(event.peers), 'peer')}, "
