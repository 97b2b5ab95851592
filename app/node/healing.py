"""Reacts when training makes no progress: finds the cause (`app.learning.flat`), changes the state to fix it,
and returns a sentence about it. The change is part of the state, so it is saved with the next round; a run that
is killed before that finds the cause again."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.learning import flat
from app.learning.brake import start_cooldown
from app.learning.flat import FlatCause
from app.learning.placement import Placement
from app.learning.placement_questions import starting_families
from app.node.history import checkpoint
from app.node.record.records import Probe, Round
from app.node.record.settings import Settings
from app.node.record.state import NodeState
from app.node.round.tools import max_answer_tokens
from app.node.trainer.link import TrainerLink
from app.sapo import curriculum
from app.sapo.families import FAMILIES
from engines.contract import AdapterError

_NAMED = 5
"""Maximum number of families that a sentence names."""
_PATIENCE = 20
"""Minimum rounds before a cause is reported again."""


@dataclass(frozen=True)
class Healed:
    """The cause of missing progress, the changed state to continue from, and a sentence about both."""

    cause: FlatCause
    state: NodeState
    sentence: str


class Healer:
    """Watches rounds and measurements for missing progress. `best` is the folder of the best-measured
    checkpoint."""

    def __init__(self, best: Path) -> None:
        self._best = best
        self._rounds: deque[Round] = deque(maxlen=flat.ROUNDS_JUDGED)
        self._told: dict[FlatCause, int] = {}
        self._judged = 0
        self.place_again = False
        self.candidates: Mapping[str, int] = {}
        """Families, with levels, that a placement may try."""

    def record_round(self, row: Round) -> None:
        """Remembers a finished round, from which a cause may be found."""
        self._rounds.append(row)

    def reset_after_placement(self) -> None:
        """Forgets the rounds so far and that another placement was wanted."""
        self.place_again = False
        self._rounds.clear()

    def keep_best(self, curve: Sequence[Probe], checkpoints: Path) -> None:
        """Copies the newest checkpoint to `best` if its measurement is the best so far. Ignores disk
        errors."""
        if len(curve) > 1 and curve[-1].share >= max(one.share for one in curve):
            self.copy_best(checkpoints)

    def copy_best(self, checkpoints: Path) -> None:
        """Copies the newest checkpoint to `best`. Ignores disk errors."""
        for newest in checkpoint.newest_first(checkpoints)[:1]:
            fresh = self._best.with_name(f".{self._best.name}")
            with suppress(OSError):
                shutil.rmtree(fresh, ignore_errors=True)
                shutil.copytree(newest, fresh)
                shutil.rmtree(self._best, ignore_errors=True)
                fresh.rename(self._best)

    async def heal(
        self, state: NodeState, settings: Settings, curve: Sequence[Probe], link: TrainerLink
    ) -> Healed | None:
        """Returns the cause of missing progress and the changed state; None if training progresses or the cause
        was reported recently. Raises TrainerDied."""
        if state.vigil.torn:
            return await self._apart(state, curve, link)
        if len(curve) != self._judged:
            self._judged = len(curve)
            if flat.has_collapsed(curve) and state.vigil.mixed:
                return await self._apart(
                    msgspec.structs.replace(state, vigil=start_cooldown(state.vigil)), curve, link
                )
            if flat.has_collapsed(curve) and (healed := await self._back(state, curve, link)):
                return healed
        cause = flat.find_cause(self._rounds)
        if cause is None or state.round - self._told.get(cause, -_PATIENCE) < _PATIENCE:
            return None
        self._told[cause] = state.round
        self._rounds.clear()
        after, sentence = self._changed(cause, state, settings)
        return Healed(cause, after, sentence)

    async def _apart(self, state: NodeState, curve: Sequence[Probe], link: TrainerLink) -> Healed:
        """Handles a model that got worse while peers' answers were mixed in: loads its best checkpoint and
        trains without peers for a while. No single peer is blamed, because it is unknown which one caused
        it."""
        self._rounds.clear()
        rounds = state.vigil.alone
        sentence = f"It learns alone for {rounds} rounds."
        with suppress(AdapterError):
            await link.load(self._best)
            best = max(curve, key=lambda one: one.share, default=None)
            sentence = f"It goes back to its best and learns alone for {rounds} rounds."
            if best is not None:
                sentence = f"It goes back to round {best.round} and learns alone for {rounds} rounds."
        vigil = msgspec.structs.replace(state.vigil, torn=False)
        sentence = f"It got worse with others' answers. {sentence}"
        return Healed(FlatCause.SPOILED, msgspec.structs.replace(state, vigil=vigil), sentence)

    async def _back(self, state: NodeState, curve: Sequence[Probe], link: TrainerLink) -> Healed | None:
        best = max(curve, key=lambda one: one.share)
        with suppress(AdapterError):
            await link.load(self._best)
            self._rounds.clear()
            sentence = (
                f"Learning tore the model: {100 * curve[-1].share:.0f} % instead of {100 * best.share:.0f} %. "
                f"It goes back to what it was after round {best.round} and learns half as fast."
            )
            return Healed(FlatCause.TORN, msgspec.structs.replace(state, rate=state.rate / 2), sentence)
        return None

    def _changed(self, cause: FlatCause, state: NodeState, settings: Settings) -> tuple[NodeState, str]:
        match cause:
            case FlatCause.UNFINISHED:
                return _longer(state, settings)
            case FlatCause.FORMLESS:
                self.place_again = True
                return state, (
                    "Its answers lack the form that is asked for. "
                    "It's shown worked examples and finds out again what to begin with."
                )
            case FlatCause.FAILING:
                return self._easier(state)
            case FlatCause.PASSING:
                return _harder(state)
            case FlatCause.ALIKE:
                return _more(state, settings)
            case FlatCause.TORN | FlatCause.SPOILED:
                raise ValueError("A model that got worse is found by its measurements.")

    def _easier(self, state: NodeState) -> tuple[NodeState, str]:
        levels = state.curriculum.levels
        lower = flat.one_level_lower(levels)
        if lower != levels:
            changed = msgspec.structs.replace(state, curriculum=curriculum.start(lower))
            return changed, "Every answer was wrong. It gets easier puzzles, a level lower."
        self.place_again = True
        return state, (
            "Every answer was wrong, at the easiest level too. It finds out again what it can begin with; "
            "if that's nothing, a larger model or the starter would help."
        )


def _longer(state: NodeState, settings: Settings) -> tuple[NodeState, str]:
    now = max_answer_tokens(state, settings)
    if now >= flat.MAX_TOKENS:
        return state, (
            f"Most answers don't end within {now} tokens, and longer ones cost too much. "
            "A model that answers more briefly would help."
        )
    more = min(flat.MAX_TOKENS, 2 * now)
    sentence = f"Most answers don't end within {now} tokens. They may be {more} tokens long from now on."
    return msgspec.structs.replace(state, max_tokens=more), sentence


def _harder(state: NodeState) -> tuple[NodeState, str]:
    higher = {
        family: min(level + 1, len(FAMILIES[family].levels) - 1)
        for family, level in state.curriculum.levels.items()
    }
    if higher == state.curriculum.levels:
        return (
            state,
            "Every kind of puzzle is at its highest level. Pick other puzzles, so it keeps learning.",
        )
    changed = msgspec.structs.replace(state, curriculum=curriculum.start(higher))
    return changed, "Nearly every answer was right. It gets harder puzzles, a level up."


def _more(state: NodeState, settings: Settings) -> tuple[NodeState, str]:
    now = state.groups or settings.groups
    if now >= flat.MAX_GROUPS:
        return state, (
            "Its answers to a puzzle are all alike, so there's little to tell apart. "
            "More families, or answers from other models, would help."
        )
    more = min(flat.MAX_GROUPS, 2 * now)
    return msgspec.structs.replace(state, groups=more), (
        f"Its answers to a puzzle are nearly all alike. It tries {more} puzzles a round instead of {now}."
    )


def placement_summary(found: Placement) -> str:
    """Returns one to six sentences on what a placement found."""
    if not found.families:
        return (
            "This model can't solve any of these puzzles yet, not even after examples. "
            "A larger model, or the starter, would help."
        )
    able = starting_families(found)
    said = [
        f"It can begin with {family_titles(found.families)}."
        if able
        else f"It starts with {family_titles(found.families)}."
    ]
    if found.right_answers:
        said.append(f"First it learns from {len(found.right_answers)} of its own right answers.")
    if found.later:
        said.append(f"Later come {family_titles(found.later[:_NAMED])}.")
    if found.untried:
        said.append(f"It tries other kinds between rounds: {len(found.untried)} are left.")
    if len(found.waiting) > _NAMED:
        said.append(f"{len(found.waiting)} other kinds are too hard yet.")
    elif found.waiting:
        said.append(f"Too hard yet: {family_titles(found.waiting)}.")
    return " ".join(said)


def family_titles(families: Iterable[str]) -> str:
    """Returns the titles of families, joined by commas; question sets that were removed have no title."""
    return ", ".join(
        FAMILIES[name].title.lower() if name in FAMILIES else "removed questions" for name in families
    )
