"""Benchmarks: each measures one part beside its peers or limits in the same run, and says what it ran on.

One file each; `BENCHMARKS` names them. Nothing here is imported by the rest of the application, and nothing
asserts a time: a figure is printed, with the budget it is held against.
"""

from __future__ import annotations

BENCHMARKS = {
    "sampler": "app.bench.sampler",
    "learner": "app.bench.learner",
    "round": "app.bench.round",
    "gguf": "app.bench.gguf",
    "relay": "app.bench.relay",
    "window": "app.bench.window",
    "fuzz": "app.bench.fuzz",
    "autobahn": "app.bench.autobahn",
}
"""Name to module. A module has SUMMARY, add_arguments(parser) and run(args, tell) -> figures; `tell` takes
lines for people while it runs, and `table(figures)` of the module gives those for the end."""


class BenchError(Exception):
    """A measurement that cannot be made, or would measure something else. Says why and what to do."""
