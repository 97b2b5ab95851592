"""Signed groups in a file: a relay's day, or one model's own groups, passed on without a relay.

A line is a swarm's id and a group's envelope, as they were on the wire (app.swarm.wire.body), so files can be
joined with `cat`. Reading trusts nothing: lines and sizes are bounded here, and each group goes through
`Intake` like one that a relay sent. Only its age and its author's rate are no reason to refuse it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from app.common import files
from app.learning.choosing import PeerGroup
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.intake import Intake
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.body import Envelope, SwarmId
from app.swarm.wire.limits import BODY, SAFE_INTEGER, Quotas

FILE = "archive.jsonl"
"""In the data folder: the groups that its owner imported."""
MOST_BYTES, MOST_GROUPS = 64_000_000, 20_000
"""Bytes of a file that are read, and groups that are kept in the data folder; those imported last stay."""
_LINE = 2 * BODY
_ANY_AGE_S = 20 * 365 * 24 * 3600
_NO_RATE = Quotas(publish_per_min=SAFE_INTEGER, publish_burst=SAFE_INTEGER)


class ArchiveError(Exception):
    """A file that is not an archive; the message says what to do."""


class ArchivedGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of the file."""

    swarm: SwarmId
    group: Envelope


class CheckedArchive(msgspec.Struct, frozen=True, kw_only=True):
    """The groups that passed the checks, in the file's order, and how many did not, by reason."""

    lines: tuple[ArchivedGroup, ...]
    groups: tuple[PeerGroup, ...]
    refused: dict[IntakeReason, int]


def read(path: Path) -> tuple[list[ArchivedGroup], int]:
    """The file's lines, and how many could not be read. Raises ArchiveError if none can, and OSError."""
    decoder, unreadable = msgspec.json.Decoder(ArchivedGroup), 0
    found: list[ArchivedGroup] = []
    with path.open("rb") as file:
        left = MOST_BYTES
        while left > 0 and len(found) < MOST_GROUPS and (line := file.readline(_LINE)):
            left -= len(line)
            try:
                found.append(decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                unreadable += 1
    if not found:
        raise ArchiveError(
            f"{path.name} has no groups in it: choose a file that “shoal archive export” has written."
        )
    return found, unreadable


def check(
    lines: Sequence[ArchivedGroup], sandbox: Sandbox, own_keys: Iterable[bytes], now_ms: int
) -> CheckedArchive:
    """Puts each group through the checks of its swarm. Blocking: scores every answer. Raises SandboxError."""
    keys = tuple(own_keys)
    intakes: dict[str, Intake] = {}
    passed: list[tuple[ArchivedGroup, PeerGroup]] = []
    refused: Counter[IntakeReason] = Counter()
    for line in lines:
        if (intake := intakes.get(line.swarm)) is None:
            intake = intakes[line.swarm] = Intake(sandbox, line.swarm, keys, per_author=_NO_RATE)
        verdict = intake.check(line.group, now_ms, _ANY_AGE_S)
        if isinstance(verdict, PeerGroup):
            passed.append((line, verdict))
        else:
            refused[verdict] += 1
    return CheckedArchive(
        lines=tuple(line for line, _ in passed),
        groups=tuple(group for _, group in passed),
        refused=dict(refused),
    )


def write(path: Path, lines: Iterable[ArchivedGroup]) -> int:
    """Writes a file, whole or not at all; returns its number of groups. Raises OSError."""
    unique = {line.group.id: line for line in lines}
    files.write(path, b"".join(msgspec.json.encode(line) + b"\n" for line in unique.values()))
    return len(unique)


def keep(home: Path, lines: Sequence[ArchivedGroup]) -> int:
    """Adds checked groups to those of the data folder; returns how many are there now. Raises OSError."""
    kept: list[ArchivedGroup] = []
    if (path := home / FILE).exists():
        try:
            kept, _ = read(path)
        except ArchiveError:
            kept = []  # damaged: what comes takes its place
    return write(path, [*kept, *lines][-MOST_GROUPS:])


def of_relay(state: Path) -> Iterator[ArchivedGroup]:
    """The groups in a relay's folder, whether it runs or not. Raises ArchiveError if it has no archive."""
    found = sorted(state.glob("archive-*.sqlite3"))
    if not found:
        raise ArchiveError(f"{state} is no relay's folder with an archive: name the folder that --state named.")
    decoder = msgspec.json.Decoder(Envelope)
    with tempfile.TemporaryDirectory() as copies:
        for file in found:
            swarm = file.stem.removeprefix("archive-")
            try:
                for part in state.glob(f"{file.name}*"):  # a running relay keeps the file to itself
                    shutil.copy(part, copies)
                with closing(sqlite3.connect(Path(copies) / file.name)) as db:
                    for (raw,) in db.execute("SELECT raw FROM groups ORDER BY arrived_ms"):
                        yield ArchivedGroup(swarm=swarm, group=decoder.decode(raw))
            except (sqlite3.Error, msgspec.MsgspecError) as error:
                raise ArchiveError(f"{file.name} can't be read ({error}): try again in a minute.") from error
