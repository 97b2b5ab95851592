"""Templates: unlimited questions from a few lines, made by filling slots.

    What is {a} times {b}?
    a: 2-12
    b: 2-12
    answer: a*b
    work: {a} * {b} = {answer}

A slot is a range of whole numbers, with a step after a slash (`0-100/10`), or words between commas. A word may
have a partner, `mouse=mice`, which `{word=}` stands for. The answer is text with slots, or an expression of
one-letter slots (app.sapo.reading.expression); `work` may be left out. An empty line begins the next template.
Nothing is executed: our own parser evaluates expressions, and text is only concatenated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from random import Random

import msgspec

from app.sapo.asking import MAX_ANSWER
from app.sapo.reading.expression import ExpressionError, evaluate
from app.sapo.sets.bounds import (
    MAX_DIGITS,
    MAX_EXPRESSION,
    MAX_FILLED,
    MAX_NUMBER,
    MAX_SLOTS,
    MAX_TEMPLATES,
    MAX_TEXT,
    MAX_WORDS,
)

_SLOT = re.compile(r"\{([a-z][a-z0-9_]{0,15})(=?)\}")
_LINE = re.compile(r"([a-z][a-z0-9_]{0,15})\s*:\s*(.*)")
_RANGE = re.compile(r"(-?[0-9]{1,10})\s*(?:-|\.\.|to)\s*(-?[0-9]{1,10})(?:\s*/\s*([0-9]{1,10}))?")


class TemplateError(ValueError):
    """A template cannot be parsed; the message is one sentence."""


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """Whole numbers from `low` to `high` in steps, or `words` with their partners if there are any."""

    name: str
    low: int = 0
    high: int = 0
    step: int = 1
    words: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        return len(self.words) or (self.high - self.low) // self.step + 1

    @property
    def longest(self) -> tuple[int, int]:
        """Maximum characters of a value and of a partner."""
        ends = self.words or tuple((str(one), str(one)) for one in (self.low, self.high))
        return max(len(word) for word, _ in ends), max(len(partner) for _, partner in ends)

    def value(self, place: int) -> tuple[str, str]:
        """Returns the text at a position and its partner, which for a number is the text itself."""
        if self.words:
            return self.words[place]
        text = str(self.low + place * self.step)
        return text, text


class FilledTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A question made from a template; `values` are the contents of its slots."""

    question: str
    answer: str
    work: str
    values: tuple[str, ...]


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed template; see the module's docstring."""

    question: str
    answer: str
    work: str = ""
    slots: tuple[Slot, ...]

    @property
    def size(self) -> int:
        """Number of ways to fill it."""
        size = 1
        for slot in self.slots:
            size *= slot.size
        return size

    def drawn(self, rng: Random) -> FilledTemplate | None:
        """Fills the slots at random; None if the expression has no short decimal value."""
        return self.filled([rng.randrange(slot.size) for slot in self.slots])

    def all_fillings(self) -> Iterator[FilledTemplate | None]:
        """Yields all fillings, in order; none is made before it is asked for."""
        for number in range(self.size):
            places = []
            for slot in reversed(self.slots):
                number, place = divmod(number, slot.size)
                places.append(place)
            yield self.filled(places[::-1])

    def filled(self, places: Sequence[int]) -> FilledTemplate | None:
        values = {slot.name: slot.value(place) for slot, place in zip(self.slots, places, strict=True)}
        answer = _put(self.answer, values) if "{" in self.answer else _worked_out(self.answer, values)
        if answer is None:
            return None
        return FilledTemplate(
            question=_put(self.question, values),
            answer=answer,
            work=_put(self.work, values | {"answer": (answer, answer)}),
            values=tuple(first for first, _ in values.values()),
        )


def _put(text: str, values: Mapping[str, tuple[str, str]]) -> str:
    return _SLOT.sub(lambda found: values[found[1]][bool(found[2])], text)


def _longest(text: str, lengths: Mapping[str, tuple[int, int]]) -> int:
    """Returns the maximum characters of a text whose slots are filled, without filling them."""
    return len(_SLOT.sub("", text)) + sum(lengths[found[1]][bool(found[2])] for found in _SLOT.finditer(text))


def _worked_out(expression: str, values: Mapping[str, tuple[str, str]]) -> str | None:
    numbers = {name: Fraction(text) for name, (text, _) in values.items() if re.fullmatch(r"-?[0-9]+", text)}
    try:
        value = evaluate(expression, numbers, MAX_DIGITS)
    except (ExpressionError, RecursionError):
        return None
    if value.denominator == 1:
        return str(value)
    for digits in range(1, 7):
        if (value * 10**digits).denominator == 1:
            whole = str(abs(int(value * 10**digits))).rjust(digits + 1, "0")
            return f"{'-' * (value < 0)}{whole[:-digits]}.{whole[-digits:]}"
    return None


def looks_like_templates(text: str) -> bool:
    """Whether the text holds templates, not a table: one line gives the answer, and another contains a slot."""
    return bool(re.search(r"(?m)^answer\s*:", text[:20000]) and _SLOT.search(text[:20000]))


def parse(text: str) -> tuple[Template, ...]:
    """Parses templates. Raises TemplateError.

    >>> [times] = parse("What is {a} times {b}?\\na: 2-4\\nb: 2-3\\nanswer: a*b\\nwork: {a} * {b} = {answer}")
    >>> times.size, times.filled((2, 1))
    (6, FilledTemplate(question='What is 4 times 3?', answer='12', work='4 * 3 = 12', values=('4', '3')))
    >>> [plural] = parse("Plural of {w}?\\nw: cat=cats, mouse=mice\\nanswer: {w=}")
    >>> plural.filled((1,)).answer
    'mice'
    """
    blocks = [block for block in re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip()) if block.strip()]
    if not blocks or len(blocks) > MAX_TEMPLATES:
        raise TemplateError(f"There must be 1 to {MAX_TEMPLATES} templates, not {len(blocks)}.")
    return tuple(map(_template, blocks))


def _template(block: str) -> Template:
    lines = [line.strip() for line in block.strip().splitlines()]
    question, given = lines[0], {}
    for line in lines[1:]:
        found = _LINE.fullmatch(line)
        if found is None or found[1] in given:
            raise TemplateError(f"This line is no slot: {line[:60]!r}. Write it like a: 2-12.")
        given[found[1]] = found[2]
    answer, work = given.pop("answer", ""), given.pop("work", "")
    if not answer:
        raise TemplateError(f"The answer is missing below {question[:60]!r}. Add a line like answer: a*b.")
    if max(map(len, (question, answer, work))) > MAX_TEXT or len(given) > MAX_SLOTS:
        raise TemplateError(f"{question[:60]!r} is too long, or has more than {MAX_SLOTS} slots.")
    made = Template(
        question=question,
        answer=answer,
        work=work,
        slots=tuple(_slot(name, values) for name, values in given.items()),
    )
    _check(made)
    return made


def _slot(name: str, values: str) -> Slot:
    if found := _RANGE.fullmatch(values.strip()):
        low, high, step = int(found[1]), int(found[2]), int(found[3] or 1)
        if low > high or step < 1 or max(abs(low), abs(high)) > MAX_NUMBER:
            raise TemplateError(f"{name}: {values[:40]} is no range: the smaller number comes first.")
        return Slot(name=name, low=low, high=high, step=step)
    words = [tuple(part.strip() for part in word.split("=", 1)) for word in values.split(",") if word.strip()]
    if not 1 <= len(words) <= MAX_WORDS or not all(all(word) for word in words):
        raise TemplateError(f"{name} needs a range like 2-12, or 1 to {MAX_WORDS} words with commas between.")
    return Slot(name=name, words=tuple((word[0], word[-1]) for word in words))


def validate(given: Sequence[Template]) -> None:
    """Raises TemplateError for templates, possibly from another person, that `parse` would not have made."""
    if len(given) > MAX_TEMPLATES:
        raise TemplateError(f"There must be 1 to {MAX_TEMPLATES} templates, not {len(given)}.")
    for one in given:
        if max(map(len, (one.question, one.answer, one.work))) > MAX_TEXT or len(one.slots) > MAX_SLOTS:
            raise TemplateError(f"{one.question[:60]!r} is too long, or has more than {MAX_SLOTS} slots.")
        for slot in one.slots:
            numbers = slot.step >= 1 and -MAX_NUMBER <= slot.low <= slot.high <= MAX_NUMBER
            if not numbers or len(slot.words) > MAX_WORDS or not all(map(all, slot.words)):
                raise TemplateError(f"The slot {slot.name[:40]!r} holds nothing to choose from, or too much.")
        _check(one)


def _check(made: Template) -> None:
    """Raises TemplateError if a slot is missing or the expression never has a value."""
    known = {slot.name for slot in made.slots}
    for text, names in ((made.question, known), (made.answer, known), (made.work, known | {"answer"})):
        for name in (found[1] for found in _SLOT.finditer(text)):
            if name not in names:
                raise TemplateError(f"There is no slot {name}. Add a line like {name}: 2-12.")
    lengths = {slot.name: slot.longest for slot in made.slots}
    answer = _longest(made.answer, lengths) if "{" in made.answer else MAX_DIGITS
    sizes = (
        _longest(made.question, lengths),
        _longest(made.work, {**lengths, "answer": (answer, answer)}),
        sum(word for word, _ in lengths.values()),
    )
    if max(sizes) > MAX_FILLED or answer > MAX_ANSWER:
        raise TemplateError(
            f"{made.question[:60]!r} gets too long when its slots are filled: a question may have {MAX_FILLED} "
            f"characters, and an answer {MAX_ANSWER}. Use shorter words, or fewer slots."
        )
    if not any(slot.name in (found[1] for found in _SLOT.finditer(made.question)) for slot in made.slots):
        raise TemplateError(f"No slot stands in {made.question[:60]!r}. Put one there, like {{a}}.")
    rng = Random(0)
    if len(made.answer) > MAX_EXPRESSION and "{" not in made.answer:
        raise TemplateError(f"The answer's expression is longer than {MAX_EXPRESSION} characters.")
    if not any(made.drawn(rng) for _ in range(50)):
        raise TemplateError(
            f"The answer {made.answer[:40]!r} has no value. Use one-letter number slots with + - * / and ( )."
        )


EXAMPLES: Mapping[str, str] = {
    "Times tables": """Calculate {a} * {b}.
a: 2-12
b: 2-12
answer: a*b
work: {a}*{b}={answer}""",
    "Metres and centimetres": """How many centimetres are {m} metres?
m: 1-60
answer: m*100
work: {m} * 100 = {answer}

How many metres are {c} centimetres?
c: 50-6000/50
answer: c/100
work: {c} / 100 = {answer}""",
    "Plural forms": """What is the plural of {word}?
word: cat=cats, dog=dogs, book=books, tree=trees, house=houses, car=cars, boy=boys, day=days, key=keys, \
box=boxes, fox=foxes, bus=buses, glass=glasses, dish=dishes, wish=wishes, church=churches, watch=watches, \
city=cities, baby=babies, lady=ladies, story=stories, party=parties, berry=berries, leaf=leaves, knife=knives, \
wolf=wolves, shelf=shelves, man=men, woman=women, foot=feet, tooth=teeth, mouse=mice, child=children, \
sheep=sheep, table=tables, apple=apples, friend=friends, window=windows, brush=brushes, match=matches
answer: {word=}""",
}
"""Ready-made examples by title, as text for `parse`."""
