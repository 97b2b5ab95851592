"""The release notes of a version: notes/VERSION.md, one heading for each language and its lines below.

## en
- A line.
## de
- Eine Zeile.

The app shows the lines in its owner's language, the release's page those in English.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "notes"
LONGEST, MAX = 300, 20
"""Maximum characters of a line and lines of a language, as in app.install.updates.feed."""


class NotesError(Exception):
    """The notes are invalid; one sentence says which line, and what to do."""


def read(version: str, folder: Path = FOLDER) -> dict[str, list[str]]:
    """Reads the release notes of a version: lines by language code. Raises NotesError."""
    path = folder / f"{version}.md"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        raise NotesError(f"{path} is missing: write there what is new, a line for each thing.") from None
    found: dict[str, list[str]] = {}
    language = ""
    for line in text.splitlines():
        if heading := re.fullmatch(r"## ([a-z]{2})", line):
            language = heading[1]
            found[language] = []
        elif line.startswith("- ") and language:
            found[language].append(line[2:].strip())
        elif line.startswith("  ") and language and found[language]:
            found[language][-1] += f" {line.strip()}"
        elif line.strip():
            raise NotesError(f"{path.name} has a line that is neither a heading nor a thing: {line[:60]!r}.")
    if not found.get("en"):
        raise NotesError(f"{path.name} says nothing in English: write lines below ## en.")
    for language, lines in found.items():
        if len(lines) > MAX or any(len(line) > LONGEST for line in lines):
            raise NotesError(
                f"{path.name} says too much in {language}: {MAX} lines of {LONGEST} letters at most."
            )
    return found
