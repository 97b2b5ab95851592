"""The source of a round's peer groups: the node sees a swarm only through `NodeSwarm`, and peers' groups
through its `PeerBuffer`, from which a round takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from app.learning.choosing import JudgedGroup
from app.node.record.events import Event
from app.node.record.records import Probe
from app.node.record.snapshot import SwarmView
from app.sapo.groups import GroupRecord
from app.sapo.scoring.sandbox import Sandbox
from app.swarm.intake.buffer import PeerBuffer

MAX_EXTERNAL = 8
YOU = "you"
"""Name of the owner among the authors of a round's groups; no peer can have it."""


def default_external(groups: int) -> int:
    """Returns J, the number of peer groups, for I own groups: half of them, at least one and at most eight.

    More than half of the own groups teach nothing (all right or all wrong), while every peer group is
    informative. So J = I / 2 gives about as many informative groups as the own ones, which is where the recipe
    caps peers' weight; more would be fetched only to be scaled down. Eight groups a minute are 2.5 MB an hour.

    >>> [default_external(groups) for groups in (1, 4, 8, 16, 64)]
    [1, 2, 4, 8, 8]
    """
    return max(1, min(MAX_EXTERNAL, groups // 2))


class NodeSwarm(Protocol):
    """The swarm as a node and its rounds see it. No failure in it ends a node, and rounds never wait for it."""

    buffer: PeerBuffer
    """The checked groups of peers. Groups that a round takes are out until `settle_round`, or until an
    abandoned round returns them."""

    def settle_round(
        self, own_P: Sequence[GroupRecord], seconds: float, judged_P: Sequence[JudgedGroup] = ()
    ) -> None:
        """Called when a round, which took `seconds`, is saved: marks its peer groups as used, and may publish
        informative own groups. `judged_P`: how useful each peer group was."""
        ...

    def open(self, sandbox: Sandbox, tell: Callable[[Event], None], show: Callable[[SwarmView], None]) -> None:
        """Starts looking for a relay; returns immediately. Call it inside the running event loop."""
        ...

    def practise_families(self, families: Iterable[str]) -> None:
        """Sets the families whose groups are fetched for rounds."""
        ...

    def want_to_imitate(self, families: Sequence[str]) -> None:
        """Sets the families whose right answers are fetched to be imitated; their groups wait in the buffer."""
        ...

    def count_taught(self, ids: Collection[str]) -> None:
        """Called when a round is saved that imitated answers of these waiting groups."""
        ...

    def thank_for_family(self, family: str) -> None:
        """Called when a family is learned from the waiting groups that were imitated: their authors get
        receipts."""
        ...

    def pause_fetching(self, paused: bool) -> None:
        """Pauses or resumes fetching. The connection and messages in flight are not affected."""
        ...

    def report_probe(self, probe: Probe) -> None:
        """Reports a probe to the teacher of a class; does nothing in other swarms."""
        ...

    def share(self, scored: GroupRecord) -> bool:
        """Publishes one of the owner's answers. Returns False if it must wait for a relay that accepts such
        answers."""
        ...

    async def flush(self) -> None:
        """Waits for a limited time until everything published has a final answer."""
        ...

    async def close(self) -> None: ...
