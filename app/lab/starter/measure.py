"""How much headroom a starter has: pass@1, pass@8, finished and worked shares on the levels where RL begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from app.lab.answers import group_of
from app.lab.statistics import average
from app.sapo.asking import messages, shows_work
from app.sapo.groups import ScoredGroup
from app.sapo.probe import probe_questions
from app.sapo.scoring.sandbox import Sandbox
from app.sapo.scoring.scoring import score_group
from engines.contract import Engine


class Headroom(msgspec.Struct, frozen=True, kw_only=True):
    """Shares in [0, 1] over one family's probe questions, G completions each."""

    questions: int
    pass_at_1: float
    pass_at_8: float
    finished: float
    worked: float
    worked_right: float
    guessed_right: float


def measure(
    engine: Engine, levels: Mapping[str, int], items: int, max_tokens: int, seed: int
) -> dict[str, Headroom]:
    """Samples 8 completions for each probe question; one row per family and one called `all`."""
    questions = probe_questions(levels, items)
    groups = engine.sample([messages(question.text) for question in questions], 8, max_tokens, seed)
    scored: dict[str, list[ScoredGroup]] = {}
    with Sandbox() as sandbox:
        for question, completions_G in zip(questions, groups, strict=True):
            group = group_of(question.coordinates, completions_G, engine.info.model)
            scored.setdefault(question.coordinates.family, []).append(score_group(sandbox, group))
    everything = [group for family in scored.values() for group in family]
    return {**{family: headroom(groups) for family, groups in scored.items()}, "all": headroom(everything)}


def headroom(groups: Sequence[ScoredGroup]) -> Headroom:
    """The shares of one set of groups. Pass@8 is the share of questions solved at least once in 8 tries."""
    rewards = [reward for group in groups for reward in group.rewards_G]
    finished = [done for group in groups for done in group.group.finished_G]
    worked = [shows_work(text) for group in groups for text in group.group.completions_G]
    return Headroom(
        questions=len(groups),
        pass_at_1=average(rewards),
        pass_at_8=average([int(any(group.rewards_G)) for group in groups]),
        finished=average([int(done) for done in finished]),
        worked=average([int(work) for work in worked]),
        worked_right=average([reward for reward, work in zip(rewards, worked, strict=True) if work]),
        guessed_right=average([reward for reward, work in zip(rewards, worked, strict=True) if not work]),
    )
