"""A study: every arm with every seed, resumed where it stopped, reported after each run.

Runs are executed here or on a Ray cluster, one arm with one seed per task. Ray is an extra (`./shoal setup
--ray`). Every machine of the cluster has this Shoal and the models at the same paths, and trusts the others:
Ray runs any code they send. A run whose worker dies is restarted on another."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from app.common.text import exact_span
from app.lab.arms import Arm
from app.lab.journal import StudyJournal
from app.lab.plan import LabRound, StudyPlan
from app.lab.report import report
from app.lab.rounds.experiment import Experiment
from app.lab.swarm import LabSwarm
from app.sapo.scoring.sandbox import Sandbox, score_group

OpenSwarm = Callable[[StudyPlan, int], LabSwarm]
"""Creates a swarm for a plan and a seed: new adapters over one base model."""
RunExecutor = Callable[[StudyPlan, Sequence[tuple[int, Arm]]], Iterator[tuple[int, Arm, list[LabRound]]]]
"""Executes runs, each of a seed and an arm, and yields each with its records when it is finished."""


def conduct(
    plan: StudyPlan,
    arms: Sequence[Arm],
    seeds: Sequence[int],
    folder: Path,
    open_swarm: OpenSwarm,
    command: str,
    open_sandbox: Callable[[], AbstractContextManager[Sandbox]] = Sandbox,
    executor: RunExecutor | None = None,
) -> dict[str, Any]:
    """Executes the unfinished runs and returns the summary. One seed is run for all arms before the next, so
    that an interrupted study still compares equal seeds. `executor` executes runs elsewhere. Raises
    JournalError, ArmError and the exceptions of `executor`."""
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
    for _, arm in todo:
        arm.effective_recipe  # noqa: B018  raises ArmError where it is no longer played
    progress = StudyProgress(len(todo), len(arms) * len(seeds), plan.rounds)
    if executor is not None and todo:
        for done, (seed, arm, records) in enumerate(executor(plan, todo)):
            with journal.open_run(arm, seed) as run:
                for record in records:
                    run.append(record)
                run.finish(plan.rounds)
            runs[arm.key] = dict(sorted({**runs[arm.key], seed: records}.items()))
            progress.show(arm, seed, done, records[-1])
            report.write(folder, plan, arms, runs, command, complete=False)
        todo = []
    with open_sandbox() if todo else nullcontext() as sandbox:
        for position, (seed, arm) in enumerate(todo):
            assert sandbox is not None
            experiment = Experiment(plan, arm, seed, open_swarm(plan, seed), partial(score_group, sandbox))
            records = []
            with journal.open_run(arm, seed) as run:
                for record in experiment.rounds():
                    run.append(record)
                    records.append(record)
                    progress.show(arm, seed, position, record)
                run.finish(plan.rounds)
            runs[arm.key][seed] = records
            if position + 1 < len(todo):
                report.write(folder, plan, arms, runs, command, complete=False)
    progress.close()
    return report.write(folder, plan, arms, runs, command, complete=True)


class StudyProgress:
    """Shows the study's progress on standard error: one updated line on a terminal, a line per probe in a
    file."""

    def __init__(self, todo: int, all_runs: int, rounds: int) -> None:
        self._todo, self._rounds = todo, rounds
        self._started = time.monotonic()
        self._live = sys.stderr.isatty()
        if todo < all_runs:
            print(f"{all_runs - todo} of {all_runs} runs are finished already and kept.", file=sys.stderr)

    def show(self, arm: Arm, seed: int, position: int, record: LabRound) -> None:
        if not (self._live or record.probe):
            return
        done = position * self._rounds + record.round
        left = self._todo * self._rounds - done
        spent = time.monotonic() - self._started
        eta = f", {exact_span(spent / done * left)} left" if done else ""
        run = f"run {position + 1} of {self._todo}: {arm.name} seed {seed}"
        line = f"{run}, round {record.round}/{self._rounds}"
        if record.probe:
            share = sum(record.probe.pass_at_1_N) / len(record.probe.pass_at_1_N)
            self._held_out = f", held-out {100 * share:.1f} %"
        text = f"{line}{self._held_out}{eta}"
        if self._live:
            text = f"\r\x1b[K{text}"
        print(text, end="" if self._live else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._live and self._todo:
            print(file=sys.stderr)

    _held_out = ""


LOCAL_CLUSTER = "ray"
"""Starts a Ray cluster on this computer for the study, when given in place of a cluster's address."""
MAX_WORKER_LOSSES = 5
"""Number of times that one run may lose its worker."""


class ClusterError(Exception):
    """The cluster is unavailable, or a run failed on it. The message says why and what to do."""


class ClusterRunner:
    """Executes runs on the cluster at `where`: LOCAL_CLUSTER or `ray://HOST[:PORT]`. Each run takes `threads`
    processors of a machine."""

    def __init__(self, where: str, open_swarm: OpenSwarm, threads: int) -> None:
        """Raises ClusterError if Ray is not installed."""
        try:
            import ray
        except ImportError as error:
            raise ClusterError("Ray is not installed: run ./shoal setup --ray.") from error
        self._ray: Any = ray
        self._where, self._open_swarm, self._threads = where, open_swarm, threads

    def __call__(
        self, plan: StudyPlan, todo: Sequence[tuple[int, Arm]]
    ) -> Iterator[tuple[int, Arm, list[LabRound]]]:
        """Yields every run with its records, in the order in which they finish. Raises ClusterError."""
        ray = self._ray
        path = {"PYTHONPATH": os.environ.get("PYTHONPATH", os.getcwd()), "OMP_NUM_THREADS": str(self._threads)}
        try:
            if not ray.is_initialized():
                ray.init(
                    address=None if self._where == LOCAL_CLUSTER else self._where,
                    runtime_env={"env_vars": path},
                    include_dashboard=None if self._where != LOCAL_CLUSTER else False,
                    log_to_driver=False,
                )
            task = ray.remote(num_cpus=self._threads, max_retries=MAX_WORKER_LOSSES)(_play)
            waiting = {task.remote(plan, arm, seed, self._open_swarm): (seed, arm) for seed, arm in todo}
            while waiting:
                (done,), _ = ray.wait(list(waiting), num_returns=1)
                seed, arm = waiting.pop(done)
                yield seed, arm, msgspec.json.decode(ray.get(done), type=list[LabRound])
        except (ray.exceptions.RayError, ConnectionError) as error:
            said = str(error).strip().splitlines()
            raise ClusterError(f"The Ray cluster gave up: {said[-1][:300] if said else error!r}") from error
        finally:
            ray.shutdown()


def _play(plan: StudyPlan, arm: Arm, seed: int, open_swarm: OpenSwarm) -> bytes:
    """Executes one run on a worker; returns its records as JSON."""
    with Sandbox() as sandbox:
        experiment = Experiment(plan, arm, seed, open_swarm(plan, seed), partial(score_group, sandbox))
        return msgspec.json.encode(list(experiment.rounds()))
