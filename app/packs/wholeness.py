"""Whether an environment is as it was installed: every file against the record that its wheel brought."""

from __future__ import annotations

import base64
import csv
import hashlib
from pathlib import Path


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
