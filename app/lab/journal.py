"""The journal of a study: a file of JSON lines for each arm and seed, a line a round, flushed as it happens.

A run is finished when its last line says so. Adapters are not saved, so an unfinished run starts again and its
file is written anew; nothing else in the folder is ever lost to a kill. Whole files (summary, table, plot) are
written beside their name and renamed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from app.common import files
from app.lab.arms import Arm, parse_arm, renewed
from app.lab.plan import Plan, Round

FOLDER = "rounds"
STUDY = "study.json"
SUMMARY = "summary.json"
NAME = re.compile(r"(?P<own>\d+)-(?P<peer>\d+)(?P<rest>.*)\.seed(?P<seed>\d+)\.jsonl")


class JournalError(Exception):
    """The folder cannot take this study. The message says why and what to do."""


class _End(msgspec.Struct, frozen=True, tag="end", tag_field="event"):
    """Last line of a finished run."""

    rounds: int


class Journal:
    """The records in one folder. Raises JournalError when the folder holds a study with another plan."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        if folder.exists() and not folder.is_dir():
            raise JournalError(f"{folder} is a file: choose a folder with --out.")
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
        kept = folder / STUDY
        if kept.exists():
            _same(kept, plan)
        else:
            files.write_json(kept, plan)

    def read(self, arm: Arm, seed: int) -> list[Round] | None:
        """The records of a finished run, None for one that is not there, was cut off or is damaged."""
        return read_run(self._path(arm, seed), self.plan.rounds)

    @contextmanager
    def run(self, arm: Arm, seed: int) -> Iterator[Run]:
        """A run being written; whatever an earlier, unfinished one left is replaced."""
        with self._path(arm, seed).open("wb") as file:
            yield Run(file)

    def _path(self, arm: Arm, seed: int) -> Path:
        return self.folder / FOLDER / f"{arm.key}.seed{seed}.jsonl"


def read_run(path: Path, rounds: int) -> list[Round] | None:
    """The records of a finished run of so many rounds, None for one that is not whole."""
    try:
        lines = path.read_bytes().splitlines()
        end = msgspec.json.decode(lines[-1], type=_End)
        records = [msgspec.json.decode(line, type=Round) for line in lines[:-1]]
    except (FileNotFoundError, IndexError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    complete = [record.round for record in records] == list(range(rounds + 1))
    return records if complete and end.rounds == rounds else None


class Run:
    """The file of one run."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def append(self, record: Round) -> None:
        self._write(msgspec.json.encode(record))

    def finish(self, rounds: int) -> None:
        self._write(msgspec.json.encode(_End(rounds)))
        os.fsync(self._file.fileno())

    def _write(self, line: bytes) -> None:
        self._file.write(line + b"\n")
        self._file.flush()


def renew(folder: Path) -> None:
    """Names the arms of a study from before `Plan.words` as today, in its files' names and its command. Killed
    on the way it is done the next time. Raises OSError and msgspec.MsgspecError."""
    plan = msgspec.json.decode((folder / STUDY).read_bytes(), type=dict[str, Any])
    if "words" in plan:
        return
    rounds, beside = folder / FOLDER, folder / f".{FOLDER}"  # two old names may be each other's new ones
    beside.mkdir(exist_ok=True)
    for path in [*rounds.iterdir()] if rounds.is_dir() else []:
        name = path.name
        if match := NAME.fullmatch(name):
            arm = renewed(f"{match['own']}/{match['peer']}{match['rest'].replace('@faithful', '')}")
            name = f"{parse_arm(arm, 'faithful').key}.seed{match['seed']}.jsonl"
        path.rename(beside / name)
    if rounds.is_dir():
        rounds.rmdir()
    beside.rename(rounds)
    summary = folder / SUMMARY
    if summary.is_file():
        told = msgspec.json.decode(summary.read_bytes(), type=dict[str, Any])
        if arms := re.search(r"(?<=--arms )\S+", told.get("command", "")):
            told["command"] = told["command"].replace(arms[0], ",".join(map(renewed, arms[0].split(","))))
            files.write_json(summary, told)
    files.write_json(folder / STUDY, plan | {"words": 2})


def _same(path: Path, plan: Plan) -> None:
    try:
        renew(path.parent)
        kept = msgspec.json.decode(path.read_bytes(), type=Plan)
    except msgspec.MsgspecError as error:
        raise JournalError(f"{path} cannot be read: delete the folder or choose another --out.") from error
    before, now = msgspec.to_builtins(kept), msgspec.to_builtins(plan)
    changed = [f"{name} {before[name]} there, {now[name]} now" for name in before if before[name] != now[name]]
    if changed:
        raise JournalError(
            f"{path.parent} holds a study with other settings ({'; '.join(changed)}): choose another --out, or "
            "give the same settings to go on with it."
        )
