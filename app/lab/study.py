"""A study: every arm with every seed, resumed where it stopped, reported after each run.

The records of a finished run are one file of its own. Adapters are not saved, so a run that was cut off starts
again; a kill loses nothing else in the folder. Reports read only these records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from app.common import files
from app.lab.arms import Arm
from app.lab.plan import LabRound, StudyPlan
from app.lab.report import report
from app.lab.rounds.experiment import Experiment
from app.lab.statistics import average
from app.lab.swarm import LabSwarm
from app.sapo.scoring.sandbox import Sandbox, score_group

ROUNDS = "rounds"
"""Name of the folder with the finished runs."""
STUDY_FILE = "study.json"


class StudyError(Exception):
    """The folder cannot be used for this study. The message says why and what to do."""


OpenSwarm = Callable[[StudyPlan, int], LabSwarm]
"""Creates a swarm for a plan and a seed: new adapters over one base model."""


def conduct(
    plan: StudyPlan,
    arms: Sequence[Arm],
    seeds: Sequence[int],
    folder: Path,
    open_swarm: OpenSwarm,
    command: str,
    open_sandbox: Callable[[], AbstractContextManager[Sandbox]] = Sandbox,
) -> dict[str, Any]:
    """Executes the unfinished runs and returns the summary. One seed is run for all arms before the next, so
    that an interrupted study still compares equal seeds. Raises StudyError."""
    _claim(folder, plan)
    runs: dict[str, dict[int, list[LabRound]]] = {arm.key: {} for arm in arms}
    todo: list[tuple[int, Arm]] = []
    for seed in seeds:
        for arm in arms:
            finished = read_run(folder, plan, arm, seed)
            if finished is None:
                todo.append((seed, arm))
            else:
                runs[arm.key][seed] = finished
    planned = len(arms) * len(seeds)
    if len(todo) < planned:
        print(f"{planned - len(todo)} of {planned} runs are finished already and kept.", file=sys.stderr)
    with open_sandbox() if todo else nullcontext() as sandbox:
        for position, (seed, arm) in enumerate(todo, 1):
            assert sandbox is not None
            experiment = Experiment(plan, arm, seed, open_swarm(plan, seed), partial(score_group, sandbox))
            records = []
            for record in experiment.rounds():
                records.append(record)
                _tell(f"run {position} of {len(todo)}: {arm.name} seed {seed}", record, plan.rounds)
            files.write_json(_run_file(folder, arm, seed), records)
            runs[arm.key][seed] = records
            if position < len(todo):
                report.write(folder, plan, arms, runs, command, complete=False)
    return report.write(folder, plan, arms, runs, command, complete=True)


def _tell(run: str, record: LabRound, rounds: int) -> None:
    """Shows a measured round on standard error."""
    if record.probe:
        solved = average(record.probe.pass_at_1_N)
        print(
            f"{run}, round {record.round}/{rounds}, held-out {100 * solved:.1f} %", file=sys.stderr, flush=True
        )


def read_run(folder: Path, plan: StudyPlan, arm: Arm, seed: int) -> list[LabRound] | None:
    """Returns the records of a finished run; None if it is missing, of another length or damaged."""
    found = files.read_json(_run_file(folder, arm, seed), list[LabRound]) or []
    return found if [record.round for record in found] == list(range(plan.rounds + 1)) else None


def _run_file(folder: Path, arm: Arm, seed: int) -> Path:
    return folder / ROUNDS / f"{arm.key}.seed{seed}.json"


def _claim(folder: Path, plan: StudyPlan) -> None:
    """Makes the folder of a study. Raises StudyError if it holds one with another plan."""
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"{folder} is a file: choose a folder with --out.")
    path = folder / STUDY_FILE
    if not path.exists():
        files.write_json(path, plan)
    there = files.read_json(path, StudyPlan)
    if there is None:
        raise StudyError(f"{path} cannot be read: delete the folder or choose another --out.")
    before, now = msgspec.to_builtins(there), msgspec.to_builtins(plan)
    changed = [f"{name} {before[name]} there, {now[name]} now" for name in before if before[name] != now[name]]
    if changed:
        raise StudyError(
            f"{folder} holds a study with other settings ({'; '.join(changed)}): choose another --out, or "
            "give the same settings to go on with it."
        )
