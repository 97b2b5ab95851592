"""Decides what a lesson teaches of peers' right answers: true work, in this node's own writing, or the result.

Keys cost nothing, so nobody has a vote: no author's answers decide what is taught of another's, whether there
are two or a hundred of them, old or new, and nobody can keep a family from being taught by disagreeing. An
answer is taught as

- the node's own worked answer to this question (`app.sapo.families.Family.worked`), if it says exactly that;
- its true steps and its result (`app.learning.true_work`);
- its result alone, if that is what the node would write too, or has only words, numbers and signs of the
  question and of what the node would write. Results alone make a model stop showing its work, so they are left
  out where there is enough true work.

A group whose worked answer is unknown, because it was saved by an older version, teaches true work or nothing.
Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from app.learning.true_work import true_work
from app.sapo.asking import SHORT_MARK, extract_answer, shows_work
from app.sapo.groups import GroupRecord, is_single_right_answer

ENOUGH_WORK = 8
"""With this many true works of a family and level, results alone are left out."""
LONGER = 1.25
"""A result may be this many times as long as the node's own."""


class JudgedAnswers(msgspec.Struct, frozen=True):
    """What may be taught of a group's right answers: true works and, of those without, results alone; each
    shortest first."""

    works: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


def teachable(groups: Iterable[GroupRecord], judged: dict[str, JudgedAnswers]) -> dict[str, tuple[str, ...]]:
    """Returns, by group id, what a lesson may teach, shortest first. All `groups` are of one family and level.
    `judged`: those judged before, by id; the others are added, at some milliseconds each."""
    some = {}
    for group in groups:
        if group.id not in judged:
            judged[group.id] = judge(group)
        some[group.id] = judged[group.id]
    enough = sum(len(one.works) for one in some.values()) >= ENOUGH_WORK
    return {id: texts for id, one in some.items() if (texts := one.works or (() if enough else one.results))}


def judge(group: GroupRecord) -> JudgedAnswers:
    """Returns what may be taught of a group; nothing of a person's answer, which is trained on otherwise."""
    works, results = set(), set()
    for text in () if is_single_right_answer(group.rewards_G) else right_answers(group):
        own = " ".join(text.split()) == " ".join(group.worked.split()) and shows_work(text)
        if written := group.worked if own else true_work(group.question, text):
            works.add(written)
        elif result := _result(text, group):
            results.add(result)
    return JudgedAnswers(works=tuple(sorted(works, key=_length)), results=tuple(sorted(results, key=_length)))


def _length(text: str) -> tuple[int, str]:
    return len(text), text


def right_answers(scored: GroupRecord) -> list[str]:
    """Returns a group's distinct right answers that were finished, shortest first."""
    found = {
        completion
        for completion, reward, finished in zip(
            scored.completions_G, scored.rewards_G, scored.finished_G, strict=True
        )
        if reward and finished
    }
    return sorted(found, key=_length)


def numbers(text: str) -> set[str]:
    """Returns the runs of digits in a text."""
    return set(_NUMBER.findall(text))


def _result(text: str, group: GroupRecord) -> str | None:
    """A right answer's result behind the mark, if its author had little choice in how to write it."""
    result, own = extract_answer(text), extract_answer(group.worked)
    if result is None or own is None:
        return None
    if result != own:
        allowed = f"{group.question} {own}"
        parts = set(_PART.findall(allowed))
        if len(result) > LONGER * len(own) or not set(_PART.findall(result)) <= parts:
            return None
    return f"{SHORT_MARK}{result}"


_NUMBER = re.compile(r"\d+")
_PART = re.compile(r"\d+|[^\W\d_]+|\s+|.", re.DOTALL)
