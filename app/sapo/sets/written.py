"""Writes a table as CSV, TSV, XLSX, ODS or JSON lines, so that a spreadsheet runs none of its cells.

ODS is one XML part in a zip file and is written here: odfdo took 100 seconds for 50,000 rows, this takes
one."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any
from xml.sax.saxutils import escape

import msgspec

from app.sapo.sets.bounds import MAX_UNPACKED

Cell = str | float
"""A text, or a number that is shown as a share in percent."""
FILE_KINDS = ("csv", "tsv", "xlsx", "ods", "jsonl")
"""The kinds of files that can be written; each is the ending of its files."""
_NUMBER = re.compile(r"[+-]?[\d., ]*\d\s?%?")
_EXACT = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,6})?")
"""A number of at most 15 digits, as many as a spreadsheet keeps."""
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML can't hold."""
_MOST = 32_767
"""Maximum characters of a spreadsheet's cell."""
_MIME = "application/vnd.oasis.opendocument.spreadsheet"
_MANIFEST = f"""<?xml version="1.0" encoding="UTF-8"?>
<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" manifest:version="1.2">
<manifest:file-entry manifest:full-path="/" manifest:media-type="{_MIME}"/>
<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>"""
_OPENING = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2"><office:automatic-styles>
<number:percentage-style style:name="P"><number:number number:decimal-places="0" number:min-integer-digits="1"/>
<number:text> %</number:text></number:percentage-style>
<style:style style:name="share" style:family="table-cell" style:data-style-name="P"/></office:automatic-styles>
<office:body><office:spreadsheet><table:table table:name="Table">"""
_CLOSING = "</table:table></office:spreadsheet></office:body></office:document-content>"


def table_file(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    kind: str,
    *,
    heading: bool = True,
    delimiter: str = ",",
) -> bytes:
    """Returns the content of a file of this kind. `heading`: whether the names of the columns are its first
    row; JSON lines have them in each. `delimiter` is that of CSV."""
    if kind == "jsonl":
        return b"".join(msgspec.json.encode(dict(zip(columns, row, strict=True))) + b"\n" for row in rows)
    lines = _with(columns, rows) if heading else rows
    if kind in ("csv", "tsv"):
        return _separated(lines, "\t" if kind == "tsv" else delimiter)
    return _xlsx(lines) if kind == "xlsx" else _ods(lines)


def formula_safe(text: str) -> str:
    """Returns a text as a cell of CSV that no spreadsheet runs: one that begins like a formula gets an
    apostrophe, unless it is a number.

    >>> [formula_safe(text) for text in ("=SUM(A1)", "@here", "-5", "+49 30 123", "- no", "\\t=1", "7 #7")]
    ["'=SUM(A1)", "'@here", '-5', '+49 30 123', "'- no", "'\\t=1", '7 #7']
    """
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") and not _NUMBER.fullmatch(text) else text


def _value(cell: Cell) -> Cell | int:
    """Returns what a sheet holds: a text that is read back alike from a number is one.

    >>> [_value(cell) for cell in ("5", "-1.5", "01123", "1.50", "=5")]
    [5, -1.5, '01123', '1.50', '=5']
    """
    if not isinstance(cell, str) or not _EXACT.fullmatch(cell):
        return cell
    number = float(cell) if "." in cell else int(cell)
    return number if str(number) == cell else cell


def percent(share: float) -> str:
    """Returns a share in [0, 1] in whole percent, rounded down, so that none looks as sure as a limit that it
    misses.

    >>> percent(0.949), percent(1.0)
    ('94 %', '100 %')
    """
    return f"{int(100 * share + 1e-9)} %"


def _with(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[Sequence[Cell]]:
    yield columns
    yield from rows


def _separated(rows: Iterable[Sequence[Cell]], delimiter: str) -> bytes:
    """With the mark without which Excel doesn't read UTF-8."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\r\n")
    for row in rows:
        writer.writerow([formula_safe(cell) if isinstance(cell, str) else percent(cell) for cell in row])
    return text.getvalue().encode("utf-8-sig", "replace")


def _plain(text: str) -> str:
    """Returns a text as a sheet can hold it."""
    return _UNWRITABLE.sub("\ufffd", text)[:_MOST]


def _xlsx(rows: Iterable[Sequence[Cell]]) -> bytes:
    from openpyxl import Workbook  # only here: it takes a third of a second
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Table")
    for row in rows:
        cells = [WriteOnlyCell(sheet) for _ in row]
        for cell, value in zip(cells, row, strict=True):
            _fill(cell, value)
        sheet.append(cells)
    into = io.BytesIO()
    book.save(into)
    return into.getvalue()


def _fill(cell: Any, value: Cell) -> None:
    found = _value(value)
    cell.value = _plain(found) if isinstance(found, str) else found
    if isinstance(found, str):
        cell.data_type = "s"  # else a text that begins with = is a formula
    if isinstance(value, float):
        cell.number_format = "0%"


def xlsx_beside(
    content: bytes, name: str, columns: Sequence[str], numbers: Sequence[int], rows: Iterable[Sequence[Cell]]
) -> bytes:
    """Returns an XLSX file with columns added beside the table in the sheet `name`, otherwise as it was:
    widths, colours, other sheets. Formulas become their results. `columns`: the names of what is added, none if
    the table has no heading; `numbers`: the rows of the sheet, from 1, that `rows` stand beside. Raises
    ValueError for a file that openpyxl can't read."""
    from openpyxl import load_workbook

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            if sum(part.file_size for part in packed.infolist()) > MAX_UNPACKED:
                raise ValueError("larger than can be held")
        book = load_workbook(io.BytesIO(content), data_only=True, keep_links=False)
        sheet = book[name]
        filled = [(cell.row, cell.column) for cell in _filled(sheet)]
        beside = 1 + max(column for _, column in filled)
        named = [(max(row for row, _ in filled if row < numbers[0]), columns)] if columns else []
        for row, values in [*named, *zip(numbers, rows, strict=True)]:
            before = sheet.cell(row, beside - 1)
            for place, value in enumerate(values):
                cell = sheet.cell(row, beside + place)
                cell.font, cell.fill, cell.border = copy(before.font), copy(before.fill), copy(before.border)
                _fill(cell, value)
        into = io.BytesIO()
        book.save(into)
    except Exception as error:  # the library raises anything on files of other programs
        raise ValueError(str(error)) from error
    return into.getvalue()


def _filled(sheet: Any) -> Iterator[Any]:
    return (cell for row in sheet.iter_rows() for cell in row if cell.value is not None)


def _ods(rows: Iterable[Sequence[Cell]]) -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mimetype", _MIME, zipfile.ZIP_STORED)  # first, and not compressed: so says the standard
        file.writestr("META-INF/manifest.xml", _MANIFEST)
        body = "".join(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows)
        file.writestr("content.xml", _OPENING + body + _CLOSING)
    return into.getvalue()


def _ods_cell(value: Cell) -> str:
    found = _value(value)
    if isinstance(found, str):
        lines = "".join(f"<text:p>{_spaced(line)}</text:p>" for line in _plain(found).split("\n"))
        return f'<table:table-cell office:value-type="string">{lines}</table:table-cell>'
    kind = 'float"' if isinstance(value, str) else 'percentage" table:style-name="share"'
    shown = value if isinstance(value, str) else percent(value)
    about = f'office:value-type="{kind} office:value="{found}"'
    return f"<table:table-cell {about}><text:p>{shown}</text:p></table:table-cell>"


def _spaced(line: str) -> str:
    """Returns a line in which tabs and several spaces stay what they are."""
    line = escape(line).replace("\t", "<text:tab/>").replace("\r", "")
    return re.sub(r"^ | (?= |$)", "<text:s/>", line)
