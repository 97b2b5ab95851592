"""Translates sentences of the node, trainer, downloads and engines.

They are produced in English, which is what logs, terminals and the history store. `./shoal translations`
collects every such sentence from the source with places for its values, like "Round {n} is safe."; here a
sentence is recognised by its words, and its values are put into the translation. Text of peers and relays can
only be a value: it cannot do more than select one of the known sentences."""

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
"""Maximum characters of a text that is translated; longer ones stay unchanged."""
_PLACE = re.compile(r"\{(\w+)\}")
_END = re.compile(r"(?<=[.!?]) (?=\S)|(?<=:) (?=[a-z])")
UNITS = re.compile(r"(?<=:) (?=[a-z])")
"""Splits a message into what happened and what to do, which are recognised separately, because many messages
share the second half."""
_DEPTH = 3


class Sentence(msgspec.Struct, frozen=True):
    """A recognised sentence with its values."""

    template: str
    values: dict[str, str]


def spoken(text: str, depth: int = _DEPTH, most: int | None = None) -> str:
    """Returns the text with every known sentence translated and all others unchanged. `most` limits the number
    of sentences."""
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
    """Returns the known sentences, those with the most fixed words first."""
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
    """Translates a value: the name of a family or setting, a known part of a sentence, or a sentence."""
    names = value.split(", ")
    if all(name in _names() for name in names):
        return ", ".join(tr(_names()[name]) for name in names)
    if (phrase := _match(value, "phrases")) is not None:
        return _translated(phrase, 0)
    return spoken(value, depth - 1) if depth and " " in value else value


@cache
def _names() -> dict[str, str]:
    """Returns the translated names of families, as they appear within a sentence, and of settings."""
    families = {family.title.lower(): family.title for family in FAMILIES.values()}
    return families | {setting.label: setting.label for setting in SETTINGS}
