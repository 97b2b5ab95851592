"""Placement: before the first round, finds out how to prompt this model and which families it can begin with.
The result, and the progress while it runs, are stored in the model's folder as placement.json.
`app.learning.placement_questions` chooses the questions."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

import msgspec

from app.common import files
from app.learning import placement, placement_questions
from app.learning.placement import FamilyTrial, OwnExample, Placement, Rewards
from app.learning.placement_questions import FamilyQuestions
from app.learning.questions import own_questions
from app.node.record.snapshot import Phase
from app.node.round.tools import RoundTools, prompts_at_once, score
from app.sapo import curriculum, seeds
from app.sapo.asking import TAGGED, Example, Messages, Way, extract_answer, messages, shows_work
from app.sapo.families import FAMILIES
from app.sapo.questions import QuestionError, QuestionPrompt
from app.sapo.sets.question_set import is_owners_set
from engines.contract import Completion

FILE = "placement.json"
_SHOWN_CHARACTERS = 900
"""Maximum characters of all examples of a question together: four examples of a grid would cost more than all
other families."""
ASKED_FIRST = 8
"""Number of questions used to find out whether a model answers in the requested form."""
_ROUND = 0
"""Placement uses the questions of round 0; its examples start at index _EXAMPLES."""
_EXAMPLES = 10**4


def read(folder: Path, among: Container[str] = FAMILIES) -> Placement | None:
    """Reads the placement saved in a model's folder, limited to the families `among`. None if it is missing or
    invalid, or if it begins only with other families."""
    found = files.read_json(folder / FILE, Placement)
    if found is None or not found.families:
        return found
    families, joined = (
        {family: level for family, level in some.items() if family in among}
        for some in (found.families, found.joined)
    )
    tried = tuple(one for one in found.tried if not is_owners_set(one.family))  # of earlier versions
    changed = {"families": families, "joined": joined, "tried": tried}
    return msgspec.structs.replace(found, **changed) if families else None


def write(folder: Path, found: Placement) -> None:
    """Saves a placement. Raises OSError."""
    files.write_json(folder / FILE, found)


async def continue_placement(
    tools: RoundTools, levels: Mapping[str, int], before: Placement | None, *, enough: bool = False
) -> Placement:
    """Continues a placement in the families of `levels` with its next questions, and returns the result, which
    is `in_progress` until it is over; `enough` ends it now. With `before` None it starts one: finds the
    prompt style and orders the families. Raises TrainerDied; only this call's questions are lost then."""
    started = time.monotonic()
    asking = _Asking(tools)
    if before is None:
        before = Placement(way=await asking.way_for(levels), families={}, in_progress=True)
    found, way, known = before, before.way, {one.family for one in before.tried}
    own = msgspec.structs.replace(found, tried=tuple(one for one in found.tried if one.family in levels))
    new = {family: level for family, level in levels.items() if family not in known}
    if way.examples:
        new = {family: level for family, level in new.items() if FAMILIES[family].work}
    if new:
        more = await asking.shortest_first(way, new)
        found = msgspec.structs.replace(found, tried=(*found.tried, *more))
    elif not enough and (questions := placement_questions.next_questions(own)):
        number = sum(one.questions for one in found.tried)
        answered = await asking.answered(way, questions, number, _told(tools, own, questions))
        found = placement_questions.with_results(found, answered, asking.right)
    else:
        found = placement_questions.finish(own, anyway=enough)
    return msgspec.structs.replace(found, seconds=found.seconds + time.monotonic() - started)


def _told(tools: RoundTools, found: Placement, questions: Sequence[FamilyQuestions]) -> Callable[[float], None]:
    """Returns a callback that reports the progress of a placement while answers to `questions` arrive: kinds of
    puzzles tried, or, once these are enough, right answers for the lesson."""
    kinds = len({one.family for one in found.tried})
    known = {one.family for one in found.tried if one.questions}
    new = len({one.family for one in questions} - known)
    begun = tuple(placement_questions.starting_families(found))

    def tell(share: float) -> None:
        if questions[0].first >= placement_questions.PROMISING_QUESTIONS:
            most = math.ceil(placement.LESSON_ANSWERS / len(begun))
            there = sum(
                min(most, count)
                for count in placement.count_solved_questions(found.right_answers, begun).values()
            )
            tools.report(Phase.GATHERING, there, most * len(begun))
        else:
            tools.report(Phase.PLACING, found.families_tried + int(new * share), kinds)

    return tell


def _untold(share: float) -> None:
    pass


class _Asking:
    """Asks the questions of one call. `right` collects the right answers that show their work."""

    def __init__(self, tools: RoundTools) -> None:
        self._tools = tools
        self.right: list[OwnExample] = []

    async def way_for(self, levels: Mapping[str, int]) -> Way:
        """Finds the prompt style: asks the first questions without examples, in the longer style, and checks
        the form."""
        families = sorted(levels, key=lambda family: FAMILIES[family].work is None)[:ASKED_FIRST]
        questions = [one for family in families for one in await self._questions(family, levels[family], 0, 1)]
        prompts = [messages(one.text, TAGGED) for one in questions]
        groups = await self._sample(prompts, 1, self._tools.settings.max_tokens, 0)
        return placement.way_for([extract_answer(group[0].text) is not None for group in groups])

    async def shortest_first(self, way: Way, levels: Mapping[str, int]) -> list[FamilyTrial]:
        """Returns empty trials of new families, those with short questions and examples first: reading a grid
        costs a small model as much as answering ten sums, and it can rarely solve one."""
        lengths = {}
        for family, level in levels.items():
            texts = [
                one.text for one in await self._questions(family, level, 0, placement_questions.FIRST_QUESTIONS)
            ]
            for example in await self._examples(way, family, level):
                texts += [example.question, example.answer]
            lengths[family] = sum(map(len, texts)) if texts else math.inf
        return [
            FamilyTrial(family=family, level=levels[family])
            for family in sorted(levels, key=lengths.__getitem__)
        ]

    async def answered(
        self,
        way: Way,
        asked: Sequence[FamilyQuestions],
        number: int = 0,
        tell: Callable[[float], None] = _untold,
    ) -> list[tuple[FamilyQuestions, list[Rewards]]]:
        """Asks questions and returns the rewards of each. A family's questions are asked in sequence, so that
        their shared examples are read only once. `number`: the first question's number, for the sampler's seed.
        `tell` gets the share of answers done, 0 to 1."""
        questions = [await self._questions(*one) for one in asked]
        examples = [await self._examples(way, one.family, one.level) for one in asked]
        turns = [(at, question) for at, some in enumerate(questions) for question in some]
        found: list[list[Rewards]] = [[] for _ in asked]
        for first in range(0, len(turns), placement_questions.QUESTIONS_PER_CALL):
            part = turns[first : first + placement_questions.QUESTIONS_PER_CALL]
            tell(first / len(turns))
            prompts = [
                messages(question.text, way, _others(examples[at], question, way.examples))
                for at, question in part
            ]
            rewards = await self._rewards(way, [question for _, question in part], prompts, number + first)
            for (at, _), one in zip(part, rewards, strict=True):
                found[at].append(one)
        return list(zip(asked, found, strict=True))

    async def _rewards(
        self, way: Way, asked_P: Sequence[QuestionPrompt], prompts: list[Messages], number: int
    ) -> list[Rewards]:
        settings = self._tools.settings
        seed = number * placement.ANSWERS_PER_QUESTION
        groups = await self._sample(
            prompts, placement.ANSWERS_PER_QUESTION, way.token_limit(settings.max_tokens), seed
        )
        scored_P = await asyncio.to_thread(score, self._tools, asked_P, groups)
        for asked, completions_G, scored in zip(asked_P, groups, scored_P, strict=True):
            self.right += [
                OwnExample(
                    coordinates=asked.coordinates,
                    question=asked.text,
                    completion=completion.text,
                    logprob=sum(completion.logprobs_T) / len(completion.logprobs_T),
                )
                for completion, reward in zip(completions_G, scored.rewards_G, strict=True)
                if reward and shows_work(completion.text)
            ]
        others = next_in_family([asked.coordinates.family for asked in asked_P])
        crossed = await asyncio.to_thread(
            score, self._tools, [asked_P[other] for other in others.values()], [groups[at] for at in others]
        )
        lucky = {at: scored.rewards_G for at, scored in zip(others, crossed, strict=True)}
        return [(scored.rewards_G, lucky.get(at, ())) for at, scored in enumerate(scored_P)]

    async def _sample(
        self, prompts: list[Messages], n: int, max_tokens: int, number: int
    ) -> list[list[Completion]]:
        sampled = await self._tools.link.sample(
            prompts,
            n,
            max_tokens,
            seeds.sampling_seed(self._tools.identity, number, "placement"),
            prompts_at_once=prompts_at_once(self._tools.engine, n),
        )
        return sampled.groups_PG

    async def _questions(self, family: str, level: int, first: int, count: int) -> list[QuestionPrompt]:
        """Returns training questions of a level; empty if it has none."""
        return await self._made(family, level, first, count, worked=False)

    async def _examples(self, way: Way, family: str, level: int) -> list[Example]:
        """Returns worked examples, one more than is shown: it replaces an example that equals the question."""
        if not way.examples:
            return []
        made = await self._made(family, level, _EXAMPLES, way.examples + 1, worked=True)
        return examples_that_fit(
            [Example(question=asked.text, answer=asked.worked) for asked in made if asked.worked]
        )

    async def _made(
        self, family: str, level: int, first: int, count: int, *, worked: bool
    ) -> list[QuestionPrompt]:
        make = partial(self._tools.sandbox.questions, worked=worked)
        begun = curriculum.start({family: level})
        with contextlib.suppress(QuestionError):
            return await asyncio.to_thread(
                own_questions, begun, self._tools.identity, _ROUND, count, make, first
            )
        return []


def _others(examples: Sequence[Example], asked: QuestionPrompt, most: int) -> list[Example]:
    return [example for example in examples if example.question != asked.text][:most]


def next_in_family(families: Sequence[str]) -> dict[int, int]:
    """Maps each position to the next one of the same family (the last one to the first). A family's only
    position is left out.

    >>> next_in_family(["gcd", "gcd", "lcm", "dice", "dice", "dice"])
    {0: 1, 1: 0, 3: 4, 4: 5, 5: 3}
    """
    places = {family: [at for at, one in enumerate(families) if one == family] for family in families}
    return {
        at: own[(own.index(at) + 1) % len(own)]
        for at, family in enumerate(families)
        if len(own := places[family]) > 1
    }


def examples_that_fit(examples: Sequence[Example], most: int = _SHOWN_CHARACTERS) -> list[Example]:
    """Returns the first examples whose total length is within `most`, at least two: one to show, one as a
    replacement.

    >>> [len(examples_that_fit([Example(question="x" * size, answer="1")] * 5)) for size in (50, 299, 2000)]
    [5, 3, 2]
    """
    lengths = accumulate(len(example.question) + len(example.answer) for example in examples)
    return list(examples[: max(2, sum(length <= most for length in lengths))])
