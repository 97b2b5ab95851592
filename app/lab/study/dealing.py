"""The runs of a study dealt to a Ray cluster, one arm with one seed a task.

Ray is an extra (`./shoal setup --ray`). Every machine of the cluster has this Shoal and the models in the same
places, and trusts the others: Ray runs what they send. A run whose worker dies begins again on another.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from app.lab.arms.arms import Arm
from app.lab.plan import LabRound, StudyPlan
from app.lab.rounds.archived import open_experiment
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.scoring.scoring import score_group

if TYPE_CHECKING:
    from app.lab.study.study import OpenSwarm

HERE = "ray"
"""Instead of an address: a cluster of this computer's own, for as long as the study runs."""
TRIES = 5
"""Times that one run may lose its worker."""


class DealError(Exception):
    """The cluster cannot be had, or gave a run up. The message says why and what to do."""


class Dealer:
    """Deals runs to the cluster at `where`: HERE or `ray://HOST[:PORT]`. Each takes `threads` of a machine's
    processors."""

    def __init__(self, where: str, open_swarm: OpenSwarm, threads: int) -> None:
        """Raises DealError without Ray."""
        try:
            import ray
        except ImportError as error:
            raise DealError("Ray is not installed: run ./shoal setup --ray.") from error
        self._ray: Any = ray
        self._where, self._open_swarm, self._threads = where, open_swarm, threads

    def __call__(
        self, plan: StudyPlan, todo: Sequence[tuple[int, Arm]]
    ) -> Iterator[tuple[int, Arm, list[LabRound]]]:
        """Every run with its records, as they end. Raises DealError."""
        ray = self._ray
        path = {"PYTHONPATH": os.environ.get("PYTHONPATH", os.getcwd()), "OMP_NUM_THREADS": str(self._threads)}
        try:
            if not ray.is_initialized():
                ray.init(
                    address=None if self._where == HERE else self._where,
                    runtime_env={"env_vars": path},
                    include_dashboard=None if self._where != HERE else False,
                    log_to_driver=False,
                )
            task = ray.remote(num_cpus=self._threads, max_retries=TRIES)(_play)
            waiting = {task.remote(plan, arm, seed, self._open_swarm): (seed, arm) for seed, arm in todo}
            while waiting:
                (done,), _ = ray.wait(list(waiting), num_returns=1)
                seed, arm = waiting.pop(done)
                yield seed, arm, msgspec.json.decode(ray.get(done), type=list[LabRound])
        except (ray.exceptions.RayError, ConnectionError) as error:
            said = str(error).strip().splitlines()
            raise DealError(f"The Ray cluster gave up: {said[-1][:300] if said else error!r}") from error
        finally:
            ray.shutdown()


def _play(plan: StudyPlan, arm: Arm, seed: int, open_swarm: OpenSwarm) -> bytes:
    """One run, on a worker: its records as JSON."""
    with Sandbox() as sandbox:
        experiment = open_experiment(plan, arm, seed, open_swarm, partial(score_group, sandbox))
        return msgspec.json.encode(list(experiment.rounds()))
