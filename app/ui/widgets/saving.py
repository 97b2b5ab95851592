"""Saves what a page shows as a file that the person names: a text, or rows of the history as a table (CSV) for
other programs. Moments are in ISO 8601 with the zone, shares in [0, 1], names are those of
app.node.record.records."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtWidgets import QFileDialog, QWidget

from app.node.record.records import Record
from app.ui.language.texts import tr

_MOMENTS = ("at", "started", "ended")


def place_to_save(parent: QWidget | None, title: str, name: str) -> Path | None:
    """Asks where to save a file of this name; None if the person cancels."""
    start = Path.home() / name
    path, _ = QFileDialog.getSaveFileName(parent, title, str(start), f"*{start.suffix}")
    return Path(path) if path else None


def save_text(path: Path, text: str) -> tuple[bool, str]:
    """Writes a text. Returns whether that succeeded, and a sentence on it."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        return False, tr("{path} can't be written ({why}). Pick another place.", path=path, why=why)
    return True, tr("Saved as {path}.", path=path)


def as_csv(kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> str:
    """Returns CSV: a header of field names, even without rows, and one line per row."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    names = [*kind.__struct_encode_fields__, *(kind.DERIVED if issubclass(kind, Record) else ())]
    write(names)
    for one in rows:
        plain = _plain(one)
        write(_cell(plain[name]) for name in names)
    return text.getvalue()


def _plain(one: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = one.all_fields() if isinstance(one, Record) else msgspec.to_builtins(one)
    found.pop("event", None)
    for name in _MOMENTS:
        if found.get(name) is not None:
            found[name] = datetime.fromtimestamp(found[name]).astimezone().isoformat(timespec="seconds")
    return found


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return "" if value is None else value
