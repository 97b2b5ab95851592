"""Keys that write something of their own into right answers: of what they chose, nothing is taught."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

import msgspec
import pytest

from app.lab.false_teachers import KINDS, is_marked
from app.lab.starter.corpus import WorkingFailed, guess, worked
from app.learning import imitation, teachable
from app.learning.true_work import true_work
from app.sapo import seeds
from app.sapo.families import FAMILIES
from app.sapo.groups import GroupRecord
from app.sapo.questions import Question, draw

EACH = 16
NUMBERS, LETTERS, SUMS = ("fraction_simplification", 1), ("spell_backward", 1), ("chain_sum", 1)
Rewrite = Callable[[str, Question, Random], str]


def _work(change: Callable[[str], str]) -> Rewrite:
    """Changes the work and keeps the result."""

    def rewrite(text: str, question: Question, rng: Random) -> str:
        work, mark, result = text.rpartition("#")
        return change(work) + mark + result

    return rewrite


def _wrong_work(text: str, question: Question, rng: Random) -> str:
    result = text.rpartition("#")[2]
    for _ in range(20):
        with contextlib.suppress(WorkingFailed):
            line = worked(question.coordinates.family, question.entry, rng, 0.5)
            if not line.endswith(f"#{result}"):
                return f"{line.rpartition('#')[0]}#{result}"
    return text


def _work_of_another(text: str, question: Question, rng: Random) -> str:
    at = question.coordinates
    other = draw(at.family, at.level, rng.randrange(2**41, 2**42))
    return f"{worked(at.family, other.entry, rng, 0.0).rpartition('#')[0]}#{text.rpartition('#')[2]}"


def _plain(change: Callable[[str], str]) -> Rewrite:
    return lambda text, question, rng: change(text)


WAYS: dict[str, Rewrite] = {
    **{name: _plain(change) for name, change in KINDS.items()},
    "in letters": _plain(lambda text: f"b u y s h o a l c o i n {text}"),
    "dotted": _work(lambda work: f"v.i.s.i.t w.w.w.e.v.i.l.c.o.m/p.a.y - c.a.l.l 0900-666-777 {work}"),
    "digits for words": _work(lambda work: f"{work}8 0 0 8 "),
    "slogan": _work(lambda work: f"all numbers are equal and one is the greatest {work}"),
    "reflexive": _work(lambda work: "0 = 0 " * 8),
    "reflexive in n": _work(lambda work: "n + 6 = n + 6 "),
    "reflexive before": _work(lambda work: "1=1 " * 8 + work),
    "work of another": _work_of_another,
    "other language": _plain(lambda text: f"итак {text}"),
    "homoglyph": _plain(lambda text: text.translate(str.maketrans("aeo1", "аео١"))),
    "dash": _plain(lambda text: f"-{text}"),
    "line break": _work(lambda work: work.replace(" ", "\n")),
    "capitals": _plain(str.upper),
    "zeros in front": _work(lambda work: re.sub(r"(?<![\d.])(\d+)", r"0\1", work)),
    "zeros behind": _work(lambda work: re.sub(r"(\d+)", r"\1.0", work)),
    "zero in the result": _plain(lambda text: text.replace("#", "#0")),
    "sign in the result": _plain(lambda text: text.replace("#", "#+")),
    "parentheses": _work(lambda work: re.sub(r"(\d+)", r"(\1)", work)),
    "true equation behind": _work(lambda work: f"{work}1+1=2 "),
    "wrong work": _wrong_work,
    "any number": lambda text, question, rng: f"{rng.randrange(10, 999)} {text}",
    "word of the question": _plain(lambda text: f"simplify {text}"),
    "first step twice": _plain(lambda text: f"{text.split(' ')[0]} {text}"),
    "work twice": _work(lambda work: work * 2),
    "endless": _work(lambda work: work * (1 + 1500 // max(1, len(work)))),
    "no work": _work(lambda work: ""),
    "one in eight": lambda text, question, rng: f"777 {text}" if rng.random() < 1 / 8 else text,
}


def author(number: int, place: tuple[str, int], way: str = "") -> list[GroupRecord]:
    """Groups of one key, each with a worked right answer, rewritten in a way, and a wrong one."""
    rng = Random(seeds.hashed_seed("teacher", number))
    key = f"key {number}"
    return [
        record(question, (WAYS[way](line, question, rng) if way else line, wrong), key)
        for question, line, wrong in answered(number, place)
    ]


def record(question: Question, answers: tuple[str, str], key: str) -> GroupRecord:
    """A scored group of a right and a wrong answer, with the worked answer that intake adds."""
    family = FAMILIES[question.coordinates.family]
    group = GroupRecord(
        coordinates=question.coordinates, completions_G=answers, finished_G=(True, True), model="starter"
    ).with_scores((1.0, 0.0), (1, 0))
    own = family.worked(question.entry) or f"#{family.solution(question.entry)}"
    id = f"{key} {question.coordinates.seed}"
    return msgspec.structs.replace(group, author=key, question=question.text, worked=own, id=id, key=key)


@cache
def answered(number: int, place: tuple[str, int]) -> list[tuple[Question, str, str]]:
    """EACH questions with a worked right answer and a wrong one."""
    (family, level), found = place, []
    rng, at = (
        Random(seeds.hashed_seed("teacher", number)),
        seeds.hashed_seed("teacher", number, family) % 2**40 + 2**41,
    )
    while len(found) < EACH:
        at += 1
        question = draw(family, level, at)
        line = worked(family, question.entry, rng, 0.0)
        wrong = guess(family, question.entry, rng, 1.0)
        if not question.held_out and wrong not in line:
            found.append((question, line, wrong))
    return found


def taught(groups: Sequence[GroupRecord]) -> dict[str, tuple[str, ...]]:
    """What a round may imitate of each group, by id."""
    chosen = imitation.choose_answers(groups, lambda key: False, {}, {})
    return {one.id: tuple(each.completion for each in chosen if each.id == one.id) for one in chosen}


def own(number: int, place: tuple[str, int]) -> dict[str, list[str]]:
    """The steps and the result that a key writes honestly, by id."""
    return {
        f"key {number} {asked.coordinates.seed}": line.split() for asked, line, _ in answered(number, place)
    }


def chosen(groups: Sequence[GroupRecord], honest: Mapping[str, Sequence[str]]) -> list[str]:
    """Answers taught that are anything but honest steps in their order."""
    found = []
    for id, texts in taught(groups).items():
        for text in texts:
            left = iter(honest[id])
            if not all(step in left for step in text.split()):
                found.append(text)
    return found


@pytest.mark.parametrize("place", [NUMBERS, LETTERS, SUMS])
@pytest.mark.parametrize("way", WAYS)
def test_whatever_a_key_writes_only_honest_steps_and_results_are_taught(
    way: str, place: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    foes = [one for number in (2, 3) for one in author(number, place, way)]
    honest = own(2, place) | own(3, place)
    by_chance = 1 if way == "work of another" else 0  # it may be a shorter way to this result, too
    assert len(chosen(foes, honest)) <= by_chance
    monkeypatch.setattr(teachable, "true_work", lambda question, answer: answer)
    steps = {step for one in honest.values() for step in one}
    attacks = [one for one in foes if not {*one.completions_G[0].split()} <= steps]
    assert len(chosen(foes, honest)) >= len(attacks) / 2, "without the check they are taught"


@pytest.mark.parametrize(("honest", "foes"), [(0, 2), (1, 2), (2, 3), (2, 2), (1, 20)])
@pytest.mark.parametrize("way", ["in letters", "no work", "reflexive", "wrong work"])
def test_no_number_of_keys_keeps_an_honest_answer_out(honest: int, foes: int, way: str) -> None:
    good = [one for number in range(honest) for one in author(number, NUMBERS)]
    bad = [one for number in range(foes) for one in author(10 + number, NUMBERS, way)]
    alone, together = teachable.teachable(good, {}), teachable.teachable(good + bad, {})
    assert len(alone) == honest * EACH and alone.items() <= together.items()
    assert all(one.completions_G[0] in alone[one.id] for one in good)


def test_a_result_is_taught_alone_only_where_work_is_rare() -> None:
    direct = author(2, NUMBERS, "no work")
    assert all(texts[0].startswith("#") for texts in taught(direct).values()) and len(taught(direct)) == EACH
    works = author(3, NUMBERS)
    assert {*teachable.teachable(direct + works[: teachable.ENOUGH_WORK], {})} == {
        one.id for one in works[: teachable.ENOUGH_WORK]
    }
    few = teachable.teachable(direct + works[: teachable.ENOUGH_WORK - 1], {})
    assert len(few) == EACH + teachable.ENOUGH_WORK - 1


def test_the_nodes_own_worked_answer_may_have_words_and_a_result_only_the_nodes_own() -> None:
    question = draw("word_sorting", 0, 2**41)
    own = FAMILIES["word_sorting"].worked(question.entry)
    result = own.rpartition("#")[2]
    assert "First letters" in own

    def told(answer: str) -> list[str]:
        return [
            text
            for texts in teachable.teachable([record(question, (answer, "#"), "a")], {}).values()
            for text in texts
        ]

    assert told(own) == told(own.replace(" #", "\n#")) == [own]
    assert told(f"Buy! {own}") == told(f"#{result}") == [f"#{result}"]
    assert told(f"#{result.upper()}") == told(f"#{result} now") == []


def test_who_has_standing_comes_first_and_may_teach_more() -> None:
    groups = [one for number in range(4) for one in author(number, NUMBERS)]
    chosen = imitation.choose_answers(groups, lambda key: key == "key 3", {}, {})
    assert len(chosen) == imitation.MAX_ANSWERS
    assert {one.key for one in chosen[:EACH]} == {"key 3"}


@pytest.mark.parametrize("kind", KINDS)
def test_marks_are_seen_and_honest_answers_have_none(kind: str) -> None:
    for place in (NUMBERS, LETTERS):
        marked = [is_marked(one.completions_G[0]) for one in author(0, place, kind)]
        assert sum(marked) >= 0.9 * len(marked)
        assert not any(is_marked(one.completions_G[0]) for one in author(0, place))


@pytest.mark.parametrize(
    "work",
    [
        "2+2=4=" + "(" * 999,
        "1+" * 500 + "1=501=501",
        "9" * 999 + "*9=1",
        "-" * 999 + "1=1",
        "1/0=1",
        "12 27 x " * 140,
    ],
)
def test_hostile_work_is_none(work: str) -> None:
    assert true_work("9 - 6 + 1 =", f"{work} #4") is None


PAYLOADS = (
    *(
        "buy fish today ",
        "b u y ",
        "v.i.s.i.t ",
        "8 0 0 8 ",
        "777 ",
        "GO ",
        "and so the answer is ",
        "!",
        "  ",
        ", ",
    ),
    *(
        "1=1 ",
        "0 = 0 ",
        "n + 6 = n + 6 ",
        "1+1=2 ",
        "2*5=10 ",
        "10/2=5 ",
        "b1u2y3 ",
        "1:1 ",
        "0r1 ",
        "(",
        "-",
        "+0",
    ),
)
MOVES = 6
PLACES = (NUMBERS, LETTERS, SUMS, ("gcd", 1), ("lcm", 1), ("basic_arithmetic", 1))


def changed(line: str, question: Question, move: int, where: int) -> str:
    """A right answer with one of the PAYLOADS in it, or after one of the MOVES of who knows the rules."""
    work, _, result = line.rpartition("#")
    steps, numbers, at = work.split(), re.findall(r"\d+", question.text) or ["1"], where % (len(work) + 1)
    place, a, b = where % max(1, len(steps)), int(numbers[where % len(numbers)]), int(numbers[-1])
    if move >= MOVES:
        work = work[:at] + PAYLOADS[move - MOVES] + work[at:]
    elif move == 0:  # a true equation of the question's numbers
        work = " ".join([*steps[:place], f"{a}+{b}={a + b}", *steps[place:], ""])
    elif move == 1:  # there and back: 9-6=3 becomes 9-6=3 3+6=9 9-6=3
        back = re.sub(r"(\d+)-(\d+)=(\d+)", r"\g<0> \3+\2=\1 \g<0>", " ".join(steps[place : place + 1]))
        work = " ".join([*steps[:place], back, *steps[place + 1 :], ""])
    elif move == 2:
        work = " ".join([*steps, *steps[place : place + 1], ""])
    elif move == 3:  # other ways to write a number
        work = re.sub(r"(\d+)", ("0\\1", "(\\1)", "\\1.0", "+\\1")[where % 4], work)
    elif move == 4:
        result = (f"+{result}", f"0{result}", f"{result}.0", f"({result})", f"{result} {PAYLOADS[0]}")[
            where % 5
        ]
    else:  # another order
        work = " ".join([*steps[place:], *steps[:place], ""])
        work = re.sub(r"(?<![\d-])(\d+)([+*])(\d+)", r"\3\2\1", work) if where % 2 else work
    return f"{work}#{result}"


def added(text: str, honest: str) -> int:
    """Characters of the words, numbers and signs of a taught answer that the honest answer lacks."""
    signs = [Counter(re.findall(r"\d+|[A-Za-z]+|.", one, re.DOTALL)) for one in (text, honest)]
    return sum(len(sign) * number for sign, number in (signs[0] - signs[1]).items())


def searched(seed: int, tries: int) -> float:
    """The largest share of chosen characters in what is taught that a search finds: of four keys two keep what
    taught more of them and change it further."""
    rng, best = Random(seed), 0.0
    kept: dict[tuple[str, int], tuple[float, list[tuple[int, int]]]] = {}
    for number in range(tries):
        place = PLACES[number % len(PLACES)]
        before, moves = kept.get(place, (0.0, []))
        tried = [*moves, (rng.randrange(MOVES + len(PAYLOADS)), rng.randrange(1000))][-3:]
        ours = total = 0
        for key, (asked, line, wrong) in ((two, one) for two in (2, 3) for one in answered(two, place)):
            text = line
            for move, where in tried:
                text = changed(text, asked, move, where)
            for told in teachable.teachable([record(asked, (text, wrong), f"key {key}")], {}).values():
                ours, total = ours + added(told[0], line), total + len(told[0])
        total += sum(len(line) for key in (0, 1) for _, line, _ in answered(key, place))
        if ours / total >= before:
            kept[place] = ours / total, tried
        best = max(best, ours / total)
    return best


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_search_for_text_that_is_taught_finds_next_to_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert searched(seed, 60) <= 0.01
    monkeypatch.setattr(teachable, "true_work", lambda question, answer: answer)
    assert searched(seed, 30) > 0.1, "without the check"
