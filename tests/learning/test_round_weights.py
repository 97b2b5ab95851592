from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest

from app.learning.questions import tallies, update_curriculum
from app.learning.round_weights import LearningState, OwnTokens, fresh_state, weigh_round, with_tokens
from app.sapo.curriculum import FamilyTally
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.sapo.recipes import RECIPES, Recipe
from engines.contract import Completion, Row, TokenSequence

FAITHFUL, DEFAULT = RECIPES["faithful"], RECIPES["default"]
START = fresh_state({"gcd": 0})


def scored(rewards: list[int], family: str = "gcd", seed: int = 0) -> GroupRecord:
    group = GroupRecord(
        coordinates=Coordinates(family=family, level=0, seed=2**41 + seed, index=0),
        completions_G=tuple("#1" for _ in rewards),
        finished_G=(True,) * len(rewards),
        model="m",
    )
    return group.with_scores(tuple(map(float, rewards)), tuple(rewards))


def own(rewards: list[int], prompt: int = 1) -> OwnTokens:
    completions_G = [
        Completion(tokens_T=[5 + at, 0], logprobs_T=[-0.5, -0.1], finished=True, text="#1")
        for at in range(len(rewards))
    ]
    return OwnTokens(scored(rewards, seed=prompt), [prompt], completions_G)


def peer(rewards: list[int], logprob: float = -0.3) -> GroupRecord:
    sequences_G = [TokenSequence(prompt_T=[9], completion_T=[7 + at, 0]) for at in range(len(rewards))]
    return with_tokens(scored(rewards, seed=99), sequences_G, [[logprob, logprob]] * len(rewards))


def learned(
    recipe: Recipe,
    own_P: list[OwnTokens],
    peer_P: list[GroupRecord],
    before: LearningState = START,
    by_another: bool = False,
) -> tuple[LearningState, list[list[Row]]]:
    taught = weigh_round(recipe, before, own_P, peer_P, rate=0.1, order=Random(0), by_another=by_another)
    assert all(batch.clip == recipe.clip and batch.sampler_cap == 2.0 for batch in taught.batches)
    return taught.state, [batch.rows_S for batch in taught.batches]


def test_tallies_add_up_over_the_groups_of_a_family() -> None:
    groups = [scored([1, 0, 0]), scored([1, 1, 0]), scored([0, 0, 0], family="lcm")]
    assert tallies(groups, {"gcd": 0, "lcm": 0}) == {"gcd": FamilyTally(3, 6), "lcm": FamilyTally(0, 3)}
    assert tallies(groups, {"gcd": 0, "lcm": 1}) == {"gcd": FamilyTally(3, 6)}
    assert update_curriculum(START.curriculum, groups).families[0].window == (FamilyTally(3, 6),)


def test_only_what_weighs_becomes_rows_and_none_is_torn_apart() -> None:
    _, steps = learned(FAITHFUL, [own([1, 0]), own([1, 1], 2), own([0, 0], 3)], [peer([1, 0])])
    (rows_S,) = steps
    assert [row.prompt_T for row in rows_S] == [[1], [1], [9], [9]]
    assert all(any(row.weights_T) for row in rows_S)
    assert learned(FAITHFUL, [own([0, 0])], [])[1] == []


def test_the_answer_key_stands_beside_answers_that_are_all_wrong() -> None:
    """Mean 1/4 of four: the key gets 3/4, each wrong answer -1/4; over 8 tokens."""
    key = Completion(tokens_T=[3, 0], logprobs_T=[-4.0, -0.1], finished=True, text="#7")
    wrong = own([0, 0, 0])
    after, ((*rows_S, last),) = learned(DEFAULT, [replace(wrong, key=key)], [], by_another=True)
    assert last.completion_T == [3, 0] and last.weights_T == pytest.approx([0.75 / 8] * 2)
    assert [row.weights_T for row in rows_S] == [pytest.approx([-0.25 / 8] * 2)] * 3
    assert last.sampler_logprobs_T == [-4.0, -0.1], "its own log-probs, so that its weight stays as it is"
    alone, _ = learned(DEFAULT, [wrong], [])
    assert (after.own_logprob, after.habits) == (alone.own_logprob, alone.habits), "it is no habit of its own"


def test_own_rows_bring_old_log_probs_for_the_clip_and_peers_do_not() -> None:
    rows_S = learned(FAITHFUL, [own([1, 0])], [peer([1, 0])])[1][0]
    assert [row.old_logprobs_T for row in rows_S] == [[-0.5, -0.1], [-0.5, -0.1], None, None]
    assert all(row.sampler_logprobs_T is None for row in rows_S)
    plain = learned(DEFAULT, [own([1, 0])], [])[1][0]
    assert all(row.old_logprobs_T is None and row.sampler_logprobs_T is None for row in plain)


def test_another_programs_log_probs_correct_weights_and_never_clip() -> None:
    rows_S = learned(FAITHFUL, [own([1, 0])], [], by_another=True)[1][0]
    assert [(row.old_logprobs_T, row.sampler_logprobs_T) for row in rows_S] == [(None, [-0.5, -0.1])] * 2


def test_the_state_moves_and_nothing_else_does() -> None:
    after, _ = learned(DEFAULT, [own([1, 0])], [])
    assert after.own_logprob == pytest.approx(-0.3) and after.habits is not None
    assert (after.curriculum, after.steps) == (START.curriculum, 0)
    later, _ = learned(DEFAULT, [own([0, 0])], [], before=msgspec.structs.replace(after, own_logprob=-1.3))
    assert later.own_logprob == pytest.approx(0.9 * -1.3 + 0.1 * -0.3)


def test_a_peers_absurd_answer_is_held_against_own_habits() -> None:
    taken, refused = (
        weigh_round(DEFAULT, START, [own([1, 0])], [peer([1, 0], logprob)], rate=0.1, order=Random(0)).weighed
        for logprob in (-0.3, -9.0)
    )
    assert taken.right_P == ((1, 0),) and refused.right_P == ((0, 1),)


def test_the_rate_warms_up_over_steps_already_taken() -> None:
    groups = [own([1, 0], at) for at in range(4)]
    before = msgspec.structs.replace(START, steps=1)
    recipe = msgspec.structs.replace(DEFAULT, falls=None)
    taught = weigh_round(recipe, before, groups, [], rate=0.1, order=Random(0))
    assert [batch.learning_rate for batch in taught.batches] == pytest.approx([0.04, 0.06])


def test_the_rate_falls_with_the_steps_that_were_made() -> None:
    recipe = msgspec.structs.replace(DEFAULT, groups_per_step=1, falls=10)
    before = msgspec.structs.replace(START, steps=30)
    taught = weigh_round(recipe, before, [own([1, 0], at) for at in (1, 2)], [], rate=0.1, order=Random(0))
    assert [round(batch.learning_rate, 4) for batch in taught.batches] == [0.05, 0.0494]
