"""The sentences of node, trainer, downloads and engines, in the person's language.

They speak English and know no translation: that is what logs, terminals and the history keep. `./shoal
translations` collects each of their sentences from the source with the places of its values, as "Round {n} is
safe."; here a sentence is recognised by its words, and its values are put into the translation. Text of peers
and relays only ever fills a place: it chooses no more than which known sentence is shown."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from app.node.record.reasons import Reason
from app.node.rules.preferences import SETTINGS
from app.sapo.families import FAMILIES
from app.ui.language.texts import tr

FILE = Path(__file__).parents[3] / "resources" / "translations" / "learner.json"
MAX = 2000
"""Maximum characters of a text that is looked at; a longer one stays as it is."""
_PLACE = re.compile(r"\{(\w+)\}")
_END = re.compile(r"(?<=[.!?]) (?=\S)|(?<=:) (?=[a-z])")
UNITS = re.compile(r"(?<=:) (?=[a-z])")
"""A message's two halves, what happened and what to do, are recognised separately, because many messages share
the second half."""
_DEPTH = 3


class Sentence(msgspec.Struct, frozen=True):
    """A sentence with its values."""

    template: str
    values: dict[str, str]


def spoken(text: str, depth: int = _DEPTH, most: int | None = None) -> str:
    """The text with every known sentence translated; others stay as they are. `most` limits the number of
    sentences."""
    parts = recognised(text, "sentences")[:most]
    return " ".join(part if isinstance(part, str) else _translated(part, depth) for part in parts)


@lru_cache(1000)
def recognised(text: str, kind: str) -> tuple[Sentence | str, ...]:
    """Splits the text into sentences, the shortest known one first, because a value may itself contain the end
    of a sentence."""
    if len(text) > MAX:
        return (text,)
    parts, found = _END.split(text), list[Sentence | str]()
    while parts:
        for n in range(1, len(parts) + 1):
            if (said := _match(" ".join(parts[:n]), kind)) is not None:
                found.append(said)
                del parts[:n]
                break
        else:
            found.append(parts.pop(0))
    return tuple(found)


def _match(text: str, kind: str) -> Sentence | None:
    for template, pattern in _known(kind):
        if (match := pattern.fullmatch(text)) is not None:
            return Sentence(template, match.groupdict())
    return None


@cache
def _known(kind: str) -> list[tuple[str, re.Pattern[str]]]:
    """The known sentences, those with the most words of their own first."""
    templates: list[str] = msgspec.json.decode(FILE.read_bytes(), type=dict[str, list[str]])[kind]
    if kind == "sentences":
        templates += [reason.sentence for reason in Reason]
    templates.sort(key=lambda template: -len(_PLACE.sub("", template)))
    return [(template, _pattern(template)) for template in templates]


def _pattern(template: str) -> re.Pattern[str]:
    """
    >>> _pattern("Round {n} is safe.").fullmatch("Round 12 is safe.").groupdict()
    {'n': '12'}
    """
    literal = _PLACE.split(template)
    parts = (f"(?P<{part}>.+?)" if at % 2 else re.escape(part) for at, part in enumerate(literal))
    return re.compile("".join(parts), re.DOTALL)


def _translated(said: Sentence, depth: int) -> str:
    said_here = tr(said.template)
    return said_here.format(**{name: _word(value, depth) for name, value in said.values.items()})


def _word(value: str, depth: int) -> str:
    """Names of families and settings, what else is known as a part of sentences, and sentences in sentences."""
    names = value.split(", ")
    if all(name in _names() for name in names):
        return ", ".join(tr(_names()[name]) for name in names)
    if (phrase := _match(value, "phrases")) is not None:
        return _translated(phrase, 0)
    return spoken(value, depth - 1) if depth and " " in value else value


@cache
def _names() -> dict[str, str]:
    """The names of families, as they stand in a line of text, and of settings."""
    families = {family.title.lower(): family.title for family in FAMILIES.values()}
    return families | {setting.label: setting.label for setting in SETTINGS}
