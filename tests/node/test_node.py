"""A whole node around a fake engine: rounds, probes, resuming, dead trainers."""

from __future__ import annotations

from app.node import events


def of[T](kind, seen):
    return [event for event in seen if isinstance(event, kind)]
