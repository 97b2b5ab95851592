"""What every benchmark shares: arms measured in turns with medians, runs that are kept in a folder, differences
with intervals, processes of their own, and tables. A benchmark is then what it measures.

Side by side in one run, so that other programs disturb all arms alike; and each arm where it matters in a
process of its own, so that its memory is its own and its failure harms no other."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from app.common import files
from app.lab.statistics import paired
from engines.facts import cpu_name, engine_variables

ROOT = Path(__file__).parents[2]
"""The root of the checkout."""
PATIENCE_S = 3600
Tell = Callable[[str], None]
"""Called with lines of progress for people."""
Figures = dict[str, Any]
"""Figures by name; `{"missing": why}` of an arm that cannot be measured."""


class BenchError(Exception):
    """A measurement is impossible, or would measure the wrong thing. The message says why and what to do."""


def warn_if_busy(tell: Tell) -> float:
    """Returns the load average of the last minute, 0 if unknown, and warns if it distorts the figures."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 0.5:
        tell(f"This computer is doing something else (load {load:.1f}): the figures will be too high.")
    return load


def machine(load: float) -> str:
    """A description of the computer for the last line of a table. `load`: that before the benchmark."""
    return f"{cpu_name()}, {os.cpu_count()} cores, load {load:.1f} before"


def in_turns(
    arms: Mapping[str, Callable[[], Figures]], repeats: int, tell: Tell, most_s: float = math.inf
) -> tuple[dict[str, Figures], int]:
    """Measures every arm in turn, `repeats` times, or fewer if more would exceed `most_s` seconds. Returns the
    medians of each arm and the number of repeats. An arm that raises BenchError is left out from then on."""
    found: dict[str, list[Figures]] = {name: [] for name in arms}
    began = time.monotonic()
    for number in range(repeats):
        spent_s = time.monotonic() - began
        if number and spent_s * (number + 1) / number > most_s:
            tell(f"It ends after {number} of {repeats}, so that it takes no more than {most_s:.0f} s.")
            repeats = number
            break
        for name, measure in arms.items():
            if found[name] and "missing" in found[name][-1]:
                continue
            try:
                found[name].append(measure())
            except BenchError as error:
                found[name].append({"missing": str(error)})
            one = found[name][-1]
            said = one["missing"] if "missing" in one else f"{one['seconds']:.2f} s"
            tell(f"{number + 1} of {repeats}: {name}: {said}")
    return {name: medians(every) for name, every in found.items()}, repeats


def medians(every: Sequence[Figures]) -> Figures:
    """The median of each number over the repeats that succeeded, and the first of all else.

    >>> medians([{"seconds": 3.0, "note": "a"}, {"seconds": 1.0, "note": "b"}, {"missing": "died"}])
    {'seconds': 2.0, 'note': 'a'}
    """
    worked = [one for one in every if "missing" not in one]
    if not worked:
        return every[0]
    return {
        key: median(one[key] for one in worked) if isinstance(value, int | float) else value
        for key, value in worked[0].items()
    }


def child_environment(threads: int, home: Path) -> dict[str, str]:
    """Environment variables for every child: equal threads, which sleep while waiting, and no network."""
    return {
        **os.environ,
        **engine_variables(),
        "OMP_NUM_THREADS": str(threads),
        "SHOAL_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def child(words: Sequence[str], environment: Mapping[str, str]) -> Figures:
    """Runs a module and returns the JSON object on its last line of output. Raises BenchError with its last
    error line if it fails."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=ROOT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"It took more than {PATIENCE_S} s.") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"it ended with code {done.returncode} and said nothing"]
        raise BenchError(said[-1])
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def running(words: Sequence[str | Path], log: Path, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Runs a program in the background, with its errors in `log`, and ends it. Raises BenchError."""
    with log.open("ab") as errors:
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "cwd": ROOT, **options}
        try:
            process = subprocess.Popen(list(map(str, words)), stderr=errors, **options)
        except OSError as error:
            raise BenchError(f"{words[0]} does not start: {error.strerror}.") from error
    try:
        yield process
    finally:
        process.terminate()  # a shell in the background makes its children ignore an interrupt
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "app.cli", *map(str, words)]


@contextmanager
def open_relay(place: Path) -> Iterator[str]:
    """Runs a relay process with its state in `place`; yields its URL."""
    words = command("relay", "--port", "0", "--no-limits-here", "--state", place / "relay")
    with running(words, place / "relay.log") as relay:
        assert relay.stdout is not None
        if not (line := relay.stdout.readline()):
            raise BenchError(f"The relay does not open: {place / 'relay.log'} says why.")
        yield json.loads(line)["url"]


def kept(place: Path, result: str, play: Callable[[Path], Figures], fresh: bool = True) -> Figures:
    """The figures in the file `result` of a run's folder; if they are missing, from `play(place)`, which begins
    with an empty folder if it is to be `fresh`. So a benchmark that is started again does what is missing."""
    file = place / result
    if not file.exists():
        if fresh:
            shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        files.write_json(file, play(place))
    found: Figures = msgspec.json.decode(file.read_bytes())
    return found


def read_json_lines(path: Path) -> list[Figures]:
    """Reads a JSON Lines file; skips invalid lines, such as a truncated last one."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError):
            found.append(json.loads(line))
    return found


def beside(ends: Sequence[float], alone: Sequence[float]) -> Figures:
    """The mean of some shares over seeds in percent, and the difference to `alone`, paired by seed, in points
    with Student's interval (None for one seed)."""
    apart = paired([[one] for one in ends], [[one] for one in alone])
    return {
        "seeds": len(ends),
        "end": round(100 * sum(ends) / len(ends), 2),
        "apart": round(100 * apart.mean, 2) + 0.0,  # not -0.0
        "low": None if apart.t_low is None else round(100 * apart.t_low, 2),
        "high": None if apart.t_high is None else round(100 * apart.t_high, 2),
    }


def difference(one: Mapping[str, Any]) -> str:
    """`beside`'s difference for people: `+1.5 [-1.6, +4.6]`."""
    return f"{one['apart']:+.1f}" + ("" if one["low"] is None else f" [{one['low']:+.1f}, {one['high']:+.1f}]")
