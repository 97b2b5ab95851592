"""Measures candidates in turn, each in a process of its own, and takes the medians of their figures.

A separate process has clean memory, so its peak is its own, and a candidate that fails does not affect the
others."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import psutil

from app.bench import ROOT, BenchError, Tell, warn_if_busy
from app.bench.engine.shapes import SHAPES
from app.common.home import home
from app.common.text import bounded_integer
from app.models.catalogue import full_name
from app.models.shelf import locate
from engines.contract import EngineError
from engines.facts import ISA, cpu_name, engine_variables, forced_instruction_set

PATIENCE_S = 3600
NEW, REPEATS = 128, 3
INSTALL = "./shoal setup --bench installs it"
EMULATED = "This processor has no bf16 of its own, so it would emulate it, many times as slow as fp32."


class ApartTask(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate's task: `rows` completions of `new` tokens after the prompt, with this adapter."""

    part: str
    candidate: str
    folder: str
    adapter: str
    messages: list[dict[str, str]]
    prompt_T: list[int]
    new: int
    rows: int
    threads: int
    vocabulary: int
    device: str


class Clock:
    """Wall and processor seconds since the object was created. Wall time waits for the GPU to finish."""

    def __init__(self) -> None:
        _finish()
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def wall(self) -> float:
        _finish()
        return time.perf_counter() - self._wall

    def cpu(self) -> float:
        return time.process_time() - self._cpu


def _finish() -> None:
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


class CandidateFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a candidate. `parts`: parts of `seconds` by name; `missing`: the reason if there are no
    figures. `cpu_s`, processor time of all threads, is more reliable than `seconds` if other programs were
    busy."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    tokens: int = 0
    peak_mb: float = 0.0
    load_s: float = 0.0
    parts: dict[str, float] = {}
    note: str = ""
    instructions: dict[str, str] = {}
    """Instruction sets that the libraries report to use (engines.opening.instructions)."""
    missing: str = ""


def add_arguments(parser: argparse.ArgumentParser, candidates: Sequence[str]) -> None:
    add = parser.add_argument
    add(
        "--model",
        default="0.5b",
        metavar="MODEL",
        help=f"{', '.join(SHAPES)} (random weights), starter, or a folder (default: %(default)s)",
    )
    add(
        "--rows",
        type=bounded_integer(1),
        default=8,
        metavar="N",
        help="completions of the prompt (default: %(default)s)",
    )
    add(
        "--prompt",
        type=bounded_integer(1),
        default=128,
        metavar="N",
        help="tokens of the prompt (default: %(default)s)",
    )
    add("--new", type=bounded_integer(1), metavar="N", help=f"tokens of a completion (default: {NEW})")
    add("--threads", type=bounded_integer(1), metavar="N", help="for everyone (default: all physical cores)")
    add("--repeats", type=bounded_integer(1), metavar="N", help=f"of everyone; medians (default: {REPEATS})")
    add(
        "--device",
        default="cpu",
        metavar="NAME",
        help="cpu, or cuda: torch and its peers on the card (default: %(default)s)",
    )
    add(
        "--only",
        type=lambda text: text.split(","),
        metavar="NAME,NAME",
        help=f"of {', '.join(candidates)}",
    )


def measure(
    part: str,
    candidates: Sequence[str],
    args: argparse.Namespace,
    tell: Tell,
    new: Callable[[int], int] = lambda parameters: NEW,
    most_s: float = math.inf,
) -> tuple[dict[str, CandidateFigures], dict[str, Any]]:
    """Returns every candidate's medians, and the common settings. Raises BenchError if nothing can be measured.

    Unless the command line sets it, completions have `new(parameters)` tokens, and repeats that would exceed
    `most_s` seconds are skipped."""
    wanted = list(candidates)
    if args.only:
        if unknown := set(args.only) - set(candidates):
            raise BenchError(f"There is no candidate {min(unknown)}: take of {', '.join(candidates)}.")
        wanted = [name for name in candidates if name in args.only]
    threads = args.threads or psutil.cpu_count(logical=False) or 1
    load = warn_if_busy(tell)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        place = Path(name)
        environment = child_environment(threads, place)
        tell(f"Making ready {args.model} ...")
        ready = _child(
            ["app.bench.engine.shapes", _found(args.model), str(place), str(args.prompt), str(args.new or NEW)],
            environment,
        )
        if args.new is None:
            ready["new"] = min(ready["new"], new(ready["parameters"]))
        common = {key: ready[key] for key in ("folder", "adapter", "messages", "prompt_T", "new", "vocabulary")}
        found: dict[str, list[CandidateFigures]] = {name: [] for name in wanted}
        for candidate in wanted:
            if "bf16" in candidate.split() and args.device == "cpu" and not ready["bf16"]:
                found[candidate].append(CandidateFigures(missing=EMULATED))
                tell(f"{candidate}: {EMULATED}")
        tell(f"{len(wanted)} candidates, {args.rows} answers of {ready['new']} tokens each.")
        began, repeats = time.monotonic(), args.repeats or REPEATS
        for number in range(repeats):
            spent_s = time.monotonic() - began
            if args.repeats is None and number and spent_s * (number + 1) / number > most_s:
                tell(f"It ends after {number} of {repeats}, so that it takes no more than {most_s:.0f} s.")
                repeats = number
                break
            for candidate in wanted:
                if found[candidate] and found[candidate][0].missing:
                    continue
                task = ApartTask(
                    part=part,
                    candidate=candidate,
                    rows=args.rows,
                    threads=threads,
                    device=args.device,
                    **common,
                )
                one = _measured(task, environment)
                found[candidate].append(one)
                tell(f"{number + 1} of {repeats}: {candidate}: {_said(one)}")
    about = {
        "model": args.model,
        "parameters": ready["parameters"],
        "rows": args.rows,
        "prompt_tokens": len(ready["prompt_T"]),
        "new_tokens": ready["new"],
        "threads": threads,
        "repeats": repeats,
        "machine": f"{card_name(args.device)}{cpu_name()}, {os.cpu_count()} cores, load {load:.1f} before",
        "isa": forced_instruction_set(),
    }
    return {name: medians(every) for name, every in found.items()}, about


def card_name(device: str) -> str:
    if not device.startswith("cuda"):
        return ""
    import torch

    return f"{torch.cuda.get_device_name(device)}, "


def _found(model: str) -> str:
    """Returns the name of a shape, or the folder of an installed model. Raises BenchError."""
    try:
        return model if model in SHAPES else str(locate(full_name(model), home()))
    except EngineError as error:
        raise BenchError(str(error)) from error


def _measured(task: ApartTask, environment: Mapping[str, str]) -> CandidateFigures:
    try:
        return msgspec.convert(
            _child(["app.bench.engine.candidate", msgspec.json.encode(task).decode()], environment),
            CandidateFigures,
        )
    except BenchError as error:
        return CandidateFigures(missing=str(error))


def _said(one: CandidateFigures) -> str:
    return one.missing or f"{one.seconds:.2f} s, {one.peak_mb:.0f} MB"


def medians(every: Sequence[CandidateFigures]) -> CandidateFigures:
    """The median of each figure over the repeats that succeeded."""
    worked = [one for one in every if not one.missing]
    if not worked:
        return every[0]
    return CandidateFigures(
        seconds=median(one.seconds for one in worked),
        cpu_s=median(one.cpu_s for one in worked),
        tokens=round(median(one.tokens for one in worked)),
        peak_mb=median(one.peak_mb for one in worked),
        load_s=median(one.load_s for one in worked),
        parts={key: median(one.parts[key] for one in worked) for key in worked[0].parts},
        note=worked[0].note,
        instructions=worked[0].instructions,
    )


def figures(found: Mapping[str, CandidateFigures]) -> dict[str, dict[str, Any]]:
    """The figures of each candidate for JSON, or the reason why it was not measured."""
    rows: dict[str, dict[str, Any]] = {}
    for name, one in found.items():
        if one.missing:
            rows[name] = {"missing": one.missing}
            continue
        rows[name] = {
            "seconds": round(one.seconds, 3),
            "tokens_per_s": round(one.tokens / one.seconds, 1),
            "cpu_s": round(one.cpu_s, 3),
            "peak_mb": round(one.peak_mb),
            **{key: round(value, 4) for key, value in one.parts.items()},
            **({"note": one.note} if one.note else {}),
            "instructions": one.instructions,
        }
    return rows


def table(found: Mapping[str, Mapping[str, Any]], about: Mapping[str, Any]) -> list[str]:
    """The figures as lines of text; the parts of the seconds follow each row."""
    lines = [f"{'':<30}{'seconds':>9}{'cpu s':>9}{'tokens/s':>10}{'peak MB':>9}"]
    for name, row in found.items():
        if "missing" in row:
            lines.append(f"{name:<30}  {row['missing']}")
            continue
        parts = ", ".join(
            [
                f"{key.removesuffix('_s')} {row[key]:.2f}"
                for key in row
                if key.endswith("_s") and key not in ("tokens_per_s", "cpu_s")
            ]
            + [" ".join(pair) for pair in row["instructions"].items()]
        )
        figures = f"{row['seconds']:>9.2f}{row['cpu_s']:>9.2f}{row['tokens_per_s']:>10.1f}{row['peak_mb']:>9}"
        lines.append(f"{name:<30}{figures}  {parts}")
    lines.append(
        f"{about['model']}, {about['rows']} x ({about['prompt_tokens']} + {about['new_tokens']}) tokens, "
        f"{about['threads']} threads, medians of {about['repeats']}; {about['machine']}"
        f"{', ' + ISA + '=' + about['isa'] if about['isa'] else ''}."
    )
    return lines


def ratio(above: CandidateFigures | None, below: CandidateFigures | None) -> float | None:
    """Tokens per second of `below` divided by those of `above`; None if either is missing."""
    if above is None or below is None or above.missing or below.missing:
        return None
    return (below.tokens / below.seconds) / (above.tokens / above.seconds)


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


def _child(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Runs a module and returns the JSON object on its last line of output. Raises BenchError with its last
    error line if it fails."""
    with _process(arguments, environment) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    if process.returncode:
        said = err.strip().splitlines() or [f"it ended with code {process.returncode} and said nothing"]
        raise BenchError(said[-1])
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


@contextmanager
def _process(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
