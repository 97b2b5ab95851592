"""A question set: an owner's questions, how their answers are checked, and the family of puzzles made from
them.

A set's family is named by its content, a hash of everything but the name. So a question's coordinates (family,
row or template seed) mean the same wherever the file is, and changed rows are another family. `mark` identifies
the set for its owner, and names its file and what is learned from it: the hash of the content that it was first
added with, which stays when rows are added or corrected (app.sapo.sets.amending).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from hashlib import sha256
from random import Random
from typing import Any

import msgspec

from app.sapo.asking import BRIEF, SHORT_MARK, Example, read_answer
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.seeds import hashed_seed
from app.sapo.sets.bounds import (
    MAX_COMPARISONS,
    MAX_EXPANDED,
    MAX_FILLINGS,
    MAX_INSTRUCTION,
    MAX_NAME,
    MAX_QUESTION,
    MAX_ROWS,
    MAX_TEXT,
    MAX_TRUTH,
    SAMPLED_FILLINGS,
)
from app.sapo.sets.checks import (
    Check,
    Rule,
    alternatives,
    displayed_answer,
    instruction,
    label_of,
    normalise,
    score_answer,
    tolerance,
)
from app.sapo.sets.templates import FilledTemplate, Template, validate

FORMAT = 2
"""Since 2 the split keeps a share of every answer aside, and signs and combining marks are content. Sets of
format 1 keep their contents and their split."""
MIN_QUESTIONS, ROUGH_CURVE_QUESTIONS = 8, 20
"""Numbers of different questions: below the first a set is rejected, below the second its curve is
imprecise.
"""
HELD_OUT_SHARE = 5
"""One question in five is held out."""
OWNERS_PREFIX = "own-"
"""Prefix of every set's family name. Names in the protocol have no hyphen, so these cannot be sent."""
_CONSTANTS = 20
"""Most frequent answers that are tried as the one that solves most."""


class SetError(ValueError):
    """A set cannot be used; the message is one sentence."""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question with its true answer, and the work if it is known."""

    question: str
    answer: str
    work: str = ""
    held_out: bool | None = None
    """The side of the split that a row of an amended set is on; None in a set as it was first added, whose
    contents decide."""
    amended: bool = False
    """Whether its owner added or corrected it after the set was learned: it is taught more often."""


class QuestionSet(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The content of a set's file: rows or templates."""

    name: str
    rule: Rule
    rows: tuple[Row, ...] = ()
    templates: tuple[Template, ...] = ()
    format: int = FORMAT
    instruction: str = ""
    """The owner's own system line; empty for the one that the check gives."""
    began: str = ""
    """The mark of an amended set: that of the content that it began with."""
    columns: tuple[str, ...] = ()
    """The names of the columns that made the text, to find them in another table. No content."""

    @property
    def asked_with(self) -> str:
        """The system line of every question."""
        return self.instruction or (BRIEF.system if self.marked else instruction(self.rule))

    @cached_property
    def marked(self) -> bool:
        """Whether work comes before an answer, so that a mark tells the answer from it."""
        return any(row.work for row in self.rows) or any(one.work for one in self.templates)

    @property
    def labels(self) -> tuple[str, ...]:
        """The possible answers of a choice; empty if any text may be the answer."""
        return () if self.marked else self.rule.labels

    def shown_answer(self, truth: str) -> str:
        """Returns a true answer as the model is to write it."""
        return label_of(self.rule, displayed_answer(self.rule, truth))

    @cached_property
    def mark(self) -> str:
        """Twelve hexadecimal digits that stay when rows are added or corrected."""
        return self.began or self.content_mark

    @cached_property
    def content_mark(self) -> str:
        """First twelve hexadecimal digits of the content's SHA-256."""
        return sha256(self.canonical_json).hexdigest()[:12]

    @property
    def canonical_json(self) -> bytes:
        """The set as JSON without its name, which `mark` hashes: identical for everyone who has the same
        questions and ask them alike."""
        whole: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(self, name=""))
        if not self.instruction:
            del whole["instruction"]  # as before this field existed
        if not self.began:
            del whole["began"]
        del whole["columns"]
        return msgspec.json.encode(whole)

    @property
    def family_name(self) -> str:
        return f"{OWNERS_PREFIX}{self.content_mark}"

    @property
    def distinct(self) -> int:
        """Number of different questions, near-duplicates counted once; of a sample if there are too many."""
        return len(self._answers)

    @cached_property
    def _answers(self) -> dict[Content, str]:
        """The contents of all entries, each with an answer to it."""
        return {entry["metadata"]["content"]: self.shown_answer(entry["answer"]) for entry in self._entries()}

    @property
    def countable(self) -> bool:
        """Whether there are few enough questions to enumerate them all."""
        return sum(template.size for template in self.templates) <= MAX_FILLINGS

    def _entries(self) -> Iterator[Entry]:
        """Yields all entries, or a sample if templates make too many."""
        yield from (_entry(row, self.format) for row in self.rows)
        each = min(SAMPLED_FILLINGS, MAX_FILLINGS // max(1, len(self.templates)))
        for template in self.templates:
            rng = Random(0)
            drawn = template.all_fillings() if self.countable else (template.drawn(rng) for _ in range(each))
            yield from (_filled(made) for made in drawn if made is not None)

    def constant_share(self) -> tuple[float, str]:
        """Returns the largest share of questions that one constant answer solves, and that answer.

        >>> rows = [Row(question=f"Mail {n}?", answer="spam" if n % 4 else "ham") for n in range(8)]
        >>> QuestionSet(name="Mail", rule=Rule(), rows=tuple(rows)).constant_share()
        (0.75, 'spam')
        """
        answers = Counter(entry["answer"] for entry in self._entries())
        shown: Counter[str] = Counter()
        for truth, count in answers.items():
            for one in alternatives(truth) if self.rule.check is Check.ONE_OF else [truth]:
                shown[label_of(self.rule, one)] += count
        if not shown:
            return 0.0, ""
        tried = max(1, min(_CONSTANTS, MAX_COMPARISONS // len(answers)))
        best, text = max((self._solved(one, answers), one) for one, _ in shown.most_common(tried))
        return best / answers.total(), text

    def _solved(self, constant: str, answers: Mapping[str, int]) -> int:
        """Returns how many questions the check lets an answer solve."""
        return sum(
            count
            for truth, count in answers.items()
            if truth == constant or score_answer(self.rule, constant, truth) == 1.0
        )


def is_owners_set(family: str) -> bool:
    """Whether a family is a question set, which must not leave this computer."""
    return family.startswith(OWNERS_PREFIX)


def check(made: QuestionSet) -> None:
    """Raises SetError if a set cannot be used for training."""
    check_bounds(made)
    if made.distinct < MIN_QUESTIONS:
        raise SetError(
            f"Only {made.distinct} different questions are in it. At least {MIN_QUESTIONS} are needed, as a "
            "fifth is kept aside for measuring."
        )
    held = held_out(made)
    if held is not None and not 0 < len(held) < made.distinct - 1:
        raise SetError("It doesn't say which rows are kept aside. Take the table that it was made from.")
    for row in made.rows:
        if not recognised(made.rule, row, made.marked):
            raise SetError(f"The check can't recognise the answer {row.answer[:40]!r}. Pick another check.")


def check_bounds(made: QuestionSet) -> None:
    """Raises SetError if a set, of a file that anybody may have written, is larger than any that Shoal makes,
    or has parts that don't fit together."""
    if not made.name.strip() or len(made.name) > MAX_NAME:
        raise SetError(f"A set needs a name of 1 to {MAX_NAME} characters.")
    if len(made.rows) > MAX_ROWS:
        raise SetError(f"These are {len(made.rows)} questions, and a set holds {MAX_ROWS} at most.")
    try:
        validate(made.templates)
        tolerance(made.rule.tolerance)
    except ValueError as error:
        raise SetError(str(error)) from error
    if len(made.instruction) > MAX_INSTRUCTION:
        raise SetError(f"An instruction has {MAX_INSTRUCTION} characters at most.")
    if not made.instruction.isprintable():
        raise SetError("An instruction is one line of text, without control characters.")
    if not re.fullmatch("([0-9a-f]{12})?", made.began):
        raise SetError("Another program changed this question set. Take the table that it was made from.")
    if sum(map(len, made.columns)) + len(made.columns) > MAX_QUESTION:
        raise SetError("The names of its columns are too long. Shorten them.")
    if sum(map(len, made.rule.labels)) + len(made.rule.labels) > MAX_QUESTION:
        raise SetError("The answers to choose from are too many or too long. Pick another check.")
    if not made.rows and not made.templates:
        raise SetError("There is no question in it.")
    for row in made.rows:
        if len(row.question) > MAX_QUESTION or len(row.answer) > MAX_TRUTH or len(row.work) > MAX_TEXT:
            raise SetError(f"The row {row.question[:40]!r} is too long. Shorten it.")


def recognised(rule: Rule, row: Row, marked: bool = True) -> bool:
    """Whether the true answer, written as a model writes it, counts as right and is within the limits."""
    if not 0 < len(row.question) <= MAX_QUESTION or not 0 < len(row.answer) <= MAX_TRUTH:
        return False
    said = read_answer(SHORT_MARK * marked + displayed_answer(rule, row.answer), marked)
    return said is not None and score_answer(rule, said, row.answer) == 1.0


def encode(made: QuestionSet) -> bytes:
    """Encodes a set as the content of a readable file."""
    return msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"


def decode(content: bytes) -> QuestionSet:
    """Decodes a file written by `encode`, possibly on another computer, within bounds; call `check` before
    learning it. Raises SetError."""
    try:
        made = msgspec.json.decode(content, type=QuestionSet)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise SetError(f"This is no question set of Shoal's ({error}).") from error
    if not 1 <= made.format <= FORMAT:
        raise SetError("This question set comes from a newer version of Shoal. Update Shoal, then try again.")
    check_bounds(made)
    return made


def family(made: QuestionSet) -> Family:
    """Returns the set as a family of puzzles with one level."""
    rule, held = made.rule, held_out(made)

    def content_hash(content: Content) -> int:
        return hashed_seed("content", made.family_name, msgspec.json.encode(content))

    return Family(
        name=made.family_name,
        title=made.name,
        kind=FamilyKind.YOURS,
        levels=({},),
        opened=lambda config: _Questions(made),
        content=lambda entry: entry["metadata"]["content"],
        score=lambda answer, entry: score_answer(rule, answer, entry["answer"]),
        solution=lambda entry: made.shown_answer(entry["answer"]),
        sound=lambda entry: not entry["metadata"].get("unsound"),
        work=lambda entry: entry["metadata"]["work"],
        marked=made.marked,
        guess_rate=1.0,
        guess=made.constant_share(),
        held_out_share=HELD_OUT_SHARE,
        held_out=None if held is None else frozenset(map(content_hash, held)),
    )


def held_out(made: QuestionSet) -> frozenset[Content] | None:
    """Returns the contents of the fifth that is held out, at least one; None if there are too many questions to
    enumerate."""
    if any(row.held_out is not None for row in made.rows):
        return frozenset(near_duplicate_key(row.question, made.format) for row in made.rows if row.held_out)
    if not made.countable:
        return None
    ranked = sorted(made._answers, key=lambda content: hashed_seed("held out", msgspec.json.encode(content)))
    count = min(len(ranked), max(1, round(len(ranked) / HELD_OUT_SHARE)))
    if made.format == 1:
        return frozenset(ranked[:count])
    groups: dict[str, list[Content]] = {}
    for content in ranked:
        groups.setdefault(normalise(made.rule, made._answers[content]), []).append(content)
    alone = [content for group in groups.values() if len(group) == 1 for content in group]
    shares = [group for group in groups.values() if len(group) > 1] + ([alone] if alone else [])
    taken = [len(group) // HELD_OUT_SHARE for group in shares]
    while (missing := count - sum(taken)) > 0:  # first answers without one, then the largest remainders
        order = sorted(
            range(len(shares)),
            key=lambda at: (taken[at] > 0, taken[at] - len(shares[at]) / HELD_OUT_SHARE, -len(shares[at])),
        )
        for at in order[:missing]:
            taken[at] = min(len(shares[at]), taken[at] + 1)
    return frozenset(one for group, most in zip(shares, taken, strict=True) for one in group[:most])


def examples(made: QuestionSet) -> list[Example]:
    """Returns the questions that are trained on, each with its answer as a model is to write it; of templates
    that make too many, a sample."""
    puzzle, found = family(made), []
    for entry in made._entries():
        if not puzzle.holds_out(puzzle.content_hash(entry)) and (answer := puzzle.worked(entry)):
            found.append(Example(question=entry["question"], answer=answer))
    return found


class _Questions:
    """The data set in the form that `app.sapo.questions` reads: item i depends on seed + i only."""

    def __init__(self, made: QuestionSet) -> None:
        self._made = made
        self.seed = 0

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        drawn = hashed_seed("own", self.seed + index)
        if self._made.templates:
            template = self._made.templates[drawn % len(self._made.templates)]
            made = template.drawn(Random(drawn))
            return _filled(made) if made is not None else _UNSOUND
        row = self._made.rows[drawn % len(self._made.rows)]
        return _entry(row, self._made.format)


_UNSOUND: Entry = {"question": "", "answer": "", "metadata": {"unsound": True, "content": (), "work": ""}}


def _entry(row: Row, format: int) -> Entry:
    return {
        "question": row.question,
        "answer": row.answer,
        "metadata": {"content": near_duplicate_key(row.question, format), "work": row.work},
    }


def _filled(made: FilledTemplate) -> Entry:
    """Returns the entry of a filled template. Its content is slots and answer, so that the same numbers in
    another wording are the same content."""
    content = (*sorted(value.casefold() for value in made.values), "=", made.answer)
    return {
        "question": made.question,
        "answer": made.answer,
        "metadata": {"content": content, "work": made.work},
    }


def near_duplicate_key(question: str, format: int = FORMAT) -> Content:
    """Returns what near-duplicates have in common: words and numbers sorted, without case and punctuation.
    Texts with signs keep their order: 8 - 3 is not 3 - 8.

    >>> near_duplicate_key("What is 3 times 12?") == near_duplicate_key("12 times 3: what IS?")
    True
    >>> near_duplicate_key("+"), near_duplicate_key("Café 5"), near_duplicate_key("8 - 3.5?")
    (('+',), ('5', 'café'), ('8', '-', '3.5'))
    """
    text = unicodedata.normalize("NFKC", question).casefold()[:MAX_EXPANDED]
    if format == 1:
        return tuple(sorted(re.findall(r"\w+", text))) or (text.strip(),)
    text = text.translate(_MINUS)
    parts = re.findall(_ASCII_PART if text.isascii() else _part(), text)
    signed = any(
        not (part[0] in "_'" or part[0].isalnum()) and not unicodedata.combining(part[0]) for part in parts
    )
    return tuple(parts if signed else sorted(parts)) or (text.strip(),)


_MINUS = {0x2212: "-", 0x200C: None, 0x200D: None}
_NEAR_NUMBER = r"[-*/%:#](?=\s*\d)|(?<=\d)%"
_ASCII_PART = re.compile(rf"\d+(?:[.,:]\d+)+|\w+|[+=<>^|~$]|{_NEAR_NUMBER}")


@lru_cache(maxsize=1)
def _part() -> re.Pattern[str]:
    """The parts of texts in all scripts: combining marks belong to words, and symbols, such as emoji, are
    signs."""
    kinds: dict[str, list[str]] = {"M": [], "S": []}
    for code in range(0x24, 0x20000):
        if (kind := unicodedata.category(chr(code))[0]) in kinds:
            kinds[kind].append(chr(code))
    marks, signs = (re.escape("".join(one)) for one in kinds.values())
    return re.compile(rf"\d+(?:[.,:]\d+)+|[\w{marks}]+|[{signs}]|{_NEAR_NUMBER}")
