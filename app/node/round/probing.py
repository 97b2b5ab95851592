"""The held-out probe: measures the curve that the owner sees.

The questions and the sampling seed are the same every time and for every node, with one completion each at
temperature 1. So two probes differ only by what was learned, and by chance within their standard errors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from app.node.record.records import Probe, questions_mark, share_of_true
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState
from app.node.round import language
from app.node.round.tools import RoundTools, max_answer_tokens, prompts_at_once, score
from app.sapo import probe as held_out
from app.sapo import seeds
from app.sapo.asking import extract_leniently, messages, shows_work
from app.sapo.groups import SOLVED_SCORE, GroupRecord
from app.sapo.questions import QuestionPrompt
from app.sapo.scoring.sandbox import Sandbox
from engines.contract import Completion

UNTRAINED_STEP, FIRST_STEP = 4, 2
"""An untrained model is asked every fourth question, and all of them if it solves one. The point after lesson
zero asks every second: the owner has waited for it since the start, and all would take a fifth of that wait."""
_SEED = seeds.hashed_seed("probe sampling")


def is_probe_due(round: int, every: int) -> bool:
    """Whether the curve gets a point after a round: every `every` rounds and, because most is learned early,
    also after a fifth and a half of the first interval, if that is at least ten rounds.

    >>> [round for round in range(1, 31) if is_probe_due(round, 10)]
    [2, 5, 10, 20, 30]
    >>> [round for round in range(1, 9) if is_probe_due(round, 4)]
    [4, 8]
    """
    return round % every == 0 or (every >= 10 and round in (every // 5, every // 2))


async def probe(
    tools: RoundTools,
    curve_P: Sequence[QuestionPrompt],
    state: NodeState,
    joined_P: Sequence[QuestionPrompt] = (),
    *,
    every: int = 1,
) -> Probe:
    """Measures the current adapter and returns the result. `joined_P`: questions measured in
    addition to the curve's. `every`: ask only every n-th question of the curve (see UNTRAINED_STEP and
    FIRST_STEP). Raises TrainerDied and EngineError."""
    started = time.monotonic()
    report, questions_P = tools.report, curve_P[::every]
    report(Phase.PROBING, 0, len(questions_P) + len(joined_P))
    joined, _ = await _answered(tools, joined_P, state) if joined_P else ([], [])
    scored_P, completions_P = await _answered(tools, questions_P, state)
    solved_P = [scored.rewards_G[0] for scored in scored_P]
    if every == UNTRAINED_STEP and any(solved_P):
        return await probe(tools, curve_P, state, joined_P)
    perplexity = await language.perplexity(tools.link) if tools.engine.talks else None
    return Probe.of(
        held_out.score(solved_P, [question.content for question in questions_P]),
        round=state.round,
        questions_mark=questions_mark(curve_P),
        at=time.time(),
        questions=len(questions_P),
        lenient=await asyncio.to_thread(_lenient, tools.sandbox, scored_P),
        worked_share=share_of_true(shows_work(completion.text) for completion in completions_P),
        finished_share=share_of_true(completion.finished for completion in completions_P),
        seconds=time.monotonic() - started,
        families=_by_family(questions_P, scored_P),
        joined=_by_family(joined_P, joined),
        everyday=perplexity,
        everyday_before=perplexity if state.round == 0 else state.everyday,
    )


async def _answered(
    tools: RoundTools, questions_P: Sequence[QuestionPrompt], state: NodeState
) -> tuple[list[GroupRecord], list[Completion]]:
    """Returns one answer to each question, and the scores."""
    sampled = await tools.link.sample(
        [messages(question.text, state.way) for question in questions_P],
        1,
        max_answer_tokens(state, tools.settings),
        _SEED,
        prompts_at_once=prompts_at_once(tools.engine, 1),
        texts_only=True,
        tell=lambda done, total: tools.report(Phase.PROBING, done, total),
    )
    scored_P = await asyncio.to_thread(score, tools, questions_P, sampled.groups_PG)
    return scored_P, [group[0] for group in sampled.groups_PG]


def _by_family(questions_P: Sequence[QuestionPrompt], scored_P: Sequence[GroupRecord]) -> dict[str, float]:
    """Returns the share solved by family."""
    families: dict[str, list[int]] = {}
    for question, scored in zip(questions_P, scored_P, strict=True):
        families.setdefault(question.coordinates.family, []).append(scored.rewards_G[0])
    return {family: share_of_true(solved) for family, solved in families.items()}


def _lenient(sandbox: Sandbox, scored_P: Sequence[GroupRecord]) -> float:
    """Returns the share solved if answers in the wrong form also count. Blocks: call it in a thread."""
    return share_of_true(
        scored.rewards_G[0]
        or sandbox.score(scored.coordinates, [extract_leniently(scored.completions_G[0])])[0] >= SOLVED_SCORE
        for scored in scored_P
    )
