"""Keeps the snapshot current: the node tells it what happened, views read the result."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from app.node.events import RoundDone
from app.node.records import ProbeRow
from app.node.round import Played
from app.node.settings import Settings
from app.node.snapshot import Answer, FamilyRow, Phase, Point, Ruling, Snapshot, SwarmView
from app.node.state import State
from app.sapo.families import FAMILIES
from app.sapo.groups import ScoredGroup
from engines.contract import EngineInfo

_ANSWERS = 8


class Watch:
    """The one writer of the snapshot. Every change makes a new frozen value."""

    def __init__(self, settings: Settings, home: str) -> None:
        self.snapshot = Snapshot(
            model=settings.model, recipe=settings.recipe, home=home, solo=settings.solo, started_at=time.time()
        )
        self._phase_began = time.monotonic()
        self._sample_s: float | None = None

    def report(self, phase: Phase, done: int = 0, total: int = 0) -> None:
        """A phase has begun, or `done` of `total` completions of it are there."""
        if phase is not self.snapshot.phase:
            self._phase_began = time.monotonic()
        self._change(phase=phase, done=done, total=total, eta_s=self._left(phase, done, total))

    def ready(
        self, engine: EngineInfo, state: State, probes: Sequence[ProbeRow], last_round: int | None
    ) -> None:
        self._change(
            engine=engine,
            round=state.round + 1,
            last_round=last_round,
            safe_round=state.round,
            safe_at=state.saved_at or None,
        )
        self.probed(state, probes)

    def probed(self, state: State, probes: Sequence[ProbeRow]) -> None:
        curve = tuple(Point(round=row.round, pass_at_1=row.pass_at_1, stderr=row.stderr) for row in probes)
        self._change(curve=curve, families=_families(state, probes))

    def played(self, played: Played, done: RoundDone, probes: Sequence[ProbeRow]) -> None:
        self._sample_s = played.sample_s
        self._change(
            round=played.state.round + 1,
            safe_round=played.state.round,
            safe_at=time.time(),
            families=_families(played.state, probes),
            answers=_answers(played),
            informative_own=done.informative_own,
            own_groups=done.own_groups,
            train_solved=done.train_solved,
            worked_share=done.worked_share,
            tokens_per_s=done.tokens_per_s,
            round_s=done.seconds,
        )

    def ruled(self, ruling: Ruling) -> None:
        self._change(ruling=ruling)

    def resting(self, state: State) -> None:
        """Where a node stands that was paused before it had a trainer."""
        self._change(round=state.round + 1, safe_round=state.round, safe_at=state.saved_at or None)

    def swarm(self, view: SwarmView) -> None:
        self._change(swarm=view)

    def note(self, sentence: str) -> None:
        self._change(note=sentence, noted_at=time.time())

    def _left(self, phase: Phase, done: int, total: int) -> float | None:
        """Seconds left of the phase: from its own pace, before that from the last round's."""
        if done:
            return (time.monotonic() - self._phase_began) / done * (total - done)
        return self._sample_s if phase is Phase.SAMPLING else None

    def _change(self, **fields: object) -> None:
        self.snapshot = msgspec.structs.replace(self.snapshot, **fields)


def _families(state: State, probes: Sequence[ProbeRow]) -> tuple[FamilyRow, ...]:
    first = probes[0].details.families if probes else {}
    latest = probes[-1].details.families if probes else {}
    return tuple(
        FamilyRow(
            title=FAMILIES[progress.family].title,
            level=progress.level,
            levels=len(FAMILIES[progress.family].levels),
            train_solved=progress.solved_share,
            first_probe=first.get(progress.family),
            latest_probe=latest.get(progress.family),
        )
        for progress in state.curriculum.families
    )


def _answers(played: Played) -> tuple[Answer, ...]:
    """The first completion of each question, own ones before peers': chosen by position, so neither the best
    nor the worst."""
    own = zip(played.questions_P[:_ANSWERS], played.scored_P[:_ANSWERS], strict=True)
    number, now = played.state.round, time.time()
    return (
        *(_answer(question.text, scored, number, now) for question, scored in own),
        *(
            _answer(group.question, group.scored, number, now, group.peer)
            for group in played.mixed.groups_P[:_ANSWERS]
        ),
    )


def _answer(question: str, scored: ScoredGroup, number: int, now: float, peer: str | None = None) -> Answer:
    group = scored.group
    return Answer(
        family=group.coordinates.family,
        question=question,
        completion=group.completions_G[0],
        solved=bool(scored.rewards_G[0]),
        at=now,
        round=number,
        level=group.coordinates.level,
        source="own" if peer is None else "peer",
        who=peer,
        completions_G=group.completions_G,
        rewards_G=scored.rewards_G,
    )
