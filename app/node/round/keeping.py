"""Saves a round: checkpoint and history, in an order that survives kill -9 and a full disk. While the disk is
full the node waits, and continues automatically when there is space."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from app.common import files
from app.learning.questions import tallies
from app.learning.round_weights import carries_weight
from app.node.history import checkpoint
from app.node.history.store import Store
from app.node.record.errors import DiskFullError, raising_disk_full
from app.node.record.records import GroupRow, Round, share_of_true
from app.node.record.snapshot import Phase
from app.node.record.state import NodeState, SafeRound
from app.node.round.round import PlayedRound
from app.node.round.watch import EventFanout, SnapshotWriter
from app.node.trainer.link import TrainerLink
from app.sapo.asking import extract_answer, shows_work
from app.sapo.groups import GroupRecord


async def save_round(
    played: PlayedRound, link: TrainerLink, store: Store, root: Path, model: str, run: int
) -> SafeRound:
    """Saves adapter and state, adds rows to the history, and finally renames the checkpoint into place; only
    then does the round count. Raises DiskFullError; nothing of the round is left then, and older checkpoints
    are untouched."""
    state = msgspec.structs.replace(played.state, saved_at=time.time())
    row = round_row(played, run)
    groups = group_rows(played, row.at)
    try:
        with raising_disk_full(root):
            unfinished = checkpoint.begin(root, state.round)
            await link.save(unfinished)
            checkpoint.seal(unfinished, model, state)
            # No await from here on: a stop comes before both or after both. A kill between them leaves a row
            # too many, which the next start forgets.
            store.add_round(row, groups)
            folder = checkpoint.publish(unfinished, root, state.round)
    except BaseException:
        checkpoint.sweep(root)
        raise
    return SafeRound(state=state, folder=folder, row=row, groups=groups)


async def save_again(state: NodeState, link: TrainerLink, root: Path, model: str) -> None:
    """Replaces the checkpoint of the latest round by the current adapter and state. Raises DiskFullError."""
    try:
        with raising_disk_full(root):
            unfinished = checkpoint.begin(root, state.round)
            await link.save(unfinished)
            checkpoint.seal(unfinished, model, msgspec.structs.replace(state, saved_at=time.time()))
            files.discard(checkpoint.checkpoint_folder(root, state.round))
            checkpoint.publish(unfinished, root, state.round)
    except BaseException:
        checkpoint.sweep(root)
        raise


def round_row(played: PlayedRound, run: int) -> Round:
    weighed, stats = played.weighed, played.stats
    trained_on = Counter(
        group.author
        for group, weights_GT in zip(played.mixed.groups_P, weighed.peer, strict=True)
        if stats is not None and carries_weight(weights_GT)
    )
    return Round(
        round=played.state.round,
        run=run,
        at=time.time(),
        seconds=played.seconds,
        informative_own=sum(
            scored.informative or carries_weight(weights_GT)
            for scored, weights_GT in zip(played.scored_P, weighed.own, strict=True)
        ),
        train_solved=share_of_true(reward for scored in played.scored_P for reward in scored.rewards_G),
        own_groups=len(played.scored_P),
        worked_share=share_of_true(
            shows_work(text) for scored in played.scored_P for text in scored.completions_G
        ),
        finished_share=share_of_true(done for scored in played.scored_P for done in scored.finished_G),
        marked_share=share_of_true(
            extract_answer(text) is not None for scored in played.scored_P for text in scored.completions_G
        ),
        lesson=played.taught_answers,
        imitated=len(played.imitated.answers),
        lesson_families=played.imitated.families,
        lesson_from=tuple(played.imitated.authors),
        tokens=played.tokens,
        sample_s=played.sample_s,
        score_s=played.score_s,
        step_s=played.step_s,
        loss=stats.loss if stats else None,
        grad_norm=stats.grad_norm if stats else None,
        own_logprob=played.state.own_logprob,
        families={
            family: (played.levels[family], tally.solved, tally.answered)
            for family, tally in tallies(played.scored_P, played.levels).items()
        },
        peer_groups=len(played.mixed.groups_P) + played.mixed.unfit,
        peers=dict(trained_on.most_common()),
        shown=_shown(played) if stats is not None else (),
        peer_unfit=played.mixed.unfit,
        gated_right=weighed.gated_right,
        gated_wrong=weighed.gated_wrong,
        peer_share=weighed.peer_mass / max(weighed.own_mass + weighed.peer_mass, 1e-12),
        mismatch=stats.mismatch if stats else None,
        capped=stats.capped if stats else None,
    )


def _shown(played: PlayedRound) -> tuple[tuple[str, str, int], ...]:
    """Returns author, family and level of each peer group that was trained on and has a right answer."""
    pairs = zip(played.mixed.groups_P, played.weighed.peer, strict=True)
    return tuple(
        (group.author, group.coordinates.family, group.coordinates.level)
        for group, weights_GT in pairs
        if any(right and any(row) for right, row in zip(group.rewards_G, weights_GT, strict=True))
    )


def group_rows(played: PlayedRound, at: float) -> list[GroupRow]:
    """Returns the rows for the history, own groups first, then peers'."""
    own = zip(played.questions_P, played.scored_P, strict=True)
    every: list[tuple[str, GroupRecord, str | None]] = [(asked.text, scored, None) for asked, scored in own]
    every += [(one.question.text, one.scored, None) for one in played.tried]
    every += [(group.question, group, group.author) for group in played.mixed.groups_P]
    return [
        GroupRow(
            round=played.state.round,
            at=at,
            coordinates=scored.coordinates,
            rewards_G=scored.rewards_G,
            finished_G=scored.finished_G,
            scores_G=scored.scores_G,
            completions_G=scored.completions_G,
            peer=peer,
            question=question,
        )
        for question, scored, peer in every
    ]


DISK_CHECK_S = 5.0
"""Seconds between two checks for free space."""
_CHUNK = 2**20  # bytes written at a time
Written = TypeVar("Written")


class DiskPatience:
    """Retries writes that a full disk refused. `checkpoints`: the folder of the checkpoints."""

    def __init__(self, home: Path, checkpoints: Path, watch: SnapshotWriter, telling: EventFanout) -> None:
        self._home, self._checkpoints, self._watch, self._telling = home, checkpoints, watch, telling
        self._full = False

    async def write(self, put: Callable[[], Written]) -> Written:
        """Calls `put` until it succeeds, waiting while the disk is full, and returns its result."""

        async def at_once() -> Written:
            return put()

        return await self.finish(at_once)

    async def finish(self, put: Callable[[], Awaitable[Written]]) -> Written:
        """Like `write`, for an asynchronous `put`."""
        while True:
            try:
                with raising_disk_full(self._home):
                    written = await put()
            except DiskFullError:
                await self.wait()
                continue
            if self._full:
                self._full = False
                self._telling.note("The disk has room again, so learning continues. Nothing is lost.")
            return written

    async def wait(self) -> None:
        """Tells the owner once that the disk is full, and returns when another checkpoint fits."""
        self._watch.report(Phase.NO_ROOM)
        if not self._full:
            self._full = True
            self._telling.note(
                f"The disk that holds {self._home} is full, so learning waits: free up some space. "
                f"It looks again every {DISK_CHECK_S:.0f} seconds and continues by itself."
            )
        await asyncio.sleep(DISK_CHECK_S)
        while not await asyncio.to_thread(has_room, self._checkpoints):
            await asyncio.sleep(DISK_CHECK_S)


def has_room(root: Path) -> bool:
    """Whether another checkpoint of the newest one's size (at least 1 MiB) fits on the disk. Writes that many
    bytes and removes them, because quotas and limits do not show in the number of free bytes. Blocks."""
    need = max((files.size_on_disk(folder) for folder in checkpoint.newest_first(root)[:1]), default=0)
    content = os.urandom(_CHUNK)  # zeros take no room on a disk that compresses
    try:
        with raising_disk_full(root):
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
