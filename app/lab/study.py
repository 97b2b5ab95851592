"""A study: every arm with every seed, resumed where it stopped, reported after each run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from app.lab.arms import Arm
from app.lab.journal import StudyJournal
from app.lab.plan import LabRound, StudyPlan
from app.lab.report import report
from app.lab.rounds.experiment import Experiment
from app.lab.statistics import average
from app.lab.swarm import LabSwarm
from app.sapo.scoring.sandbox import Sandbox, score_group

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
    that an interrupted study still compares equal seeds. Raises JournalError."""
    journal = StudyJournal(folder, plan)
    runs: dict[str, dict[int, list[LabRound]]] = {arm.key: {} for arm in arms}
    todo: list[tuple[int, Arm]] = []
    for seed in seeds:
        for arm in arms:
            finished = journal.read(arm, seed)
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
            with journal.open_run(arm, seed) as run:
                for record in experiment.rounds():
                    run.append(record)
                    records.append(record)
                    _tell(f"run {position} of {len(todo)}: {arm.name} seed {seed}", record, plan.rounds)
                run.finish(plan.rounds)
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
