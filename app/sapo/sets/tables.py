"""Parses questions and answers from a file or a pasted table, and reports what happened to every row.

Reads CSV and TSV of any dialect, JSON and JSON lines with the usual column names of data sets, GSM8K's `####
42`, and templates. Input is limited before it is parsed, and never executed: rows that look like a spreadsheet
formula are skipped. `preview` raises SetError with one sentence if there is nothing to read.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from typing import Literal

import msgspec

from app.sapo.sets import checks, templates
from app.sapo.sets.checks import Check, Rule
from app.sapo.sets.question_set import (
    MAX_NAME,
    MAX_QUESTION,
    MAX_ROWS,
    MAX_TRUTH,
    MAX_WORK,
    QuestionSet,
    Row,
    SetError,
    decode,
    recognised,
)

MAX_BYTES = 16 * 2**20
QUESTION_COLUMNS: Sequence[str] = re.findall(
    r"\w+", "question prompt problem input text instruction query frage aufgabe wort word term front q"
)
ANSWER_COLUMNS: Sequence[str] = re.findall(
    r"\w+", "answer output label target completion response solution antwort lösung back category a"
)
"""Names of answer columns, most likely first."""
_DELIMITERS = ",;\t|"
_LOOKED_AT = 40
"""Number of first rows from which the delimiter is guessed."""
_MAX_SKIPPED = 1000
_MAX_COLUMNS = 200
_MAX_READ = 4 * MAX_ROWS
"""Maximum number of rows read."""
_MARKER = re.compile(r"\n?\s*####\s*([^\n]{1,200})\s*\Z")
_CALCULATOR = re.compile(r"<<[^<>]{0,80}>>")
_FORMULA = re.compile(r"=\s*[A-Z][A-Z.]{0,20}\(|[=+@-][A-Z]{1,3}[0-9]{1,7}\b|@[A-Z]{2,20}\(")
_BINARY = {
    b"PK\x03\x04": "This is an Excel, OpenDocument or zip file. Save the table as CSV, or copy and paste it.",
    b"\xd0\xcf\x11\xe0": "This is an old Excel file. Save the table as CSV, or copy its cells and paste them.",
    b"%PDF": "This is a PDF. Copy the table out of it and paste it here.",
    b"\x1f\x8b": "This file is compressed. Unpack it first.",
    b"SQLite format 3": "This is a database. Export the table as CSV first.",
}


class SkipReason(StrEnum):
    """Reason for skipping a row; the value is shown to the user."""

    NO_QUESTION = "no question"
    NO_ANSWER = "no answer"
    TOO_LONG = "too long"
    FORMULA = "a formula instead of its result"
    SAME = "the same question again"
    CONTRADICTION = "another answer to the same question"
    UNREADABLE = "no table row"
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
    """The result of parsing a file: the set, and the rows that were skipped."""

    made: QuestionSet
    skipped: tuple[SkippedRow, ...] = ()
    notes: tuple[str, ...] = ()
    guessed: bool = True
    """Whether the check was guessed from the answers; otherwise the owner chose it."""

    @property
    def contradictions(self) -> tuple[SkippedRow, ...]:
        return tuple(one for one in self.skipped if one.reason is SkipReason.CONTRADICTION)

    @property
    def duplicates(self) -> int:
        return sum(one.reason is SkipReason.SAME for one in self.skipped)


def preview(content: bytes, name: str, rule: Rule | None = None) -> Preview:
    """Parses a file's content. `rule`: the owner's choice; if None it is guessed. Raises SetError."""
    text, notes = decoded(content)
    if templates.looks_like_templates(text):
        return _of_templates(text, name, rule, notes)
    rows: list[tuple[int, Row]] = []
    skipped: list[SkippedRow] = []
    cleaned = 0
    for number, cells in islice(_records(text, notes), _MAX_READ):
        found = _row(cells)
        if isinstance(found, Row):
            tidy = Row(question=clean(found.question), answer=clean(found.answer), work=clean(found.work))
            cleaned += (tidy.question, tidy.answer) != (found.question.strip(), found.answer.strip())
            found = tidy
        reason = found if isinstance(found, SkipReason) else _refused(found)
        if reason is None and len(rows) == MAX_ROWS:
            reason = SkipReason.TOO_MANY
        if isinstance(found, Row) and reason is None:
            rows.append((number, found))
        elif reason is not None and len(skipped) < _MAX_SKIPPED:
            skipped.append(SkippedRow(row=number, reason=reason))
    if cleaned:
        notes.append("Invisible characters were taken out.")
    chosen = rule or checks.guess([row.answer for _, row in rows])
    chosen = checks.complete_rule(chosen, [row.answer for _, row in rows])
    kept = list(_kept(rows, chosen, skipped))
    if not kept:
        raise SetError(
            "No row has a question and an answer. The first row names the columns, like question,answer."
        )
    made = QuestionSet(name=name, rule=chosen, rows=tuple(kept))
    ordered = tuple(sorted(skipped, key=lambda one: one.row))
    return Preview(made=made, skipped=ordered, notes=tuple(notes), guessed=rule is None)


def read(content: bytes, name: str, rule: Rule | None = None) -> Preview:
    """Like `preview`, but also reads a complete set in Shoal's format, which keeps its own name and check.
    Raises SetError."""
    if content.lstrip()[:1] == b"{" and b'"rule"' in content[:4096]:
        return Preview(made=decode(content), guessed=False)
    return preview(content, clean(name)[:MAX_NAME] or "?", rule)


def _of_templates(text: str, name: str, rule: Rule | None, notes: Sequence[str]) -> Preview:
    try:
        made = templates.parse("\n".join(map(clean, text.split("\n"))))
    except templates.TemplateError as error:
        raise SetError(str(error)) from error
    answers = [one.answer for each in made for one in islice(each.all_fillings(), 200) if one is not None]
    chosen = checks.complete_rule(rule or checks.guess(answers), answers)
    if chosen.check is Check.CHOICE and rule is None:  # few words come often because slots are few
        chosen = Rule()
    return Preview(
        made=QuestionSet(name=name, rule=chosen, templates=made), notes=tuple(notes), guessed=rule is None
    )


def decoded(content: bytes) -> tuple[str, list[str]]:
    """Decodes a file to text, with a note about its encoding if needed. Raises SetError."""
    if len(content) > MAX_BYTES:
        size, most = len(content) // 2**20, MAX_BYTES // 2**20
        raise SetError(f"This file has {size} MB, and {most} MB is the most. Take a part of it.")
    for magic, sentence in _BINARY.items():
        if content.startswith(magic):
            raise SetError(sentence)
    notes: list[str] = []
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = content.decode("utf-16", "replace")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("cp1252", "replace")
            notes.append("It isn't UTF-8, so it was read as Western European text. Check the accents.")
    head = text[:20000]
    strange = sum(one < " " and one not in "\t\r\n\f\v" for one in head) + head.count("\ufffd")
    if strange > 0.02 * len(head) + 3 or "\0" in head:
        raise SetError("This is no text file. Save the table as CSV, or copy and paste it.")
    if re.match(r"\s*<(!doctype|html|\?xml|table)", head, re.IGNORECASE):
        raise SetError("This is a web page or XML. Copy the table out of it and paste it here.")
    if not text.strip():
        raise SetError("This file is empty.")
    return text, notes


def clean(text: str) -> str:
    """Removes invisible characters that could mislead: control characters, direction marks, zero-width
    characters, lone surrogates.

    >>> clean(" a\\u202eb\\x07\\u200b\\n c ")
    'ab\\n c'
    """
    if text.isprintable():
        return text.strip()
    return _INVISIBLE.sub("", text.replace("\r\n", "\n").replace("\u00a0", " ")).strip()


_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ud800-\udfff\ue000-\uf8ff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\U000f0000-\U0010ffff]"
)


def _records(text: str, notes: list[str]) -> Iterator[tuple[int, Mapping[str, object] | None]]:
    """Yields numbered rows as column name (lower case) to text; None for anything that is not a row."""
    stripped = text.lstrip()
    if stripped[:1] in "[{":
        found = list(_json_records(text))
        if any(cells is not None for _, cells in found):
            yield from found
            return
        if stripped[:2] in ('{"', "[{"):
            raise SetError("This JSON can't be read. It needs objects with a question and an answer.")
    yield from _table_records(text, notes)


def _json_records(text: str) -> Iterator[tuple[int, Mapping[str, object] | None]]:
    try:
        whole = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield number, _object(line)
        return
    if isinstance(whole, dict) and not _lowered(whole).keys() & {*QUESTION_COLUMNS, "messages"}:
        lists = [value for value in whole.values() if isinstance(value, list)]
        whole = max(lists, key=len, default=[])
    for number, one in enumerate(whole if isinstance(whole, list) else [whole], 1):
        if isinstance(one, list) and len(one) == 2:
            one = {"question": one[0], "answer": one[1]}
        yield number, _lowered(one) if isinstance(one, dict) else None


def _object(line: str) -> Mapping[str, object] | None:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    return _lowered(found) if isinstance(found, dict) else None


def _lowered(cells: Mapping[object, object]) -> dict[str, object]:
    return {str(name).strip().casefold(): value for name, value in cells.items()}


def _table_records(text: str, notes: list[str]) -> Iterator[tuple[int, Mapping[str, object] | None]]:
    rows = _table(text, notes)
    first = next(rows, [])
    question, answer, named = _columns([clean(name).casefold() for name in first[:_MAX_COLUMNS]])
    if not named:
        notes.append("The columns have no names: the first was taken as question, the second as answer.")
        yield 1, _cells(first, question, answer)
    for number, row in enumerate(rows, 2):
        if row:
            yield number, _cells(row, question, answer)


def _columns(names: Sequence[str]) -> tuple[int, int, bool]:
    """Returns the positions of question and answer, and whether the first row is a header. Raises SetError."""
    question, answer = _column(names, QUESTION_COLUMNS), _column(names, ANSWER_COLUMNS)
    if len(names) < 2:
        raise SetError("This is one column. A table needs a question and an answer, side by side.")
    if question is not None and answer is not None:
        return question, answer, True
    if len(names) > 2:
        raise SetError("It has more than two columns. Name two of them question and answer in the first row.")
    if question is None and answer is None:
        return 0, 1, False
    return (question, 1 - question, True) if question is not None else (1 - (answer or 0), answer or 0, True)


def _cells(row: Sequence[str], question: int, answer: int) -> Mapping[str, object] | None:
    if max(question, answer) >= len(row):
        return None if len(row) < 2 else {"question": "", "answer": row[-1]}
    return {"question": row[question], "answer": row[answer]}


def _column(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    return next((names.index(name) for name in wanted if name in names), None)


def _table(text: str, notes: list[str]) -> Iterator[list[str]]:
    """Yields the rows of a table in the best-fitting dialect. If a quote is never closed, quotes are ordinary
    characters."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
    delimiter = _delimiter(text)
    try:
        for _ in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            pass
    except csv.Error as error:
        if "unexpected end" in str(error) or "field larger" in str(error):
            notes.append("A quote is never closed, so quotes were read as ordinary characters.")
            quoting = csv.QUOTE_NONE
    lines = io.StringIO(text, newline="")
    try:
        yield from csv.reader(lines, delimiter=delimiter, quoting=quoting)
    except csv.Error as error:
        raise SetError(f"The table can't be read further ({error}). Save it as CSV again.") from error


def _delimiter(text: str) -> str:
    """Returns the delimiter with which most of the first rows have the same number of cells, more than one."""
    head = text[: 64 * 1024]

    def evenness(delimiter: str) -> tuple[int, int]:
        reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
        try:
            widths = [len(row) for row in islice(reader, _LOOKED_AT) if row]
        except csv.Error:
            widths = [line.count(delimiter) + 1 for line in head.split("\n")[:_LOOKED_AT] if line.strip()]
        wide = [width for width in widths if width > 1]
        same = max((wide.count(width) for width in set(wide)), default=0)
        return same, -_DELIMITERS.index(delimiter)

    return max(_DELIMITERS, key=evenness)


def _row(cells: Mapping[str, object] | None) -> Row | SkipReason:
    """Extracts question, answer and work from the cells of one row."""
    if cells is None:
        return SkipReason.UNREADABLE
    if isinstance(messages := cells.get("messages"), list):
        said = {str(one.get("role")): one.get("content") for one in messages if isinstance(one, dict)}
        cells = {"question": said.get("user"), "answer": said.get("assistant")}
    question = next((_text(cells[name]) for name in QUESTION_COLUMNS if name in cells), "")
    answer = next((_text(cells[name]) for name in ANSWER_COLUMNS if name in cells), "")
    if not question.strip():
        return SkipReason.NO_QUESTION
    if not answer.strip():
        return SkipReason.NO_ANSWER
    work = ""
    if found := _MARKER.search(answer):
        work, answer = answer[: found.start()], found[1]
        work = " ".join(_CALCULATOR.sub("", work).split())
    return Row(question=question, answer=answer, work=work if len(work) <= MAX_WORK else "")


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)
    if isinstance(value, list):
        return ", ".join(map(_text, value[:50]))
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else ""


def _refused(row: Row) -> SkipReason | None:
    if not row.question:
        return SkipReason.NO_QUESTION
    if not row.answer:
        return SkipReason.NO_ANSWER
    if len(row.question) > MAX_QUESTION or len(row.answer) > MAX_TRUTH:
        return SkipReason.TOO_LONG
    return SkipReason.FORMULA if _FORMULA.match(row.answer) or _FORMULA.match(row.question) else None


def question_key(question: str) -> str:
    """Returns what two rows with the same question have in common: the text without case and spacing."""
    return " ".join(question.casefold().split())


def _kept(rows: Iterable[tuple[int, Row]], rule: Rule, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Yields the rows that the check can handle, each question once; if it has two answers, the first is
    used.
    """
    first: dict[str, tuple[int, str]] = {}
    rows = list(rows)
    marked = any(row.work for _, row in rows)
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
            yield row
