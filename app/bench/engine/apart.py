"""The candidates of the engine benchmarks, each in a process of its own: what is common to `sampler`, `learner`
and `round`."""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil

from app.bench.engine.shapes import SHAPES
from app.bench.harness import (
    BenchError,
    Figures,
    Tell,
    child,
    child_environment,
    in_turns,
    machine,
    warn_if_busy,
)
from app.common.home import home
from app.common.text import bounded_integer
from app.models.catalogue import full_name
from app.models.shelf import locate
from engines.contract import EngineError

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

    def figures(self, tokens: int, **more: Any) -> Figures:
        """The candidate's figures up to now: `cpu_s`, of all threads, is more reliable than `seconds` if other
        programs were busy."""
        return {"seconds": self.wall(), "cpu_s": time.process_time() - self._cpu, "tokens": tokens, **more}


def _finish() -> None:
    import torch

    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def add_arguments(parser: argparse.ArgumentParser, candidates: Sequence[str]) -> None:
    add = parser.add_argument
    add(
        "--model",
        default="0.5b",
        metavar="MODEL",
        help=f"{', '.join(SHAPES)} (random weights), starter, or a folder (default: %(default)s)",
    )
    for name, default, what in (
        ("--rows", 8, "completions of the prompt (default: 8)"),
        ("--prompt", 128, "tokens of the prompt (default: 128)"),
        ("--new", None, f"tokens of a completion (default: {NEW})"),
        ("--threads", None, "for everyone (default: all physical cores)"),
        ("--repeats", None, f"of everyone; medians (default: {REPEATS})"),
    ):
        add(name, type=bounded_integer(1), default=default, metavar="N", help=what)
    add("--device", default="cpu", metavar="NAME", help="cpu, or cuda: torch and its peers on the card (cpu)")
    add("--only", type=lambda text: text.split(","), metavar="NAME,NAME", help=f"of {', '.join(candidates)}")


def measure(
    part: str,
    candidates: Sequence[str],
    args: argparse.Namespace,
    tell: Tell,
    new: Callable[[int], int] = lambda parameters: NEW,
    most_s: float = math.inf,
) -> tuple[dict[str, Figures], Figures]:
    """Returns every candidate's medians, and the common settings. Raises BenchError if nothing can be measured.

    Unless the command line sets it, completions have `new(parameters)` tokens, and repeats that would exceed
    `most_s` seconds are skipped."""
    if unknown := set(args.only or ()) - set(candidates):
        raise BenchError(f"There is no candidate {min(unknown)}: take of {', '.join(candidates)}.")
    threads, load = args.threads or psutil.cpu_count(logical=False) or 1, warn_if_busy(tell)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        environment = child_environment(threads, Path(name))
        tell(f"Making ready {args.model} ...")
        words = ["app.bench.engine.shapes", _found(args.model), name, str(args.prompt), str(args.new or NEW)]
        ready = child(words, environment)
        if args.new is None:
            ready["new"] = min(ready["new"], new(ready["parameters"]))
        common = {key: ready[key] for key in ("folder", "adapter", "messages", "prompt_T", "new", "vocabulary")}
        arms = {}
        for candidate in (one for one in candidates if one in (args.only or candidates)):
            task = ApartTask(
                part=part, candidate=candidate, rows=args.rows, threads=threads, device=args.device, **common
            )
            emulated = "bf16" in candidate.split() and args.device == "cpu" and not ready["bf16"]
            arms[candidate] = partial(_measured, task, environment, emulated)
        tell(f"{len(arms)} candidates, {args.rows} answers of {ready['new']} tokens each.")
        limit = most_s if args.repeats is None else math.inf
        found, repeats = in_turns(arms, args.repeats or REPEATS, tell, limit)
    return found, {
        "model": args.model,
        "parameters": ready["parameters"],
        "rows": args.rows,
        "prompt_tokens": len(ready["prompt_T"]),
        "new_tokens": ready["new"],
        "threads": threads,
        "repeats": repeats,
        "machine": card_name(args.device) + machine(load),
    }


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


def _measured(task: ApartTask, environment: Mapping[str, str], emulated: bool) -> Figures:
    if emulated:
        raise BenchError(EMULATED)
    return child(["app.bench.engine.candidate", msgspec.json.encode(task).decode()], environment)


def figures(found: Mapping[str, Figures]) -> dict[str, Figures]:
    """The figures of each candidate for JSON, or the reason why it was not measured."""
    return {
        name: one
        if "missing" in one
        else {key: round(value, 4) if isinstance(value, float) else value for key, value in one.items()}
        | {"tokens_per_s": round(one["tokens"] / one["seconds"], 1)}
        for name, one in found.items()
    }


def table(found: Mapping[str, Mapping[str, Any]], about: Mapping[str, Any]) -> list[str]:
    """The figures as lines of text; the parts of the seconds follow each row."""
    lines = [f"{'':<30}{'seconds':>9}{'cpu s':>9}{'tokens/s':>10}{'peak MB':>9}"]
    for name, row in found.items():
        if "missing" in row:
            lines.append(f"{name:<30}  {row['missing']}")
            continue
        parts = [f"{key[:-2]} {row[key]:.2f}" for key in ("sample_s", "step_s") if key in row]
        parts += [" ".join(pair) for pair in row["instructions"].items()]
        numbers = (
            f"{row['seconds']:>9.2f}{row['cpu_s']:>9.2f}{row['tokens_per_s']:>10.1f}{row['peak_mb']:>9.0f}"
        )
        lines.append(f"{name:<30}{numbers}  {', '.join(parts)}")
    lines.append(
        f"{about['model']}, {about['rows']} x ({about['prompt_tokens']} + {about['new_tokens']}) tokens, "
        f"{about['threads']} threads, medians of {about['repeats']}; {about['machine']}."
    )
    return lines


def ratio(above: Figures | None, below: Figures | None) -> float | None:
    """Tokens per second of `below` divided by those of `above`; None if either is missing."""
    if above is None or below is None or "missing" in above or "missing" in below:
        return None
    return float((below["tokens"] / below["seconds"]) / (above["tokens"] / above["seconds"]))
