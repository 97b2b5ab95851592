"""Feeds groups that were imported from a file to rounds that imitate them; works without a relay.

`shoal archive import` checks a file and puts its groups into the data folder. A node checks them again, because
its version may have changed since, and adds them to its `PeerBuffer`, where they wait to be
imitated (app.learning.imitation) like those of any stranger. No socket is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from app.node.history import history
from app.sapo.families import FAMILIES
from app.sapo.groups import GroupRecord, informative
from app.sapo.questions import QUESTIONS_VERSION
from app.sapo.scoring.sandbox import Sandbox, SandboxError, SandboxSuspended
from app.swarm.identity.identity import Identity, IdentityError
from app.swarm.identity.storage import public_identity
from app.swarm.intake import archive
from app.swarm.intake.archive import ArchivedGroup, ArchiveError
from app.swarm.intake.buffer import MAX_WAITING_PER_FAMILY, PeerBuffer
from app.swarm.intake.reasons import IntakeReason
from app.swarm.wire.body import Body, public_model_name, seal, task_of
from app.swarm.wire.limits import Refused

SWARM = "handed-on"
"""The swarm id in the signatures of a model's own groups that are exported to a file."""
MAX_OWN_OF_LEVEL = 64
"""Maximum own groups of one family and level in a file; the latest are taken."""
_LOOK_S = 20.0
"""Seconds between two checks for a newly imported file."""
_AT_ONCE = 256
"""Groups checked in one batch, after which they can be taught."""


async def feed(home: Path, sandbox: Sandbox, buffer: PeerBuffer) -> None:
    """Adds imported groups to a buffer, now and whenever the owner imports more. Runs until it is cancelled, or
    until the scoring process cannot be started (rounds report that, too)."""
    seen: float | None = None
    left: list[ArchivedGroup] = []
    while True:
        try:
            changed = (home / archive.FILE).stat().st_mtime
            if changed != seen:
                seen = changed
                left = await asyncio.to_thread(_latest, home / archive.FILE)
            while left and buffer.knows_trained_families:
                for line, group in await asyncio.to_thread(_checked, home, sandbox, left[:_AT_ONCE]):
                    if isinstance(group, GroupRecord):
                        buffer.imported.add(line.group.pk)
                        buffer.add(group)
                del left[:_AT_ONCE]
        except (OSError, ArchiveError, SandboxSuspended):
            pass  # none was imported, it is being replaced, or the node is paused
        except SandboxError:
            return
        await asyncio.sleep(_LOOK_S if buffer.knows_trained_families and not left else 1.0)


def _latest(file: Path) -> list[ArchivedGroup]:
    """Returns for each family as many groups as may ever wait, for two levels: checking everything would take
    minutes at every start. Raises ArchiveError and OSError."""
    families: dict[str, list[ArchivedGroup]] = {}
    for line in archive.read(file).lines:
        with contextlib.suppress(Refused, msgspec.MsgspecError):  # the file was changed since it was imported
            families.setdefault(task_of(line.group).family, []).append(line)
    return [
        line
        for some in families.values()
        for line in archive.select_within_limits(some, 2 * MAX_WAITING_PER_FAMILY)
    ]


def _checked(
    home: Path, sandbox: Sandbox, lines: Sequence[ArchivedGroup]
) -> list[tuple[ArchivedGroup, GroupRecord | IntakeReason]]:
    return list(archive.check_groups(lines, sandbox, own_keys(home), time.time_ns() // 1_000_000))


def own_keys(home: Path) -> list[bytes]:
    """Returns the public key of this data folder as a list, empty if it has none; does not open the keyring."""
    with contextlib.suppress(IdentityError, ValueError):
        return [bytes.fromhex(public_identity(home).public_key or "")]
    return []


def own_groups(folder: Path, model: str, identity: Identity) -> Iterator[ArchivedGroup]:
    """Yields the informative groups of a model's history, signed now. `model`: the model's public name. Raises
    sqlite3.Error."""
    told: dict[tuple[str, int], int] = {}
    with closing(history.open_read_only(folder / history.FILE)) as db:
        rows = history.own_groups(db)
    for number, row in enumerate(rows, 1):
        at = row.coordinates
        if at.family not in FAMILIES or at.version != QUESTIONS_VERSION or not informative(row.rewards_G):
            continue
        if told.setdefault((at.family, at.level), 0) >= MAX_OWN_OF_LEVEL:
            continue
        group = GroupRecord(
            coordinates=at,
            completions_G=row.completions_G,
            finished_G=row.finished_G,
            model=public_model_name(model),
        )
        with contextlib.suppress(Refused):
            body = Body.of(group, row.rewards_G, SWARM, number, time.time_ns() // 1_000_000)
            told[at.family, at.level] += 1
            yield ArchivedGroup(swarm=SWARM, group=seal(body, identity.seed(), "zlib"))
