"""The owner's question sets: one readable file each in HOME/questions, named by its mark.

`register_sets` registers a data folder's sets as families in this process. Call it even if no set is switched
on, because a history may mention any of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from app.common import files
from app.node.data.home import SKILLS
from app.node.record.errors import raising_disk_full
from app.sapo.families import FAMILIES
from app.sapo.sets.amending import Amended, amended
from app.sapo.sets.question_set import QuestionSet, Row, SetError, check, decode, encode, family

FOLDER = "questions"
_PATIENCE_S = 60.0
"""Seconds that rows to be added wait for others that are being added."""
OFFERED_FOLDER = "offered"
"""Folder of sets that a class hands out, until their owner accepts or declines them."""
_DECLINED = ".no"
SHARED_SUFFIX = ".shared"
"""Suffix of the empty file that marks a set as shared."""
MAX_SETS = 64
SET_SUFFIXES = (".csv", ".tsv", ".xlsx", ".xls", ".ods", ".json", ".jsonl", ".md", ".txt")
"""Suffixes of files that can be imported as a set."""


class KeptSet(msgspec.Struct, frozen=True, kw_only=True):
    file: Path
    made: QuestionSet

    @property
    def _yes(self) -> Path:
        return self.file.with_suffix(SHARED_SUFFIX)

    @property
    def shares_answers(self) -> bool:
        """Whether its owner shares answers to it, in private swarms only, with peers that have an identical
        file."""
        return self._yes.exists()

    def share(self, yes: bool) -> None:
        """Turns sharing on or off. Raises OSError."""
        if yes:
            self._yes.touch(mode=0o600)
        else:
            self._yes.unlink(missing_ok=True)


def stored_sets(home: Path, under: str = "") -> list[KeptSet]:
    """Returns all sets, sorted by name. Unreadable files are skipped."""
    found = []
    with suppress(OSError):
        for file in sorted((home / FOLDER / under).glob("*.json")):
            with suppress(OSError, SetError):
                found.append(KeptSet(file=file, made=decode(file.read_bytes())))
    return sorted(found, key=lambda one: (one.made.name.casefold(), one.file.name))


def register_sets(home: Path) -> list[KeptSet]:
    """Returns all sets after registering their families in this process."""
    found = stored_sets(home)
    for one in found:
        FAMILIES.enable(family(one.made))
    return found


def find(sets: Iterable[KeptSet], name: str) -> KeptSet:
    """Returns the set with this name or hash. Raises SetError."""
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
    """Checks and stores a set; the same content added again takes the new name. Raises SetError, and
    DiskFullError or OSError if it cannot be written; then nothing is stored."""
    check(made)
    sets = stored_sets(home)
    for one in sets:
        if one.made.mark == made.mark and one.made.content_mark != made.content_mark:
            raise SetError(
                f"{one.made.name} began with these rows and has changed since. Add rows to it with --to, or "
                "delete it first."
            )
    others = [one for one in sets if one.made.mark != made.mark]
    if any(one.made.name.casefold() == made.name.casefold() for one in others):
        raise SetError(f"There is another set called {made.name!r}. Give this one another name.")
    if len(others) >= MAX_SETS:
        raise SetError(f"{MAX_SETS} question sets are kept at most. Remove one first.")
    return _store(home, made)


def amend(home: Path, name: str, rows: Sequence[Row]) -> Amended:
    """Adds rows to the set with this name or mark, as it is stored now, and corrects those that it has. A skill
    learned from it goes on with them at its next start; a node that is learning it keeps the rows that it began
    with. Raises SetError, and DiskFullError or OSError if it cannot be written; then nothing is changed."""
    with raising_disk_full(home), files.exclusive_lock(home / FOLDER / ".lock", _PATIENCE_S):
        found = amended(find(stored_sets(home), name).made, rows)
        _store(home, found.made)
    return found


def _store(home: Path, made: QuestionSet) -> KeptSet:
    file = home / FOLDER / f"{made.mark}.json"
    with raising_disk_full(home):
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write(file, encode(made), private=True)
    FAMILIES.enable(family(made))
    return KeptSet(file=file, made=made)


def copy_sets(sets: Iterable[KeptSet], folder: Path) -> list[Path]:
    """Writes the sets as this process knows them to files in `folder`, for a child that is started again and
    must not find rows that were added meanwhile. Raises OSError."""
    found = []
    for one in sets:
        found.append(folder / one.file.name)
        found[-1].write_bytes(encode(one.made))
    return found


def store_offered_set(home: Path, content: str) -> bool:
    """Stores a set handed out by a class, for the owner to look at; nothing in it is executed. Returns False if
    it is here already, was declined, or is invalid. Raises DiskFullError and OSError."""
    try:
        made = decode(content.encode("utf-8", "replace"))
        check(made)
    except SetError:
        return False
    if made.began or any(row.held_out is not None or row.amended for row in made.rows):
        return False  # only the owner who made the set chooses the held-out rows
    folder = home / FOLDER / OFFERED_FOLDER
    file = folder / f"{made.mark}.json"
    known = [(home / FOLDER / file.name), file, file.with_suffix(_DECLINED)]
    if any(one.exists() for one in known) or len(list(folder.glob("*"))) >= MAX_SETS:
        return False
    with raising_disk_full(home):
        folder.mkdir(parents=True, exist_ok=True)
        files.write(file, encode(made), private=True)
    return True


def pending_class_sets(home: Path) -> list[KeptSet]:
    """Returns the sets handed out by classes that the owner has not accepted or declined."""
    return [one for one in stored_sets(home, OFFERED_FOLDER) if not (home / FOLDER / one.file.name).exists()]


def decline(one: KeptSet) -> None:
    """Marks an offered set as declined, so that it is not shown again. Raises OSError."""
    one.file.rename(one.file.with_suffix(_DECLINED))


def remove(home: Path, one: KeptSet) -> None:
    """Deletes a set's file, and what was learned from it. Raises OSError."""
    one.share(False)
    one.file.unlink(missing_ok=True)
    for folder in home.glob(f"models/*/{SKILLS}/*-{one.made.mark}"):
        files.discard(folder)
