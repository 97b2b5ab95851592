"""A round's peers: where their groups come from. A node sees a swarm through `NodeSwarm` alone, and peers'
groups through its `PeerBuffer`, from which a round takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.learning.choosing import JudgedGroup
from app.node.record.events import Event
from app.node.record.records import Probe
from app.node.record.snapshot import SwarmView
from app.sapo.groups import ScoredGroup
from app.sapo.questions import QuestionPrompt
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.buffer import PeerBuffer

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

    buffer: PeerBuffer
    """The checked groups of peers. A round takes some; they are out until `settle_round`, or until a lost round
    gives them back."""

    def settle_round(
        self, own_P: Sequence[OwnGroup], seconds: float, judged_P: Sequence[JudgedGroup] = ()
    ) -> None:
        """The round, which took `seconds`, is saved: its groups that are out have been used, and informative
        own groups may be published. `judged_P`: how useful each peer group was."""
        ...

    def open(self, sandbox: Sandbox, tell: Callable[[Event], None], show: Callable[[SwarmView], None]) -> None:
        """Starts looking for a relay. Call it inside the running event loop; returns immediately."""
        ...

    def practise_families(self, families: Iterable[str]) -> None:
        """From now on only groups of these families are asked for."""
        ...

    def want_for_lessons(self, families: Sequence[str]) -> None:
        """From now on groups of these families, which the node does not train on, are asked for as well."""
        ...

    def solved_families(self) -> frozenset[str]:
        """Families to which peers have right answers, as far as is known now. A hint: a relay or a peer may
        name any."""
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
