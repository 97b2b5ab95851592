"""TEMPORARY."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import msgspec

from app.sapo.sets.tables import _delimiter, decoded


@dataclass
class Grid:
    columns: list[str]
    rows: list[list[str]]
    heading: bool
    encoding: str
    notes: list[str]


def read_grid(content: bytes, *, heading: bool | None = None, encoding: str | None = None) -> Grid:
    if content[:2] == b"PK":
        import python_calamine

        got = python_calamine.load_workbook(io.BytesIO(content)).get_sheet_by_index(0).to_python()
        rows = [[str(c) for c in r] for r in got]
    else:
        text, _ = decoded(content)
        if text.lstrip()[:1] == "{":
            objs = [msgspec.json.decode(l) for l in text.split("\n") if l.strip()]
            cols = list(objs[0])
            return Grid(cols, [[str(o.get(c, "")) for c in cols] for o in objs], True, "utf-8", [])
        rows = [r for r in csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text)) if r]
    return Grid(rows[0], rows[1:], True, "utf-8", [])
