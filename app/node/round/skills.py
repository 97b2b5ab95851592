"""Teaches one part of a skill lesson, as a round, and measures a skill as it is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from app.learning import skill_lesson
from app.learning.first_lesson import PER_STEP
from app.learning.skill_lesson import Practice
from app.node.history.measured import AnsweredQuestion, MeasuredAnswers
from app.node.record.records import Probe, questions_mark, share_of_true
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round.round import PlayedRound, supervised_round
from app.node.round.steps import take_steps
from app.node.round.tools import RoundTools, max_answer_tokens, score
from app.node.trainer.messages import GroupTokens, PeerTexts
from app.sapo import probe as held_out
from app.sapo.asking import Example, shows_work
from app.sapo.questions import QuestionPrompt
from app.skills.skill import Skill
from engines.contract import Completion

QUESTIONS_PER_REPORT = 16
"""Questions measured between two reports of progress."""


async def teach_part(tools: RoundTools, before: NodeState, skill: Skill) -> PlayedRound:
    """Teaches the next rows of the skill lesson, as the round after `before`, and measures the loss on those
    aside. The state tells how far the lesson is, and whether it is over. Raises TrainerDied."""
    started, done = time.monotonic(), before.lesson.taught
    tools.report(Phase.LEARNING)
    taught, aside = skill_lesson.split_rows(len(skill.examples), skill.origin)
    places = skill_lesson.next_part(len(taught), done, skill.origin)
    part = [skill.examples[taught[place]] for place in places]
    again = skill_lesson.repeated(skill.amended, len(part))
    readings = await _read(tools, before, skill, [*part, *again], logprobs=False)
    sequences = [reading.sequences_G[0] for reading in readings if reading is not None]
    batches = skill_lesson.part_batches(sequences, len(taught), done, bool(skill.labels))
    planned = -(-len(taught) * skill_lesson.planned_passes(len(taught)) // PER_STEP)

    def tell(step: int, of: int) -> None:
        tools.report(Phase.LEARNING, done // PER_STEP + step, planned)

    stepped = await take_steps(tools.link, batches, tell)
    progress = before.lesson.after(len(part), await aside_loss(tools, before, skill, aside), len(taught))
    played = supervised_round(before, stepped, time.monotonic() - started, len(part))
    state = msgspec.structs.replace(played.state, lesson=progress, taught=progress.over(len(taught)))
    return replace(played, state=state)


async def aside_loss(tools: RoundTools, state: NodeState, skill: Skill, aside: Sequence[int]) -> float:
    """Returns the mean loss (nats per answer) on the training rows that are not taught. Raises TrainerDied."""
    readings = await _read(tools, state, skill, [skill.examples[row] for row in aside], logprobs=True)
    return skill_lesson.mean_loss([one.logprobs_GT[0] for one in readings if one and one.logprobs_GT])


async def after_practice(tools: RoundTools, state: NodeState, skill: Skill) -> Practice:
    """Returns what the rounds so far have brought on the rows aside. Raises TrainerDied."""
    _, aside = skill_lesson.split_rows(len(skill.examples), skill.origin)
    some = [skill.examples[row] for row in aside]
    loss = await aside_loss(tools, state, skill, aside)
    answers = await tools.link.answer(
        [skill.prompt(one.question) for one in some], skill.labels, max_answer_tokens(state, tools.settings)
    )
    right = [
        answer is not None and skill.agree(answer.text, one.answer)
        for answer, one in zip(answers, some, strict=True)
    ]
    return state.practice.after(share_of_true(right), loss)


async def measure(
    tools: RoundTools, questions_P: Sequence[QuestionPrompt], state: NodeState, skill: Skill
) -> tuple[Probe, MeasuredAnswers]:
    """Asks the held-out questions as the owner does, and returns the result and the answers. Raises TrainerDied
    and EngineError."""
    started = time.monotonic()
    tools.report(Phase.PROBING, 0, len(questions_P))
    answers_P = []
    for first in range(0, len(questions_P), QUESTIONS_PER_REPORT):
        some = [skill.prompt(one.text) for one in questions_P[first : first + QUESTIONS_PER_REPORT]]
        answers_P += await tools.link.answer(some, skill.labels, max_answer_tokens(state, tools.settings))
        tools.report(Phase.PROBING, len(answers_P), len(questions_P))
    said_P = [
        Completion(
            tokens_T=[],
            logprobs_T=[],
            finished=one is not None and one.finished,
            text=one.text if one is not None else "",
        )
        for one in answers_P
    ]
    scored_P = await asyncio.to_thread(score, tools, questions_P, [[one] for one in said_P])
    solved_P = [scored.rewards_G[0] for scored in scored_P]
    row = Probe.of(
        held_out.score(solved_P, [question.content for question in questions_P]),
        round=state.round,
        questions_mark=questions_mark(questions_P),
        at=time.time(),
        questions=len(questions_P),
        lenient=share_of_true(solved_P),
        worked_share=share_of_true(shows_work(one.text) for one in said_P) if skill.marked else 0.0,
        finished_share=share_of_true(one.finished for one in said_P),
        seconds=time.monotonic() - started,
        families={skill.family: share_of_true(solved_P)},
    )
    measured = tuple(
        AnsweredQuestion(
            question=asked.text,
            answer=said.text,
            solved=bool(solved),
            content=asked.content,
            sure=one.sure if one is not None else None,
        )
        for asked, said, solved, one in zip(questions_P, said_P, solved_P, answers_P, strict=True)
    )
    return row, MeasuredAnswers(round=state.round, answers=measured)


async def counted_right(tools: RoundTools, skill: Skill, measured: MeasuredAnswers) -> int | None:
    """Returns how many of the held-out rows counting letters alone gets right; None if any text may be the
    answer, or an answer is unknown. Raises TrainerDied."""
    truths = {row.question: row.answer for row in skill.made.rows}
    asked = [one.question for one in measured.answers]
    if not skill.labels or not set(asked) <= truths.keys():
        return None
    taught = [(one.question, one.answer) for one in skill.examples]
    said = await tools.link.count_letters(taught, asked)
    return sum(skill.agree(label, truths[text]) for label, text in zip(said, asked, strict=True))


async def _read(
    tools: RoundTools, state: NodeState, skill: Skill, some: Sequence[Example], *, logprobs: bool
) -> list[GroupTokens | None]:
    """Returns each example in this model's tokens, None for one that is too long."""
    texts = [
        PeerTexts(prompt=skill.prompt(one.question), completions_G=(one.answer,), finished_G=(True,))
        for one in some
    ]
    return await tools.link.read(texts, max_answer_tokens(state, tools.settings), logprobs=logprobs)
