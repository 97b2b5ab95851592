"""The history for other programs: tables as CSV, or as JSON with everything in one object. Moments are in ISO
8601 with the zone, shares in [0, 1], names are those of app.ui.model."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

_MOMENTS = ("at", "started", "ended")


def as_csv(kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> str:
    """One line for each row below the names of its fields, also where there are none."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(kind.__struct_fields__)
    for one in rows:
        write("" if value is None else value for value in _plain(one).values())
    return text.getvalue()


def as_json(lists: Mapping[str, Sequence[msgspec.Struct]]) -> str:
    """Every list under its name."""
    plain = {name: [_plain(one) for one in rows] for name, rows in lists.items()}
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n"


def _plain(one: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(one)
    for name in _MOMENTS:
        if found.get(name) is not None:
            found[name] = datetime.fromtimestamp(found[name]).astimezone().isoformat(timespec="seconds")
    return found
