"""Signed groups in a file: a relay's day, or one model's own groups, passed on without a relay.

A line is a swarm's id and a group's envelope, as they were on the wire (app.swarm.wire.body), so files can be
put together with `cat`. Reading trusts nothing: bytes, lines and time are bounded here, and each group goes
through `Intake` like one that a relay sent. Only its age and its author's rate are no reason to refuse it.

Not checked: whether two keys are two people. A relay knows from which networks its groups came, a file does
not. Whoever imports a file trusts nobody by that: its answers are taught like any stranger's
(app.learning.teachable), whose words never are, however many keys signed them."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import stat
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from app.common import files
from app.common.text import safe_line
from app.sapo.groups import GroupRecord
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.intake import Intake
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.body import Envelope, SwarmId
from app.swarm.wire.limits import MAX_BODY_BYTES, RELAY_FILE, SAFE_INTEGER, Quotas

FILE = "archive.jsonl"
"""Name of the file in the data folder with the groups that its owner imported."""
MAX_BYTES, MAX_GROUPS = 64_000_000, 20_000
"""Bytes of a file that are read, and groups of it; as many unreadable lines end the reading. The data folder
keeps as much."""
MAX_CHECK_S = 900.0
"""Seconds of one check: of 20,000 honest groups it is a fraction, and puzzles may be chosen to take long."""
_LINE = 2 * MAX_BODY_BYTES
_ANY_AGE_S = 20 * 365 * 24 * 3600
_NO_RATE = Quotas(publish_per_min=SAFE_INTEGER, publish_burst=SAFE_INTEGER)


class ArchiveError(Exception):
    """The file is not an archive; the message says what to do."""


class ArchivedGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of an archive file."""

    swarm: SwarmId
    group: Envelope


class ReadArchive(NamedTuple):
    """The groups of a file, the number of unreadable lines, and whether the file has more than was read."""

    lines: list[ArchivedGroup]
    unreadable: int
    more: bool


def read(path: Path) -> ReadArchive:
    """Reads an archive file. Raises ArchiveError if it contains no group, and OSError."""
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe waits for its writer
        raise ArchiveError(
            f"{safe_line(path.name)} isn't a file: choose one that “shoal archive export” has written."
        )
    decoder, unreadable = msgspec.json.Decoder(ArchivedGroup), 0
    found: list[ArchivedGroup] = []
    with path.open("rb") as file:
        left = MAX_BYTES
        while left > 0 and max(len(found), unreadable) < MAX_GROUPS and (line := file.readline(_LINE)):
            left -= len(line)
            try:
                found.append(decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                unreadable += 1
        more = bool(file.read(1))
    if not found:
        name = safe_line(path.name)
        raise ArchiveError(
            f"{name} has no groups in it: choose a file that “shoal archive export” has written."
        )
    return ReadArchive(found, unreadable, more)


def check_groups(
    lines: Iterable[ArchivedGroup], sandbox: Sandbox, own_keys: Iterable[bytes], now_ms: int
) -> Iterator[tuple[ArchivedGroup, GroupRecord | IntakeReason]]:
    """Checks each group against its own swarm; yields the line with the GroupRecord or the reason for refusal
    (UNCHECKED once MAX_CHECK_S is used up). One intake serves all swarms, so that an author's record carries
    over. Blocks while it scores every answer. Raises SandboxError."""
    intake = Intake(sandbox, "", own_keys, per_author=_NO_RATE)
    ends = time.monotonic() + MAX_CHECK_S
    for line in lines:
        if time.monotonic() > ends:
            yield line, IntakeReason.UNCHECKED
        else:
            yield line, intake.check(line.group, now_ms, _ANY_AGE_S, swarm=line.swarm)


def write(path: Path, lines: Iterable[ArchivedGroup]) -> int:
    """Writes a file atomically; returns its number of groups. Raises OSError."""
    unique = {line.group.id: line for line in lines}
    files.write(path, b"".join(map(_encoded, unique.values())))
    return len(unique)


def keep(home: Path, lines: Sequence[ArchivedGroup]) -> int:
    """Adds checked groups to the data folder's archive, as many as fit; returns its number of groups. Raises
    OSError."""
    kept: list[ArchivedGroup] = []
    if (path := home / FILE).exists():
        with contextlib.suppress(ArchiveError):  # damaged: the new content replaces it
            kept = read(path).lines
    return write(path, select_within_limits([*kept, *lines]))


def select_within_limits(
    lines: Iterable[ArchivedGroup], most: int = MAX_GROUPS, most_bytes: int = MAX_BYTES
) -> list[ArchivedGroup]:
    """Returns the groups that fit the limits, in their order. Takes each author's latest in turn, so that an
    author with many groups displaces only its own."""
    unique = {line.group.id: line for line in lines}
    of_author: Counter[str] = Counter()
    ranked: list[tuple[int, str, int]] = []
    for id, line in reversed(unique.items()):
        ranked.append((of_author[line.group.pk], id, len(_encoded(line))))
        of_author[line.group.pk] += 1
    stays: set[str] = set()
    for _, id, size in sorted(ranked, key=lambda one: one[0])[:most]:
        most_bytes -= size
        if most_bytes < 0:
            break
        stays.add(id)
    return [line for id, line in unique.items() if id in stays]


def _encoded(line: ArchivedGroup) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def read_relay_archive(state: Path) -> Iterator[ArchivedGroup]:
    """Yields the groups archived in a relay's folder, even while it runs. Raises ArchiveError if there is no
    archive or it can't be read."""
    if not (state / RELAY_FILE).exists():
        raise ArchiveError(f"{state} is no relay's folder with an archive: name the folder that --state named.")
    decoder = msgspec.json.Decoder(Envelope)
    with tempfile.TemporaryDirectory() as copies:
        try:
            for part in state.glob(f"{RELAY_FILE}*"):  # a running relay locks the file
                shutil.copy(part, copies)
            with closing(sqlite3.connect(Path(copies) / RELAY_FILE)) as db:
                (swarm,) = db.execute("SELECT is_ FROM facts WHERE what = 'swarm'").fetchone()
                for (raw,) in db.execute("SELECT raw FROM groups ORDER BY arrived_ms"):
                    yield ArchivedGroup(swarm=swarm, group=decoder.decode(raw))
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            raise ArchiveError(f"{RELAY_FILE} can't be read ({error}): try again in a minute.") from error
