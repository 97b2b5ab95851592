"""The history for other programs: tables as CSV, or as JSON with everything in one object. Moments are in ISO
8601 with the zone, shares in [0, 1], names are those of app.node.record.records."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from app.node.record.records import Record

_MOMENTS = ("at", "started", "ended")


def as_csv(kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> str:
    """One line for each row below the names of its fields, also where there are none."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    names = [*kind.__struct_encode_fields__, *(kind.DERIVED if issubclass(kind, Record) else ())]
    write(names)
    for one in rows:
        plain = _plain(one)
        write(_cell(plain[name]) for name in names)
    return text.getvalue()


def as_json(lists: Mapping[str, Sequence[msgspec.Struct]]) -> str:
    """Every list under its name."""
    plain = {name: [_plain(one) for one in rows] for name, rows in lists.items()}
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n"


def _plain(one: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = one.whole() if isinstance(one, Record) else msgspec.to_builtins(one)
    found.pop("event", None)
    for name in _MOMENTS:
        if found.get(name) is not None:
            found[name] = datetime.fromtimestamp(found[name]).astimezone().isoformat(timespec="seconds")
    return found


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return "" if value is None else value
