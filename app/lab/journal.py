"""The journal of a study: a JSON Lines file per arm and seed, one line per round, flushed after each.

A run is finished if its last line says so. Adapters are not saved, so an unfinished run starts again and its
file is overwritten; a kill loses nothing else in the folder. Other files (summary, table, plot) are written
atomically. A report packs the finished runs into one archive, from which a study continues as from the files; a
file has priority over the archive. Reports read only these records."""

from __future__ import annotations

import io
import lzma
import os
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import msgspec

from app.common import files
from app.common.files import read_json
from app.lab.arms import RECIPES, Arm, parse_arm
from app.lab.plan import LabRound, StudyPlan
from engines.remedy import command

FOLDER = "rounds"
PACKED = "rounds.tar.xz"
STUDY = "study.json"
SUMMARY = "summary.json"
NAME = re.compile(r"(?P<own>\d+)-(?P<peer>\d+)(?P<rest>.*)\.seed(?P<seed>\d+)\.jsonl")


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
        return read_run(self._kept.get(self._path(arm, seed).name), self.plan.rounds)

    @contextmanager
    def open_run(self, arm: Arm, seed: int) -> Iterator[RunFile]:
        """Opens the file of a run for writing; overwrites an earlier, unfinished one."""
        path = self._path(arm, seed)
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            yield RunFile(file)
        self._kept[path.name] = path.read_bytes()

    @cached_property
    def _kept(self) -> dict[str, bytes]:
        return run_files(self.folder)

    def _path(self, arm: Arm, seed: int) -> Path:
        return self.folder / FOLDER / f"{arm.key}.seed{seed}.jsonl"


def run_files(folder: Path) -> dict[str, bytes]:
    """The contents of the runs' files by name, from the archive and the folder, which has priority. Raises
    JournalError if the archive cannot be read."""
    found = {}
    try:
        if (folder / PACKED).is_file():
            whole = io.BytesIO(lzma.decompress((folder / PACKED).read_bytes()))  # tar would not see a cut end
            with tarfile.open(fileobj=whole) as archive:
                for member in archive:
                    if NAME.fullmatch(member.name) and (file := archive.extractfile(member)) is not None:
                        found[member.name] = file.read()
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        raise JournalError(
            f"{folder / PACKED} cannot be read ({error}): fetch it again or delete it."
        ) from error
    loose = {path.name: path for path in (folder / FOLDER).glob("*.jsonl")}
    return found | {name: path.read_bytes() for name, path in loose.items() if NAME.fullmatch(name)}


def pack(folder: Path, rounds: int) -> None:
    """Packs the finished runs of a study into its archive, reproducibly, and deletes their files. A kill in
    between loses none."""
    loose = [*(folder / FOLDER).glob("*.jsonl")]
    finished = {name: run for name, run in run_files(folder).items() if read_run(run, rounds) is not None}
    done = [path for path in loose if path.name in finished]
    if not done:
        return
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        for name, run in sorted(finished.items()):
            member = tarfile.TarInfo(name)
            member.size = len(run)
            archive.addfile(member, io.BytesIO(run))
    files.write(folder / PACKED, packed.getvalue())
    for path in done:
        path.unlink()
    with suppress(OSError):
        (folder / FOLDER).rmdir()


def read_run(run: bytes | None, rounds: int) -> list[LabRound] | None:
    """The records of a finished run of this many rounds; None if it is incomplete."""
    try:
        lines = (run or b"").splitlines()
        end = msgspec.json.decode(lines[-1], type=_End)
        records = [msgspec.json.decode(line, type=LabRound) for line in lines[:-1]]
    except (IndexError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    complete = [record.round for record in records] == list(range(rounds + 1))
    return records if complete and end.rounds == rounds else None


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


def read_plan(path: Path) -> StudyPlan:
    """Reads a study's plan. Raises OSError and msgspec.MsgspecError, also if its arms have an older meaning
    (`StudyPlan.words`)."""
    content = path.read_bytes()
    if b'"words"' not in content:
        raise msgspec.ValidationError("its arms are named as before")
    return msgspec.json.decode(content, type=StudyPlan)


def _same(path: Path, plan: StudyPlan) -> None:
    try:
        there = read_plan(path)
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


ABOUT = "about.md"
"""File with people's remarks on a study: its question, what did not work. The figures come from the records."""


class _Summary(msgspec.Struct, frozen=True):
    """The only key of summary.json that a report needs."""

    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study read from its folder: the plan, the command that made it, and people's remarks. `runs` contains
    finished runs only, by the arm's key and the seed."""

    folder: Path
    plan: StudyPlan
    command: str
    about: str
    arms: list[Arm]
    runs: Mapping[str, Mapping[int, Sequence[LabRound]]]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def finished(self) -> int:
        return sum(map(len, self.runs.values()))

    @property
    def planned(self) -> int:
        """Number of runs that the command makes in all, at least the number finished."""
        arms, seeds = re.search(r"--arms (\S+)", self.command), re.search(r"--seeds (\d+)", self.command)
        wanted = len(arms[1].split(",")) * int(seeds[1]) if arms and seeds else 0
        return max(wanted, self.finished)

    def arm(self, text: str) -> Arm | None:
        """The arm of this text (recipe `faithful` unless named), if any of its runs is finished; else None."""
        key = parse_arm(text, "faithful").key
        return next((arm for arm in self.arms if arm.key == key), None)


def read_study(folder: Path) -> Study:
    """Reads a study. Raises JournalError if the folder contains none, or no finished run."""
    try:
        plan = read_plan(folder / STUDY)
    except (OSError, msgspec.MsgspecError) as error:
        how = command("lab --out")
        raise JournalError(f"{folder} holds no study ({error}): make one with {how}.") from error
    arms: dict[str, Arm] = {}
    runs: dict[str, dict[int, list[LabRound]]] = {}
    for name, run in sorted(run_files(folder).items()):
        match, records = NAME.fullmatch(name), read_run(run, plan.rounds)
        if match is None or records is None:
            continue
        arm = _arm(match)
        arms[arm.key] = arm
        runs.setdefault(arm.key, {})[int(match["seed"])] = records
    if not runs:
        raise JournalError(f"{folder} holds no finished run yet: the command that began it goes on.")
    return Study(
        folder=folder,
        plan=plan,
        arms=sorted(arms.values(), key=_order),
        runs=runs,
        command=command_of(folder),
        about=about_of(folder),
    )


def _arm(match: re.Match[str]) -> Arm:
    """The arm that a file is named after; its recipe is `faithful` unless the name contains one."""
    rest = match["rest"].replace("@faithful", "")
    return parse_arm(f"{match['own']}/{match['peer']}{rest}", "faithful")


def _order(arm: Arm) -> tuple[bool, tuple[tuple[str, str], ...], int, bool, int]:
    """Sort key of arms: controls last, then by options, recipe, dynamic sampling, and from most to fewest own
    groups."""
    return arm.shuffled, arm.extras, [*RECIPES].index(arm.recipe), arm.dynamic, -arm.own


def command_of(folder: Path) -> str:
    """The command line that made the files in `folder`; empty if its summary lacks it."""
    found = read_json(folder / SUMMARY, _Summary)
    return found.command if found else ""


def about_of(folder: Path) -> str:
    """Returns the remarks that people wrote in `folder`; empty if it has none."""
    about = folder / ABOUT
    return about.read_text(encoding="utf-8").strip() if about.is_file() else ""
