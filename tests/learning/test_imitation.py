"""Which of peers' right answers a round imitates, and what it learns about a family by that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import msgspec

from app.learning.evidence import Evidence
from app.learning.imitation import (
    AT_ONCE,
    BLOCK,
    MAX_ANSWERS,
    MIN_ANSWERS,
    FamilyAnswers,
    FamilyTaught,
    Judged,
    PeerAnswer,
    after_teaching,
    deal_rows,
    families_with_answers,
)
from app.sapo.groups import GroupRecord
from tests.learning.test_teachable import author


def offered(
    groups: list[GroupRecord], taught: Mapping[str, int] | None = None, **judges: object
) -> list[FamilyAnswers]:
    options = {"able": lambda family, level: True, "standing": lambda key: False, "judged": Judged()} | judges
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


def test_answers_are_judged_again_once_an_eighth_is_new() -> None:
    groups = [one for number in (0, 1) for one in author(number, ("fraction_simplification", 0))]
    first, judged = groups[: len(groups) - 4], Judged()
    kept = judged.teachable(first)
    assert judged.teachable(groups[:-2]) is kept, "two more of twenty-eight"
    assert {*judged.teachable(groups)} > {*kept}


def offer(family: str, letters: int = 2) -> FamilyAnswers:
    one = PeerAnswer(id="1", peer="Ann", key="a", question="?", completion="#" * letters)
    return FamilyAnswers(family=family, level=0, answers=(one,) * 48)


def test_a_few_families_get_a_block_each_then_rows_go_where_answers_become_likelier() -> None:
    def known(fall: float, count: int = BLOCK) -> FamilyTaught:
        fast, slow = (Evidence(n=60.0, mean=mean, m2=600.0) for mean in (-fall, 0.0))
        return FamilyTaught(
            level=0, fast=fast, slow=slow, tokens=Evidence(n=60.0, mean=60.0), answers={"Ann": count}
        )

    before: dict[str, FamilyTaught] = {}
    offers, order = [offer("bits", 9), offer("gcd", 3), offer("lcm", 5), offer("dice", 7)], list[str]()
    for _ in range(30):
        dealt = deal_rows(30, offers, before, Random(1))
        begun = [family for family in dealt if family not in order]
        assert len(begun) <= AT_ONCE + 1 and 0 < sum(dealt.values()) <= 30
        assert begun == [] or sum(dealt[family] for family in order) <= 10, "what was taught is rehearsed"
        for family, rows in dealt.items():
            before[family] = known(0.0, rows + (before[family].count if family in before else 0))
        order += [family for family in before if before[family].count >= BLOCK and family not in order]
    assert order == ["gcd", "lcm", "dice", "bits"], "the shortest first"

    before, counted = (
        {"gcd": known(4.0), "lcm": known(0.0), "dice": known(-2.0), "bits": known(-2.0)},
        Counter(),
    )
    for seed in range(50):
        counted.update([*deal_rows(60, offers, before, Random(seed))][:1])
    assert counted["gcd"] > 1.5 * counted["lcm"] and counted["lcm"] >= counted["dice"]
    assert deal_rows(9, [], {}, Random(1)) == {}


def test_progress_is_seen_within_authors_and_only_on_answers_that_are_new() -> None:
    def answers(name: str, fresh: bool = True) -> list[PeerAnswer]:
        return [
            PeerAnswer(id=str(n), peer=name, key=name, question="?", completion="#1", fresh=fresh)
            for n in range(8)
        ]

    rng, now = Random(1), None
    for number in range(12):  # Ann writes briefly, Ben at length; which of them is taught alternates
        name, usual = ("Ann", 10.0) if number % 2 else ("Ben", 90.0)
        nats = [usual + rng.gauss(0.0, 2.0) for _ in range(8)]
        now = after_teaching(now, 0, answers(name), nats, [50] * 8)
    assert now is not None and abs(now.progress[0]) < 2 * now.progress[1]
    learned = now
    for _ in range(3):
        learned = after_teaching(
            learned, 0, answers("Ben"), [80.0 + rng.gauss(0.0, 2.0) for _ in range(8)], [50] * 8
        )
    assert learned.progress[0] > 2 * learned.progress[1]
    known = after_teaching(learned, 0, answers("Ben", fresh=False), [0.0] * 8, [50] * 8)
    assert known.fast.mean == learned.fast.mean and known.fast.n < learned.fast.n
    assert 0 < known.progress[0] < learned.progress[0], "nothing new: what it could still gain is less"
    assert after_teaching(known, 1, answers("Ben"), [9.0] * 8, [50] * 8).slow.n == 8, (
        "another level begins anew"
    )
    assert msgspec.json.decode(msgspec.json.encode(known), type=FamilyTaught) == known
