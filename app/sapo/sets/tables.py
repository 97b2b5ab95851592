"""Makes a question set of a table, and reports what happened to every row.

`grid` reads the file and `columns` finds text and answer in it; here each row becomes a question with its
answer, also GSM8K's `#### 42`, and templates are parsed. Nothing is executed. `preview` raises SetError with
one sentence if the file is no table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import islice
from random import Random

import msgspec

from app.sapo.sets import checks, templates, workbook
from app.sapo.sets.bounds import MAX_FILLINGS, MAX_NAME, MAX_QUESTION, MAX_ROWS, MAX_TRUTH, MAX_WORK
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.columns import Chosen, Reading, find_columns
from app.sapo.sets.encodings import check_size, decoded
from app.sapo.sets.grid import Grid, read_grid, text_grid
from app.sapo.sets.question_set import QuestionSet, Row, SetError, decode, recognised

_MAX_SKIPPED = 1000  # reasons kept to show
_CALCULATOR = re.compile(r"<<[^<>]{0,80}>>")


class SkipReason(StrEnum):
    """Reason for skipping a row; the value is shown to the user."""

    NO_QUESTION = "no question"
    NO_ANSWER = "no answer"
    TOO_LONG = "too long"
    SAME = "the same question again"
    CONTRADICTION = "another answer to the same question"
    UNREADABLE = "no table row"
    TOO_WIDE = "more cells than columns"
    UNRECOGNISED = "an answer that the check can't recognise"
    TOO_MANY = "more rows than a set holds"


class SkippedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A skipped row; rows count from 1, including the header. `like`: the earlier row with the same
    question.
    """

    row: int
    reason: SkipReason
    like: int = 0


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """The result of parsing a file: the set, which has no rows if all fell away, and the rows that were
    skipped, the first thousand of them."""

    made: QuestionSet
    skipped: tuple[SkippedRow, ...] = ()
    counts: Mapping[SkipReason, int] = {}
    """Number of skipped rows by reason."""
    notes: tuple[str, ...] = ()
    guessed: bool = True
    """Whether the check was guessed from the answers; otherwise the owner chose it."""
    reading: Reading | None = None
    """How the table was read; None for templates and for sets in Shoal's own format."""

    @property
    def contradictions(self) -> int:
        return self.counts.get(SkipReason.CONTRADICTION, 0)

    @property
    def duplicates(self) -> int:
        return self.counts.get(SkipReason.SAME, 0)

    @property
    def usable(self) -> bool:
        return bool(self.made.rows or self.made.templates)


def preview(content: bytes, name: str, rule: Rule | None = None, chosen: Chosen | None = None) -> Preview:
    """Parses a file's content. `rule` and `chosen`: the owner's choices; what is missing is guessed. Raises
    SetError."""
    chosen = chosen or Chosen()
    if content.startswith(workbook.ZIP_AND_OLE_MAGIC):
        grid = read_grid(content, heading=chosen.heading)
    else:
        text, encoding = decoded(content, chosen.encoding or None)
        if templates.looks_like_templates(text):
            return _of_templates(text, name, rule)
        grid = text_grid(text, heading=chosen.heading, encoding=encoding)
    return _of_grid(grid, find_columns(grid, chosen), name, rule)


def _of_grid(grid: Grid, reading: Reading, name: str, rule: Rule | None) -> Preview:
    notes = list(grid.notes)
    skipped = [SkippedRow(row=number, reason=SkipReason.UNREADABLE) for number in grid.unreadable]
    rows: list[tuple[int, Row]] = []
    cleaned = cut = 0
    for number, cells in zip(grid.numbers, grid.rows, strict=True):
        if len(cells) > len(grid.columns):
            skipped.append(SkippedRow(row=number, reason=SkipReason.TOO_WIDE))
            continue
        asked, told = reading.question(cells), cells[reading.answer]
        row = _row(clean_cell(asked), clean_cell(told))
        cleaned += _hidden(asked) or _hidden(told)
        if len(row.question) > MAX_QUESTION:
            row, cut = msgspec.structs.replace(row, question=row.question[:MAX_QUESTION].rstrip()), cut + 1
        if reason := _refused(row):
            skipped.append(SkippedRow(row=number, reason=reason))
        else:
            rows.append((number, row))
    answers = [row.answer for _, row in rows]
    chosen = checks.complete_rule(rule or checks.guess_rule(answers), answers)
    kept = _drawn(_kept(rows, chosen, skipped), chosen, skipped)
    chosen = checks.complete_rule(chosen, [row.answer for _, row in kept])
    if reading.toss_up:
        notes.append("Shoal isn't sure which column is the answer. Check the columns.")
    if cleaned:
        notes.append("Invisible characters were taken out.")
    if cut == 1:
        notes.append(f"One text was cut after {MAX_QUESTION} characters.")
    elif cut:
        notes.append(f"{cut} texts were cut after {MAX_QUESTION} characters.")
    return Preview(
        made=QuestionSet(
            name=name,
            rule=chosen,
            rows=tuple(row for _, row in kept),
            columns=tuple(reading.columns[at] for at in reading.text) if reading.heading else (),
        ),
        skipped=tuple(sorted(skipped, key=lambda one: one.row)[:_MAX_SKIPPED]),
        counts=Counter(one.reason for one in skipped),
        notes=tuple(notes),
        guessed=rule is None,
        reading=reading,
    )


def read(content: bytes, name: str, rule: Rule | None = None, chosen: Chosen | None = None) -> Preview:
    """Like `preview`, but also reads a complete set in Shoal's format, which keeps its own name and check.
    Raises SetError."""
    check_size(content)
    if content.lstrip()[:1] == b"{" and b'"rule"' in content[:4096]:
        return Preview(made=decode(content), guessed=False)
    return preview(content, clean_cell(name)[:MAX_NAME] or "?", rule, chosen)


def skip_reasons(found: Preview) -> str:
    """Returns the sentences of why no row of a table can be used."""
    why = ", ".join(f"{reason.value} ({count})" for reason, count in Counter(found.counts).most_common())
    return f"No row can be used: {why or 'it has none'}. Pick the column with the answers."


def _of_templates(text: str, name: str, rule: Rule | None) -> Preview:
    try:
        made = templates.parse("\n".join(map(clean_cell, text.split("\n"))))
    except templates.TemplateError as error:
        raise SetError(str(error)) from error
    most = min(200, MAX_FILLINGS // len(made))
    answers = [one.answer for each in made for one in islice(each.all_fillings(), most) if one is not None]
    chosen = checks.complete_rule(rule or checks.guess_rule(answers), answers)
    if chosen.check is Check.CHOICE and rule is None:  # few words come often because slots are few
        chosen = Rule()
    return Preview(made=QuestionSet(name=name, rule=chosen, templates=made), guessed=rule is None)


def clean_cell(text: str) -> str:
    r"""Removes invisible characters that could mislead: control characters, direction marks, zero-width spaces,
    lone surrogates. Line breaks of all kinds become newlines; the joiners that Persian and emoji are written
    with stay.

    >>> clean_cell(" a\u202eb\x07\u200b\v c "), "\u200c" in clean_cell("\u0645\u06cc\u200c\u062e")
    ('ab\n c', True)
    """
    if text.isprintable():
        return text.strip()
    return _INVISIBLE.sub("", _BREAK.sub("\n", text).replace("\u00a0", " ")).strip()


def _hidden(text: str) -> bool:
    return not text.isprintable() and _INVISIBLE.search(_BREAK.sub("\n", text)) is not None


_BREAK = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ud800-\udfff\ue000-\uf8ff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\U000f0000-\U0010ffff]"
)


def _row(question: str, answer: str) -> Row:
    """Returns a row; the work before an answer's four hashes goes apart."""
    work, marker, marked = answer.rpartition("####")
    if marker and "\n" not in marked.strip() and 0 < len(marked.strip()) <= MAX_TRUTH:
        work, answer = " ".join(_CALCULATOR.sub("", work).split()), marked.strip()
    else:
        work = ""
    return Row(question=question, answer=answer, work=work if len(work) <= MAX_WORK else "")


def _refused(row: Row) -> SkipReason | None:
    if not row.question:
        return SkipReason.NO_QUESTION
    if not row.answer:
        return SkipReason.NO_ANSWER
    return SkipReason.TOO_LONG if len(row.answer) > MAX_TRUTH else None


def question_key(question: str) -> str:
    """Returns what two rows with the same question have in common: the text without case and spacing."""
    return " ".join(question.casefold().split())


def _kept(rows: Sequence[tuple[int, Row]], rule: Rule, skipped: list[SkippedRow]) -> list[tuple[int, Row]]:
    """Returns the rows that the check can handle, each question once; if it has two answers, the first is
    used."""
    first: dict[str, tuple[int, str]] = {}
    marked = any(row.work for _, row in rows)
    kept = []
    for number, row in rows:
        key, said = question_key(row.question), checks.normalise(rule, row.answer)
        if not recognised(rule, row, marked):
            skipped.append(SkippedRow(row=number, reason=SkipReason.UNRECOGNISED))
        elif key in first:
            like, before = first[key]
            reason = SkipReason.SAME if before == said else SkipReason.CONTRADICTION
            skipped.append(SkippedRow(row=number, reason=reason, like=like))
        else:
            first[key] = (number, said)
            kept.append((number, row))
    return kept


def _drawn(
    rows: list[tuple[int, Row]], rule: Rule, skipped: list[SkippedRow], most: int = MAX_ROWS
) -> list[tuple[int, Row]]:
    """Returns at most `most` rows, drawn so that each answer keeps its share and none is lost, in the file's
    order."""
    if len(rows) <= most:
        return rows
    shuffled = Random(0).sample(list(enumerate(rows)), len(rows))
    total = Counter(checks.normalise(rule, row.answer) for _, row in rows)
    rank: Counter[str] = Counter()
    order: list[tuple[float, int]] = []
    for at, (_, row) in shuffled:
        answer = checks.normalise(rule, row.answer)
        order.append((rank[answer] / total[answer], at))
        rank[answer] += 1
    taken = {at for _, at in sorted(order, key=lambda one: one[0])[:most]}
    over = [number for at, (number, _) in enumerate(rows) if at not in taken]
    skipped += [SkippedRow(row=number, reason=SkipReason.TOO_MANY) for number in over]
    return [one for at, one in enumerate(rows) if at in taken]
