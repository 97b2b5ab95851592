"""A node's end of the swarm: one connection to one of its relays, kept up for ever, with all that goes over it.

Nothing here makes the node wait for the network: groups go into the outbox and leave it when a relay can be
had, and a sample that cannot be had now is None. A lost connection is an ordinary event.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import ssl
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

from app.common.retry import Pace
from app.common.text import SAID, safe_line
from app.sapo.groups import Group
from app.swarm.asking import Samples
from app.swarm.clock import RelayClock
from app.swarm.connection import Connection, Ended, connect
from app.swarm.identity import Identity
from app.swarm.invite import Invite, InviteError, where
from app.swarm.joining import Expected, Joined, Work, join
from app.swarm.known import KnownRelays
from app.swarm.ledger import Ledger
from app.swarm.limits import REPORT_IDS
from app.swarm.outbox import Outbox
from app.swarm.private import PrivateError, from_token, is_access_key
from app.swarm.protocol import (
    ARCHIVE,
    CLASS,
    ERASE,
    PEOPLE,
    RECEIPTS,
    SHARES,
    STATS_SUB,
    ZLIB,
    AskStats,
    Batch,
    Bye,
    Erase,
    Erased,
    Err,
    FromClient,
    FromRelay,
    Notice,
    Ok,
    Progress,
    Recall,
    Receipts,
    Report,
    Sample,
    Stats,
    Thanks,
    Wanted,
)
from app.swarm.publishing import Publisher
from app.swarm.receipts import Thanked, receipt
from app.swarm.refusals import Code
from app.swarm.status import Link, Status

SAMPLE_S, ERASE_S = 15.0, 60.0
"""A relay answers a sample at once; longer than this nobody waits for it. Erasing reads all that is stored."""
STEADY_S = 10.0
"""A connection that lasted so long was a good one: the next failure counts as the first."""
_REPORT_EVERY_S = 6.0
"""Between two reports, and between two messages of receipts: relays allow twelve a minute."""
_REPORTS = 256

Complaint = Literal["bad_reward", "bad_sig", "unsafe", "dup"]


class _Place:
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


class Client:
    """`run` it in a task; everything else may be called at any time, from the loop's own thread.

    `relays` are invites, or what a person enters; `memory` is the file of relays met before. `tell` hears what
    becomes of the connection. `tls` is for relays whose certificate the system does not know.
    """

    def __init__(
        self,
        relays: Sequence[str | Invite],
        identity: Identity,
        outbox: Outbox,
        *,
        memory: Path,
        tell: Callable[[Link], None] = lambda link: None,
        tls: ssl.SSLContext | None = None,
        rng: Random | None = None,
        thanked: Thanked | None = None,
    ) -> None:
        """`thanked` counts receipts. Raises InviteError, a ValueError, for an address that is none, and
        ValueError without any."""
        now = time.monotonic()
        invites = [one if isinstance(one, Invite) else where(one) for one in relays]
        if not invites:
            raise ValueError("A client needs the address of a relay.")
        # Of two with one address the first counts.
        self._places = [_Place(one) for one in {one.url: one for one in reversed(invites)}.values()]
        self._identity, self._tell, self._tls = identity, tell, tls
        self.ledger = Ledger()
        """What went over the line, for the owner."""
        self._known = KnownRelays(memory)
        self._rng = rng or Random()
        self._clock = RelayClock()
        self._work = Work(identity.key.hex())
        self._publisher = Publisher(outbox, identity, self._clock, self._rng, now)
        self._samples = Samples(now)
        self._asked: deque[FromClient] = deque(maxlen=8)
        self._reports: deque[tuple[Complaint, str]] = deque(maxlen=_REPORTS)
        self._reported = self._receipted = now
        self._learned: deque[str] = deque(maxlen=REPORT_IDS)
        self._thanked = thanked
        self._wake = asyncio.Event()
        self._again = asyncio.Event()
        self._joined: Joined | None = None
        self._obeys = False
        self._url: str | None = None
        self._stats: Stats | None = None
        self._erased: asyncio.Future[int] | None = None
        self._sentence = ""
        self._told: Link | None = None
        self._next_try: float | None = None
        swarm = self._expected_swarm()
        if swarm is not None:
            self._publisher.belongs(swarm)

    async def run(self) -> None:
        """Connect and stay connected until cancelled. Raises nothing that a network or a relay can cause."""
        while True:
            now = time.monotonic()
            place = min(self._places, key=lambda one: (one.pace.wait_s(now), self._rng.random()))
            await self._wait(place.pace.wait_s(now))
            began = time.monotonic()
            try:
                await self._visit(place)
            except Ended as ended:
                self._after(place, ended, began)

    def publish(self, group: Group, rewards_G: Sequence[int]) -> bool:
        """Keep an informative group until a relay has it. Never waits for a relay. False when the group does
        not belong on the wire or the disk does not take it."""
        try:
            kept = self._publisher.add(group, rewards_G, time.monotonic())
        except sqlite3.Error as error:
            self._sentence = _disk(error)
            return False
        self._wake.set()
        return kept

    @property
    def takes_people(self) -> bool:
        """Whether the relay of now takes a person's group."""
        return self._joined is not None and PEOPLE in self._joined.hello.caps

    @property
    def _in_class(self) -> bool:
        return self._obeys and self._joined is not None and CLASS in self._joined.hello.caps

    def progress(self, round: int, share: float, families: Mapping[str, float]) -> None:
        """Tells the class what this model can do. Anywhere else nothing is said."""
        if self._in_class:
            some = dict(sorted(families.items())[:SHARES])
            self._asked.append(Progress(round=round, share=share, families=some))
            self._wake.set()

    def room(self) -> int:
        """How many groups are worth publishing now, so that the outbox empties: see `Publisher.room`."""
        return self._publisher.room(time.monotonic())

    async def sample(
        self, k: int, families: Sequence[str] | None = None, max_age_s: int | None = None
    ) -> Batch | None:
        """Up to `k` groups of others, to be checked by an Intake. None when offline, or when the relay would
        or did refuse: then ask again in a while."""
        if self._joined is None:
            return None
        return await self._answer(self._samples.ask(k, families, max_age_s, time.monotonic()))

    async def recall(self, k: int, tasks: Sequence[Wanted]) -> Batch | None:
        """The same from the last day, on these tasks; None also where the relay has no archive."""
        if self._joined is None or ARCHIVE not in self._joined.hello.caps:
            return None
        return await self._answer(self._samples.recall(k, tasks, time.monotonic()))

    async def _answer(self, asked: tuple[Sample | Recall, asyncio.Future[Batch | None]] | None) -> Batch | None:
        if asked is None:
            return None
        sample, answer = asked
        self._asked.append(sample)
        self._wake.set()
        try:
            async with asyncio.timeout(SAMPLE_S):
                return await answer
        except TimeoutError:
            return None
        finally:
            self._samples.forget(sample)

    async def erase(self) -> int | None:
        """Have the relay let go of everything that this key has signed; how many groups that were. None when
        offline, refused or without an answer."""
        if self._joined is None or ERASE not in self._joined.hello.caps:
            return None
        self._erased = asyncio.get_running_loop().create_future()
        self._asked.append(Erase())
        self._wake.set()
        try:
            async with asyncio.timeout(ERASE_S):
                return await self._erased
        except TimeoutError:
            return None
        finally:
            self._erased = None

    def report(self, ids: Iterable[str], reason: Complaint) -> None:
        """Tell the relay of bad groups when it can be told. It checks before it acts."""
        self._reports.extend((reason, id) for id in ids)
        self._wake.set()

    def thank(self, ids: Iterable[str]) -> None:
        """Tell the authors of these groups that this node learned from them, where the relay passes that on and
        while connected."""
        if self._joined is not None and RECEIPTS in self._joined.hello.caps:
            self._learned.extend(ids)

    @property
    def now_ms(self) -> int:
        """Unix milliseconds by the relay's clock."""
        return self._clock.now_ms()

    @property
    def status(self) -> Status:
        stats, counts, joined = self._stats, self._publisher.counts, self._joined
        return Status(
            connected=joined is not None,
            url=self._url,
            relay=joined.hello.relay if joined else None,
            swarm=self._publisher.swarm,
            peers=stats.peers if stats else None,
            relays=stats.relays if stats else None,
            rollouts_min=stats.rollouts_min if stats else None,
            window=stats.window if stats else None,
            stored=stats.stored if stats else None,
            families=stats.families if stats else None,
            clock_offset_ms=self._clock.offset_ms,
            publish_per_min=self._publisher.per_min,
            held=self._publisher.held,
            created=counts.created,
            waiting=counts.waiting,
            acknowledged=counts.accepted + counts.duplicate + counts.stale,
            refused=counts.invalid + counts.blocked,
            dropped=counts.dropped,
            sentence=self._sentence,
            next_try_s=None if self._next_try is None else max(0.0, self._next_try - time.monotonic()),
            in_class=self._in_class,
            learning=stats.learning if stats and self._in_class else None,
        )

    def _expected_swarm(self) -> str | None:
        """An invite is newer than what was met before."""
        invited = [place.invite.swarm for place in self._places]
        met = [one.swarm for place in self._places if (one := self._known.get(place.url)) is not None]
        return next((swarm for swarm in (*invited, *met) if swarm is not None), None)

    def _expected(self, place: _Place) -> Expected:
        met, invite = self._known.get(place.url), place.invite
        relay = invite.relay or (met.relay if met else None)
        return Expected(relay=relay, swarm=self._publisher.swarm, invite=invite)

    async def _wait(self, seconds: float) -> None:
        self._next_try = time.monotonic() + seconds
        self._again.clear()
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._again.wait()
        self._next_try = None

    async def _visit(self, place: _Place) -> None:
        """From opening to the end, which is always Ended."""
        connection = await connect(place.url, self._tls, self.ledger, place.private)
        try:
            self._obeys = place.invite.room is not None
            joined = await join(connection, self._identity, self._expected(place), self._work, self._clock)
            self._arrived(place, joined)
            await _first_end(self._read(connection), self._write(connection, joined))
        except sqlite3.Error as error:
            raise Ended(_disk(error)) from error
        finally:
            self._joined = self._stats = None
            self._asked.clear()
            self._learned.clear()
            self._samples.lost()
            with contextlib.suppress(sqlite3.Error):
                self._publisher.lost()
            await connection.close()

    def _arrived(self, place: _Place, joined: Joined) -> None:
        now, hello, quotas = time.monotonic(), joined.hello, joined.welcome.quotas
        self._known.remember(place.url, hello.relay, hello.swarm, self._obeys)
        self._publisher.belongs(hello.swarm)
        self._publisher.opened(quotas, hello.limits.open_publishes, ZLIB in hello.caps, now)
        self._samples.opened(quotas, hello.limits, now)
        self._joined, self._url = joined, place.url
        self._say("connected", place.url, f"Connected to {hello.relay}, swarm {hello.swarm}.", hello.relay)

    def _after(self, place: _Place, ended: Ended, began: float) -> None:
        now = time.monotonic()
        was_in = self._url == place.url and self._told is not None and self._told.state == "connected"
        pace = place.pace.worked() if was_in and now - began >= STEADY_S else place.pace
        place.pace = pace.failed(now, self._rng.random(), ended.retry_after_ms)
        wait = min(one.pace.wait_s(now) for one in self._places)
        self._say("lost" if was_in else "refused", place.url, ended.sentence, retry_s=wait)

    def _say(
        self,
        state: Literal["connected", "lost", "refused"],
        url: str,
        sentence: str,
        relay: str | None = None,
        retry_s: float | None = None,
    ) -> None:
        """Tell of a change; the same failure again is none."""
        self._sentence = sentence
        link = Link(
            state=state, url=url, relay=relay, swarm=self._publisher.swarm, sentence=sentence, retry_s=retry_s
        )
        before, self._told = self._told, link
        if before is None or (before.state, before.url, before.sentence) != (state, url, sentence):
            self._tell(link)

    async def _read(self, connection: Connection) -> None:
        while True:
            self._heard(await connection.receive())

    def _heard(self, message: FromRelay) -> None:
        now = time.monotonic()
        match message:
            case Ok():
                self._clock.heard(message.time_ms)
                self._publisher.answered(message, now)
                if self._thanked is not None and message.code is Code.ACCEPTED:
                    self._thanked.published(message.id)
                self._wake.set()
                if message.code is Code.UNSUPPORTED:
                    self._other_version(message)
            case Batch():
                self._samples.answered(message)
            case Err():
                self._samples.refused(message, now)
                self._sentence = f"The relay says: {safe_line(message.msg, SAID)}"
            case Stats():
                self._stats = message
            case Erased():
                if self._erased is not None and not self._erased.done():
                    self._erased.set_result(message.groups)
            case Thanks():
                if self._thanked is not None and self._publisher.swarm is not None:
                    self._thanked.count(message, self._publisher.swarm, {self._identity.key.hex()})
            case Notice():
                self._sentence = f"The relay says: {safe_line(message.msg, SAID)}"
            case Bye():
                raise Ended(
                    f"The relay says goodbye: {safe_line(message.reason, SAID)}", message.reconnect_after_ms
                )

    def _other_version(self, ok: Ok) -> None:
        if self._joined is None or self._url is None:
            return
        relay, said = self._joined.hello.relay, safe_line(ok.msg, SAID)
        self._say(
            "connected",
            self._url,
            f"{relay} is of another version of Shoal, so no answers can be exchanged: update the older of the "
            f"two. It says: {said}",
            relay,
        )

    async def _write(self, connection: Connection, joined: Joined) -> None:
        if STATS_SUB in joined.hello.caps:
            await connection.send(AskStats(subscribe=True))
        while True:
            self._wake.clear()
            now = time.monotonic()
            while self._asked:
                await connection.send(self._asked.popleft())
            if self._reports and now - self._reported >= _REPORT_EVERY_S:
                self._reported = now
                await connection.send(self._next_report())
            if self._learned and now - self._receipted >= _REPORT_EVERY_S:
                self._receipted = now
                await connection.send(self._next_receipts(joined.hello.swarm))
            for frame in self._publisher.due(now):
                await connection.send(frame)
                if self._asked:
                    break
            if self._publisher.overdue(now):
                raise Ended(f"{connection.place} has stopped answering.")
            if self._asked:
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._publisher.wait_s(now)):
                    await self._wake.wait()

    def _next_report(self) -> Report:
        reason = self._reports[0][0]
        ids = [id for one, id in self._reports if one == reason][:REPORT_IDS]
        left = [(one, id) for one, id in self._reports if one != reason or id not in ids]
        self._reports.clear()
        self._reports.extend(left)
        return Report(ids=tuple(dict.fromkeys(ids)), reason=reason)

    def _next_receipts(self, swarm: str) -> Receipts:
        ids = dict.fromkeys(self._learned)
        self._learned.clear()
        return Receipts(items=tuple(receipt(self._identity.seed(), swarm, id) for id in ids))


async def _first_end(*stories: Coroutine[Any, Any, None]) -> None:
    """Run them together until one ends; the others are cancelled, and what ended the first is raised."""
    tasks = [asyncio.create_task(one) for one in stories]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _disk(error: sqlite3.Error) -> str:
    return f"The outbox can't be written ({error}): make room on the disk."
