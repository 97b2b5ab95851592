"""Benchmarks: each compares one part with its alternatives or limits in one run, and reports the machine.

One module each; `BENCHMARKS` lists them, `app.bench.harness` has what they share. The rest of the application
imports nothing from here, and no benchmark asserts a time: a figure is printed with its budget."""

from __future__ import annotations

from app.bench.harness import ROOT, BenchError, Tell, read_json_lines, warn_if_busy

__all__ = ["BENCHMARKS", "ROOT", "BenchError", "Tell", "read_json_lines", "warn_if_busy"]

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
}
"""Benchmark name to module. A module has SUMMARY, add_arguments(parser),
run(args, tell) -> figures, where `tell` is called with lines of progress, and table(figures) -> lines of the
result."""
