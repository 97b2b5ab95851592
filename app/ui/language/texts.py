"""Every text that people read goes through `tr` or `counted`; tests/ui/language/test_texts.py finds those that
do not.

English is the source. Other languages are Qt translation files (.qm) with the context "shoal".

Sentences of the node, trainer, downloads and engines are produced in English, which is what logs, terminals and
the history store. `./shoal translations` collects every such sentence from the source with places for its
values, like "Round {n} is safe."; here a sentence is recognised by its words, and its values are put into the
translation. Text of peers and relays can only be a value: it cannot do more than select a known sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

import msgspec
from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from app.common.text import number_and_unit, scaled
from app.node.record.reasons import Reason
from app.node.rules.preferences import SETTINGS
from app.sapo.families import FAMILIES

CONTEXT = "shoal"


def mark(text: str) -> str:
    """Marks a text that is translated later, where it is shown: for tables that are read before a language is
    loaded."""
    return text


def tr(text: str, /, **values: object) -> str:
    """Returns the text in the person's language, with `{name}` filled in from `values`."""
    said = QCoreApplication.translate(CONTEXT, text)
    return said.format(**values) if values else said


def family_titles(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(tr(FAMILIES[name].title) if name in FAMILIES else name for name in names)


def counted(one: str, many: str, n: int, /, **values: object) -> str:
    """Returns the text for a number: `one` if it is exactly one, else `many`; translations have their own
    plural forms. The number is filled in as `{n}`, with thin spaces between thousands."""
    said = QCoreApplication.translate(CONTEXT, many, None, n)
    if said == many and n == 1:
        said = QCoreApplication.translate(CONTEXT, one)
    return said.format(n=number(n), **values)


def number(value: float, digits: int = 0) -> str:
    """Formats a number with thin spaces between thousands and the language's decimal sign.

    >>> number(1234567), number(0.256, 1)
    ('1\\u2009234\\u2009567', '0.3')
    """
    return f"{value:,.{digits}f}".replace(",", "\u2009").replace(".", QLocale().decimalPoint())


def percent(share: float | None, digits: int = 0) -> str:
    """
    >>> percent(0.317, 1), percent(None)
    ('31.7 %', '–')
    """
    return "–" if share is None else f"{number(100 * share, digits)} %"


def size(count: float) -> str:
    """Formats a number of bytes in powers of 1000.

    >>> size(0), size(999), size(2_340), size(15_600_000)
    ('0 B', '999 B', '2.3 kB', '15.6 MB')
    """
    value, unit = scaled(count)
    return f"{number(value, 0 if unit == 'B' else 1)} {unit}"


_SPANS = {"s": mark("{n} s"), "min": mark("{n} min"), "h": mark("{n} h"), "days": mark("{n} days")}


def span(seconds: float) -> str:
    """Formats a length of time.

    >>> span(40.2), span(95), span(7300)
    ('40 s', '2 min', '2 h')
    """
    n, unit = number_and_unit(seconds)
    return tr(_SPANS[unit], n=n)


def ago(at: float | None, now: float) -> str:
    """Returns a text for how long ago a moment was; moments in the future, after a clock was set back, are
    "just now"."""
    if at is None:
        return tr("never")
    if now - at < 5:
        return tr("just now")
    n, unit = number_and_unit(now - at)
    if unit == "days":
        return tr("{n} days ago", n=n)
    return tr("{span} ago", span=span(now - at))


FOLDER = Path(__file__).parents[3] / "resources" / "translations"
SOURCE = "en"


def available_languages() -> list[tuple[str, str]]:
    """Returns (code, the language's own name) of every available language, English first."""
    codes = sorted(path.stem.removeprefix(f"{CONTEXT}_") for path in FOLDER.glob(f"{CONTEXT}_*.qm"))
    return [(SOURCE, "English"), *((code, _capital(QLocale(code).nativeLanguageName())) for code in codes)]


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def choose_language(wanted: Iterable[str], there: Sequence[str]) -> str:
    """Returns the first wanted language that is available, ignoring its country if need be; else English.

    >>> choose_language(["de-AT", "de", "en"], ["en", "de"])
    'de'
    >>> choose_language(["en-US", "en", "de"], ["en", "de"])
    'en'
    >>> choose_language([], ["en"])
    'en'
    """
    for name in wanted:
        code = name.replace("-", "_")
        for known in (code, code.split("_")[0]):
            if known in there:
                return known
    return SOURCE


def load_language(application: QCoreApplication, setting: str) -> str:
    """Loads the translations of our and Qt's texts, and the language's formats of numbers and dates. The
    setting "system" means the desktop's language. Returns the code of the loaded language."""
    wanted = QLocale.system().uiLanguages() if setting == "system" else [setting]
    spoken = choose_language(wanted, [code for code, _ in available_languages()])
    if not QLocale.system().name().startswith(spoken):  # else the country's own ways stay
        QLocale.setDefault(QLocale(spoken))
    qt = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    for name, folder in ((CONTEXT, str(FOLDER)), ("qtbase", qt)):
        translator = QTranslator(application)
        if spoken != SOURCE and translator.load(f"{name}_{spoken}", folder):
            application.installTranslator(translator)
    return spoken


SPOKEN_FILE = Path(__file__).parents[3] / "resources" / "translations" / "learner.json"
MAX_SPOKEN = 2000
"""Maximum characters of a text that is translated; longer ones stay unchanged."""
_PLACE = re.compile(r"\{(\w+)\}")
_END = re.compile(r"(?<=[.!?]) (?=\S)|(?<=:) (?=[a-z])")
SPOKEN_UNITS = re.compile(r"(?<=:) (?=[a-z])")
"""Splits a message into what happened and what to do, which are recognised separately, because many messages
share the second half."""
_DEPTH = 3


class Sentence(msgspec.Struct, frozen=True):
    """A recognised sentence with its values."""

    template: str
    values: dict[str, str]


def translated(text: str, depth: int = _DEPTH, most: int | None = None) -> str:
    """Translates every sentence of the node that is known and leaves the others as they are. `most` limits the
    number of sentences returned, `depth` how deep sentences within values are translated."""
    parts = recognised(text, "sentences")[:most]
    return " ".join(part if isinstance(part, str) else _translated(part, depth) for part in parts)


@lru_cache(1000)
def recognised(text: str, kind: str) -> tuple[Sentence | str, ...]:
    """Splits the text into sentences; known ones become a Sentence. A known one may span several ends of
    sentences, because a value may contain one; the shortest that matches is taken."""
    if len(text) > MAX_SPOKEN:
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
    templates: list[str] = msgspec.json.decode(SPOKEN_FILE.read_bytes(), type=dict[str, list[str]])[kind]
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
    return translated(value, depth - 1) if depth and " " in value else value


@cache
def _names() -> dict[str, str]:
    """Returns the translated names of families, as they appear within a sentence, and of settings."""
    families = {family.title.lower(): family.title for family in FAMILIES.values()}
    return families | {setting.label: setting.label for setting in SETTINGS}
