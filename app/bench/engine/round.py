"""Measures a whole round: sample a group, weigh it, make one step; ours beside TRL's GRPOTrainer.

The headline compares fp32 with fp32, on a card bf16 with bf16, and with TRL without checkpointing, which is its
fastest mode."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from app.bench.engine import apart
from app.bench.engine.apart import ratio
from app.bench.harness import Figures, Tell

SUMMARY = "a whole round of sampling and learning, beside TRL's GRPOTrainer"
TARGETS = {"speedup_vs_trl": 2.0, "peak_memory_ratio_vs_trl": 0.5}
"""What the figures should reach."""

CANDIDATES = ("torch", "trl fp32", "llamacpp", "llamacpp q8_0", "trl checkpointing fp32", "trl bf16")
OURS = ("torch", "llamacpp", "llamacpp q8_0")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    apart.add_arguments(parser, CANDIDATES)


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    found, about = apart.measure("round", CANDIDATES, args, tell)
    compared = {
        f"{mine} vs {peer}": _compared(found.get(mine), found.get(peer))
        for mine in OURS
        for peer in ("trl fp32", "trl checkpointing fp32", "trl bf16")
    }
    headline = compared["torch vs trl fp32" if args.device == "cpu" else "torch vs trl bf16"] or {}
    return {
        "speedup_vs_trl": headline.get("speedup"),
        "peak_memory_ratio_vs_trl": headline.get("peak_memory_ratio"),
        "ratios": {name: ratios for name, ratios in compared.items() if ratios},
        **about,
        "candidates": apart.figures(found),
        "budget": TARGETS,
    }


def _compared(mine: Figures | None, peer: Figures | None) -> dict[str, float] | None:
    faster = ratio(peer, mine)
    if faster is None or mine is None or peer is None:
        return None
    return {"speedup": round(faster, 2), "peak_memory_ratio": round(mine["peak_mb"] / peer["peak_mb"], 2)}


def table(figures: Mapping[str, Any]) -> list[str]:
    lines = apart.table(figures["candidates"], figures)
    for name, ratios in figures["ratios"].items():
        lines.append(
            f"{name}: {ratios['speedup']} times as fast (wanted: 2), {ratios['peak_memory_ratio']} of the peak "
            "memory (wanted: 0.5)."
        )
    return lines
