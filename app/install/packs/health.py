"""Whether an engine is as it was installed, and whether the one in use works: its Python starts, and what it
promises can be imported. Writes nothing, so it can be asked at any time, also where packs cannot be written."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import tempfile
from pathlib import Path

from app.common.files import read_json
from app.install.packs import place, programs
from app.install.packs.errors import PackError
from app.install.packs.manifest import PackManifest


def fault(root: Path) -> str:
    """A sentence where the engine in use cannot compute; else empty. Takes some seconds."""
    used = place.current(root).current
    if not used or not place.interpreter(root / used).exists():
        return place.lacking()
    made_of = read_json(root / f"{used}.json", PackManifest)
    if made_of is None:
        return "The engine is damaged: repair it, or install it again."
    with tempfile.TemporaryDirectory() as work, open(os.devnull, "rb") as nothing:
        try:
            programs.check(root / used, made_of.imports, Path(work), nothing.fileno())
        except PackError as error:
            return str(error)
    return ""


def damaged(environment: Path) -> str:
    """The first file of an environment's packages that is not as it was installed; empty when all are."""
    for record in sorted(environment.rglob("*.dist-info/RECORD")):
        with record.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                if len(row) != 3 or not row[1].startswith("sha256="):
                    continue
                path = record.parent.parent / row[0]
                try:
                    with path.open("rb") as content:
                        found = hashlib.file_digest(content, "sha256").digest()
                except OSError:
                    return f"{row[0]} is missing"
                if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != row[1].removeprefix("sha256="):
                    return f"{row[0]} is damaged"
    return ""
