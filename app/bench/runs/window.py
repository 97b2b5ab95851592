"""Measures the cost of the window: time to its first frame, memory of window and node, and processor time while
paused.

Qt runs in its own processes (app.bench.runs.window_inside), on this computer's display, else on a display that
Xvfb renders into memory, else on Qt's offscreen platform; the figures say which. The node is the real one and
learns a few rounds with the starter model before it is paused."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from app.bench.harness import BenchError, Tell, child, machine, warn_if_busy

SUMMARY = "the window: time to its first frame, memory, processor time while paused"
TARGETS = {
    "first_frame_s": 1.0,
    "window_mb": 150.0,
    "node_mb": 120.0,
    "paused_cpu_percent": 1.0,
}
"""What the figures should reach."""

BORN = "SHOAL_BENCH_BORN"
"""Name of the environment variable with the start time, as app.bench.runs.window_inside reads it."""
_DIGITS = {
    "first_frame_s": 2,
    "first_frame_cpu_s": 2,
    "window_mb": 0,
    "node_mb": 0,
    "node_paused_mb": 0,
    "scorer_paused_mb": 0,
}
_NAMES = {
    "first_frame_s": "first frame, warm (s)",
    "window_mb": "window while learning (MB)",
    "node_mb": "node while learning (MB)",
    "paused_cpu_percent": "window and node while paused (% of a core)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--starts", type=int, default=5, metavar="N", help="starts to the first frame (5)")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    """Runs the benchmark; returns the figures. Raises BenchError if no window can be shown."""
    load = warn_if_busy(tell)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name, display(os.environ) as (where, shown_on):
        home = Path(name)
        prepare(home)
        tell(f"The window opens {args.starts} times on {shown_on} ...")
        first = [measured(home, where)["first_frame_s"] for _ in range(max(2, args.starts))]
        tell("A real node learns a few rounds and is paused; about a minute ...")
        found = measured(home, where, "--live")
    figures = {**found, "first_frame_s": median(first[1:])}
    rounded = {
        key: round(value, _DIGITS.get(key, 1)) if isinstance(value, float) else value
        for key, value in figures.items()
    }
    return {
        **{key: rounded.pop(key) for key in TARGETS},
        **rounded,
        "first_frame_cold_s": round(first[0], 2),
        "shown_on": shown_on,
        "machine": machine(load),
        "budget": TARGETS,
    }


def table(figures: Mapping[str, Any]) -> list[str]:
    lines = [f"{'':<46}{'measured':>10}{'budget':>10}"]
    for key, name in _NAMES.items():
        lines.append(f"{name:<46}{figures[key]:>10}{TARGETS[key]:>10}")
    lines.append(f"Shown on {figures['shown_on']}; {figures['machine']}.")
    return lines


def prepare(home: Path) -> None:
    """Writes a data folder whose owner has allowed learning at any time and at full speed."""
    (home / "window-state.json").write_text(json.dumps(dict(asked=True)))
    anytime = dict(
        contribute_when_idle=False,
        on_battery=True,
        with_saver=True,
        during_full_screen=True,
        cpu_limit=100,
        gpu_limit=100,
        memory_limit=0,
        temperature_limit_c=110,
        dial="full",
    )
    (home / "settings.json").write_text(json.dumps(anytime))


def measured(home: Path, where: Mapping[str, str], *options: str) -> dict[str, Any]:
    """Runs one measuring process and returns its figures. Raises BenchError."""
    words = ["app.bench.runs.window_inside", str(home), *options]
    try:
        return child(words, {**os.environ, **where, BORN: repr(time.time())})
    except BenchError as error:
        raise BenchError(f"The window could not be measured ({error}): ./shoal window may say more.") from error


@contextlib.contextmanager
def display(environment: Mapping[str, str]) -> Iterator[tuple[dict[str, str], str]]:
    """Yields the environment variables that select a display for the window, and a name for that display."""
    if chosen := environment.get("QT_QPA_PLATFORM"):
        yield {}, f"Qt's platform {chosen}"
    elif (
        sys.platform in ("win32", "darwin") or environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    ):
        yield {}, "this computer's display"
    elif server := shutil.which("Xvfb"):
        read, write = os.pipe()
        running = subprocess.Popen(
            [server, "-displayfd", str(write), "-screen", "0", "1280x900x24"],
            pass_fds=[write],
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
        try:
            yield {"DISPLAY": f":{number}"}, "an X server in memory (Xvfb)"
        finally:
            running.terminate()
            running.wait()
    else:
        yield {"QT_QPA_PLATFORM": "offscreen"}, "Qt's offscreen platform, which paints and shows nothing"
