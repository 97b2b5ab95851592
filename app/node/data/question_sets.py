"""The owner's question sets: one readable file each in HOME/questions, named by the hash of its content.

`enabled` makes a data folder's sets known to this process. What runs with none of them switched on still needs
that, since a history may speak of any.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from app.common import files
from app.node.record.errors import room_on_disk
from app.sapo.families import FAMILIES
from app.sapo.sets.question_set import QuestionSet, SetError, check, decode, encode, family

FOLDER = "questions"
MOST = 64
ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".txt")
"""Endings of files that may become a set."""
SHARES = {"only": 1.0, "half": 0.5, "little": 0.15}
"""The owner's sets' share of a round's questions, by the word for it."""


class KeptSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set in the data folder."""

    file: Path
    made: QuestionSet


def kept(home: Path) -> list[KeptSet]:
    """All sets by name. A file that can't be read is left out."""
    found = []
    with suppress(OSError):
        for file in sorted((home / FOLDER).glob("*.json")):
            with suppress(OSError, SetError):
                found.append(KeptSet(file=file, made=decode(file.read_bytes())))
    return sorted(found, key=lambda one: (one.made.name.casefold(), one.file.name))


def enabled(home: Path) -> list[KeptSet]:
    """All sets; from now on this process knows their families."""
    found = kept(home)
    for one in found:
        FAMILIES.enable(family(one.made))
    return found


def find(sets: Iterable[KeptSet], name: str) -> KeptSet:
    """The set with this name or hash. Raises SetError."""
    sets = list(sets)
    for one in sets:
        if name.casefold() == one.made.name.casefold() or name in (one.made.mark, one.made.family_name):
            return one
    names = [one.made.name for one in sets]
    near = difflib.get_close_matches(name, names, n=1)
    known = (
        f"Did you mean {near[0]}?"
        if near
        else f"There are: {', '.join(names)}."
        if names
        else "There are none."
    )
    raise SetError(f"There is no question set called {name[:60]!r}. {known}")


def add(home: Path, made: QuestionSet) -> KeptSet:
    """Checks a set and stores it; the same content added again takes the new name. Raises SetError, and
    DiskFullError or OSError if the disk refuses; then nothing is stored."""
    check(made)
    others = [one for one in kept(home) if one.made.mark != made.mark]
    if any(one.made.name.casefold() == made.name.casefold() for one in others):
        raise SetError(f"There is another set called {made.name!r}. Give this one another name.")
    if len(others) >= MOST:
        raise SetError(f"{MOST} question sets are kept at most. Remove one first.")
    folder = home / FOLDER
    with room_on_disk(home):
        folder.mkdir(parents=True, exist_ok=True)
        files.write(folder / f"{made.mark}.json", encode(made), private=True)
    FAMILIES.enable(family(made))
    return KeptSet(file=folder / f"{made.mark}.json", made=made)


def remove(one: KeptSet) -> None:
    """Deletes a set's file; what was learned from it stays in the model. Raises OSError."""
    one.file.unlink(missing_ok=True)
