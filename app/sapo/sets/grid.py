"""Reads a table as people have it into a grid of texts: CSV and TSV of any dialect, XLSX, XLS, ODS, JSON,
Markdown, and Anki's text export. What the columns mean is decided elsewhere (`columns`).

Lines above the table are passed over. Whether the first row names the columns is judged by what stands under
it, because names come in every language. Nothing is executed, and sizes are limited before parsing.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from statistics import median
from typing import Literal

import msgspec

from app.sapo.sets import records, workbook
from app.sapo.sets.bounds import MAX_BYTES, MAX_COLUMNS, MAX_GRID_ROWS
from app.sapo.sets.encodings import check_size, decoded
from app.sapo.sets.question_set import SetError

_DELIMITERS = ",;\t|"
_LOOKED_AT, _SAMPLE = 40, 400
"""First rows from which the delimiter and the heading are guessed."""
_FARTHEST = 131_072
"""Characters of a cell that is probably a quote closed too late."""
HEADING_NAMES = frozenset(
    re.findall(
        r"\w+",
        "question questions prompt problem input text texts instruction query frage fragen aufgabe wort word "
        "term front q answer answers output label labels target completion response solution antwort antworten "
        "lösung back category class a definition context option id tags",
    )
)
"""Names that are a heading wherever they stand."""

csv.field_size_limit(MAX_BYTES)


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """A table. `rows` have at least as many cells as there are `columns`; a longer one has more than its
    heading names. `numbers`: where each row stands in the file, from 1. `encoding`: empty for
    spreadsheets."""

    columns: tuple[str, ...]
    rows: list[list[str]]
    numbers: list[int]
    heading: bool
    encoding: str = ""
    sheet: str = ""
    """The name of the sheet, of a spreadsheet."""
    notes: tuple[str, ...] = ()
    unreadable: tuple[int, ...] = ()
    """Numbers of the lines that could not be read as a row, such as broken JSON."""
    named_roles: tuple[tuple[str, int], ...] = ()
    """What the file itself says of its columns (Anki: tags, deck)."""


def read_grid(content: bytes, *, heading: bool | None = None, encoding: str | None = None) -> Grid:
    """Reads a file's content. `heading`: whether the first row names the columns, and `encoding`: the owner's
    choices; None is guessed. Raises SetError."""
    check_size(content)
    if content.startswith(workbook.ZIP_AND_OLE_MAGIC):
        rows, notes, name = workbook.read_workbook(content)
        return msgspec.structs.replace(_grid(rows, heading, "", notes), sheet=name)
    text, used = decoded(content, encoding)
    return text_grid(text, heading=heading, encoding=used)


def text_grid(text: str, *, heading: bool | None = None, encoding: str = "") -> Grid:
    """Like `read_grid`, of decoded text. Raises SetError."""
    start = text.lstrip()[:2]
    if start[:1] in ("[", "{"):
        found = records.records(text, MAX_GRID_ROWS)
        if found is not None:
            return _of_records(*found, encoding)
        if start in ('{"', "[{"):
            raise SetError("This JSON can't be read. It needs objects with a question and an answer.")
    if (rows := _markdown(text)) is not None:
        return _grid(rows, True if heading is None else heading, encoding, [])
    if (anki := _anki(text)) is not None:
        return _of_anki(*anki, heading, encoding)
    notes: list[str] = []
    said = re.match(r"\s*sep=(.)\r?\n", text)
    shift = said[0].count("\n") if said else 0
    body = text[said.end() :] if said else text
    return _grid(table(body, notes, said[1] if said else ""), heading, encoding, notes, shift)


def letter(index: int) -> str:
    """The name of a column without one: A to Z, then AA.

    >>> letter(0), letter(27)
    ('A', 'AB')
    """
    return (letter(index // 26 - 1) if index > 25 else "") + chr(65 + index % 26)


def _grid(rows: list[list[str]], heading: bool | None, encoding: str, notes: list[str], shift: int = 0) -> Grid:
    """Finds the table among rows: passes over what stands above it, and takes its heading off."""
    filled = [[cell for cell in row if cell.strip()] for row in rows[:_SAMPLE]]
    widths = Counter(len(cells) for cells in filled if cells)
    usual = max(widths, key=lambda width: (widths[width], width), default=0)
    first = next((at for at, cells in enumerate(filled) if cells), 0)
    if usual > 1:
        enough = max(2, (usual + 1) // 2)
        first = next((at for at, cells in enumerate(filled) if len(cells) >= enough), first)
        if above := sum(bool(cells) for cells in filled[:first]):
            notes.append(f"{above} lines above the table were passed over." if above > 1 else _ONE_ABOVE)
    kept = [(at + shift + 1, row) for at, row in enumerate(rows) if at >= first and any(map(str.strip, row))]
    if not kept:
        raise SetError("This file is empty.")
    sample = [row for _, row in kept[:_SAMPLE]]
    named = heading if heading is not None else guess_heading(sample)
    beneath = sample[1:] if named else sample
    shape = Counter(map(_width, beneath))
    heads = [" ".join(cell.split())[:200] for cell in kept[0][1][: _width(sample[0])]] if named else []
    if len(heads) > 1 and len(beneath) > 2 and set(shape) == {len(heads) + 1}:
        heads = ["", *heads]  # R numbers the rows, and has no name for it
    wide = len(heads) or max(shape, key=lambda width: (shape[width], width))
    if wide > MAX_COLUMNS:
        raise SetError(f"It has {wide} columns, and {MAX_COLUMNS} is the most. Delete some.")
    columns = tuple(head or letter(at) for at, head in enumerate(heads or [""] * wide))
    body = kept[1:] if named else kept
    padded = [_padded(row, wide) for _, row in body]
    return Grid(
        columns=columns,
        rows=padded,
        numbers=[number for number, _ in body],
        heading=named,
        encoding=encoding,
        notes=tuple(notes),
    )


_ONE_ABOVE = "One line above the table was passed over."
_ONE_BAD = "One line can't be read as a row."
_ONLY_FIRST = f"Only the first {MAX_GRID_ROWS} rows were read."


def _width(row: Sequence[str]) -> int:
    """Returns the number of cells up to the last that is filled."""
    return next((at for at in range(len(row), 0, -1) if row[at - 1].strip()), 0)


def _padded(row: list[str], wide: int) -> list[str]:
    return [*row, *[""] * (wide - len(row))] if len(row) <= wide else row[: max(wide, _width(row))]


def guess_heading(rows: Sequence[Sequence[str]]) -> bool:
    """Guesses whether the first row names the columns: known names, or a look that its column doesn't have.

    >>> guess_heading([["Betreff", "Ordner"], ["Rechnung für den Mai?", "Geld"], ["Treffen morgen?", "Tag"]])
    True
    >>> guess_heading([["Capital of France?", "Paris"], ["Capital of Spain?", "Madrid"]])
    False
    """
    head = [cell.strip() for cell in rows[0][:MAX_COLUMNS]]
    while head and not head[-1]:
        head.pop()
    filled = [cell for cell in head if cell]
    if not filled or max(map(len, filled)) > 60 or len(set(filled)) < len(filled):
        return False
    words = [word for cell in filled for word in re.findall(r"[^\W\d_]+", cell.casefold())]
    known = sum(cell.casefold().split(".")[-1] in HEADING_NAMES for cell in filled)
    if known == len(filled) or (known > 1 and known > len(filled) / 4) or not words:
        return bool(words)
    votes = sum(
        _head_vote(cell, [row[at].strip() for row in rows[1:] if at < len(row) and row[at].strip()])
        for at, cell in enumerate(head)
        if cell
    )
    return votes + bool(known) > 0


def _head_vote(cell: str, column: Sequence[str]) -> int:
    """Returns 1 if a cell looks like the name of the column under it, -1 if like a value in it, else 0."""
    if not column:
        return 0
    number = _NUMBER.fullmatch(cell)
    numbers = sum(_NUMBER.fullmatch(one) is not None for one in column) / len(column)
    if number or len(cell) > 40:
        return -1
    if numbers > 0.8:
        return 1
    values = Counter(one.casefold() for one in column)
    if len(column) > 3 and len(values) <= len(column) / 2:  # labels repeat, headings do not
        return -1 if cell.casefold() in values else 1
    asks = sum(one[-1] in "?？؟" for one in column) / len(column)
    if asks > 0.6:
        return -1 if cell[-1] in "?？؟" else 1
    long = median(map(len, column))
    if long >= 20 and len(cell) <= long / 2 and cell[-1] not in ".!?。！？؟":
        return 1
    return -1 if len(cell.split()) > 4 or cell[-1] in ".!?。！？؟" else 0


_NUMBER = re.compile(r"[-+]?[$€£]?\s?[0-9][0-9.,:/' %-]*\s?[€$%]?")


def _of_records(found: list[tuple[int, records.Fields]], bad: list[int], encoding: str) -> Grid:
    names: dict[str, int] = {}
    for _, row in found:
        for name in row:
            names.setdefault(name, len(names))
    if len(names) > MAX_COLUMNS:
        raise SetError(f"It has {len(names)} columns, and {MAX_COLUMNS} is the most. Delete some.")
    notes = []
    if bad:
        notes.append(f"{len(bad)} lines can't be read as rows." if len(bad) > 1 else _ONE_BAD)
    if len(found) == MAX_GRID_ROWS:
        notes.append(_ONLY_FIRST)
    return Grid(
        columns=tuple(" ".join(name.split())[:200] or "?" for name in names),
        rows=[[row.get(name, "") for name in names] for _, row in found],
        numbers=[number for number, _ in found],
        heading=list(names) != ["A", "B"],
        encoding=encoding,
        notes=tuple(notes),
        unreadable=tuple(bad),
    )


def _markdown(text: str) -> list[list[str]] | None:
    """Returns the rows of the first Markdown table in a text."""
    lines = text.splitlines()
    rule = next((at for at, line in enumerate(lines[:_SAMPLE]) if at and _is_rule(line)), None)
    if rule is None or "|" not in lines[rule - 1]:
        return None
    blank: list[list[str]] = [[] for _ in range(rule - 1)]
    rows: list[list[str]] = [*blank, _bars(lines[rule - 1]), []]
    for line in islice(lines, rule + 1, None):
        if "|" not in line:
            break
        rows.append(_bars(line))
    return rows


def _is_rule(line: str) -> bool:
    """Whether a line is the one under the heading of a Markdown table, such as |---|:--|."""
    return "--" in line and all(re.fullmatch(":?-{2,}:?", cell) for cell in _bars(line))


def _bars(line: str) -> list[str]:
    inside = line.strip().removeprefix("|")
    inside = inside[:-1] if inside.endswith("|") and not inside.endswith("\\|") else inside
    cells = [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inside)]
    return [re.sub(r"<br ?/?>", "\n", cell) for cell in cells]


_ANKI = re.compile(r"#(separator|html|columns|(?:tags|deck|notetype|guid) column|tags|deck|notetype):(.*)")
_LINE = re.compile(r"[^\r\n]*(?:\r?\n|\Z)")
_SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ", "colon": ":"}


def _anki(text: str) -> tuple[dict[str, str], str, int] | None:
    """Splits Anki's text export into what its first lines say and the table below them."""
    said: dict[str, str] = {}
    lines = begin = 0
    while lines < _SAMPLE and (found := _LINE.match(text, begin)):
        line = _ANKI.fullmatch(found[0].rstrip("\r\n"))
        if line is None:
            break
        said[line[1]] = line[2]
        begin, lines = found.end(), lines + 1
    return (said, text[begin:], lines) if said else None


def _of_anki(said: dict[str, str], body: str, shift: int, heading: bool | None, encoding: str) -> Grid:
    separator = _SEPARATORS.get(said.get("separator", "tab").strip().casefold(), said.get("separator", "")[:1])
    rows = table(body, [], separator or "\t")
    if said.get("html", "").strip().casefold() == "true":
        rows = [[_plain(cell) for cell in row] for row in rows]
    columns = said.get("columns", "").split(separator) if said.get("columns") else None
    if columns:
        rows, shift = [columns, *rows], shift - 1
    made = _grid(rows, bool(columns) if heading is None else heading, encoding, [], shift)
    roles = {
        name.removesuffix(" column"): int(place) - 1
        for name, place in said.items()
        if name.endswith(" column") and place.strip().isdecimal() and 0 < int(place) <= len(made.columns)
    }
    names = list(made.columns)
    for name, place in roles.items():
        if not columns:
            names[place] = name.capitalize()
    return msgspec.structs.replace(made, columns=tuple(names), named_roles=tuple(roles.items()))


def _plain(cell: str) -> str:
    cell = re.sub(r"(?i)<(?:br|/p|/div|/li)\b[^<>]{0,200}>", "\n", cell)
    cell = re.sub(r"\[sound:[^\]]{0,200}\]", "", cell)
    return html.unescape(re.sub(r"<[a-zA-Z/!][^<>]{0,2000}>", "", cell)).replace("\u00a0", " ").strip()


def table(text: str, notes: list[str], delimiter: str = "") -> list[list[str]]:
    """Returns the rows of a text in the best-fitting dialect. If a quote is never closed, quotes are ordinary
    characters. Raises SetError."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
    delimiter = delimiter or _delimiter(text)
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if any(len(cell) > _FARTHEST and cell.count("\n") > 100 for cell in row):
                raise csv.Error("unexpected end")
    except csv.Error as error:
        if "unexpected end" in str(error):
            notes.append("A quote is never closed, so quotes were read as ordinary characters.")
            quoting = csv.QUOTE_NONE
    lines = io.StringIO(text, newline="")
    try:
        rows = list(islice(csv.reader(lines, delimiter=delimiter, quoting=quoting), MAX_GRID_ROWS + 1))
    except csv.Error as error:
        raise SetError(f"The table can't be read further ({error}). Save it as CSV again.") from error
    if len(rows) > MAX_GRID_ROWS:
        notes.append(_ONLY_FIRST)
    return rows[:MAX_GRID_ROWS]


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
