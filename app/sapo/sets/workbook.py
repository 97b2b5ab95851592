"""Reads the first filled sheet of an XLSX, XLS or ODS file with calamine, after the size of what it unpacks to
is known: files from others can name billions of cells in a few bytes."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from datetime import date, datetime, time, timedelta

import python_calamine

from app.sapo.sets.bounds import MAX_CELLS, MAX_UNPACKED
from app.sapo.sets.question_set import SetError

ZIP_AND_OLE_MAGIC = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_PARTS = (".xml", ".rels", "mimetype")
_UNREADABLE = "This is no spreadsheet that Shoal can read. Save the table as XLSX or CSV."
_TOO_WIDE = "This spreadsheet has more cells than Shoal can hold. Copy the table into a new one."
_REPEATED = re.compile(rb"number-(rows|columns)-repeated\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ODS_TOKEN = re.compile(rb"<table:(table-row|table-cell|covered-table-cell|table)\b([^>]*)")
_NO_VALUE = re.compile(rb"(?:</f>|<f\b[^<>]*/>)\s*(?:(?:<v\s*/>|<v>\s*</v>)\s*)?</c>")
"""A formula whose result isn't stored: programs that only write sheets don't compute them."""
_PLACE = re.compile(rb"\br\s*=\s*[\"']([A-Za-z]*)([0-9]*)")


def read_workbook(content: bytes) -> tuple[list[list[str]], list[str], str]:
    """Returns the rows of the first sheet with two cells in it, notes, and its name. Formulas come as their
    results. Raises SetError."""
    blank = 0
    if content.startswith(b"PK"):
        content, blank = _repacked(content)
    try:
        book = python_calamine.load_workbook(io.BytesIO(content))
        names = book.sheet_names
        found: list[list[str]] = []
        for name in names:
            found = [
                list(map(_text, row)) for row in book.get_sheet_by_name(name).to_python(skip_empty_area=False)
            ]
            if sum(bool(cell) for row in found for cell in row) > 1:
                notes = [f"It has {len(names)} sheets. {name!r} was read."] if len(names) > 1 else []
                if blank:
                    notes.append(
                        f"{blank} formulas have no value and count as empty. Open the table in a spreadsheet "
                        "program and save it, then add it again."
                    )
                return found, notes, name
    except python_calamine.PasswordError as error:
        raise SetError("This spreadsheet has a password. Save it without one first.") from error
    except (python_calamine.CalamineError, OSError, ValueError) as error:
        raise SetError(_UNREADABLE) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # how calamine tells that it met what it didn't expect
            raise
        raise SetError(_UNREADABLE) from error
    raise SetError("This file is empty.")


def _repacked(content: bytes) -> tuple[bytes, int]:
    """Returns a copy of an office file with the parts that hold its cells, each of a known size, and the number
    of formulas without a value. Raises SetError."""
    made, left, blank = io.BytesIO(), MAX_UNPACKED, 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed, zipfile.ZipFile(made, "w") as copy:
            for part in packed.infolist():
                if not part.filename.endswith(_PARTS):
                    continue
                if part.file_size > left:
                    raise SetError(_TOO_WIDE)
                with packed.open(part) as file:
                    inside = file.read(left + 1)
                left -= len(inside)
                if part.filename == "content.xml":
                    inside = _checked_ods(inside)
                elif "worksheets/" in part.filename:
                    _check_xlsx(inside)
                    blank += sum(1 for _ in _NO_VALUE.finditer(inside))
                copy.writestr(part.filename, inside)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError, ValueError) as error:
        if isinstance(error, SetError):
            raise
        raise SetError(_UNREADABLE) from error
    return made.getvalue(), blank


def _check_xlsx(inside: bytes) -> None:
    rows = columns = 1
    for found in _PLACE.finditer(inside):
        letters, digits = found[1].upper(), found[2]
        if len(letters) > 3 or len(digits) > 7:
            raise SetError(_UNREADABLE)
        place = 0
        for letter in letters:
            place = 26 * place + letter - 64
        rows, columns = max(rows, int(digits or 0)), max(columns, place)
    if rows * columns > MAX_CELLS:
        raise SetError(_TOO_WIDE)


def _checked_ods(inside: bytes) -> bytes:
    """Returns a sheet with its repetitions limited: an empty row is repeated to the end of the sheet."""

    def limited(found: re.Match[bytes]) -> bytes:
        kind, count = found[1], found[2] or found[3] or b""
        most = 1000 if kind == b"rows" else 256
        times = min(most, int(count)) if count.isdigit() and len(count) < 10 else 1
        return b'number-%s-repeated="%d"' % (kind, times)

    inside = _REPEATED.sub(limited, inside)
    rows = width = widest = 0
    for found in _ODS_TOKEN.finditer(inside):
        repeated = _REPEATED.search(found[2])
        times = int(repeated[2]) if repeated else 1
        if found[1] == b"table":
            rows = widest = 0
        elif found[1] == b"table-row":
            rows, width = rows + times, 0
        else:
            width += times
            widest = max(widest, width)
        if rows * widest > MAX_CELLS:
            raise SetError(_TOO_WIDE)
    return inside


def _text(value: object) -> str:
    """Returns a cell as text, as its reader sees it.

    >>> [_text(value) for value in (3.0, 0.1, True, date(2026, 5, 3), None)]
    ['3', '0.1', 'true', '2026-05-03', '']
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        return str(value.date() if value.time() == time() else value)
    return str(value) if isinstance(value, int | date | time | timedelta) else ""
