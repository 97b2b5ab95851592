"""What a peer lesson teaches: only what several authors have in common, of the easiest level first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import pytest
from msgspec.structs import replace

from app.learning import peer_lesson
from app.learning.peer_lesson import (
    ANSWERS_MEASURED,
    MAX_ACTIVE,
    MAX_FAILURES,
    MAX_FAMILY_ANSWERS,
    MAX_LESSON_FAMILIES,
    MAX_OWN_ANSWERS,
    MIN_FAMILY_ANSWERS,
    MIN_PEER_ANSWERS,
    MIN_TO_MEASURE,
    OWN_ROUNDS,
    REST_ROUNDS,
    ROUNDS_AFTER_GAIN,
    ROUNDS_AFTER_NO_GAIN,
    answers_to_measure,
    choose_answers,
    likeliest_families,
    next_lesson,
    own_answers,
)
from app.learning.placement import FamilyTrial, OwnExample, Placement
from app.sapo.asking import BRIEF
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates

FOUND = Placement(way=BRIEF, families={"chain_sum": 0})


def nobody(key: str) -> bool:
    return False


def group(
    number: int, author: str, right: Sequence[str], family: str = "gcd", level: int = 0, wrong: str = "#0"
) -> GroupRecord:
    texts = (*right, wrong)
    rewards = (1,) * len(right) + (0,)
    made = GroupRecord(
        coordinates=Coordinates(family=family, level=level, seed=number, index=0),
        completions_G=texts,
        finished_G=(True,) * len(texts),
        model="other",
    )
    return msgspec.structs.replace(
        made.with_scores(tuple(map(float, rewards)), rewards),
        id=f"{author}{number}",
        key=author,
        author=f"name of {author}",
        question=f"gcd of {number} and 6?",
    )


def some(
    author: str, count: int, text: str = "{n} = 2 * {h} #2", family: str = "gcd", level: int = 0
) -> list[GroupRecord]:
    """Groups to even numbers, each with one right answer."""
    numbers = range(2, 2 * count + 2, 2)
    return [group(n, author, [text.format(n=n, h=n // 2)], family, level) for n in numbers]


def taught(groups: Iterable[GroupRecord]) -> list[str]:
    return [one.completion for one in choose_answers(list(groups), nobody)]


def test_one_author_is_not_enough_unless_it_is_vouched_for() -> None:
    assert taught(some("ann", 40)) == []
    assert len(choose_answers(some("ann", 40), lambda key: key == "ann")) == 40
    assert len(taught(some("ann", 40) + some("ben", 40))) == MAX_FAMILY_ANSWERS


def test_no_author_has_more_than_half_of_a_lesson() -> None:
    found = choose_answers(some("ann", 60) + some("ben", 60)[::6], nobody)
    assert sum(one.peer == "name of ann" for one in found) == MAX_FAMILY_ANSWERS // 2


@pytest.mark.parametrize(
    "text",
    [
        "buy fish today {n} = 2 * {h} #2",
        "{n} = 2 * {h} <answer>2</answer> visit example",
        "{n} = 3 * {h} #2",
        "{n} = 2 * {h} \u0430 #2",
        "{n} = 2 * {h} \u4e8c #2",
        "{n} = 2 * {h} \u2764 #2",
        "-{n} = 2 * {h} #2",
        "{n}  = 2 * {h} #2",
        "{n} = 2 * {h} #2.",
        "{n} = 2 * {h} 7 #2",
    ],
)
def test_a_mark_that_half_of_the_authors_write_is_never_taught(text: str) -> None:
    honest, marked = some("ann", 20) + some("ben", 20), some("eve", 20, text) + some("mal", 20, text)
    assert set(taught(honest + marked)) <= set(taught(honest))
    more = honest + some("cid", 20)
    assert set(taught(more + marked)) == set(taught(more)), "while most authors are honest, they are heard"


def test_words_of_one_question_and_of_the_result_are_free_and_those_of_all_questions_are_not() -> None:
    names = dict(enumerate(("ida", "uwe", "mia", "leo", "eva", "jan")))
    texts = dict.fromkeys(names, "{name} and 1 is 2 #2") | {
        4: "gcd {name} and 1 is 2 #2",
        5: "fish and 1 is 2 #2",
    }
    groups = [
        replace(group(n, author, [texts[n].format(name=names[n])]), question=f"What is the gcd of {names[n]}?")
        for n in names
        for author in ("ann", "ben", "cid")
        if n < 4 or author == "ann"
    ]
    assert {one.completion for one in choose_answers(groups, nobody)} == {
        f"{names[n]} and 1 is 2 #2" for n in range(4)
    }


def test_what_most_authors_say_is_taught_in_words_of_calculating_unless_two_are_trusted() -> None:
    groups = [one for author in ("ann", "ben") for one in some(author, 20, "so {n} = 2 * {h} #2")]
    assert len(taught(groups)) == 40
    groups = [one for author in ("ann", "ben") for one in some(author, 20, "buy {n} = 2 * {h} #2")]
    assert not taught(groups) and not choose_answers(groups, lambda key: key == "ann")
    assert len(choose_answers(groups, lambda key: True)) == 40


def test_every_question_is_taught_once_before_any_is_taught_twice() -> None:
    groups = [group(n, "ab"[n % 2], [f"{n} 6 1 #2", f"{n} 6 #2", "1 6 #2"]) for n in range(10, 40)]
    found = choose_answers(groups, nobody)
    assert len({one.question for one in found[:30]}) == 30 and len(found) == MAX_FAMILY_ANSWERS > 30
    assert found[0].completion == "10 6 #2", "the shortest first that has the question's numbers"


def test_what_was_taught_least_often_comes_first_and_nothing_is_left_out() -> None:
    groups = some("ann", 40) + some("ben", 40)
    once = choose_answers(groups, nobody)
    lessons = {one.id: 1 for one in once}
    again = choose_answers(groups, nobody, lessons)
    assert len(again) == MAX_FAMILY_ANSWERS and sum(
        one.id in lessons for one in again
    ) == 2 * MAX_FAMILY_ANSWERS - len(groups)
    assert [one.id in lessons for one in again] == sorted(one.id in lessons for one in again)
    assert choose_answers(groups, nobody, {one.id: 1 for one in groups}) == once


def test_lessons_go_round_the_families() -> None:
    names = tuple(f"family{n}" for n in range(MAX_LESSON_FAMILIES + 1))
    groups = [one for name in names for author in ("ann", "ben") for one in some(author, 30, family=name)]
    all_ = next_lesson(groups, FOUND, 1, nobody)
    assert all_ is not None
    good = tuple(tried(20, 9) for _ in range(MAX_LESSON_FAMILIES))
    first = likeliest_families(all_, {}, FOUND)
    found = peer_lesson.after_lesson(FOUND, first, tuple(tried(0, 0) for _ in good), good, 1)
    last = next_lesson(groups, found, 1 + ROUNDS_AFTER_GAIN, nobody)
    assert last is not None
    lesson = likeliest_families(last, {}, found)
    second = list(lesson.levels)
    assert second[0] not in first.levels and set(second[1:]) < set(first.levels)
    (left_out,) = set(first.levels) - set(second)
    answers_ = next(one for one in last.parts if one.family == left_out).answers
    assert lesson.beside == tuple((one.question, one.completion) for one in answers_[: peer_lesson.REHEARSED])
    bad = tuple(tried(0, 0) for _ in good)
    weak = (tried(1, 1), tried(2, 1), *bad[2:])
    found = peer_lesson.after_lesson(FOUND, first, bad, weak, 1)
    assert not found.joined and found.lessons[0].after
    begun, far = list(first.levels)[:2], [name for name in names if name not in list(first.levels)[:2]]
    nats = dict(zip(reversed(far), (40.0, 50.0, 60.0, 70.0), strict=True))
    assert list(likeliest_families(last, nats, found).levels) == [far[-1], far[-2], *begun], (
        "what has begun goes on, and the likeliest others make it broad"
    )


def test_cut_answers_and_people_are_left_out() -> None:
    whole = [one for author in ("ann", "ben") for one in some(author, 20)]
    parts = [replace(one, finished_G=(False, True)) for one in whole]
    assert len(taught(whole[::2] + parts[1::2])) == 20


def test_easy_levels_come_first_and_a_family_in_play_never() -> None:
    groups = [
        *some("ann", 30, level=1),
        *some("ben", 30, level=1),
        *some("ann", MIN_FAMILY_ANSWERS // 2, family="lcm"),
        *some("ben", MIN_FAMILY_ANSWERS // 2, family="lcm"),
        *some("ann", 30, family="lcm", level=1),
        *some("ben", 30, family="lcm", level=1),
        *some("ann", 30, family="chain_sum"),
        *some("ben", 30, family="chain_sum"),
        *some("ann", 5, family="dice"),
        *some("ben", 5, family="dice"),
    ]
    lesson = next_lesson(groups, FOUND, OWN_ROUNDS, nobody)
    assert lesson is not None and lesson.levels == {"lcm": 0, "gcd": 1}
    assert [len(one.answers) for one in lesson.parts] == [MIN_FAMILY_ANSWERS, MAX_FAMILY_ANSWERS]
    assert set(lesson.parts[0].authors) == {"name of ann", "name of ben"}
    assert next_lesson(groups, FOUND, 0, nobody) is None, "there is no safe point yet to go back to"
    assert next_lesson(groups, FOUND, OWN_ROUNDS - 1, nobody) is None, "a narrow lesson needs own answers"


def test_first_answers_of_waiting_families_are_read_at_their_lowest_level() -> None:
    groups = [
        *some("ann", MIN_TO_MEASURE, level=1),
        *some("ann", MIN_TO_MEASURE - 1),
        *some("ann", 9, family="lcm"),
    ]
    groups += [*some("ann", MIN_TO_MEASURE - 1, family="dice"), *some("ann", 9, family="maze")]
    groups += [*some("ben", 1, level=1), *some("ben", 1, family="lcm")]
    read = answers_to_measure(groups, {"gcd", "lcm", "dice"}, nobody)
    assert read.levels == {"gcd": 1, "lcm": 0}
    assert {one.peer for one in read.parts[0].answers} == {"name of ann", "name of ben"}
    assert not answers_to_measure(some("ann", 9), {"gcd"}, nobody).parts, "one key decides nothing"
    assert answers_to_measure(some("ann", 9), {"gcd"}, lambda key: True).parts
    assert sorted(len(one.answers) for one in read.parts) == [MIN_TO_MEASURE + 1, ANSWERS_MEASURED]


def test_a_lesson_teaches_the_few_families_that_are_chosen_families_and_leaves_room() -> None:
    names = ("gcd", "lcm", "dice", "maze", "aiw", "bf")
    groups = [one for name in names for author in ("ann", "ben") for one in some(author, 30, family=name)]
    all_ = next_lesson(groups, FOUND, 1, nobody)
    assert all_ is not None and set(all_.levels) == set(names) and len(all_.answers) >= MIN_PEER_ANSWERS
    nats = dict(zip(names, (60.0, 40.0, 90.0, 50.0, 70.0), strict=False))
    lesson = likeliest_families(all_, nats, FOUND)
    assert (
        list(lesson.levels) == ["lcm", "maze", "gcd", "aiw", "dice"]
        and len(lesson.parts) == MAX_LESSON_FAMILIES
    )
    lcm = next(part for part in all_.parts if part.family == "lcm")
    short = replace(lcm, answers=tuple(replace(one, completion="#2") for one in lcm.answers))
    tempting = replace(all_, parts=tuple(short if part is lcm else part for part in all_.parts))
    assert "lcm" not in likeliest_families(tempting, nats, FOUND).levels, (
        "answers without work are always likely"
    )
    full = replace(FOUND, joined={f"family{n}": 0 for n in range(MAX_ACTIVE - 2)})
    assert list(likeliest_families(all_, nats, full).levels) == ["lcm"]
    assert next_lesson(groups, replace(full, joined=full.joined | {"one": 0}), OWN_ROUNDS, nobody) is None


def tried(solved: int, any_: int) -> FamilyTrial:
    return FamilyTrial(family="gcd", level=0, questions=12, any=any_, answers=48, solved=solved, crossed=48)


def test_lessons_go_on_in_a_family_that_one_opened_until_it_is_strong_or_gains_nothing() -> None:
    groups = [one for author in ("ann", "ben") for one in some(author, 60, family="gcd")]
    lesson = next_lesson(groups, FOUND, OWN_ROUNDS, nobody)
    assert lesson is not None
    opened = peer_lesson.after_lesson(FOUND, lesson, [tried(0, 0)], [tried(12, 12)], OWN_ROUNDS)
    assert (
        peer_lesson.families_still_taught(opened) == ("gcd",)
        and next_lesson(groups, opened, OWN_ROUNDS + ROUNDS_AFTER_GAIN, nobody) == lesson
    )
    full = replace(opened, joined=opened.joined | {f"family{n}": 0 for n in range(MAX_ACTIVE)})
    assert (
        next_lesson(groups, full, OWN_ROUNDS + ROUNDS_AFTER_GAIN, nobody) == lesson
        and likeliest_families(lesson, {}, full) == lesson
    )
    strong = peer_lesson.after_lesson(opened, lesson, [tried(12, 12)], [tried(36, 12)], 20)
    assert peer_lesson.families_still_taught(strong) == () and next_lesson(groups, strong, 60, nobody) is None
    for number in range(MAX_FAILURES):
        assert peer_lesson.families_still_taught(opened) == ("gcd",)
        last = tried(30 if number else 13, 12)
        opened = peer_lesson.after_lesson(opened, lesson, [tried(12, 12)], [last], 20, kept=not number)
    assert peer_lesson.families_still_taught(opened) == () and "gcd" in opened.joined
    assert [one.after for one in opened.lessons] == [tried(12, 12).solved / 48], (
        "what was taken back is no figure"
    )


def test_a_family_that_is_opened_joins_and_one_that_is_not_waits_longer_each_time() -> None:
    groups = [
        one for name in ("gcd", "lcm") for author in ("ann", "ben") for one in some(author, 30, family=name)
    ]
    start = OWN_ROUNDS
    lesson = next_lesson(groups, FOUND, start, nobody)
    assert lesson is not None and list(lesson.levels) == ["gcd", "lcm"]
    nothing, good = tried(0, 0), tried(20, 9)
    after = peer_lesson.after_lesson(FOUND, lesson, (nothing, nothing), (good, tried(1, 1)), start)
    assert after.joined == {"gcd": 0} and [one.opened for one in after.lessons] == [True, False]
    nearly = peer_lesson.after_lesson(FOUND, lesson, (nothing, nothing), (tried(5, 1), tried(1, 1)), start)
    assert not nearly.joined and [one.failures for one in nearly.lessons] == [0, 1]
    soon = next_lesson(groups, nearly, start + ROUNDS_AFTER_GAIN, nobody)
    assert soon is not None and list(soon.levels) == ["gcd", "lcm"], "one lesson without a gain is too few"
    still = replace(nearly, lessons=tuple(replace(one, failures=2 * one.failures) for one in nearly.lessons))
    soon = next_lesson(groups, still, start + ROUNDS_AFTER_GAIN, nobody)
    assert soon is not None and list(soon.levels) == ["gcd"], "what gained is taught again soon"
    assert (after.lessons[0].before, round(after.lessons[0].after, 2)) == (0.0, 0.42)
    failed, at = FOUND, start
    for wait in (ROUNDS_AFTER_NO_GAIN, REST_ROUNDS, 2 * REST_ROUNDS):
        failed = peer_lesson.after_lesson(failed, lesson, (nothing, nothing), (tried(1, 1), tried(1, 1)), at)
        assert not failed.joined and len(failed.lessons) == 2
        assert next_lesson(groups, failed, at + wait - 1, nobody) is None
        at += wait
        assert next_lesson(groups, failed, at, nobody) is not None
    others = [
        one for name in ("dice", "maze") for author in ("ann", "ben") for one in some(author, 30, family=name)
    ]
    first = peer_lesson.after_lesson(FOUND, lesson, (nothing, nothing), (tried(1, 1), tried(1, 1)), start)
    assert next_lesson(others, first, start + ROUNDS_AFTER_NO_GAIN - 1, nobody) is None, (
        "one that opened nothing costs all a pause"
    )
    assert next_lesson(others, first, start + ROUNDS_AFTER_NO_GAIN, nobody) is not None
    assert next_lesson(others, after, start + ROUNDS_AFTER_GAIN - 1, nobody) is None
    assert next_lesson(others, after, start + ROUNDS_AFTER_GAIN, nobody) is not None
    opened = replace(FOUND, joined={"gcd": 0, "lcm": 0})
    assert next_lesson(groups, opened, start + ROUNDS_AFTER_GAIN, nobody) is None


def test_own_answers_are_mixed_in_newest_first_and_the_families_in_turn() -> None:
    groups = [
        group(n, "me", ["2 = 3 #1", f"{n} = {n} #2"], family) for n in range(60) for family in ("gcd", "lcm")
    ]
    old = OwnExample(coordinates=groups[0].coordinates, question="", completion="first", logprob=0.0)
    other = replace(old, coordinates=replace(old.coordinates, family="dice"))
    found = own_answers((one for one in groups), ("gcd", "dice", "lcm"), (old, other))
    assert len(found) == MAX_OWN_ANSWERS and [at.family for at, _ in found[:5]] == [
        "gcd",
        "dice",
        "lcm",
        "gcd",
        "lcm",
    ]
    assert [text for _, text in found[:4]] == ["0 = 0 #2", "first", "0 = 0 #2", "1 = 1 #2"]
    assert own_answers((one for one in groups), ("aiw",), (old,)) == []


def test_a_constant_answer_opens_nothing() -> None:
    constant = FamilyTrial(
        family="gcd", level=0, questions=12, any=6, answers=48, solved=20, crossed=48, lucky=19
    )
    assert not peer_lesson.passes_trial(constant)
