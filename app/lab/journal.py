"""The journal of a study: a JSON Lines file per arm and seed, one line per round, flushed after each.

A run is finished if its last line says so. Adapters are not saved, so an unfinished run starts again and its
file is overwritten; a kill loses nothing else in the folder. Other files (summary, table, plot) are written
atomically. Reports read only these records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from app.common import files
from app.lab.arms import Arm
from app.lab.plan import LabRound, StudyPlan

FOLDER = "rounds"
STUDY = "study.json"


class JournalError(Exception):
    """The folder cannot be used for this study. The message says why and what to do."""


class _End(msgspec.Struct, frozen=True, tag="end", tag_field="event"):
    """The last line of a finished run."""

    rounds: int


class StudyJournal:
    """The records in one folder. Raises JournalError if the folder contains a study with another plan."""

    def __init__(self, folder: Path, plan: StudyPlan) -> None:
        self.folder, self.plan = folder, plan
        if folder.exists() and not folder.is_dir():
            raise JournalError(f"{folder} is a file: choose a folder with --out.")
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / STUDY).exists():
            _same(folder / STUDY, plan)
        else:
            files.write_json(folder / STUDY, plan)

    def read(self, arm: Arm, seed: int) -> list[LabRound] | None:
        """The records of a finished run; None if it is missing, incomplete or damaged."""
        try:
            lines = self._path(arm, seed).read_bytes().splitlines()
            end = msgspec.json.decode(lines[-1], type=_End)
            records = [msgspec.json.decode(line, type=LabRound) for line in lines[:-1]]
        except (OSError, IndexError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        complete = [record.round for record in records] == list(range(self.plan.rounds + 1))
        return records if complete and end.rounds == self.plan.rounds else None

    @contextmanager
    def open_run(self, arm: Arm, seed: int) -> Iterator[RunFile]:
        """Opens the file of a run for writing; overwrites an earlier, unfinished one."""
        path = self._path(arm, seed)
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            yield RunFile(file)

    def _path(self, arm: Arm, seed: int) -> Path:
        return self.folder / FOLDER / f"{arm.key}.seed{seed}.jsonl"


class RunFile:
    """The open file of one run."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def append(self, record: LabRound) -> None:
        self._write(msgspec.json.encode(record))

    def finish(self, rounds: int) -> None:
        self._write(msgspec.json.encode(_End(rounds)))
        os.fsync(self._file.fileno())

    def _write(self, line: bytes) -> None:
        self._file.write(line + b"\n")
        self._file.flush()


def _same(path: Path, plan: StudyPlan) -> None:
    try:
        there = msgspec.json.decode(path.read_bytes(), type=StudyPlan)
    except msgspec.MsgspecError as error:
        raise JournalError(
            f"{path} cannot be read ({error}): delete the folder or choose another --out."
        ) from error
    before, now = msgspec.to_builtins(there), msgspec.to_builtins(plan)
    changed = [f"{name} {before[name]} there, {now[name]} now" for name in before if before[name] != now[name]]
    if changed:
        raise JournalError(
            f"{path.parent} holds a study with other settings ({'; '.join(changed)}): choose another --out, or "
            "give the same settings to go on with it."
        )
