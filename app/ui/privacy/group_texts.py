"""The words for a group of answers: its question, its gist, who gave it, and how many were right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from app.common.text import safe_line
from app.node.record.records import GroupRow
from app.sapo.asking import OPEN, SHORT, extract_answer
from app.sapo.families import FAMILIES
from app.sapo.questions import VERSION, Coordinates
from app.ui.language.texts import counted, tr

_LONGEST_ANSWER = 24
"""Characters of an answer that stand beside its working."""


def asked(texts: Mapping[Coordinates, str], group: GroupRow) -> GroupRow:
    """With its question, where that is known."""
    if group.question is not None or group.coordinates not in texts:
        return group
    return msgspec.structs.replace(group, question=texts[group.coordinates])


def parts(text: str) -> tuple[str, str]:
    """Working and answer of a completion. One without an answer, or with a long one, is working alone.

    >>> parts("7-3=4 4+9=13 #13"), parts("no idea"), parts("<answer>5</answer>")
    (('7-3=4 4+9=13', '13'), ('no idea', ''), ('', '5'))
    """
    answer = extract_answer(text)
    if answer is None or len(answer) > _LONGEST_ANSWER:
        return text, ""
    end = max(text.rfind(SHORT), text.rfind(OPEN))
    return text[: end if end >= 0 else len(text)].strip(), answer


def merged(group: GroupRow) -> list[tuple[str, bool, int]]:
    """(text, right, how often) of every different answer, in the order in which they came."""
    counts = Counter(zip(group.completions_G, map(bool, group.rewards_G), strict=True))
    return [(text, right, times) for (text, right), times in counts.items()]


def question(group: GroupRow) -> str:
    """Its text, nothing while that is not known, and why not where it cannot be made here."""
    if group.question is None and group.coordinates.version != VERSION:
        return tr("A puzzle of another version of Shoal: its text cannot be made again.")
    return group.question or ""


def gist(group: GroupRow) -> str:
    """The question on one line."""
    return safe_line(question(group))


def verdict(group: GroupRow) -> str:
    right, n = sum(group.rewards_G), len(group.rewards_G)
    return counted("{right} of {n} answer right", "{right} of {n} answers right", n, right=right)


def who(group: GroupRow) -> str:
    return tr("this computer") if group.peer is None else group.peer


def family_title(name: str) -> str:
    return tr(FAMILIES[name].title) if name in FAMILIES else name
