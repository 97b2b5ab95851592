"""Measures sampling: our engines beside transformers' `generate` and llama.cpp's own batched limit.

Speed is compared within a precision class: fp32 with fp32, 16 bits with 16 bits. llama.cpp's q8_0 has no
counterpart in transformers on a CPU; it is compared with the limit of the same file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from app.bench.engine import apart
from app.bench.engine.apart import ratio
from app.bench.harness import Figures, Tell

SUMMARY = "sampling, beside transformers' generate and llama.cpp's own batched limit"
TARGETS = {"speedup_vs_transformers": 1.5, "share_of_llamacpp_limit": 0.85}
"""What the figures should reach."""

CANDIDATES = (
    "transformers fp32",
    "torch",
    "transformers bf16",
    "llamacpp f16",
    "llama.cpp f16",
    "llamacpp q8_0",
    "llama.cpp q8_0",
)
CLASSES = {"fp32": ("torch", "transformers fp32"), "16 bits": ("llamacpp f16", "transformers bf16")}
LLAMACPP_PAIRS = {"q8_0": ("llamacpp q8_0", "llama.cpp q8_0"), "f16": ("llamacpp f16", "llama.cpp f16")}
"""By file type: our candidate, and llama.cpp alone, which is the most that it can reach."""


MAX_S = 180.0
"""Maximum seconds for repeats; a larger model is measured once."""


def tokens(parameters: int) -> int:
    """Tokens per answer: fewer for a larger model, which takes longer for each.

    >>> [tokens(n * 10**6) for n in (8, 135, 494, 3000)]
    [128, 64, 32, 16]
    """
    return next((new for most, new in ((50, 128), (200, 64), (1000, 32)) if parameters <= most * 10**6), 16)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    apart.add_arguments(parser, CANDIDATES)


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    found, about = apart.measure("sampler", CANDIDATES, args, tell, tokens, MAX_S)
    return {**ratios(found), **about, "candidates": apart.figures(found), "budget": TARGETS}


def ratios(found: Mapping[str, Figures]) -> dict[str, Any]:
    """Returns the headline figures: tokens per second of our fastest engine, the lower speed-up of those in
    CLASSES, and the share of llama.cpp's own speed for the first pair that was measured."""
    ours = {name: one for name, one in found.items() if name.split()[0] in ("torch", "llamacpp")}
    there = {name: one["tokens"] / one["seconds"] for name, one in ours.items() if "missing" not in one}
    fastest = max(there, key=lambda name: there[name], default=None)
    faster = {
        kind: round(value, 2)
        for kind, (mine, peer) in CLASSES.items()
        if (value := ratio(found.get(peer), found.get(mine))) is not None
    }
    least = min(faster, key=lambda kind: faster[kind], default=None)
    shares = {
        kind: round(value, 2)
        for kind, (mine, limit) in LLAMACPP_PAIRS.items()
        if (value := ratio(found.get(limit), found.get(mine))) is not None
    }
    return {
        "tokens_per_s": round(there[fastest], 1) if fastest else None,
        "engine": fastest,
        "speedup_vs_transformers": faster[least] if least else None,
        "precision_class": least,
        "share_of_llamacpp_limit": next(iter(shares.values()), None),
        "speedups": faster,
        "shares": shares,
    }


def table(figures: Mapping[str, Any]) -> list[str]:
    lines = apart.table(figures["candidates"], figures)
    for kind, value in figures["speedups"].items():
        lines.append(f"{CLASSES[kind][0]} is {value} times as fast as transformers ({kind}); wanted: 1.5.")
    for kind, value in figures["shares"].items():
        lines.append(f"{LLAMACPP_PAIRS[kind][0]} reaches {value} of llama.cpp's own limit; wanted: 0.85.")
    return lines
