"""A round's peers: where their groups come from. A node sees a swarm through `NodeSwarm` alone.

Groups that a round takes are reserved until the round is saved; a lost round gives them back and is played
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from app.learning.choosing import JudgedGroup, PeerGroup
from app.learning.lesson import PeerTokens
from app.node.record.events import Event
from app.node.record.records import Probe
from app.node.record.snapshot import SwarmView
from app.node.trainer.messages import GroupTokens, PeerTexts
from app.sapo.asking import Way, messages
from app.sapo.groups import ScoredGroup
from app.sapo.questions import Coordinates, QuestionPrompt
from app.sapo.recipes import Recipe
from app.sapo.scoring.sandbox import Sandbox

MOST_EXTERNAL = 8
YOU = "you"
"""Stands for the owner among the authors of a round's groups; no peer can have this name."""


def default_external(groups: int) -> int:
    """J for I own groups: half of them, at least one and at most eight.

    A good half of the own groups teaches nothing (all right or all wrong), while every peer group is
    informative. So J = I / 2 brings about as many lessons as the own groups do, and that is where the recipe
    caps peers' weight anyway; more would be text fetched to be scaled down. Eight groups a minute are 2.5 MB an
    hour.

    >>> [default_external(groups) for groups in (1, 4, 8, 16, 64)]
    [1, 2, 4, 8, 8]
    """
    return max(1, min(MOST_EXTERNAL, groups // 2))


@dataclass(frozen=True)
class OwnGroup:
    """One of this node's own groups, with the verifier's verdicts."""

    question: QuestionPrompt
    scored: ScoredGroup


class NodeSwarm(Protocol):
    """The swarm, as a node and its rounds see it. No failure in it ends a node; rounds never wait for it."""

    def take_groups(self, recipe: Recipe, most: int, rng: Random) -> list[PeerGroup]:
        """Takes up to `most` groups, chosen by `app.sapo.mixing.choose`. They are reserved until `settle_round`
        or `give_back`."""
        ...

    def give_back(self, blamed: bool = True) -> None:
        """The round was lost: its reserved groups may be taken again. `blamed`: one of them may be why the
        trainer died."""
        ...

    def settle_round(
        self, own_P: Sequence[OwnGroup], seconds: float, judged_P: Sequence[JudgedGroup] = ()
    ) -> None:
        """The round, which took `seconds`, is saved: its reserved groups are used up, and informative own
        groups may be published. `judged_P`: how useful each peer group was."""
        ...

    def open(self, sandbox: Sandbox, tell: Callable[[Event], None], show: Callable[[SwarmView], None]) -> None:
        """Starts looking for a relay. Call it inside the running event loop; returns immediately."""
        ...

    def practise_families(self, families: Iterable[str]) -> None:
        """From now on only groups of these families are asked for."""
        ...

    def remember_used(self, used: Iterable[Coordinates]) -> None:
        """Tells which peers' questions were trained on before this start, so that they are not taken again."""
        ...

    def want_for_lessons(self, families: Sequence[str]) -> None:
        """From now on groups of these families, which the node does not train on, are asked for as well."""
        ...

    def solved_families(self) -> frozenset[str]:
        """Families to which peers have right answers, as far as is known now. A hint: a relay or a peer may
        name any."""
        ...

    def waiting_groups(self) -> list[PeerGroup]:
        """Checked groups of families that the node does not train on."""
        ...

    def vouches(self, key: str) -> bool:
        """Whether an author is trusted enough to teach a lesson without a second author: those of a private
        swarm, and those whose answers were learned from before."""
        ...

    def settle_lesson(self, groups: Sequence[str]) -> None:
        """A lesson with these groups is saved; their authors get receipts."""
        ...

    def rest(self, resting: bool) -> None:
        """Pauses or resumes fetching. The connection stays, and so does what is on its way."""
        ...

    def report_probe(self, probe: Probe) -> None:
        """Reports what the model can do now, to the teacher of a class only."""
        ...

    def share(self, scored: ScoredGroup) -> bool:
        """Publishes an answer of the owner's. False if it has to wait for a relay that accepts such answers."""
        ...

    async def flush(self) -> None:
        """Waits for a limited time until everything published has its final answer."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class MixedGroups:
    """Peer groups that fit, as tokens of this node's model."""

    groups_P: list[PeerGroup]
    read_P: list[PeerTokens]
    unfit: int = 0
    """Groups left out because a completion or the prompt is too long for this model."""


NO_PEER_GROUPS = MixedGroups(groups_P=[], read_P=[])


def peer_texts(group: PeerGroup, lesson: ScoredGroup, way: Way) -> PeerTexts:
    """A group as the trainer reads it: the question worded for this model, and `lesson`, the completions to
    learn from (usually the group itself)."""
    return PeerTexts(
        prompt=messages(group.question, way),
        completions_G=lesson.group.completions_G,
        finished_G=lesson.group.finished_G,
    )


def mixed_groups(
    lessons_P: Sequence[tuple[PeerGroup, ScoredGroup]], readings_P: Sequence[GroupTokens | None]
) -> MixedGroups:
    """The groups that fit, each with its lesson and its tokens."""
    fitting = [(*pair, reading) for pair, reading in zip(lessons_P, readings_P, strict=True) if reading]
    return MixedGroups(
        groups_P=[group for group, _, _ in fitting],
        read_P=[
            PeerTokens(lesson, reading.sequences_G, reading.logprobs_GT, vouched=group.peer == YOU)
            for group, lesson, reading in fitting
        ],
        unfit=len(lessons_P) - len(fitting),
    )
