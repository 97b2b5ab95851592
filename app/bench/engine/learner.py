"""Measures one optimiser step: ours, with layers kept or recomputed, beside TRL's update."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from app.bench.engine import apart
from app.bench.engine.apart import ratio
from app.bench.harness import Tell

SUMMARY = "one optimiser step, beside TRL's update"
TARGETS = {"peak_mb": 4096}
"""The budget for the 0.5B shape, 8 x (128 + 128) tokens."""

OURS = "torch"
CANDIDATES = (
    OURS,
    "torch checkpointing",
    "trl fp32",
    "trl checkpointing fp32",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    apart.add_arguments(parser, CANDIDATES)


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    found, about = apart.measure("learner", CANDIDATES, args, tell)
    ours = found.get(OURS)
    there = ours is not None and "missing" not in ours
    compared = {
        f"speedup_vs_{peer.replace(' fp32', '').replace(' ', '_')}": value and round(value, 2)
        for peer in ("trl fp32", "trl checkpointing fp32")
        if (value := ratio(found.get(peer), ours)) is not None
    }
    return {
        "seconds": round(ours["seconds"], 3) if ours and there else None,
        "peak_mb": round(ours["peak_mb"]) if ours and there else None,
        **compared,
        **about,
        "candidates": apart.figures(found),
        "budget": TARGETS,
    }


def table(figures: Mapping[str, Any]) -> list[str]:
    lines = apart.table(figures["candidates"], figures)
    for key, value in figures.items():
        if key.startswith("speedup_vs_"):
            lines.append(f"Our step is {value} times as fast as {key.removeprefix('speedup_vs_')}.")
    return lines
