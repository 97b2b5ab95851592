"""Making a round safe: checkpoint and history together, in an order that survives kill -9 and a full disk."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from app.node import checkpoint
from app.node.errors import DiskFullError, no_room, room_on_disk
from app.node.figures import share, tallies
from app.node.link import Link
from app.node.peers import weighty
from app.node.records import GroupRow, RoundDetails, RoundRow
from app.node.round import Played
from app.node.state import State
from app.node.store import Store
from app.sapo.groups import ScoredGroup
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
    weighed = played.weighed
    trained_on = Counter(
        group.peer
        for group, weights_GT in zip(played.mixed.groups_P, weighed.peer, strict=True)
        if played.stats is not None and weighty(weights_GT)
    )
    return RoundRow(
        round=played.state.round,
        run=run,
        at=time.time(),
        seconds=played.seconds,
        informative_own=sum(scored.informative for scored in played.scored_P),
        informative_peer=trained_on.total(),
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
            peer_groups=len(played.mixed.groups_P) + played.mixed.unfit,
            peers=dict(trained_on.most_common()),
            peer_unfit=played.mixed.unfit,
            gated_right=weighed.gated_right,
            gated_wrong=weighed.gated_wrong,
            peer_share=weighed.peer_mass / max(weighed.own_mass + weighed.peer_mass, 1e-12),
            mismatch=played.stats.mismatch if played.stats else None,
            capped=played.stats.capped if played.stats else None,
        ),
    )


def group_rows(played: Played) -> list[GroupRow]:
    """Own groups first, then peers'."""
    own = [group_row("own", scored, None) for scored in played.scored_P]
    return own + [group_row("peer", group.scored, group.peer) for group in played.mixed.groups_P]


def group_row(source: Literal["own", "peer"], scored: ScoredGroup, peer: str | None) -> GroupRow:
    return GroupRow(
        source=source,
        coordinates=scored.group.coordinates,
        rewards_G=scored.rewards_G,
        finished_G=scored.group.finished_G,
        scores_G=scored.scores_G,
        completions_G=scored.group.completions_G,
        peer=peer,
    )
