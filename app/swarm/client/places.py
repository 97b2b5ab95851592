"""A node's relays: which is tried next and when, and what an invite or an earlier meeting says of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from app.common.rate import Pace
from app.swarm.client.joining import ExpectedRelay
from app.swarm.client.known import KnownRelays
from app.swarm.invite.invite import Invite, InviteError, where
from app.swarm.invite.private import PrivateError, from_token, is_access_key


class RelayEntry:
    """One relay: where it is, what an invite says of it, and when to try it again."""

    __slots__ = ("invite", "pace", "private", "url")

    def __init__(self, invite: Invite) -> None:
        """Raises InviteError for an access key that is none."""
        try:
            self.private = from_token(invite.token or "") if is_access_key(invite.token) else None
        except PrivateError as error:
            raise InviteError(str(error)) from error
        self.url = invite.url
        self.invite = invite
        self.pace = Pace()


class RelayEntries:
    """All of them. `memory` is the file of relays met before; `now` is monotonic."""

    def __init__(self, relays: Sequence[str | Invite], memory: Path, rng: Random) -> None:
        """Raises InviteError, a ValueError, for an address that is none, and ValueError without any."""
        invites = [one if isinstance(one, Invite) else where(one) for one in relays]
        if not invites:
            raise ValueError("A client needs the address of a relay.")
        # Of two with one address the first counts.
        self._places = [RelayEntry(one) for one in {one.url: one for one in reversed(invites)}.values()]
        self._rng = rng
        self.known = KnownRelays(memory)

    def next(self, now: float) -> RelayEntry:
        """The one to try, once its wait is over."""
        return min(self._places, key=lambda one: (one.pace.wait_s(now), self._rng.random()))

    def wait_s(self, now: float) -> float:
        """Seconds until one of them may be tried."""
        return min(one.pace.wait_s(now) for one in self._places)

    def swarm(self) -> str | None:
        """The swarm that is expected; an invite is newer than what was met before."""
        invited = [place.invite.swarm for place in self._places]
        met = [one.swarm for place in self._places if (one := self.known.get(place.url)) is not None]
        return next((swarm for swarm in (*invited, *met) if swarm is not None), None)

    def expected(self, place: RelayEntry, swarm: str | None) -> ExpectedRelay:
        """What a relay has to be."""
        met = self.known.get(place.url)
        return ExpectedRelay(
            relay=place.invite.relay or (met.relay if met else None), swarm=swarm, invite=place.invite
        )

    def failed(self, place: RelayEntry, now: float, retry_after_ms: int | None, steady: bool) -> None:
        """A visit has ended; after a `steady` one this failure counts as the first."""
        pace = place.pace.worked() if steady else place.pace
        place.pace = pace.failed(now, self._rng.random(), retry_after_ms)
