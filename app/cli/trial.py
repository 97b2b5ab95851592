"""`./shoal trial`: measures how fast suitable engines run a model. With each, a node plays a few rounds in a
temporary data folder; the choice of an engine remembers the pace."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from app.cli._frame import share, tell
from app.common import home
from app.common.process.surroundings import child_environment, working_folder
from app.common.text import rounded_duration
from app.models.catalogue import title
from app.models.shelf import locate
from app.node.record.errors import NodeError
from engines import choice as trials
from engines import facts as computer
from engines import opening
from engines.choice import EngineChoice
from engines.contract import EngineError
from engines.facts import ENGINES, MB
from engines.models.folder import fingerprint, open_folder

SUMMARY = "measure how fast the engines are here; takes up to a minute"
_ENGINE_S = 12
"""Seconds per engine with the starter on an idle computer, most of them for opening it."""
_ROUNDS = 3
"""Rounds of a trial; the first, which starts threads and compiles, doesn't count."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    share(parser, "model", "home", "json", engine="measure this one alone; auto: all that may be chosen here")


def main(args: argparse.Namespace) -> int:
    """Measures and prints. Raises NodeError if no engine could be measured."""
    data = home.home(args.home)
    model = locate(args.model, home=data)
    choice = opening.choice(model, home=data)
    wanted = candidates(choice) if args.engine == opening.AUTO else [args.engine]
    if args.engine != opening.AUTO and (reason := opening.why_unavailable(args.engine)):
        raise EngineError(reason)
    if not wanted:
        raise EngineError(choice.reason)
    measured: dict[str, trials.Trial] = {}
    failed: dict[str, str] = {}
    name = open_folder(model).name
    once, busy = (rounded_duration(seconds * len(wanted)) for seconds in (_ENGINE_S, 2.5 * _ENGINE_S))
    print(f"This takes {once} to {busy}; longer with a large model.", file=sys.stderr, flush=True)
    for engine in wanted:
        print(f"Measuring {ENGINES[engine].title} with {title(name)} ...", file=sys.stderr, flush=True)
        try:
            measured[engine] = measure(model, engine)
        except NodeError as error:
            failed[engine] = str(error).rstrip(".") + "."
    if not measured:
        raise NodeError(" ".join(failed.values()))
    key = trials.trial_key(fingerprint(open_folder(model)), computer.gather_facts())
    trials.save_trials(data, key, measured)
    findings = find(args.engine, opening.choice(model, home=data), measured, failed)
    tell(args, "\n".join(_lines(title(name), findings)), model=name, **findings)
    return 0


def measure(model: Path, engine: str) -> trials.Trial:
    """Plays rounds with this engine. The pace is that of the fastest, so that a moment of other programs counts
    less. Raises NodeError if it can't play."""
    info: dict[str, Any] = {}
    seconds: list[float] = []
    peak = 0
    with tempfile.TemporaryDirectory(prefix="shoal-trial-") as place, tempfile.TemporaryFile() as said:
        words = ["--solo", "--json", "--home", place, "--model", str(model), "--engine", engine]
        words += ["--rounds", str(_ROUNDS), "--no-placement", "--probe-questions", "16"]
        node = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "run", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            env=child_environment(),
            cwd=working_folder(),
        )
        assert node.stdout is not None
        try:
            for event in map(json.loads, node.stdout):
                peak = max(peak, _trainer_bytes(node.pid))
                match event["event"]:
                    case "start":
                        info = event["engine"]
                    case "round":
                        seconds.append(event["seconds"])
            code = node.wait()
        finally:
            if node.poll() is None:
                node.terminate()
                node.wait()
        if code or len(seconds) < _ROUNDS:
            said.seek(0)
            last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
            raise NodeError(last[0].removeprefix("shoal: ") if last else f"The node ended (exit code {code}).")
    return trials.Trial(
        engine=info["name"],
        dtype=info["dtype"],
        device=info["device"],
        rounds_per_hour=round(3600 / min(seconds[1:]), 1),
        memory_mb=peak // MB,
    )


def _trainer_bytes(node: int) -> int:
    """Returns the memory of the node's largest process, which is its trainer."""
    sizes = [0]
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(node).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                sizes.append(child.memory_info().rss)
    return max(sizes)


def candidates(choice: EngineChoice) -> list[str]:
    """Returns the engines to measure: the chosen one, and llama.cpp and torch where they compete with it."""
    usable = {one.name for one in choice.engines if one.usable}
    rivals = ["torch-cpu", "llamacpp"] if choice.way in ("torch-cpu", "llamacpp") else []
    return list(
        dict.fromkeys(
            [choice.engine] * bool(choice.engine) + [way.partition("-")[0] for way in rivals if way in usable]
        )
    )


def find(
    asked: str, choice: EngineChoice, measured: dict[str, trials.Trial], failed: dict[str, str]
) -> dict[str, Any]:
    """Returns everything that trial reports. `engine` is the choice after the measurement, or the one that was
    asked for, and the figures beside it are its own; `engines` has each with its figures, or why there are
    none. `memory_mb` is the most that its process was seen to use, `memory_free_mb` what it may use."""
    engine = choice.engine if asked == opening.AUTO else asked
    rows = []
    for name in ENGINES:
        ways = [one for one in choice.engines if one.name.partition("-")[0] == name]
        way = next((one for one in ways if one.usable), ways[-1])
        usable = name in measured or (way.usable and name not in failed)
        row = {"name": name, "usable": usable, "reason": failed.get(name, way.reason)}
        rows.append({**row, **_figures(measured.get(name), (*_FIGURES, "dtype", "device"))})
    return {
        "engine": engine,
        "reason": choice.reason if engine == choice.engine else f"{ENGINES[engine].title} was asked for.",
        **_figures(measured.get(engine), _FIGURES),
        "memory_free_mb": choice.free_mb,
        "engines": rows,
    }


_FIGURES = ("rounds_per_hour", "memory_mb")
"""Fields of engines.choice.Trial."""


def _figures(found: trials.Trial | None, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(found, name) if found is not None else None for name in names}


def _lines(model: str, findings: dict[str, Any]) -> list[str]:
    return [
        f"{ENGINES[row['name']].title} on {row['device']} in {row['dtype']}: about "
        f"{row['rounds_per_hour']:,.0f} rounds an hour, {row['memory_mb']:,} MB"
        for row in findings["engines"]
        if row["rounds_per_hour"] is not None
    ] + [f"{model} runs with {findings['engine']}: {findings['reason']}"]
