"""How many sisters a brother has, and how many women a friend knows: the one who is told of counts too."""

from __future__ import annotations

import re

from app.sapo.families import contents, scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind

_ASKED = (
    re.compile(
        r"(\w+) has [0-9]+ brothers and she also has ([0-9]+) (sisters)\. "
        r"How many sisters does \1's brother have\?"
    ),
    re.compile(
        r"(\w+) has [0-9]+ male friends and she also has ([0-9]+) (female friends)\. "
        r"They all are friends with each other and have no other friends aside\. "
        r"How many female friends does \w+, a male friend of \1, have\?"
    ),
)


def _told(entry: Entry) -> tuple[str, int, str] | None:
    """Who, how many of what she has. None where the library asks about somebody else's brother, of whom nothing
    is told."""
    found = next(filter(None, (form.fullmatch(entry["question"]) for form in _ASKED)), None)
    return (found[1], int(found[2]), found[3]) if found else None


def _sound(entry: Entry) -> bool:
    told = _told(entry)
    return told is not None and told[1] + 1 == int(entry["answer"])


def _work(entry: Entry) -> str:
    told = _told(entry)
    assert told is not None
    name, number, kind = told
    return f"{number} {kind} and {name}: {number} + 1 = {number + 1}."


def _level(most: int, friends: float) -> dict[str, object]:
    """Without the library's colleagues: whom Matilda of two circles knows can be read in several ways."""
    return dict(max_entities=most, task_type_weights=[1 - friends, friends, 0.0])


def _content(entry: Entry) -> Content:
    """The kind and the numbers, whatever the names."""
    return entry["metadata"]["task_type"], contents.calculation(entry["question"], entry["answer"])


def _wording(entry: Entry) -> str:
    text = re.sub(r"\b1 (brother|sister|male friend|female friend)s\b", r"1 \1", str(entry["question"]))
    return text.replace("have no other friends aside", "have no other friends")


FAMILY = Family(
    name="aiw",
    title="Sisters and friends",
    kind=FamilyKind.LOGIC,
    levels=(_level(15, 0.0), _level(20, 0.5), _level(30, 0.5), _level(90, 0.5)),
    content=_content,
    wording=_wording,
    score=scores.integer,
    sound=_sound,
    work=_work,
)
