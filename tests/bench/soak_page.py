"""The page of `./shoal bench soak`: counts, events and trends of memory of all pieces together."""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from app.relay.store.window import WindowLimits

WARM_S, WINDOW_S = 120.0, WindowLimits().age_s
"""A process's memory counts for its trend when it has lived so long; a relay's when its window is full, which
grows by 1.6 KB a group until groups leave it as fast as they come."""
LONG_S = 240.0
"""Lives that are shorter have no trend."""


def trend(life: list[tuple[float, float]], warm_s: float = WARM_S) -> float | None:
    """By how many percent one life's memory grew: the median of its last third against that of its first, after
    the time it takes to warm up; None for lives that are too short to tell. (age in seconds, MB)

    >>> trend([(age, 100.0 + age / 100) for age in range(0, 2000, 10)])
    12.1
    >>> trend([(10.0, 5.0)])
    """
    warm = sorted((age, mb) for age, mb in life if age >= warm_s)
    if not warm or warm[-1][0] - warm[0][0] < LONG_S:
        return None
    third = max(1, len(warm) // 3)
    first, last = (statistics.median(mb for _, mb in part) for part in (warm[:third], warm[-third:]))
    return round(100 * (last / first - 1), 1)


def summed(pieces: list[dict[str, Any]], memory: list[dict[str, Any]], out: Path) -> dict[str, Any]:
    """All pieces together. The counts of outboxes and relay run on, so the last piece has them all."""
    happened: Counter[str] = Counter()
    for piece in pieces:
        happened.update(piece["events"])
    lives: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for row in memory:
        lives.setdefault(row["role"], {}).setdefault(row["life"], []).append((row["age_s"], row["mb"]))
    figures = {
        "hours": round(sum(piece["hours"] for piece in pieces), 2),
        "pieces": len(pieces),
        "events": dict(happened.most_common()),
        "rounds": sum(piece["rounds"] for piece in pieces),
        "counts": {
            name: value for name, value in pieces[-1].items() if name not in ("hours", "events", "rounds")
        },
        "lost": max(piece["lost"] for piece in pieces),
        "memory": {role: _of_role(role, each) for role, each in sorted(lives.items())},
    }
    figures["passed"] = figures["lost"] == 0 and all(piece["journal"] == "ok" for piece in pieces)
    (out / "page.md").write_text("\n".join(page(figures)) + "\n")
    return figures


def _of_role(role: str, lives: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    warm_s = WINDOW_S if role == "relay" else WARM_S
    trends = [found for life in lives.values() if (found := trend(life, warm_s)) is not None]
    every = [mb for life in lives.values() for age, mb in life if age >= WARM_S]
    longest = max(max(age for age, _ in life) for life in lives.values())
    return {
        "lives": len(lives),
        "longest_min": round(longest / 60, 1),
        "median_mb": round(statistics.median(every), 1) if every else None,
        "most_mb": round(max(mb for life in lives.values() for _, mb in life), 1),
        "long_lives": len(trends),
        "median_trend_percent": round(statistics.median(trends), 1) if trends else None,
        "worst_trend_percent": max(trends, default=None),
    }


def page(figures: dict[str, Any]) -> list[str]:
    """One page of figures, in Markdown."""
    counts, events = figures["counts"], figures["events"]
    lines = [
        f"# Soak: {figures['hours']} hours in {figures['pieces']} pieces",
        "",
        f"{sum(events.values())} events: " + ", ".join(f"{name} {n}" for name, n in events.items()) + ".",
        f"{figures['rounds']} rounds learned. Groups: {counts['created']} created, {counts['acknowledged']} "
        f"acknowledged, {counts['stored']} stored, {counts['waiting']} still waiting, {counts['stale']} stale, "
        f"{counts['invalid'] + counts['blocked'] + counts['dropped']} refused or dropped. "
        f"**{figures['lost']} acknowledged ones lost.** The relay's journal: {counts['journal']}.",
        "",
        "| process | lives | longest, min | median MB | most MB | lives with a trend | median trend | worst |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for role, one in figures["memory"].items():
        shown = [one["median_trend_percent"], one["worst_trend_percent"]]
        trends = " | ".join("-" if value is None else f"{value:+.1f} %" for value in shown)
        lines.append(
            f"| {role} | {one['lives']} | {one['longest_min']} | {one['median_mb'] or '-'} | {one['most_mb']} "
            f"| {one['long_lives']} | {trends} |"
        )
    return lines
