"""Chooses the puzzle families that a node trains on: those that the placement found, and those that join
later.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from app.common.text import safe_line
from app.learning import peer_lesson, placement_questions
from app.learning.peer_lesson import TRIAL_QUESTIONS, PeerLesson, RightAnswer
from app.learning.placement import (
    RETRY_QUESTIONS,
    FamilyTrial,
    LessonResult,
    OwnExample,
    Placement,
    after_retries,
    families_to_retry,
)
from app.learning.placement_questions import FIRST_QUESTIONS, starting_families
from app.node.healing import Healer, family_titles
from app.node.history.resume import with_families
from app.node.record import events
from app.node.record.errors import raising_disk_full
from app.node.record.settings import Settings
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round import language, placing
from app.node.round.lesson_progress import LessonFolder, LessonInProgress, LessonTrial, harmed
from app.node.round.peers import NodeSwarm
from app.node.round.round import PlayedRound, RoundTools
from app.node.round.teaching import mean_answer_nats
from app.node.round.watch import SnapshotWriter
from app.sapo.asking import TAGGED
from app.sapo.groups import GroupRecord
from app.sapo.questions import QuestionError, generate
from engines.contract import EngineError

_SHOWN = 120
"""Maximum characters of a peer's answer quoted in a sentence."""
_GROUPS_SHOWN = 2
"""Maximum groups per family that are stored with a lesson's round, each of a different author."""
_LASTS = 2 * peer_lesson.ROUNDS_AFTER_GAIN
"""Rounds for which the trial after a lesson can replace the one before the next lesson."""
_LESSON_TRIALS = 10**6
"""Index of the first question of a lesson's trials; a placement asks only lower ones."""


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
        lessons: LessonFolder,
    ) -> None:
        self.settings, self.lessons = settings, lessons
        self._folder, self._home, self._healer, self._watch, self._swarm = folder, home, healer, watch, swarm
        self._named = settings.families
        self._nats: dict[str, float] = {}
        """Mean negative log-probability (nats) of peers' answers in waiting families, measured since the latest
        lesson."""
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
        return msgspec.structs.replace(
            state, curriculum=with_families(state.curriculum, self.settings.families)
        )

    async def place(self, tools: RoundTools) -> Placement:
        """Asks the next questions of a placement (app.node.round.placing). Save the result with `keep`."""
        candidates, before = self._healer.candidates or self.settings.families, self._placing
        if before is None and self._found is not None and not starting_families(self._found):
            before = msgspec.structs.replace(self._found, families={}, joined={}, in_progress=True)
        if self._swarm is not None:  # groups that arrive meanwhile wait for lessons
            self._swarm.practise_families(())
            self._swarm.want_for_lessons(tuple(candidates))
            if before is not None:
                before = placement_questions.peer_solved_first(before, self._swarm.solved_families())
        return await placing.continue_placement(tools, candidates, before, enough=self.enough)

    def families_to_retry(self, round_: int) -> dict[str, int]:
        """Returns the waiting families that may be tried now, with their levels."""
        if self._found is None:
            return {}
        levels = {one.family: one.level for one in self._found.tried}
        return {family: levels[family] for family in families_to_retry(self._found, round_)}

    async def join(self, tools: RoundTools, state: NodeState, families: dict[str, int]) -> str:
        """Tries waiting families and activates those that the model can begin with. Returns a sentence that
        names the new ones."""
        assert self._found is not None
        before, first = self._found, RETRY_QUESTIONS * state.round
        kinds = len(before.tried) if before.unasked else 0
        tools.report(Phase.PLACING, before.families_tried if kinds else 0, kinds)
        tried = await placing.retry_families(tools, state.way, families, first, FIRST_QUESTIONS)
        if hopeful := {one.family: one.level for one in tried if one.any}:
            more = RETRY_QUESTIONS - FIRST_QUESTIONS
            tried = await placing.retry_families(
                tools, state.way, hopeful, first + FIRST_QUESTIONS, more, tried
            )
        after = after_retries(before, tried, state.round)
        self.keep(after)
        new = [family for family in after.joined if family not in before.joined]
        if not new:
            return ""
        return f"New to the mix: {family_titles(new)}. They were tried again, and it can learn from them now."

    async def begin_lesson(
        self, tools: RoundTools, state: NodeState, latest: Callable[[], Iterable[GroupRecord]]
    ) -> LessonInProgress | None:
        """Returns the lesson that peers' answers can teach now (app.learning.peer_lesson), with the trial
        before it, or None. Own right answers of the `latest` groups, newest first, are mixed in. Also tells the
        swarm for which families to fetch answers. Raises TrainerDied."""
        if self._found is None or self._swarm is None:
            return None
        found, candidates, vouches = self._found, self._healer.candidates, self._swarm.buffer.vouches
        resting = peer_lesson.resting_families(found, state.round)
        known = {*found.in_play, *resting} - set(peer_lesson.families_still_taught(found))
        wanted = [one for one in candidates if one not in known]
        waiting = [group for group in self._swarm.buffer.waiting_groups() if _family(group) in candidates]
        unread = peer_lesson.answers_to_measure(waiting, {*wanted} - self._nats.keys(), vouches)
        if unread.parts:
            read = await mean_answer_nats(tools, state, unread)
            self._nats |= {family: read.get(family, math.inf) for family in unread.levels}
        self._swarm.want_for_lessons(peer_lesson.families_to_request(wanted, self._nats, state.round))
        taught = self._swarm.buffer.times_taught
        lesson = peer_lesson.next_lesson(waiting, found, state.round, vouches, taught) if waiting else None
        if lesson is None:
            return None
        nats = await mean_answer_nats(tools, state, lesson)
        beside = await asyncio.to_thread(self._own_answers, latest())
        lesson = msgspec.structs.replace(lesson, beside=beside)
        lesson = peer_lesson.likeliest_families(lesson, nats, found)
        ids = {answer.id for answer in lesson.answers}
        return LessonInProgress(
            lesson=lesson,
            before=await self.try_lesson(tools, state, lesson),
            groups=tuple(group for group in waiting if group.id in ids),
        )

    def _own_answers(self, latest: Iterable[GroupRecord]) -> tuple[RightAnswer, ...]:
        """Returns own right answers to mix into a lesson, from `latest` groups and from the first lesson.
        Blocking: it regenerates their questions."""
        assert self._found is not None
        chosen = peer_lesson.own_answers(latest, self._found.in_play, self._found.right_answers)
        found = []
        for at, completion in chosen:
            with contextlib.suppress(QuestionError):  # one of another version
                found.append((generate(at).text, completion))
        return tuple(found)

    async def try_lesson(
        self,
        tools: RoundTools,
        state: NodeState,
        lesson: PeerLesson,
        before: LessonTrial | None = None,
        everyday: float | None = None,
    ) -> LessonTrial:
        """Tries the lesson's families and the other active ones, and measures the perplexity of everyday
        replies unless `everyday` is given. The trial after a lesson asks the same questions in the same
        families as the one `before` it. The trial before a lesson reuses results of the one after the latest
        lesson, if that is recent. A waiting family whose questions are too long for the model gets no answers.
        Raises TrainerDied and EngineError."""
        own = {one.family: one.level for one in before.own} if before is not None else state.curriculum.levels
        levels = own | lesson.levels
        latest = self.lessons.latest_trial() if before is None else None
        if latest is not None and not 0 <= state.round - latest.round <= _LASTS:
            latest = None
        known = {(one.family, one.level): one for one in (*latest.lesson, *latest.own)} if latest else {}
        asked = before or latest
        first = asked.first if asked is not None else _LESSON_TRIALS + TRIAL_QUESTIONS * state.round
        tried: dict[str, FamilyTrial] = {}
        for number, (family, level) in enumerate(levels.items(), 1):
            tools.report(Phase.PLACING, number, len(levels))
            if (family, level) in known:
                tried[family] = known[family, level]
                continue
            try:
                (tried[family],) = await placing.retry_families(
                    tools, state.way, {family: level}, first, TRIAL_QUESTIONS
                )
            except EngineError:  # questions longer than this model can read
                if family in state.curriculum.levels:
                    raise
                tried[family] = FamilyTrial(family=family, level=level, questions=TRIAL_QUESTIONS)
        if latest is not None:
            everyday = latest.everyday
        if everyday is None and tools.engine.talks:
            everyday = await language.perplexity(tools.link)
        return LessonTrial(
            lesson=tuple(tried[family] for family in lesson.levels),
            own=tuple(tried[family] for family in levels if family not in lesson.levels),
            everyday=everyday,
            untaught=state.everyday,
            round=state.round,
            first=first,
        )

    def should_keep_lesson(self, lesson: PeerLesson, before: LessonTrial, after: LessonTrial) -> bool:
        """Whether to keep a lesson: its families improved, or, if some are active already, got no worse, and
        nothing else suffered."""
        continued = any(family in self.joined for family in lesson.levels)
        return not harmed(before, after) and peer_lesson.lesson_helped(before.lesson, after.lesson, continued)

    def settle(self, lesson: LessonInProgress, improved: Sequence[LessonResult]) -> None:
        """Tells the swarm which answers a lesson taught, and that the model learned from the groups of its
        `improved` families."""
        assert self._swarm is not None
        families = {one.family for one in improved}
        learned = [one for one in lesson.groups if _family(one) in families]
        self._swarm.settle_lesson(sorted(answer.id for answer in lesson.lesson.answers), learned)

    def after_lesson(
        self, lesson: PeerLesson, before: LessonTrial, after: LessonTrial, round_: int
    ) -> list[LessonResult]:
        """Stores the results of a lesson and activates the families that it opened. Returns the results of the
        open families that it improved. Raises DiskFullError."""
        assert self._found is not None
        kept, self._nats = self.should_keep_lesson(lesson, before, after), {}
        self.lessons.keep_trial(after if kept else None)
        self.keep(peer_lesson.after_lesson(self._found, lesson, before.lesson, after.lesson, round_, kept=kept))
        if not kept:
            return []
        brought = {
            first.family
            for first, last in zip(before.lesson, after.lesson, strict=True)
            if peer_lesson.family_gained(first, last)
        }
        return [one for one in self._found.lessons if one.family in brought and one.opened]

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
        if found.in_play:
            self.settings = msgspec.structs.replace(self.settings, families=found.in_play)
        if self._swarm is not None:
            taught = peer_lesson.families_still_taught(found)
            self._swarm.practise_families(name for name in self.settings.families if name not in taught)


def _family(group: GroupRecord) -> str:
    return group.coordinates.family


def lesson_round_to_show(played: PlayedRound, lesson: LessonInProgress, after: LessonTrial) -> PlayedRound:
    """Returns the lesson's round for display: the improved families come first, each with the first group of
    some of its authors."""
    by_id = {group.id: group for group in lesson.groups}
    found: dict[str, GroupRecord] = {}
    improved: list[str] = []
    for part, first, last in zip(lesson.lesson.parts, lesson.before.lesson, after.lesson, strict=True):
        if peer_lesson.family_gained(first, last):
            of_author = {answer.peer: answer.id for answer in reversed(part.answers)}
            ids = [of_author[name] for name in dict.fromkeys(answer.peer for answer in part.answers)]
            found |= {id: by_id[id] for id in ids[:_GROUPS_SHOWN]}
            improved.append(part.family)
    families = dict.fromkeys((*improved, *played.lesson_families))
    return replace(played, lesson_families=tuple(families), lesson_groups=tuple(found.values()))


def skill_event(result: LessonResult, lesson: PeerLesson, round_: int) -> events.SkillLearned:
    """Returns the event for a family that peers' answers opened."""
    family, (name, *others) = family_titles([result.family]), result.authors
    sentence = f"Learned {family} from {name}."
    if others:
        sentence = f"Learned {family} from {name} and {len(others)} more."
    shown = next(one.answers[0] for one in lesson.parts if one.family == result.family)
    sentence = f"{sentence} It began with “{safe_line(shown.completion, _SHOWN)}”."
    return events.SkillLearned(
        round=round_,
        family=result.family,
        level=result.level,
        authors=result.authors,
        answers=result.answers,
        before=round(result.before, 4),
        after=round(result.after, 4),
        question=shown.question,
        answer=shown.completion,
        sentence=sentence,
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
