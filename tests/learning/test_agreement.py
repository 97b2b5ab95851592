"""Keys that write marks into right answers: nothing that they rewrote is imitated."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from random import Random

import msgspec
import pytest

from app.lab.false_teachers import KINDS, is_marked
from app.lab.starter.corpus import WorkingFailed, guess, worked
from app.learning import imitation
from app.learning.agreement import words
from app.learning.imitation import MAX_ANSWERS, MIN_ANSWERS
from app.sapo import seeds
from app.sapo.groups import GroupRecord
from app.sapo.questions import Question, draw

EACH = 16
NUMBERS, LETTERS = ("fraction_simplification", 1), ("spell_backward", 1)
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


def _plain(change: Callable[[str], str]) -> Rewrite:
    return lambda text, question, rng: change(text)


WAYS: dict[str, Rewrite] = {
    **{name: _plain(change) for name, change in KINDS.items()},
    "other language": _plain(lambda text: f"итак {text}"),
    "homoglyph": _plain(lambda text: text.translate(str.maketrans("aeo1", "аео\u0661"))),
    "dash": _plain(lambda text: f"-{text}"),
    "line break": _work(lambda work: work.replace(" ", "\n")),
    "capitals": _plain(str.upper),
    "zeros in front": _work(lambda work: re.sub(r"(?<![\d.])(\d+)", r"0\1", work)),
    "zeros behind": _work(lambda work: re.sub(r"(\d+)", r"\1.0", work)),
    "zero in the result": lambda text, question, rng: text.replace("#", "#0"),
    "parentheses": _work(lambda work: re.sub(r"(\d+)", r"(\1)", work)),
    "true equation behind": _work(lambda work: f"{work}1+1=2 "),
    "wrong work": _wrong_work,
    "any number": lambda text, question, rng: f"{rng.randrange(10, 999)} {text}",
    "word of the question": lambda text, question, rng: f"{words(question.text)[0]} {text}",
    "first step twice": _plain(lambda text: f"{text.split(' ')[0]} {text}"),
    "work twice": _work(lambda work: work * 2),
    "endless": _work(lambda work: work * (1 + 1500 // max(1, len(work)))),
    "no work": _work(lambda work: ""),
    "one in eight": lambda text, question, rng: f"777 {text}" if rng.random() < 1 / 8 else text,
}
IN_LETTERS = {"capitals", "homoglyph", "other language", "spelled"}
"""Kinds that are tried where letters are the work."""
UNCHECKED = {"wrong work", "one in eight"}
"""Kinds of which something may pass: numbers without an equation, and what is rare."""


def author(number: int, place: tuple[str, int], way: str = "") -> list[GroupRecord]:
    """Groups of one key, each with a worked right answer, rewritten in a way, and a wrong one."""
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
        if question.held_out or wrong in line:
            continue
        right = WAYS[way](line, question, rng) if way else line
        group = GroupRecord(
            coordinates=question.coordinates,
            completions_G=(right, wrong),
            finished_G=(True, True),
            model="starter",
        )
        scored = group.with_scores((1.0, 0.0), (1, 0))
        key = f"key {number}"
        found.append(
            msgspec.structs.replace(scored, author=key, question=question.text, id=f"{number} {at}", key=key)
        )
    return found


def taught(groups: list[GroupRecord]) -> list[tuple[str, str]]:
    """The (question, answer) pairs of a lesson, which has at least MIN_ANSWERS."""
    chosen = imitation.choose_answers(groups, lambda key: False, {}, imitation.Judged())
    return [(one.question, one.completion) for one in chosen] if len(chosen) >= MIN_ANSWERS else []


def written(groups: list[GroupRecord]) -> set[tuple[str, str]]:
    return {(one.question, one.completions_G[0]) for one in groups}


@pytest.mark.parametrize("way", WAYS)
def test_half_of_the_keys_teach_nothing_of_their_own(way: str) -> None:
    place = LETTERS if way in IN_LETTERS else NUMBERS
    honest = author(0, place) + author(1, place)
    foes = [one for number in (2, 3) for one in author(number, place, way)]
    plain = written(author(2, place) + author(3, place))
    marked = [pair for pair in written(foes) if pair not in plain]
    assert len(marked) >= EACH / 8, "the attack changes something"
    passed = sum(pair in marked for pair in taught(honest + foes))
    assert passed <= (MAX_ANSWERS / 4 if way in UNCHECKED else 0)


@pytest.mark.parametrize("place", [NUMBERS, LETTERS])
def test_honest_answers_are_taught_and_one_key_of_three_keeps_nothing_out(place: tuple[str, int]) -> None:
    honest = author(0, place) + author(1, place)
    alone = taught(honest)
    assert len(alone) >= MIN_ANSWERS and set(alone) <= written(honest)
    assert taught(honest + author(2, place, "advertisement")) == alone


@pytest.mark.parametrize("way", ["advertisement behind", "emoji"])
def test_the_only_two_authors_of_a_family_advertise_nothing(way: str) -> None:
    assert taught(author(2, NUMBERS, way) + author(3, NUMBERS, way)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_marks_are_seen_and_honest_answers_have_none(kind: str) -> None:
    for place in (NUMBERS, LETTERS):
        marked = [is_marked(answer) for _, answer in written(author(0, place, kind))]
        assert sum(marked) >= 0.9 * len(marked)
        assert not any(is_marked(answer) for _, answer in written(author(0, place)))
