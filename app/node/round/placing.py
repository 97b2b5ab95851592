"""Placement: finds out, before the first round, how to ask this model and at which families it can begin.

What it found is kept in the model's folder as placement.json; `app.learning.placement` decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path

import msgspec

from app.common import files
from app.learning import placement
from app.learning.placement import FamilyTried, Placement, PlacementStage, Taught
from app.learning.questions import own_questions
from app.node.record.snapshot import Phase
from app.node.round.round import Tools, prompts_at_once, score
from app.sapo import curriculum, seeds
from app.sapo.asking import TAGGED, Example, Messages, Way, extract_answer, messages, shows_work
from app.sapo.families import FAMILIES
from app.sapo.questions import Asked, QuestionError
from app.sapo.sets.question_set import is_own
from engines.contract import Completion

FILE = "placement.json"
PATIENCE_S = 180.0
"""No further questions are asked after so long; what is known by then decides. A model of 135 million
parameters needs half of it on two idle cores. A busy computer gets its time: half a placement is a poor
beginning."""
FIRST_S = 30.0
"""For the first questions of all families, those with short ones first. What is left then waits, and is tried
after some rounds: reading a grid costs a small model as much as answering ten sums, and it seldom can."""
FIRST_FAMILIES = 24
"""So many are tried however long it takes: without them nothing can be told apart."""
LESSON_S, PATIENT_LESSON_S = 45.0, 120.0
"""So much longer for what the first lesson is made of, where there is not enough by then, and where there is
hardly anything."""
_MORE, _MOST = 8, 96
"""Questions of each family between two looks at what has been gathered for the lesson, and in all. The
examples of a family are read again at each of them."""
_SHOWN_CHARACTERS = 900
"""The most characters of all examples together: grids are long, and four of them cost more than all other
families."""
ASKED_FIRST = 8
"""Questions that tell whether a model answers as it is told."""
AT_ONCE = 16
"""Questions between two looks at the clock."""
_ROUND = 0
"""Questions are those of a round before the first; examples lie behind all of them."""
_EXAMPLES = 10**4


def read(folder: Path, among: Container[str] = FAMILIES) -> Placement | None:
    """What was kept in a model's folder, of the families `among`. None where nothing was, nothing that can be
    understood, or where it begins with others only."""
    found = files.read_json(folder / FILE, Placement)
    if found is None or not found.families:
        return found
    families, joined = (
        {family: level for family, level in some.items() if family in among}
        for some in (found.families, found.joined)
    )
    tried = tuple(one for one in found.tried if one.family in among or not is_own(one.family))
    changed = {"families": families, "joined": joined, "tried": tried}
    return msgspec.structs.replace(found, **changed) if families else None


def write(folder: Path, found: Placement) -> None:
    """Raises OSError."""
    files.write_json(folder / FILE, found)


async def place(tools: Tools, levels: Mapping[str, int]) -> Placement:
    """Tries the families of `levels`, each at its level. Raises TrainerDied; nothing is kept then."""
    started = time.monotonic()
    asking = _Asking(tools, started + PATIENCE_S)
    telling = asyncio.create_task(_tell(asking, started, min(len(levels), FIRST_FAMILIES)))
    try:
        return await _place(asking, levels, started)
    finally:
        telling.cancel()


def whole_s(spent_s: float, answers: int, least: int) -> float:
    """Seconds that a placement takes in all, told after `spent_s` with so many answers; `least` are asked for
    however long they take.

    >>> whole_s(10.0, 64, 192), whole_s(60.0, 20, 192)
    (225.0, 621.0)
    """
    return max(PATIENCE_S, spent_s * least / answers if answers else 0.0) + LESSON_S


async def _tell(asking: _Asking, started: float, families: int) -> None:
    """How far it is, in seconds: stages come one after another, and of none is known how many follow."""
    least = families * placement.STAGES[0][1] * placement.ANSWERS
    while True:
        spent_s = time.monotonic() - started
        all_s = whole_s(spent_s, asking.heard, least)
        asking.tools.report(Phase.PLACING, int(min(spent_s, all_s)), int(all_s))
        await asyncio.sleep(1)


async def _place(asking: _Asking, levels: Mapping[str, int], started: float) -> Placement:
    way = await asking.way_for(levels)
    shown = way.examples
    tried = {
        family: _new(family, level) for family, level in levels.items() if not shown or FAMILIES[family].work
    }
    number = 0
    while stage := placement.next_stage(tuple(tried.values()), number):
        tried |= await asking.stage(way, {family: tried[family] for family in stage.families}, stage)
        number += 1
    for family, one in [(name, one) for name, one in tried.items() if placement.too_easy(one)]:
        tried[family] = await asking.climb(way, one)
    families = placement.families(tuple(tried.values()))
    if shown:
        await asking.more(way, {family: tried[family] for family in families})
    return Placement(
        way=way,
        families=families,
        tried=tuple(tried.values()),
        lesson=placement.lesson(asking.right, families) if shown else (),
        seconds=time.monotonic() - started,
    )


async def again(
    tools: Tools, way: Way, families: Mapping[str, int], first: int, count: int = placement.JOIN_QUESTIONS
) -> list[FamilyTried]:
    """What becomes of families that wait, asked as in training: without examples, `count` questions of each
    from number `first` on. Raises TrainerDied."""
    asking = _Asking(tools, math.inf)
    tools.report(Phase.PLACING)
    tried = {family: _new(family, level) for family, level in families.items()}
    plain = msgspec.structs.replace(way, examples=0)
    return list((await asking.stage(plain, tried, PlacementStage(tuple(families), first, count))).values())


@dataclass
class _Asking:
    tools: Tools
    until: float
    right: list[Taught] = field(default_factory=list)
    done: int = 0
    heard: int = 0
    """Answers that are there, those of the call that still runs counted."""

    async def way_for(self, levels: Mapping[str, int]) -> Way:
        """The first questions are asked without examples, in the longer way."""
        families = sorted(levels, key=lambda family: FAMILIES[family].work is None)[:ASKED_FIRST]
        questions = [one for family in families for one in await self._questions(family, levels[family], 0, 1)]
        prompts = [messages(one.text, TAGGED) for one in questions]
        groups = await self._sample(prompts, 1, self.tools.settings.max_tokens)
        return placement.way_for([extract_answer(group[0].text) is not None for group in groups])

    async def stage(
        self, way: Way, tried: Mapping[str, FamilyTried], stage: PlacementStage
    ) -> dict[str, FamilyTried]:
        """A family's questions one after another, because their examples are read once then. When time runs
        out, the families ranked last are the ones that miss some."""
        after = dict(tried)
        questions = {
            family: await self._questions(family, one.level, stage.first, stage.count)
            for family, one in tried.items()
        }
        examples = {family: await self._examples(way, one) for family, one in tried.items()}
        if not stage.first:
            questions = dict(sorted(questions.items(), key=lambda one: _characters(one[1], examples[one[0]])))
        turns = [(family, one) for family, asked in questions.items() for one in asked]
        started, first = time.monotonic(), not stage.first and len(tried) > FIRST_FAMILIES
        for part in _parts(turns):
            if first and time.monotonic() > started + FIRST_S:
                if sum(one.questions > 0 for one in after.values()) >= FIRST_FAMILIES:
                    break
            elif not first and time.monotonic() > self.until:
                break
            found_P = await self._rewards(way, part, examples)
            for (family, _), (rewards_G, *elsewhere_PG) in zip(part, found_P, strict=True):
                after[family] = placement.added(after[family], [rewards_G], elsewhere_PG)
        return after

    async def more(self, way: Way, tried: Mapping[str, FamilyTried]) -> None:
        """Asks on in the families that were placed, until there is enough for a lesson or time runs out."""
        started, first = time.monotonic(), placement.STAGES[-1][1]
        self.until = started + PATIENT_LESSON_S
        while first < _MOST and time.monotonic() < self.until:
            late = time.monotonic() > started + LESSON_S
            short = placement.short_of(self.right, tuple(tried), placement.SOME if late else placement.ENOUGH)
            if not short:
                break
            await self.stage(
                way, {family: tried[family] for family in short}, PlacementStage(short, first, _MORE)
            )
            first += _MORE

    async def climb(self, way: Way, one: FamilyTried) -> FamilyTried:
        """The highest level, tried from `one` up, at which the family can still begin."""
        while placement.too_easy(one) and one.level + 1 < len(FAMILIES[one.family].levels):
            if time.monotonic() > self.until:
                break
            above = _new(one.family, one.level + 1)
            stage = PlacementStage((one.family,), 0, placement.STAGES[0][1])
            above = (await self.stage(way, {one.family: above}, stage))[one.family]
            if above.any_share < placement.LEAST_ANY:
                break
            one = above
        return one

    async def _rewards(
        self,
        way: Way,
        part: Sequence[tuple[str, Asked]],
        examples: Mapping[str, Sequence[Example]],
    ) -> list[list[tuple[int, ...]]]:
        """The rewards of each question's answers, and where there is a second one of its family their rewards
        if it had been that one."""
        settings = self.tools.settings
        prompts = [
            messages(asked.text, way, _others(examples[family], asked, way.examples)) for family, asked in part
        ]
        groups = await self._sample(prompts, placement.ANSWERS, way.limit(settings.max_tokens))
        asked_P = [asked for _, asked in part]
        scored_P = await asyncio.to_thread(score, self.tools, asked_P, groups)
        for asked, completions_G, scored in zip(asked_P, groups, scored_P, strict=True):
            self.right += [
                Taught(
                    coordinates=asked.coordinates,
                    question=asked.text,
                    completion=completion.text,
                    logprob=sum(completion.logprobs_T) / len(completion.logprobs_T),
                )
                for completion, reward in zip(completions_G, scored.rewards_G, strict=True)
                if reward and (FAMILIES[asked.coordinates.family].terse or shows_work(completion.text))
            ]
        found_P = [[scored.rewards_G] for scored in scored_P]
        others = elsewhere([family for family, _ in part])
        crossed = await asyncio.to_thread(
            score, self.tools, [asked_P[other] for other in others.values()], [groups[at] for at in others]
        )
        for at, scored in zip(others, crossed, strict=True):
            found_P[at].append(scored.rewards_G)
        return found_P

    async def _sample(self, prompts: list[Messages], n: int, max_tokens: int) -> list[list[Completion]]:
        before = self.done

        def tell(done: int, _: int) -> None:
            self.heard = before + done

        sampled = await self.tools.link.sample(
            prompts,
            n,
            max_tokens,
            seeds.sampling_seed(self.tools.identity, before, "placement"),
            prompts_at_once=prompts_at_once(self.tools.engine, n),
            tell=tell,
        )
        self.done += len(prompts) * n
        return sampled.groups_PG

    async def _questions(self, family: str, level: int, first: int, count: int) -> list[Asked]:
        """None where the level has no question to train on."""
        return await self._made(family, level, first, count, worked=False)

    async def _examples(self, way: Way, one: FamilyTried) -> list[Example]:
        """One more than are shown: it stands in where an example is the question itself."""
        if not way.examples:
            return []
        made = await self._made(one.family, one.level, _EXAMPLES, way.examples + 1, worked=True)
        return fitting([Example(question=asked.text, answer=asked.worked) for asked in made if asked.worked])

    async def _made(self, family: str, level: int, first: int, count: int, *, worked: bool) -> list[Asked]:
        make = partial(self.tools.sandbox.questions, worked=worked)
        begun = curriculum.start({family: level})
        with contextlib.suppress(QuestionError):
            return await asyncio.to_thread(
                own_questions, begun, self.tools.identity, _ROUND, count, make, first
            )
        return []


def _new(family: str, level: int) -> FamilyTried:
    return FamilyTried(family=family, level=level)


def _others(examples: Sequence[Example], asked: Asked, most: int) -> list[Example]:
    return [example for example in examples if example.question != asked.text][:most]


def elsewhere(families: Sequence[str]) -> dict[int, int]:
    """To each place another one of the same family, the next and behind the last the first; none where it is
    alone.

    >>> elsewhere(["gcd", "gcd", "lcm", "dice", "dice", "dice"])
    {0: 1, 1: 0, 3: 4, 4: 5, 5: 3}
    """
    places = {family: [at for at, one in enumerate(families) if one == family] for family in families}
    return {
        at: own[(own.index(at) + 1) % len(own)]
        for at, family in enumerate(families)
        if len(own := places[family]) > 1
    }


def _characters(asked: Sequence[Asked], examples: Sequence[Example]) -> int:
    return sum(len(one.text) for one in asked) + sum(len(one.question) + len(one.answer) for one in examples)


def fitting(examples: Sequence[Example], most: int = _SHOWN_CHARACTERS) -> list[Example]:
    """The first of them that together are no longer, and two in any case: one is shown, one stands in.

    >>> [len(fitting([Example(question="x" * size, answer="1")] * 5)) for size in (50, 299, 2000)]
    [5, 3, 2]
    """
    lengths = accumulate(len(example.question) + len(example.answer) for example in examples)
    return list(examples[: max(2, sum(length <= most for length in lengths))])


def _parts(turns: Sequence[tuple[str, Asked]]) -> Iterator[Sequence[tuple[str, Asked]]]:
    for first in range(0, len(turns), AT_ONCE):
        yield turns[first : first + AT_ONCE]
