"""Benchmarks: each compares one part with its alternatives or limits in one run, and reports the machine.

One module each; `BENCHMARKS` lists them. The rest of the application imports nothing from here, and no
benchmark asserts a time: a figure is printed with its budget."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
"""The root of the checkout."""
Tell = Callable[[str], None]
"""Called with lines of progress for people."""

TESTS = {name: f"tests.bench.{name}" for name in ("gguf", "soak", "scale", "fuzz", "autobahn", "cluster")}
"""The module of each long-running test, by name. They are started like benchmarks, and only a source checkout
has them."""

BENCHMARKS = {
    "sampler": "app.bench.engine.sampler",
    "learner": "app.bench.engine.learner",
    "round": "app.bench.engine.round",
    "relay": "app.bench.relay.relay",
    "window": "app.bench.runs.window",
    "serve": "app.bench.runs.serve",
    "puzzles": "app.bench.runs.puzzles",
    "poison": "app.bench.runs.poison",
    "spread": "app.bench.runs.spread",
    "skill": "app.bench.runs.skill",
    **(TESTS if ROOT.joinpath("tests").is_dir() else {}),
}
"""Benchmark name to module, with TESTS if the tests are present. A module has SUMMARY, add_arguments(parser),
run(args, tell) -> figures, where `tell` is called with lines of progress, and table(figures) -> lines of the
result."""


def warn_if_busy(tell: Tell) -> float:
    """Returns the load average of the last minute, 0 if unknown; tells a warning if it distorts the figures."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5:
        tell(f"This computer is doing something else (load {load:.1f}): the figures will be too high.")
    return load


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Reads a JSON Lines file; skips invalid lines, such as a truncated last one."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


class BenchError(Exception):
    """A measurement is impossible, or would measure the wrong thing. The message says why and what to do."""
