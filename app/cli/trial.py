"""`./shoal trial`: measures how fast suitable engines run a model, and estimates an hour's progress."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from app.common import home
from app.common.text import span
from app.models.shelf import locate
from app.node.models import trial
from app.node.record.errors import NodeError
from app.node.trainer.link import TrainerDied
from engines import choice as trials
from engines import facts as computer
from engines import opening
from engines.choice import EngineChoice
from engines.contract import EngineError
from engines.facts import ENGINES
from engines.models.folder import fingerprint, open_folder

SUMMARY = "measure how fast the engines are here; takes up to a minute"


_ENGINE_S = 12
"""Seconds per engine with the starter on an idle computer, most of them for opening it."""


class EngineTried(msgspec.Struct, frozen=True, kw_only=True):
    """The trial of one engine. `reason` says why there is no measurement; figures as in engines.choice."""

    name: str
    usable: bool
    reason: str
    sampler_tokens_per_s: float | None = None
    learner_tokens_per_s: float | None = None
    rounds_per_hour: float | None = None
    memory_mb: int | None = None
    dtype: str = ""
    device: str = ""


class TrialFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that trial reports; the top-level figures are those of the engine that would run. `memory_mb`
    is the peak of its process, `memory_free_mb` what it may use."""

    model: str
    engine: str
    reason: str
    sampler_tokens_per_s: float | None
    learner_tokens_per_s: float | None
    rounds_per_hour: float | None
    memory_mb: int | None
    memory_free_mb: int
    engines: list[EngineTried]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", default="starter", help="starter, the name of a downloaded model, or a folder"
    )
    parser.add_argument(
        "--engine",
        choices=opening.CHOICES,
        default=opening.AUTO,
        help="measure this one alone; auto measures all that may be chosen here",
    )
    parser.add_argument("--home", type=Path, metavar="DIR", help="the data folder, which keeps the result")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")


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
    prompts_P = trial.prompts(model)
    measured: dict[str, trials.Trial] = {}
    failed: dict[str, str] = {}
    name = open_folder(model).name
    once, busy = (span(seconds * len(wanted)) for seconds in (_ENGINE_S, 2.5 * _ENGINE_S))
    print(f"This takes {once} to {busy}; longer with a large model.", file=sys.stderr, flush=True)
    for engine in wanted:
        print(f"Measuring {ENGINES[engine].title} with {name} ...", file=sys.stderr, flush=True)
        try:
            measured[engine] = asyncio.run(trial.measure(model, engine, data, prompts_P))
        except (EngineError, TrainerDied) as error:
            failed[engine] = str(error).rstrip(".") + "."
    if not measured:
        raise NodeError(" ".join(failed.values()))
    key = trials.trial_key(fingerprint(open_folder(model)), computer.gather())
    trials.save_trials(data, key, measured)
    findings = make_findings(
        args.engine, opening.choice(model, home=data), measured, failed, open_folder(model).name
    )
    if args.json:
        print(msgspec.json.encode(findings).decode())
    else:
        _show(findings)
    return 0


def candidates(choice: EngineChoice) -> list[str]:
    """Returns the engines to measure: the chosen one, and llama.cpp and torch where they compete with it."""
    usable = {one.name for one in choice.engines if one.usable}
    rivals = ["torch-cpu", "llamacpp"] if choice.way in ("torch-cpu", "llamacpp") else []
    return list(
        dict.fromkeys(
            [choice.engine] * bool(choice.engine) + [way.partition("-")[0] for way in rivals if way in usable]
        )
    )


def make_findings(
    asked: str, choice: EngineChoice, measured: dict[str, trials.Trial], failed: dict[str, str], model: str
) -> TrialFindings:
    """Returns the findings. `engine` is the choice after the measurement, or the one requested."""
    engine = choice.engine if asked == opening.AUTO else asked
    own = measured.get(engine)
    reason = choice.reason if engine == choice.engine else f"{ENGINES[engine].title} was asked for."
    rows = []
    for name in ENGINES:
        ways = [one for one in choice.engines if one.name.partition("-")[0] == name]
        one = next((way for way in ways if way.usable), ways[-1])
        said = failed.get(name, one.reason)
        if name not in measured:
            rows.append(EngineTried(name=name, usable=one.usable and name not in failed, reason=said))
            continue
        found = measured[name]
        rows.append(
            EngineTried(
                name=name,
                usable=True,
                reason=said,
                sampler_tokens_per_s=found.sampler_tokens_per_s,
                learner_tokens_per_s=found.learner_tokens_per_s,
                rounds_per_hour=found.rounds_per_hour,
                memory_mb=found.memory_mb,
                dtype=found.dtype,
                device=found.device,
            )
        )
    return TrialFindings(
        model=model,
        engine=engine,
        reason=reason,
        sampler_tokens_per_s=own.sampler_tokens_per_s if own else None,
        learner_tokens_per_s=own.learner_tokens_per_s if own else None,
        rounds_per_hour=own.rounds_per_hour if own else None,
        memory_mb=own.memory_mb if own else None,
        memory_free_mb=choice.free_mb,
        engines=rows,
    )


def _show(findings: TrialFindings) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("Engine", "Sampler, tokens/s", "Learner, tokens/s", "Rounds/hour", "Memory, MB"):
        table.add_column(title, justify="left" if title == "Engine" else "right")
    for row in findings.engines:
        if row.rounds_per_hour is not None:
            table.add_row(
                f"{row.name} ({row.device}, {row.dtype})",
                f"{row.sampler_tokens_per_s:,.0f}",
                f"{row.learner_tokens_per_s:,.0f}",
                f"{row.rounds_per_hour:,.0f}",
                f"{row.memory_mb:,}",
            )
    console.print(table, highlight=False, markup=False)
    console.print(
        f"{findings.model} runs with {findings.engine}: {findings.reason}", highlight=False, markup=False
    )
