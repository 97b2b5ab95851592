"""Making a round safe: checkpoint and history together, in an order that survives kill -9 and a full disk."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.node import checkpoint
from app.node.errors import DiskFullError, no_room, room_on_disk
from app.node.figures import share, tallies
from app.node.link import Link
from app.node.records import GroupRow, RoundDetails, RoundRow
from app.node.round import Played
from app.node.state import State
from app.node.store import Store
from app.sapo.prompts import shows_work


@dataclass(frozen=True)
class Kept:
    """A round that is safe: the state as saved, its folder and its row."""

    state: State
    folder: Path
    row: RoundRow


async def keep(played: Played, link: Link, store: Store, root: Path, model: str, run: int) -> Kept:
    """Adapter and state to disk, rows into the history, and then the checkpoint's name, which makes the round
    count.

    Raises DiskFullError; nothing of the round is left then, and older safe points are untouched.
    """
    state = msgspec.structs.replace(played.state, saved_at=time.time())
    row = round_row(played, run)
    try:
        with room_on_disk(root):
            unfinished = checkpoint.begin(root, state.round)
            await link.save(unfinished)
            checkpoint.seal(unfinished, model, state)
            # No await from here on: a stop comes before both or after both. A kill between them leaves a row
            # too many, which the next start forgets.
            store.add_round(row, group_rows(played))
            folder = checkpoint.publish(unfinished, root, state.round)
    except BaseException:
        checkpoint.sweep(root)
        raise
    return Kept(state=state, folder=folder, row=row)


def free_older(root: Path, home: Path, error: DiskFullError) -> None:
    """Gives up the older of the two safe points, so that the round just played may fit. Raises `error`'s like
    if there is nothing to give up."""
    spare = checkpoint.newest_first(root)[1:]
    if not spare:
        raise DiskFullError(no_room(home)) from error
    for folder in spare:
        checkpoint.discard(folder)


def round_row(played: Played, run: int) -> RoundRow:
    rewards = [reward for scored in played.scored_P for reward in scored.rewards_G]
    return RoundRow(
        round=played.state.round,
        run=run,
        at=time.time(),
        seconds=played.seconds,
        informative_own=sum(scored.informative for scored in played.scored_P),
        informative_peer=0,
        train_solved=share(rewards),
        details=RoundDetails(
            own_groups=len(played.scored_P),
            worked_share=share(
                shows_work(text) for scored in played.scored_P for text in scored.group.completions_G
            ),
            finished_share=share(done for scored in played.scored_P for done in scored.group.finished_G),
            tokens=played.tokens,
            tokens_per_s=played.tokens / max(played.sample_s, 1e-6),
            sample_s=played.sample_s,
            score_s=played.score_s,
            step_s=played.step_s,
            loss=played.stats.loss if played.stats else None,
            grad_norm=played.stats.grad_norm if played.stats else None,
            own_logprob=played.state.own_logprob,
            families={
                family: (played.levels[family], tally.solved, tally.answered)
                for family, tally in tallies(played.scored_P, played.levels).items()
            },
        ),
    )


def group_rows(played: Played) -> list[GroupRow]:
    return [
        GroupRow(
            source="own",
            coordinates=scored.group.coordinates,
            rewards_G=scored.rewards_G,
            finished_G=scored.group.finished_G,
            scores_G=scored.scores_G,
            completions_G=scored.group.completions_G,
        )
        for scored in played.scored_P
    ]
