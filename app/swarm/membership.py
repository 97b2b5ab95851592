"""What everybody does who takes part in a swarm: the node (app.node.swarm.member), and a program with another
trainer (app.swarm.library).

Own groups go through the outbox to a relay, peers' groups through the fetcher and the intake into the buffer.
Whoever trains takes from the buffer what is ready and never waits. Without a relay nothing new arrives, and
published groups wait in the outbox."""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from random import Random

from app.common.rate import backoff_s
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from app.sapo.recipes import Recipe
from app.sapo.scoring.sandbox import SandboxError
from app.sapo.sets.question_set import is_owners_set
from app.swarm.client.client import Client
from app.swarm.client.outbox import Outbox, OutboxError
from app.swarm.client.places import FILE
from app.swarm.client.receipts import ReceiptCounter
from app.swarm.client.status import ConnectionStatus, Ledger
from app.swarm.client.traffic import TrafficCounter
from app.swarm.fetching import PeerFetcher
from app.swarm.identity.identity import Identity, IdentityError
from app.swarm.intake.buffer import PeerBuffer
from app.swarm.intake.intake import Intake
from app.swarm.invite.invite import Invite

FLUSH_S, FLUSH_ALONE_S = 30.0, 5.0
"""Maximum seconds that the end of a run waits for a relay's answers, and for a relay that is disconnected."""
_AGAIN_S, _LONGEST_AGAIN_S = 30.0, 900.0
"""Seconds between two attempts with a swarm, key or folder that cannot be used: at first and at most, doubling.
An attempt may open the keyring's prompt, so they are rare."""
_LATEST = 0.3
"""Weight of the latest round in the running mean of round lengths."""
_GIVEN = 4096
"""Maximum own questions remembered; they cover the last hours."""


class NowhereError(Exception):
    """No swarm could be joined; the message says why. The node then trains alone."""


class Membership(ABC):
    """One key's part in a swarm. `folder`: holds the outbox, the known relays and the counts. `external`:
    number of peer groups wanted per round. Everything is called from one event loop's thread."""

    def __init__(
        self, folder: Path, recipe: Recipe, external: int, *, people: Callable[[], bool] = lambda: True
    ) -> None:
        """`people`: whether to learn from people's answers."""
        self._folder, self._recipe, self._external = folder, recipe, external
        self._client: Client | None = None
        self._fetcher: PeerFetcher | None = None
        self.buffer = PeerBuffer(self._now_ms, people=people)
        self._outbox: Outbox | None = None
        self._given: deque[Coordinates] = deque()
        self._published = 0
        self._round_s: float | None = None
        self._settled_at: float | None = None
        self._rng = Random()
        self._thanked = ReceiptCounter(folder)
        self._ledger = Ledger(TrafficCounter(folder))
        self._life: asyncio.Task[None] | None = None

    def _now_ms(self) -> int:
        """Returns the relay's time, or this computer's before the first connection (Unix ms)."""
        return self._client.now_ms if self._client is not None else time.time_ns() // 1_000_000

    @property
    @abstractmethod
    def _asked_for(self) -> tuple[str, ...]:
        """The families whose groups are fetched, by their names in the protocol."""

    @abstractmethod
    def _open_intake(self, swarm: str, own_keys: Collection[bytes]) -> Intake:
        """Returns the checks for groups of a swarm; called once its id is known."""

    @abstractmethod
    async def _share(self) -> None:
        """Takes part in the swarm until an error. Raises IdentityError, NowhereError, OutboxError and
        SandboxError, alone or in an ExceptionGroup."""

    @abstractmethod
    def _stay_alone(self, why: str) -> None:
        """Called when `_share` has failed with this sentence, before the next attempt."""

    def _linked(self, link: ConnectionStatus) -> None:  # noqa: B027 - may be overridden
        """Called when the connection's state changes."""

    def _handed_out(self, content: str) -> None:  # noqa: B027 - may be overridden
        """Called with a question set that a class hands out."""

    async def _live(self) -> None:
        """Runs until it is cancelled. An error here never costs a round: after a wait, key, folder and swarm
        are reopened."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                await self._share()
            except* (IdentityError, NowhereError, OutboxError, SandboxError) as errors:
                why = str(_first(errors))
            except* Exception as errors:  # a mistake of this program's
                traceback.print_exception(errors, file=sys.stderr)
                why = f"Sharing stopped because of a mistake in Shoal ({type(_first(errors)).__name__})."
            steady = time.monotonic() - began > _LONGEST_AGAIN_S
            failures = 1 if steady else failures + 1
            self._stay_alone(why)
            await asyncio.sleep(backoff_s(failures, first_s=_AGAIN_S, longest_s=_LONGEST_AGAIN_S))

    def _open_outbox(self) -> Outbox:
        """Returns the folder's outbox. Raises OutboxError."""
        if self._outbox is None:
            self._outbox = Outbox(self._folder / "outbox.sqlite")
        return self._outbox

    def _connect(self, identity: Identity, invites: Sequence[Invite]) -> tuple[Client, PeerFetcher]:
        """Returns the client and the fetcher, to be run in tasks. Raises OutboxError."""
        outbox = self._open_outbox()
        own_keys = {identity.key} | outbox.keys()
        client = self._client = Client(
            invites,
            identity,
            outbox,
            memory=self._folder / FILE,
            tell=self._linked,
            thanked=self._thanked,
            handed=self._handed_out,
            ledger=self._ledger,
        )
        self._fetcher = PeerFetcher(
            client,
            lambda swarm: self._open_intake(swarm, own_keys),
            self.buffer,
            self._recipe,
            self._external,
            self._asked_for,
        )
        return client, self._fetcher

    def _time_round(self, seconds: float) -> None:
        """Called at the end of a round that took `seconds`: from two of them on, rest and probes count, too."""
        now = time.monotonic()
        length = seconds if self._settled_at is None else now - self._settled_at
        self._settled_at = now
        before = length if self._round_s is None else self._round_s
        self._round_s = self.buffer.round_s = (1 - _LATEST) * before + _LATEST * length

    def _keep_out(self, own_P: Sequence[GroupRecord]) -> None:
        """Makes the intake refuse copies of groups that this node published, under any signature."""
        for own in own_P:
            if len(self._given) == _GIVEN:
                self.buffer.used.discard(self._given.popleft())
            self._given.append(own.coordinates)
        self.buffer.remember_used(self._given)

    def _publish(
        self, own_P: Sequence[GroupRecord], sealing: Mapping[str, Callable[[GroupRecord], GroupRecord]]
    ) -> list[GroupRecord]:
        """Publishes as many of these groups as the relay accepts, chosen at random, and returns those. Groups
        of the owner's sets are encrypted by their set's entry in `sealing`."""
        assert self._client is not None
        stored = []
        for own in self._rng.sample(own_P, min(len(own_P), self._client.groups_to_publish())):
            group = sealing[family](own) if is_owners_set(family := own.coordinates.family) else own
            if self._client.publish(group, own.rewards_G):
                stored.append(own)
        self._published += len(stored)
        return stored

    async def _hand_over(self, connected_s: float, alone_s: float) -> None:
        """Waits until relays have accepted or refused everything that was published: at most `connected_s`
        seconds while connected, `alone_s` while not."""
        began = time.monotonic()
        while self._client is not None and self._life is not None and not self._life.done():
            status = self._client.status
            patience = connected_s if status.connected else alone_s
            if not status.waiting + status.held or time.monotonic() - began > patience:
                return
            await asyncio.sleep(0.05)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
