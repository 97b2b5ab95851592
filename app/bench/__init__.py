"""Benchmarks: each measures one part beside its peers or limits in the same run, and reports what it ran on.

One file each; `BENCHMARKS` names them. Nothing here is imported by the rest of the application, and nothing
asserts a time: a figure is printed with its budget.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
"""The checkout."""
Tell = Callable[[str], None]
"""Gets lines for people."""

TESTS = {name: f"tests.bench.{name}" for name in ("gguf", "soak", "scale", "fuzz", "autobahn", "cluster")}
"""Long tests that are called like benchmarks; an installed app has none."""

BENCHMARKS = {
    "sampler": "app.bench.engine.sampler",
    "learner": "app.bench.engine.learner",
    "round": "app.bench.engine.round",
    "relay": "app.bench.relay.relay",
    "window": "app.bench.runs.window",
    "serve": "app.bench.runs.serve",
    "puzzles": "app.bench.runs.puzzles",
    "poison": "app.bench.runs.poison",
    "lessons": "app.bench.runs.lessons",
    "spread": "app.bench.runs.spread",
    **(TESTS if ROOT.joinpath("tests").is_dir() else {}),
}
"""Name to module, those of TESTS where the tests are. A module has SUMMARY, add_arguments(parser) and
run(args, tell) -> figures; `tell` takes lines for people while it runs, and `table(figures)` of the module
gives those for the end."""


def busy(tell: Tell) -> float:
    """The load by other programs before the run; prints a warning if it spoils the figures."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5:
        tell(f"This computer is doing something else (load {load:.1f}): the figures will be too high.")
    return load


def rows(path: Path) -> list[dict[str, Any]]:
    """A file of JSON lines; a last line that was cut is left out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


class BenchError(Exception):
    """A measurement that is impossible, or would measure something else. Says why and what to do."""
