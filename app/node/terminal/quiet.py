"""The view without a terminal: one plain line for each event that belongs in a log."""

from __future__ import annotations

from app.node.record import events
from app.node.record.records import Probe, Round


def sentence(event: events.Event) -> str | None:
    """An event for people, None if it says nothing new."""
    match event:
        case events.Started():
            at = f"continuing after round {event.round}" if event.round else "starting fresh"
            where = f"{event.engine.name} ({event.engine.device}, {event.engine.dtype})"
            return f"{event.model} on {where}, {event.recipe} recipe, {at}."
        case Round():
            return f"Round {event.round}: {'; '.join(event.gist)}; {event.seconds:.1f} s."
        case Probe():
            return f"New puzzles solved after round {event.round}: {event} of {event.questions}."
        case (
            events.TrainerRestarted()
            | events.NodeNote()
            | events.Placed()
            | events.SkillLearned()
            | events.Flat()
            | events.Decided()
            | events.CommandRefused()
        ):
            return event.sentence
        case events.IdentityNamed():
            return f"Others see you as {event.name}."
        case events.LinkChanged():
            alone = "" if event.state == "connected" else " It keeps learning on its own; nothing is lost."
            return f"{event.sentence}{alone}"
        case (
            events.Checkpointed()
            | events.SwarmDone()
            | events.Holding()
            | events.SettingsNow()
            | events.NodeEnded()
        ):
            return None
