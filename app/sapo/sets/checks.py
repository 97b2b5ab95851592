"""Checks: decide when an answer to one of the owner's questions is right. A closed list; text is compared,
never executed.

Every check parses both texts in the same way and compares the results. Answers are limited to MAX_ANSWER
characters (`Family.judge`), so the work is bounded.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any

import msgspec

from app.sapo.sets.bounds import MAX_EXPONENT


class Check(StrEnum):
    """The kinds of checks; the value is the argument of `--check`."""

    TEXT = "text"
    ONE_OF = "one-of"
    NUMBER = "number"
    CHOICE = "choice"
    LIST = "list"
    SET = "set"
    DATE = "date"
    TRUE_FALSE = "true-false"
    JSON = "json"


DESCRIPTIONS: Mapping[Check, str] = {
    Check.TEXT: "Upper and lower case and extra spaces don't matter.",
    Check.ONE_OF: "Any answer that stands between the | signs is right.",
    Check.NUMBER: "A unit may follow, and 1,000 and 1000 are the same.",
    Check.CHOICE: "The question lists the answers to choose from.",
    Check.LIST: "The same items in the same order are right.",
    Check.SET: "The same items in any order are right.",
    Check.DATE: "Any form is right, like 2026-05-03 or 3 May 2026.",
    Check.TRUE_FALSE: "Yes and no count too.",
    Check.JSON: "Every field of the JSON object must be right.",
}
"""Explains each check to users."""

MAX_LABELS, MAX_LABEL = 12, 40  # more, or longer ones, are answers and not labels
_ROWS_A_LABEL = 3
"""The check is guessed to be a choice if each different answer occurs at least this often on average."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule that checks the answers of a set."""

    check: Check = Check.TEXT
    accents: bool = True
    """Whether accents matter (e and é differ)."""
    articles: bool = True
    """Whether articles matter ("the cat" and "cat" differ)."""
    tolerance: str = "0"
    """Maximum difference from the true number that counts as right."""
    comma: bool = False
    """Whether numbers use a decimal comma: 1.000,5."""
    month_first: bool = False
    """Whether dates with slashes are month first: 5/3/2026 is in May."""
    labels: tuple[str, ...] = ()
    """The possible answers of a choice, listed in every question."""


def score_answer(rule: Rule, answer: str, truth: str) -> float:
    """Scores an answer: 1 if it is right; the share of right items or fields for lists, sets and JSON; else 0.

    >>> score_answer(Rule(), " The  CAT.", "the cat"), score_answer(Rule(articles=False), "cat", "the cat")
    (1.0, 1.0)
    >>> numbers = Rule(check=Check.NUMBER, tolerance="0.01")
    >>> score_answer(numbers, "1,000 km", "1000"), score_answer(numbers, "3.14", "3.1415")
    (1.0, 1.0)
    >>> score_answer(numbers, "3.2", "3.1415"), score_answer(Rule(check=Check.ONE_OF), "ufer", "Bank | Ufer")
    (0.0, 1.0)
    >>> score_answer(Rule(check=Check.SET), "b, a", "a; b")
    1.0
    """
    return _CHECKS[rule.check](rule, answer, truth)


def displayed_answer(rule: Rule, truth: str) -> str:
    """Returns the true answer for display in examples: the first one if several are right."""
    return alternatives(truth)[0] if rule.check is Check.ONE_OF else truth


def alternatives(truth: str) -> list[str]:
    """Splits at bars, or at semicolons if there is no bar."""
    parts = [part.strip() for part in re.split(r"[|]" if "|" in truth else r"[|;]", truth)]
    return [part for part in parts if part] or [truth]


_INSTRUCTIONS: Mapping[Check, str] = {
    Check.TEXT: "Give the answer alone.",
    Check.ONE_OF: "Give the answer alone.",
    Check.NUMBER: "Answer with the number alone.",
    Check.CHOICE: "Answer with one of the choices alone.",
    Check.LIST: "Answer with the items alone, in their order, with commas between them.",
    Check.SET: "Answer with the items alone, with commas between them.",
    Check.DATE: "Answer with the date alone.",
    Check.TRUE_FALSE: "Answer true or false.",
    Check.JSON: "Answer with a JSON object alone.",
}


def instruction(rule: Rule) -> str:
    """Returns the system line with which questions of this check are asked.

    >>> instruction(Rule(check=Check.CHOICE, labels=("ham", "spam"))), instruction(Rule())
    ('Answer with one of: ham, spam.', 'Give the answer alone.')
    """
    if rule.labels:
        return f"Answer with one of: {', '.join(rule.labels)}."
    return _INSTRUCTIONS[rule.check]


def label_of(rule: Rule, answer: str) -> str:
    """Returns the label that an answer means, in the table's usual spelling; other answers unchanged.

    >>> label_of(Rule(check=Check.CHOICE, labels=("ham", "spam")), " SPAM ")
    'spam'
    """
    return _by_meaning(rule.labels).get(normalise(Rule(), answer), answer)


@lru_cache(maxsize=64)
def _by_meaning(labels: tuple[str, ...]) -> Mapping[str, str]:
    return {normalise(Rule(), one): one for one in reversed(labels)}


def normalise(rule: Rule, text: str) -> str:
    """Normalises text for comparison: Unicode NFKC, case folded, single spaces, without final punctuation.

    >>> normalise(Rule(accents=False), " Caf\u00e9 \\n au  LAIT! "), normalise(Rule(), "Don\u2019t\u3002")
    ('cafe au lait', "don't")
    """
    text = unicodedata.normalize("NFKC", text).casefold().translate(_ALIKE)
    if not rule.accents:
        apart = unicodedata.normalize("NFD", text)
        text = "".join(character for character in apart if not unicodedata.combining(character))
    words = (text.rstrip(_FINAL) or text).split()
    if not rule.articles and len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)


_ALIKE = dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u00b4"), "'") | {
    0x201C: '"',
    0x201D: '"',
    0x200C: None,
    0x200D: None,
}
"""Signs that are typed either way: quotation marks, and joiners, which no reader sees."""
_FINAL = " \t\r\n.!?\u3002\uff01\uff1f\uff61\u0964\u0965\u061f\u06d4\u055e\u1362\u2026"
"""Marks that end a sentence, in all scripts."""


_ARTICLES = frozenset(
    re.findall(
        r"\w+",
        "a an the der die das ein eine einen le la les un une el los las il lo gli una uno de het een",
    )
)


def number(rule: Rule, text: str) -> tuple[Fraction, str] | None:
    """Parses a number and its unit (the text around it). A comma that can only be a decimal comma is read as
    one.

    >>> number(Rule(), "$1,250.50"), number(Rule(), "-3/4"), number(Rule(), "1,5 kg"), number(Rule(), "1e3")
    ((Fraction(2501, 2), '$'), (Fraction(-3, 4), ''), (Fraction(3, 2), 'kg'), None)
    >>> number(Rule(comma=True), "1.250"), number(Rule(), "1.250"), number(Rule(), "5 or 6")
    ((Fraction(1250, 1), ''), (Fraction(5, 4), ''), None)
    """
    found = _NUMBER.fullmatch(text.replace("\u2212", "-").strip())
    if found is None:
        return None
    digits = re.sub(r"[ '\u00a0\u202f]", "", found["digits"])
    value = _value(digits, ",." if rule.comma else ".,")
    if value is None or (found["below"] and not int(found["below"])):
        return None
    if found["below"]:
        value /= int(found["below"])
    unit = (found["before"] + found["unit"]).strip().casefold().rstrip(".")
    return (-value if found["sign"] == "-" else value), unit


_NUMBER = re.compile(
    r"(?P<before>[$\u20ac\u00a3\u00a5]?) ?(?P<sign>[+-]?) ?"
    r"(?P<digits>[0-9](?:[0-9.,' \u00a0\u202f]{0,60}[0-9])?|[.,][0-9]{1,40})"
    r"(?: ?/ ?(?P<below>[0-9]{1,40}))?"
    r"(?P<unit>\s{0,3}[^\W\d_]{0,20}[%\u00b0\u20ac$\u00a3\u00b2\u00b3./]{0,3}[^\W\d_]{0,20}\.?)"
)


def _value(digits: str, marks: str) -> Fraction | None:
    """Returns the number's value. `marks`: the decimal mark and the thousands separator."""
    decimal, thousand = marks[0], marks[1]
    if digits.isdecimal():
        return Fraction(int(digits)) if len(digits) <= 40 else None
    whole = rf"[0-9]{{1,40}}|[0-9]{{1,3}}(?:\{thousand}[0-9]{{3}}){{1,12}}"
    if re.fullmatch(rf"(?:{whole})?(?:\{decimal}[0-9]{{1,40}})?", digits):
        return Fraction(digits.replace(thousand, "").replace(decimal, "."))
    other = re.fullmatch(rf"([0-9]{{0,40}})\{thousand}([0-9]{{1,40}})", digits)
    return Fraction(f"{other[1]}.{other[2]}") if other and len(other[2]) != 3 else None


def parse_date(rule: Rule, text: str) -> date | None:
    """
    >>> {parse_date(Rule(), text) for text in ("3.5.2026", "May 3, 2026", "2026-05-03")} == {date(2026, 5, 3)}
    True
    >>> parse_date(Rule(month_first=True), "5/3/2026"), parse_date(Rule(), "31.2.2026")
    (datetime.date(2026, 5, 3), None)
    """
    words = re.findall(r"[0-9]{1,4}|[^\W\d_]{3,12}", text)
    if len(words) != 3 or not re.fullmatch(r"[\w\s.,/-]{6,40}", text.strip()):
        return None
    months = [place for place, word in enumerate(words) if not word.isascii() or not word.isdigit()]
    if len(months) == 1:
        month = _MONTHS.get(words.pop(months[0])[:3].casefold(), 0)
        first, second = map(int, words)
        return _date(first, month, second) if first > 31 else _date(second, month, first)
    if months:
        return None
    first, second, third = map(int, words)
    if len(words[0]) == 4:
        return _date(first, second, third)
    return _date(third, first, second) if rule.month_first and "/" in text else _date(third, second, first)


_MONTHS = {
    name: number + 1
    for names in (
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "jan feb m\u00e4r apr mai jun jul aug sep okt nov dez",
    )
    for number, name in enumerate(names.split())
}


def _date(year: int, month: int, day: int) -> date | None:
    if year < 100:
        year += 2000 if year < 70 else 1900
    try:
        return date(year, month, day)
    except ValueError:
        return None


_TRUE = frozenset(["true", "yes", "right", "correct", "ja", "wahr", "richtig", "stimmt", "oui", "vrai", "si"])
_FALSE = frozenset(["false", "no", "wrong", "incorrect", "nein", "falsch", "non", "faux"])


def truth_value(text: str) -> bool | None:
    word = normalise(Rule(), text)
    return True if word in _TRUE else False if word in _FALSE else None


def items(rule: Rule, text: str) -> list[str]:
    """
    >>> items(Rule(), "[Red, green;  BLUE]")
    ['red', 'green', 'blue']
    """
    text = text.strip()
    if text[:1] + text[-1:] in ("[]", "{}", "()"):
        text = text[1:-1]
    return [normalise(rule, part.strip(" \t'\"")) for part in re.split(r"[,;\n]", text) if part.strip()]


def fields(text: str) -> dict[str, Any] | None:
    """Parses a JSON object; None for any other text."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def guess_rule(answers: Sequence[str]) -> Rule:
    """Guesses the best check from the true answers.

    >>> [guess_rule(answers).check.value for answers in (["1", "2.5 km"], ["yes", "no"], ["a, b", "c, d"])]
    ['number', 'true-false', 'list']
    >>> guess_rule(["spam", "ham", "Spam"] * 5).labels
    ('ham', 'spam')
    """
    if not answers:
        return Rule()
    check = next((one for one, fits in _GUESSES if fits(answers)), Check.TEXT)
    return complete_rule(Rule(check=check), answers)


def complete_rule(rule: Rule, answers: Sequence[str]) -> Rule:
    """Completes a rule from the true answers: labels, decimal comma, order of day and month."""
    change: dict[str, object] = {}
    if rule.check in (Check.CHOICE, Check.TRUE_FALSE):
        change["labels"] = _labels(answers)
    if rule.check is Check.NUMBER:
        change["comma"] = any(map(_GERMAN.search, answers))
    if rule.check is Check.DATE and "/" in "".join(answers):
        day_first, month_first = (
            sum(parse_date(Rule(month_first=first), one) is not None for one in answers)
            for first in (False, True)
        )
        change["month_first"] = month_first > day_first
    return msgspec.structs.replace(rule, **change)


_GERMAN = re.compile(r"[0-9],[0-9]{1,2}(?![0-9])|(?<![0-9])0,[0-9]|\.[0-9]{3}[.,]")
"""Numbers that only make sense with a decimal comma."""


def _labels(answers: Sequence[str]) -> tuple[str, ...]:
    """Returns the different answers, each in its most frequent spelling, sorted."""
    spellings: dict[str, Counter[str]] = {}
    for one in answers:
        spellings.setdefault(normalise(Rule(), one), Counter())[one.strip()] += 1

    def usual(counts: Counter[str]) -> str:
        return min(counts, key=lambda one: (-counts[one], one != one.lower(), one))

    return tuple(sorted(map(usual, spellings.values())))


def _all(fits: Callable[[str], object]) -> Callable[[Sequence[str]], bool]:
    return lambda answers: all(map(fits, answers))


def _choice(answers: Sequence[str]) -> bool:
    different = {normalise(Rule(), one) for one in answers}
    few = 1 < len(different) <= MAX_LABELS and len(answers) >= _ROWS_A_LABEL * len(different)
    return few and max(map(len, different)) <= MAX_LABEL and not any("|" in one for one in different)


_CODE, _COMMA = re.compile(r"\s*0[0-9]"), Rule(comma=True)
"""01123 is a code, and another one than 1123."""
_GUESSES: Sequence[tuple[Check, Callable[[Sequence[str]], bool]]] = (
    (Check.JSON, _all(fields)),
    (Check.TRUE_FALSE, _all(lambda one: truth_value(one) is not None)),
    (Check.NUMBER, _all(lambda one: not _CODE.match(one) and (number(Rule(), one) or number(_COMMA, one)))),
    (Check.DATE, _all(lambda one: parse_date(Rule(), one) or parse_date(Rule(month_first=True), one))),
    (Check.CHOICE, _choice),
    (Check.ONE_OF, lambda answers: 2 * sum("|" in one for one in answers) >= len(answers)),
    (Check.LIST, _all(lambda one: len(items(Rule(), one)) > 1)),
)


def _text(rule: Rule, answer: str, truth: str) -> float:
    said = normalise(rule, answer)
    return float(bool(said) and said == normalise(rule, truth))


def _number(rule: Rule, answer: str, truth: str) -> float:
    said, true = number(rule, answer), number(rule, truth)
    if (_CODE.match(answer) is None) is not (_CODE.match(truth) is None):
        return 0.0
    if said is None or true is None or (said[1] and true[1] and said[1] != true[1]):
        return 0.0
    return float(abs(said[0] - true[0]) <= tolerance(rule.tolerance))


@lru_cache(maxsize=64)
def tolerance(text: str) -> Fraction:
    """Parses a tolerance. Raises ValueError unless it is a number of at least 0."""
    try:
        value = Decimal(text if len(text) <= MAX_EXPONENT else "-1")
    except InvalidOperation:
        value = Decimal(-1)
    if not value.is_finite() or value < 0 or abs(int(value.as_tuple().exponent)) > MAX_EXPONENT:
        raise ValueError(f"{text[:40]!r} is no tolerance: give a number like 0.01.")
    return Fraction(value)


def _list(rule: Rule, answer: str, truth: str) -> float:
    said, true = items(rule, answer), items(rule, truth)
    if not true or said == true:
        return float(bool(true))
    same = sum(one == other for one, other in zip(said, true, strict=False))
    return same / max(len(said), len(true))


def _set(rule: Rule, answer: str, truth: str) -> float:
    said, true = set(items(rule, answer)), set(items(rule, truth))
    return len(said & true) / len(said | true) if true else 0.0


def _day(rule: Rule, answer: str, truth: str) -> float:
    true = parse_date(rule, truth)
    return float(true is not None and parse_date(rule, answer) == true)


def _truth(rule: Rule, answer: str, truth: str) -> float:
    true = truth_value(truth)
    return float(true is not None and truth_value(answer) is true)


def _json(rule: Rule, answer: str, truth: str) -> float:
    said, true = fields(answer), fields(truth)
    if said is None or not true:
        return 0.0
    same = sum(key in said and _same(rule, said[key], value) for key, value in true.items())
    return same / len(said.keys() | true.keys())


def _same(rule: Rule, said: object, true: object) -> bool:
    """Whether two field values are equal: numbers within the tolerance, texts normalised, all else exactly."""
    if isinstance(true, bool) or isinstance(said, bool):
        return said is true
    if isinstance(true, int | float) and isinstance(said, int | float):
        if not (abs(said) < math.inf and abs(true) < math.inf):
            return False
        return abs(Fraction(said) - Fraction(true)) <= tolerance(rule.tolerance)
    if isinstance(true, str) and isinstance(said, str):
        return normalise(rule, said) == normalise(rule, true)
    return type(said) is type(true) and said == true


_CHECKS: Mapping[Check, Callable[[Rule, str, str], float]] = {
    Check.TEXT: _text,
    Check.ONE_OF: lambda rule, answer, truth: max(_text(rule, answer, one) for one in alternatives(truth)),
    Check.NUMBER: _number,
    Check.CHOICE: _text,
    Check.LIST: _list,
    Check.SET: _set,
    Check.DATE: _day,
    Check.TRUE_FALSE: _truth,
    Check.JSON: _json,
}
