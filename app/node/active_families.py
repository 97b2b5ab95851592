"""Chooses the puzzle families that a node trains on: those that the placement found, and those that join
later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from app.common.text import safe_line
from app.learning.imitation import (
    FamilyAnswers,
    FamilyTaught,
    families_with_answers,
)
from app.learning.placement import (
    MAX_ACTIVE,
    OwnExample,
    Placement,
    after_trial,
    families_to_try,
    without_hopeless,
)
from app.learning.placement_questions import starting_families
from app.learning.teachable import JudgedAnswers
from app.node.healing import Healer, family_titles
from app.node.history.resume import with_families
from app.node.record import events
from app.node.record.errors import raising_disk_full
from app.node.record.settings import Settings
from app.node.record.state import NodeState
from app.node.round import placing
from app.node.round.peers import NodeSwarm
from app.node.round.round import TriedFamily
from app.node.round.tools import RoundTools
from app.node.round.watch import SnapshotWriter
from app.sapo.asking import TAGGED
from app.sapo.curriculum import MIN_ANSWERS
from app.sapo.groups import GroupRecord

_SHOWN = 120
"""Maximum characters of a peer's answer quoted in a sentence."""


class ActiveFamilies:
    """The puzzle families that this node trains on now, in `settings.families`. Until a placement succeeds
    these are all candidates."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        home: Path,
        healer: Healer,
        watch: SnapshotWriter,
        swarm: NodeSwarm | None,
    ) -> None:
        self.settings = settings
        self._folder, self._home, self._healer, self._watch, self._swarm = folder, home, healer, watch, swarm
        self._named = settings.families
        self._imitated: frozenset[str] = frozenset()
        self._judged: dict[str, JudgedAnswers] = {}
        self._found: Placement | None = None
        self._placing: Placement | None = None
        self.enough = False
        """Whether the owner skipped the rest of the placement."""

    @property
    def first_lesson_answers(self) -> tuple[OwnExample, ...]:
        """The answers that the first lesson after a placement teaches."""
        return tuple(self._found.right_answers) if self._found is not None else ()

    @property
    def probed(self) -> dict[str, int]:
        """The families that are measured on held-out questions, with their levels."""
        return (self._found and self._found.families) or self.settings.families

    @property
    def joined(self) -> dict[str, int]:
        """Families that were added after the placement, with the levels they started at."""
        return self._found.joined if self._found is not None else {}

    @property
    def can_settle(self) -> bool:
        """Whether there is a placement to which families may be added."""
        return self._found is not None

    def needs_placement(self, state: NodeState) -> bool:
        """Whether a placement has to be done now."""
        fresh = self.settings.place and self._found is None and state.round == 0
        return fresh or self._placing is not None or self._healer.place_again

    def read(self) -> None:
        """Loads what an earlier run of this node found. A model that names its families can be taught others
        without a placement."""
        named, candidates = self._named, self._named | self.settings.others
        if not self.settings.place and candidates == named:
            return
        found = placing.read(self._folder, among=candidates)
        if not self.settings.place:
            found = found or Placement(way=TAGGED, families=named)
            joined = {name: level for name, level in found.joined.items() if name not in named}
            found = msgspec.structs.replace(found, families=named, joined=joined)
        if found is not None:
            self._healer.candidates = self._healer.candidates or candidates
            self._go_on_with(found)

    def with_prompt_style(self, state: NodeState) -> NodeState:
        """Returns the saved state with the prompt style that the placement found; if it differs, the first
        lesson is due again."""
        if self._found is None or state.way == self._found.way:
            return state
        return msgspec.structs.replace(state, way=self._found.way, taught=False)

    def with_active_families(self, state: NodeState) -> NodeState:
        """Returns the state with the families that are active now."""
        self._imitated = self._unfinished(state)
        self._practise()
        return msgspec.structs.replace(
            state, curriculum=with_families(state.curriculum, self.settings.families)
        )

    async def place(self, tools: RoundTools) -> Placement:
        """Asks the next questions of a placement (app.node.round.placing). Save the result with `keep`."""
        candidates, before = self._healer.candidates or self.settings.families, self._placing
        if before is None and self._found is not None and not starting_families(self._found):
            before = msgspec.structs.replace(self._found, families={}, joined={}, in_progress=True)
        if self._swarm is not None:  # groups that arrive meanwhile wait
            self._swarm.practise_families(())
            self._swarm.want_to_imitate(tuple(candidates))
        return await placing.continue_placement(tools, candidates, before, enough=self.enough)

    def families_to_try(self, state: NodeState) -> dict[str, int]:
        """Returns the waiting families that the next round asks one question each, with their levels."""
        if self._found is None:
            return {}
        taught = {
            family: one.distance
            for family, one in state.imitated.items()
            if family in self._healer.candidates and one.nats.n
        }
        levels = {one.family: one.level for one in self._found.tried}
        levels |= {family: state.imitated[family].level for family in taught}
        return {family: levels[family] for family in families_to_try(self._found, taught, state.round)}

    async def answers_to_imitate(self, state: NodeState) -> list[FamilyAnswers]:
        """Returns peers' answers that the next round may imitate: of families that wait, or that joined and are
        weak yet, at the level that they are at. Also tells the swarm of which families to fetch answers."""
        if self._found is None or self._swarm is None:
            return []
        found, candidates = self._found, self._healer.candidates
        self._imitated = self._unfinished(state)
        weak, levels = self._imitated & {*self.joined}, state.curriculum.levels

        def able(family: str, level: int) -> bool:
            if family in found.active:
                return family in weak and level == levels.get(family)
            return family in candidates and len(found.active) < MAX_ACTIVE

        buffer = self._swarm.buffer
        self._practise()
        self._swarm.want_to_imitate([one for one in candidates if one not in found.active or one in weak])
        waiting = buffer.waiting_groups()
        return await asyncio.to_thread(
            families_with_answers,
            waiting,
            able,
            buffer.records.has_standing,
            buffer.times_taught.copy(),
            self._judged,
        )

    @staticmethod
    def _unfinished(state: NodeState) -> frozenset[str]:
        """Returns the families in which peers' answers were imitated, without those that are done."""
        done = {one.family for one in state.curriculum.families if one.solves_enough}
        return frozenset(state.imitated) - done

    def _practise(self) -> None:
        """Tells the swarm of which families rounds take groups: not of those that are imitated yet."""
        if self._swarm is not None:
            weak = self._imitated & {*self.joined}
            self._swarm.practise_families(name for name in self.settings.families if name not in weak)

    def after_round(
        self, state: NodeState, tried: Sequence[TriedFamily], imitated: Mapping[str, FamilyTaught]
    ) -> list[events.SkillLearned | str]:
        """Stores what a round's questions of waiting families brought, and lets joined families wait again that
        brought nothing. `imitated`: what was taught before the questions were asked. Returns the events of
        families that peers' answers taught, and sentences about others that joined. Raises DiskFullError."""
        assert self._found is not None
        before = self._found
        after = without_hopeless(
            before,
            [
                one.family
                for one in state.curriculum.families
                if sum(tally.answered for tally in one.window) >= MIN_ANSWERS and not one.solved_share
            ],
        )
        for one in tried:
            at = one.scored.coordinates
            after = after_trial(after, at.family, at.level, one.scored.rewards_G, one.elsewhere_G)
        if after != before:
            self.keep(after)
        opened = [one.scored for one in tried if one.scored.coordinates.family in after.joined]
        return [
            self._told(scored, imitated.get(scored.coordinates.family), before, state.round)
            for scored in opened
            if scored.coordinates.family not in before.active
        ]

    def _told(
        self, scored: GroupRecord, taught: FamilyTaught | None, before: Placement, round_: int
    ) -> events.SkillLearned | str:
        family = scored.coordinates.family
        if taught is None or not taught.answers:
            return f"New to the mix: {family_titles([family])}. It got some of it right by itself."
        if self._swarm is not None:
            self._swarm.thank_for_family(family)
        earlier = next((one for one in before.tried if one.family == family), None)
        first = earlier.solved / earlier.answers if earlier is not None and earlier.answers else 0.0
        return skill_event(family, taught, first, sum(scored.rewards_G) / len(scored.rewards_G), round_)

    def keep(self, found: Placement) -> None:
        """Saves a placement and activates its families. Raises DiskFullError."""
        with raising_disk_full(self._home):
            placing.write(self._folder, found)
        self._go_on_with(found)

    def _go_on_with(self, found: Placement) -> None:
        if found.in_progress:
            self._placing = found
            return
        self._found, self._placing, self.enough = found, None, False
        self._watch.show_placement(found.waiting)
        self._healer.candidates = self._healer.candidates or self.settings.families
        if found.active:
            self.settings = msgspec.structs.replace(self.settings, families=found.active)
        self._practise()


def skill_event(
    family: str, taught: FamilyTaught, before: float, after: float, round_: int
) -> events.SkillLearned:
    """Returns the event for a family that peers' answers opened. `before`, `after`: shares of right answers to
    its questions so far, and to the one that opened it."""
    title, (name, *others) = family_titles([family]), taught.authors
    sentence = f"Learned {title} from {name}."
    if others:
        sentence = f"Learned {title} from {name} and {len(others)} more."
    question, answer = taught.shown
    return events.SkillLearned(
        round=round_,
        family=family,
        level=taught.level,
        authors=taught.authors,
        answers=sum(taught.answers.values()),
        before=round(before, 4),
        after=round(after, 4),
        question=question,
        answer=answer,
        sentence=f"{sentence} It began with “{safe_line(answer, _SHOWN)}”.",
    )


def placement_event(found: Placement, round_: int, sentence: str) -> events.PlacementDone:
    """Returns the event for a placement."""
    return events.PlacementDone(
        round=round_,
        way=found.way.name,
        families=found.families,
        later=found.later,
        waiting=found.waiting,
        lesson=len(found.right_answers),
        seconds=round(found.seconds, 1),
        sentence=sentence,
    )
