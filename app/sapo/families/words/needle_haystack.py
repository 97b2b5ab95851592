"""One statement to be found among many: who likes or hates a thing."""

from __future__ import annotations

import re

from app.sapo.families import scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind

_ASKED = re.compile(r"Who (.+)\? Reply only with a name\.")


_WITHOUT = {"yearns": "for", "pines": "for", "exults": "in", "dotes": "on"}
"""The library's verbs that lack their preposition in half of the statements."""
_LACKING = re.compile(r"\b(yearns|pines|exults|dotes) (?!for |in |on )")


def _wording(entry: Entry) -> str:
    text = _LACKING.sub(lambda verb: f"{verb[1]} {_WITHOUT[verb[1]]} ", str(entry["question"]))
    return re.sub(
        r"\b(burger|sandwich)(?=[.?])", lambda food: f"{food[1]}{'es' if food[1][-1] == 'h' else 's'}", text
    ).replace(". \n", ".\n")


def _fitting(entry: Entry) -> list[str]:
    """The statements that answer the question, each without its full stop."""
    statements, _, question = _wording(entry).rpartition("\n")
    asked = _ASKED.fullmatch(question)
    if asked is None:
        return []
    return [one for one in statements.strip().rstrip(".").split(". ") if one.endswith(f" {asked[1]}")]


def _sound(entry: Entry) -> bool:
    """Whether exactly one statement answers the question, and by its first word."""
    fitting = _fitting(entry)
    return len(fitting) == 1 and fitting[0].split(" ")[0] == entry["answer"]


def _work(entry: Entry) -> str:
    return f"{_fitting(entry)[0]}."


def _content(entry: Entry) -> Content:
    """The statement that is asked for. Its name and its thing are all there is to know; the others are hay."""
    return _fitting(entry)[0]


FAMILY = Family(
    name="needle_haystack",
    title="Needle in a haystack",
    kind=FamilyKind.WORDS,
    # With fewer than five statements the first name of all would be right too often.
    levels=(
        dict(min_num_statements=5, max_num_statements=6),
        dict(min_num_statements=8, max_num_statements=14),
        dict(min_num_statements=20, max_num_statements=30),
        dict(min_num_statements=40, max_num_statements=60),
    ),
    content=_content,
    wording=_wording,
    score=scores.word,
    sound=_sound,
    work=_work,
)
