"""Making a round safe: checkpoint and history together, in an order that survives kill -9 and a full disk."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.learning.lesson import weighty
from app.learning.state import tallies
from app.node.history import checkpoint
from app.node.history.store import Store
from app.node.record.errors import room_on_disk
from app.node.record.figures import share
from app.node.record.records import GroupRow, Round
from app.node.record.state import NodeState
from app.node.round.round import Played
from app.node.trainer.link import TrainerLink
from app.sapo.asking import extract_answer, shows_work
from app.sapo.groups import ScoredGroup


@dataclass(frozen=True)
class SafeRound:
    """A saved round: the state as saved, its checkpoint folder, and what the history records of it."""

    state: NodeState
    folder: Path
    row: Round
    groups: list[GroupRow]


async def keep(played: Played, link: TrainerLink, store: Store, root: Path, model: str, run: int) -> SafeRound:
    """Writes adapter and state to disk, rows into the history, and last the checkpoint's name, which makes the
    round count. Raises DiskFullError; then nothing of the round is left, and older checkpoints are untouched.
    """
    state = msgspec.structs.replace(played.state, saved_at=time.time())
    row = round_row(played, run)
    groups = group_rows(played, row.at)
    try:
        with room_on_disk(root):
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


def round_row(played: Played, run: int) -> Round:
    weighed, stats = played.weighed, played.stats
    trained_on = Counter(
        group.peer
        for group, weights_GT in zip(played.mixed.groups_P, weighed.peer, strict=True)
        if stats is not None and weighty(weights_GT)
    )
    return Round(
        round=played.state.round,
        run=run,
        at=time.time(),
        seconds=played.seconds,
        informative_own=sum(scored.informative for scored in played.scored_P),
        train_solved=share(reward for scored in played.scored_P for reward in scored.rewards_G),
        own_groups=len(played.scored_P),
        worked_share=share(
            shows_work(text) for scored in played.scored_P for text in scored.group.completions_G
        ),
        finished_share=share(done for scored in played.scored_P for done in scored.group.finished_G),
        marked_share=share(
            extract_answer(text) is not None
            for scored in played.scored_P
            for text in scored.group.completions_G
        ),
        lesson=played.lesson,
        lesson_families=played.lesson_families,
        lesson_from=played.lesson_from,
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


def _shown(played: Played) -> tuple[tuple[str, str, int], ...]:
    """Author, family and level of each peer group that was learned from and has a right answer."""
    pairs = zip(played.mixed.groups_P, played.weighed.peer, strict=True)
    return tuple(
        (group.peer, group.scored.group.coordinates.family, group.scored.group.coordinates.level)
        for group, weights_GT in pairs
        if any(right and any(row) for right, row in zip(group.scored.rewards_G, weights_GT, strict=True))
    )


def group_rows(played: Played, at: float) -> list[GroupRow]:
    """The rows of the history, own groups first, then peers'."""
    own = zip(played.questions_P, played.scored_P, strict=True)
    every: list[tuple[str, ScoredGroup, str | None]] = [(asked.text, scored, None) for asked, scored in own]
    every += [(group.question, group.scored, group.peer) for group in played.mixed.groups_P]
    return [
        GroupRow(
            round=played.state.round,
            at=at,
            coordinates=scored.group.coordinates,
            rewards_G=scored.rewards_G,
            finished_G=scored.group.finished_G,
            scores_G=scored.scores_G,
            completions_G=scored.group.completions_G,
            peer=peer,
            question=question,
        )
        for question, scored, peer in every
    ]
