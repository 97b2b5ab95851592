"""Which of peers' right answers a round imitates, and what it learns about a family by that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import msgspec
import pytest

from app.learning.evidence import Evidence
from app.learning.imitation import (
    MAX_ANSWERS,
    MIN_ANSWERS,
    PATIENCE,
    PER_STEP,
    RATE,
    FamilyAnswers,
    FamilyTaught,
    PeerAnswer,
    after_teaching,
    deal_rows,
    families_with_answers,
    rehearsed,
)
from app.learning.round_weights import OwnTokens
from app.learning.teachable import JudgedAnswers
from app.node.round.imitating import ImitatedRows
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from engines.contract import Completion, TokenSequence
from tests.learning.test_teachable import author


def offered(
    groups: list[GroupRecord], taught: Mapping[str, int] | None = None, **judges: object
) -> list[FamilyAnswers]:
    options = {"able": lambda family, level: True, "standing": lambda key: False, "judged": {}} | judges
    return families_with_answers(groups, taught=taught or {}, **options)  # type: ignore[arg-type]


def test_the_easiest_level_is_taken_and_half_of_a_round_at_most_is_of_one_author() -> None:
    hard, easy = (
        [one for number in (0, 1) for one in author(number, ("fraction_simplification", level))]
        for level in (1, 0)
    )
    (found,) = offered(hard + easy)
    assert (found.family, found.level) == ("fraction_simplification", 0)
    assert MIN_ANSWERS <= len(found.answers) <= MAX_ANSWERS
    assert max(Counter(one.key for one in found.answers).values()) <= MAX_ANSWERS // 2
    assert [one.level for one in offered(hard + easy, able=lambda family, level: level == 1)] == [1]
    alone = [one for one in easy if one.key == easy[0].key]
    assert len(offered(alone)[0].answers) == len(alone)


def test_what_was_taught_least_comes_first_and_is_no_longer_fresh() -> None:
    groups = [one for number in (0, 1) for one in author(number, ("fraction_simplification", 0))]
    (before,) = offered(groups)
    taught = {one.id: 1 for one in before.answers[:10]}
    (after,) = offered(groups, taught)
    assert {one.id for one in after.answers[-10:]} == {*taught}
    assert [one.fresh for one in after.answers] == [one.id not in taught for one in after.answers]


def test_answers_are_judged_once_and_forgotten_with_their_groups() -> None:
    groups = [one for number in (0, 1) for one in author(number, ("fraction_simplification", 0))]
    judged: dict[str, JudgedAnswers] = {}
    (found,) = offered(groups, judged=judged)
    before = dict(judged)
    assert before.keys() == {one.id for one in groups} >= {one.id for one in found.answers}
    offered(groups[1:], judged=judged)
    assert judged.keys() == before.keys() - {groups[0].id}
    assert all(judged[id] is before[id] for id in judged)


def offer(family: str, letters: int = 2) -> FamilyAnswers:
    one = PeerAnswer(id="1", peer="Ann", key="a", question="?", completion="#" * letters)
    return FamilyAnswers(family=family, level=0, answers=(one,) * 48)


def test_rows_go_to_the_nearest_families_and_to_what_is_not_known() -> None:
    offers = [offer(family) for family in ("gcd", "lcm", "dice", "bits", "sums", "spell", "base")]
    assert set(deal_rows(72, offers, {}, Random(1)).values()) <= {10, 11}
    nats = {"gcd": 2.0, "lcm": 6.0, "dice": 3.0, "bits": 24.0, "sums": 5.0, "spell": 60.0, "base": 40.0}
    before = {
        family: FamilyTaught(level=0, nats=Evidence(n=20.0, mean=mean), answers={"Ann": 64})
        for family, mean in nats.items()
    }
    dealt = {one: sum(deal_rows(72, offers, before, Random(n)).get(one, 0) for n in range(99)) for one in nats}
    assert sum(dealt.values()) == 99 * 72 and min(dealt.values()) > 100
    assert 2.0 < dealt["gcd"] / dealt["lcm"] < 2.6, "a nat off, after 64 answers, and seven"
    before["gcd"] = msgspec.structs.replace(before["gcd"], answers={"Ann": 60 * PATIENCE})
    assert deal_rows(72, offers, before, Random(1)).get("gcd", 0) < 4, "near, and it learns nothing"
    del before["base"]
    assert deal_rows(72, offers, before, Random(1))["base"] == MIN_ANSWERS
    assert sum(deal_rows(30, offers[:1], before, Random(1)).values()) == 30
    assert deal_rows(3, offers, {}, Random(1)).keys() != deal_rows(3, offers, {}, Random(2)).keys()
    assert deal_rows(9, [], {}, Random(1)) == {}


def test_only_answers_that_are_new_tell_how_near_a_family_is() -> None:
    new = [PeerAnswer(id=str(n), peer="Ann", key="a", question="?", completion="#1") for n in range(8)]
    seen = [msgspec.structs.replace(one, fresh=False) for one in new]
    first = after_teaching(None, 0, new, [12.0] * 8)
    again = after_teaching(first, 0, seen, [1.0] * 8)
    assert again.nats == first.nats and again.count == 16
    assert after_teaching(again, 0, new, [4.0] * 8).nats.mean < 8.0, "mostly of the last rounds"
    assert after_teaching(again, 1, new, [9.0] * 8).count == 8, "another level begins anew"
    assert msgspec.json.decode(msgspec.json.encode(again), type=FamilyTaught) == again


def own(rewards_G: tuple[int, ...], prompt: int) -> OwnTokens:
    scored = GroupRecord(
        coordinates=Coordinates(family="gcd", level=0, seed=prompt, index=0),
        completions_G=("#1",) * len(rewards_G),
        finished_G=(True,) * len(rewards_G),
        model="m",
        rewards_G=rewards_G,
    )
    completions = [
        Completion(tokens_T=[prompt, place], logprobs_T=[-1.0, -1.0], finished=True, text="#1")
        for place, _ in enumerate(rewards_G)
    ]
    return OwnTokens(scored, [prompt], completions)


def test_own_right_answers_are_rehearsed_one_in_some_steps() -> None:
    kept = rehearsed([own((1, 1, 1), 7), own((0, 0, 1), 8), own((0, 0, 0), 9), own((1, 1, 1), 10)])
    assert [one.completion_T for one in kept] == [[7, 0], [8, 2], [10, 0], [7, 1], [10, 1], [7, 2], [10, 2]]
    peers = [TokenSequence(prompt_T=[1], completion_T=[1])] * (3 * PER_STEP)
    steps = ImitatedRows(sequences=peers, own=kept[:2]).batches
    assert [len(step.rows_S) - PER_STEP for step in steps] == [1, 1, 0]
    assert [step.learning_rate for step in steps] == pytest.approx([RATE, RATE * 2 / 3, RATE / 3])
    assert ImitatedRows(own=kept).batches == []
