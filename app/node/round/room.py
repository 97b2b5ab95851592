"""What a node does while the disk is full: it waits, and continues by itself when there is room."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from app.common import files
from app.node.history import checkpoint
from app.node.record.errors import DiskFullError, room_on_disk
from app.node.record.snapshot import Phase
from app.node.round.watch import EventFanout, SnapshotWriter

AGAIN_S = 15.0
"""Seconds between two checks whether there is room."""
_CHUNK = 2**20
Written = TypeVar("Written")


class DiskPatience:
    """Retries writes that a full disk refused. `checkpoints` is the folder of the next checkpoint."""

    def __init__(self, home: Path, checkpoints: Path, watch: SnapshotWriter, telling: EventFanout) -> None:
        self._home, self._checkpoints, self._watch, self._telling = home, checkpoints, watch, telling
        self._full = False

    async def write(self, put: Callable[[], Written]) -> Written:
        """Returns what `put` returns, as soon as the disk takes what it writes."""

        async def at_once() -> Written:
            return put()

        return await self.finish(at_once)

    async def finish(self, put: Callable[[], Awaitable[Written]]) -> Written:
        """The same for a write that takes long enough to need a thread."""
        while True:
            try:
                with room_on_disk(self._home):
                    written = await put()
            except DiskFullError:
                await self.wait()
                continue
            if self._full:
                self._full = False
                self._telling.note("The disk has room again, so learning continues. Nothing is lost.")
            return written

    async def wait(self) -> None:
        """Says once that the disk is full, and returns when there is room for another checkpoint."""
        self._watch.report(Phase.NO_ROOM)
        if not self._full:
            self._full = True
            self._telling.note(
                f"The disk that holds {self._home} is full, so learning waits: free up some space. "
                f"It looks again every {AGAIN_S:.0f} seconds and continues by itself."
            )
        await asyncio.sleep(AGAIN_S)
        while not await asyncio.to_thread(has_room, self._checkpoints):
            await asyncio.sleep(AGAIN_S)


def has_room(root: Path) -> bool:
    """Whether the disk has room for another checkpoint of the newest one's size (at least 1 MiB). It writes
    that many bytes and removes them, because quotas and limits don't show in the figure of free bytes. Blocks.
    """
    need = max((files.size(folder) for folder in checkpoint.newest_first(root)[:1]), default=0)
    content = os.urandom(_CHUNK)  # disks that compress would take zeros
    try:
        with room_on_disk(root):
            trial = checkpoint.begin(root, 0)
            try:
                with (trial / "trial").open("wb") as file:
                    for _ in range(need // _CHUNK + 1):
                        file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            finally:
                shutil.rmtree(trial, ignore_errors=True)
    except DiskFullError:
        return False
    return True
