"""The node's relay client: keeps one connection to one of its relays open, and sends and receives everything
over it.

Nothing here makes the node wait for the network: groups are stored in the outbox and removed once a relay has
acknowledged them, and a sample that no relay can give now is None. A lost connection is an ordinary event."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import ssl
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Literal, TypeVar

from app.common.text import MAX_QUOTED, safe_line
from app.sapo.groups import GroupRecord
from app.swarm.client.clock import RelayClock
from app.swarm.client.connection import Connection, ConnectionEnded, connect, run_until_first_ends
from app.swarm.client.joining import Joined, ProofsOfWork, join
from app.swarm.client.outbox import Outbox
from app.swarm.client.places import RelayEntries, RelayEntry
from app.swarm.client.receipts import Complaint, ReceiptCounter, Reporter
from app.swarm.client.status import ConnectionStatus, Ledger, Status
from app.swarm.client.underway import Publisher, SampleLimiter
from app.swarm.identity.identity import Identity
from app.swarm.invite.invite import Invite
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import (
    ARCHIVE,
    CLASS,
    ERASE,
    LESSONS,
    MAX_CLASS_FAMILIES,
    PEOPLE,
    QUESTIONS,
    RECEIPTS,
    RESTING,
    STATS_SUB,
    ZLIB,
    AskQuestions,
    AskStats,
    Bye,
    ClassProgress,
    Erase,
    Erased,
    Err,
    FromClient,
    FromRelay,
    HandedOut,
    Ok,
    Recall,
    RelayNotice,
    Rest,
    Sample,
    SampleReply,
    Stats,
    Taught,
    Thanks,
    WantedQuestions,
)

T = TypeVar("T")
SAMPLE_S, ERASE_S = 15.0, 60.0
"""Seconds to wait for a sample, which a relay answers immediately, and for an erasure, which reads everything
it has stored."""
TWIN_S = 600.0
"""Seconds for which a relay's word about a twin holds; it repeats it as long as there is one."""
STEADY_AFTER_S = 10.0
"""Seconds after which a connection counts as good: the next failure is then treated as the first."""
LESSON_PATIENCE_S = 300.0
"""Seconds without the class's relay after which a lesson counts as ended. A relay that says goodbye ends it at
once."""


class Client:
    """The node's relay client. `run` it in a task; call everything else at any time from the event loop's
    thread. `relays`: invites or addresses as entered; `memory`: path of the file of known relays; `tell`:
    called when the connection's state changes; `tls`: for relays with a certificate that the system does not
    trust."""

    def __init__(
        self,
        relays: Sequence[str | Invite],
        identity: Identity,
        outbox: Outbox,
        *,
        memory: Path,
        tell: Callable[[ConnectionStatus], None] = lambda link: None,
        tls: ssl.SSLContext | None = None,
        rng: Random | None = None,
        thanked: ReceiptCounter | None = None,
        handed: Callable[[str], None] = lambda content: None,
        ledger: Ledger | None = None,
    ) -> None:
        """`thanked` counts receipts; `handed` is called with a question set that the class hands out. Raises
        InviteError, a ValueError, for an invalid address, and ValueError if `relays` is empty."""
        now = time.monotonic()
        self._identity, self._tell, self._tls = identity, tell, tls
        self.ledger = ledger or Ledger()
        """Traffic of the connection, for display to the owner."""
        self._rng = rng or Random()
        self._places = RelayEntries(relays, memory, self._rng)
        self._clock = RelayClock()
        self._work = ProofsOfWork(identity.key.hex())
        self._publisher = Publisher(outbox, identity, self._clock, self._rng, now)
        self._samples = SampleLimiter(now)
        self._asked: deque[FromClient] = deque(maxlen=8)
        self._reporter = Reporter(identity, now)
        self._thanked, self._handed = thanked, handed
        self._wake = asyncio.Event()
        self._again = asyncio.Event()
        self._joined: Joined | None = None
        self._obeys = self._resting = self._lesson_over = False
        self._missed_since: float | None = None
        self._url: str | None = None
        self._stats: Stats | None = None
        self._erased: asyncio.Future[int] | None = None
        self._sentence = ""
        self._told: ConnectionStatus | None = None
        self._next_try: float | None = None
        self._twin: tuple[bool, float] | None = None
        if (swarm := self._places.swarm()) is not None:
            self._publisher.set_swarm(swarm)

    async def run(self) -> None:
        """Connects and stays connected until cancelled, or until a lesson has ended. Faults of the network or a
        relay never raise here."""
        while not self._lesson_over:
            now = time.monotonic()
            place = self._places.next(now)
            await self._wait(place.pace.wait_s(now))
            began = time.monotonic()
            try:
                await self._visit(place)
            except ConnectionEnded as ended:
                self._after(place, ended, began)
        self._next_try = None
        await asyncio.Event().wait()

    def publish(self, group: GroupRecord, rewards_G: Sequence[int]) -> bool:
        """Stores an informative group until a relay has it. Never waits for a relay. Returns False if the group
        may not be published."""
        try:
            kept = self._publisher.add(group, rewards_G, time.monotonic())
        except sqlite3.Error as error:
            self._sentence = _disk(error)
            return True
        if kept and self._thanked is not None:
            self._thanked.record_published(group.coordinates.family)
        self._wake.set()
        return kept

    @property
    def accepts_human_groups(self) -> bool:
        """True if the connected relay accepts groups that a person answered."""
        return self._joined is not None and PEOPLE in self._joined.hello.caps

    @property
    def _in_class(self) -> bool:
        return self._obeys and self._joined is not None and CLASS in self._joined.hello.caps

    def progress(self, round: int, share: float, families: Mapping[str, float]) -> None:
        """Reports this model's scores to the class: shares of held-out questions solved, overall and by family.
        Does nothing outside a class."""
        if self._in_class:
            some = dict(sorted(families.items())[:MAX_CLASS_FAMILIES])
            self._asked.append(ClassProgress(round=round, share=share, families=some))
            self._wake.set()

    def rest(self, on: bool) -> None:
        """Sets whether this model rests. The class is told now, and again at each new connection."""
        self._resting = on
        if self._joined is not None and self._in_class and RESTING in self._joined.hello.caps:
            self._asked.append(Rest(on=on))
            self._wake.set()

    def groups_to_publish(self) -> int:
        """Returns how many more groups to publish now: see `Publisher.groups_to_publish`."""
        return self._publisher.groups_to_publish(time.monotonic())

    async def sample(
        self, k: int, families: Sequence[str] | None = None, max_age_s: int | None = None
    ) -> SampleReply | None:
        """Requests up to `k` groups of other nodes; they must pass an Intake. Returns None when offline or
        refused: ask again later."""
        if self._joined is None:
            return None
        return await self._answer(self._samples.ask(k, families, max_age_s, time.monotonic()))

    async def recall(self, k: int, tasks: Sequence[WantedQuestions]) -> SampleReply | None:
        """Requests up to `k` groups of these tasks from the relay's archive of the last day. Returns None when
        offline, refused, or if the relay has no archive."""
        if self._joined is None or ARCHIVE not in self._joined.hello.caps:
            return None
        return await self._answer(self._samples.recall(k, tasks, time.monotonic()))

    async def _answer(
        self, asked: tuple[Sample | Recall, asyncio.Future[SampleReply | None]] | None
    ) -> SampleReply | None:
        if asked is None:
            return None
        sample, answer = asked
        self._asked.append(sample)
        self._wake.set()
        try:
            return await _within(SAMPLE_S, answer)
        finally:
            self._samples.give_up(sample.rid)

    async def erase(self) -> int | None:
        """Asks the relay to delete all groups that this key has signed; returns how many it deleted. None when
        offline, refused or unanswered."""
        if self._joined is None or ERASE not in self._joined.hello.caps:
            return None
        self._erased = asyncio.get_running_loop().create_future()
        self._asked.append(Erase())
        self._wake.set()
        try:
            return await _within(ERASE_S, self._erased)
        finally:
            self._erased = None

    def report(self, ids: Iterable[str], reason: Complaint) -> None:
        """Reports bad groups to the relay as soon as the rate allows. The relay checks before it acts."""
        self._reporter.report(ids, reason)
        self._wake.set()

    def thank(self, ids: Iterable[str]) -> None:
        """Sends receipts to the authors of these groups, if the connected relay forwards receipts."""
        if self._joined is not None and RECEIPTS in self._joined.hello.caps:
            self._reporter.thank(ids)

    def thank_for_lessons(self, lessons: Iterable[tuple[str, str]]) -> None:
        """Queues receipts to authors (keys in hex), each with the family that a lesson of their answers taught;
        sent once connected to a relay that forwards them."""
        self._reporter.thank_for_lessons(lessons)
        self._wake.set()

    @property
    def now_ms(self) -> int:
        """The relay's time in Unix milliseconds."""
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
            window=stats.window if stats else None,
            stored=stats.stored if stats else None,
            families=stats.families if stats else None,
            clock_offset_ms=self._clock.offset_ms,
            held=self._publisher.held,
            created=counts.created,
            waiting=counts.waiting,
            acknowledged=counts.accepted + counts.duplicate + counts.stale,
            refused=counts.invalid + counts.blocked,
            dropped=counts.dropped,
            sentence=self._sentence,
            next_try_s=None if self._next_try is None else max(0.0, self._next_try - time.monotonic()),
            in_class=self._in_class if joined else self._places.of_class,
            lesson_over=self._lesson_over,
            learning=stats.learning if stats and self._in_class else None,
            twin=self._twin[0] if self._twin and time.monotonic() - self._twin[1] < TWIN_S else None,
        )

    async def _wait(self, seconds: float) -> None:
        self._next_try = time.monotonic() + seconds
        self._again.clear()
        if seconds > 0:
            await _within(seconds, self._again.wait())
        self._next_try = None

    async def _visit(self, place: RelayEntry) -> None:
        """Runs one connection from opening to its end. Always raises ConnectionEnded."""
        connection = await connect(place.url, self._tls, self.ledger, place.private)
        try:
            self._obeys = place.invite.room is not None
            expected = self._places.expected(place, self._publisher.swarm)
            joined = await join(connection, self._identity, expected, self._work, self._clock)
            self._arrived(place, joined)
            await run_until_first_ends(self._read(connection), self._write(connection, joined))
        except sqlite3.Error as error:
            raise ConnectionEnded(_disk(error)) from error
        finally:
            self._joined = self._stats = None
            self._asked.clear()
            self._reporter.on_disconnect()
            self._samples.on_disconnect()
            with contextlib.suppress(sqlite3.Error):
                self._publisher.on_disconnect()
            await connection.close()

    def _arrived(self, place: RelayEntry, joined: Joined) -> None:
        now, hello, quotas = time.monotonic(), joined.hello, joined.welcome.quotas
        self._missed_since = None
        self._places.known.remember(place.url, hello.relay, hello.swarm, self._obeys)
        self._publisher.set_swarm(hello.swarm)
        self._publisher.on_connect(quotas, hello.limits.open_publishes, ZLIB in hello.caps, now)
        self._samples.on_connect(quotas, hello.limits, now)
        self._joined, self._url = joined, place.url
        self._say("connected", place.url, f"Connected to {hello.relay}, swarm {hello.swarm}.", hello.relay)

    def _after(self, place: RelayEntry, ended: ConnectionEnded, began: float) -> None:
        now = time.monotonic()
        was_in = self._url == place.url and self._told is not None and self._told.state == "connected"
        self._places.record_failure(
            place, now, ended.retry_after_ms, steady=was_in and now - began >= STEADY_AFTER_S
        )
        state: Literal["lost", "refused"] = "lost" if was_in else "refused"
        self._missed_since = self._missed_since or now
        silent = ended.retry_after_ms is None  # a class that is full answers
        if silent and self._places.of_class and now - self._missed_since > LESSON_PATIENCE_S:
            self._lesson_over = True
        if self._lesson_over:
            self._say(state, place.url, "The lesson has ended." if self._url else "No lesson is running.")
        else:
            self._say(state, place.url, ended.sentence, retry_s=self._places.wait_s(now))

    def _say(
        self,
        state: Literal["connected", "lost", "refused"],
        url: str,
        sentence: str,
        relay: str | None = None,
        retry_s: float | None = None,
    ) -> None:
        """Reports a change of the connection's state; a repetition of the last failure is not reported."""
        self._sentence = sentence
        link = ConnectionStatus(
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
                self._clock.record_time(message.time_ms)
                self._publisher.settle(message, now)
                if self._thanked is not None and message.code is Code.ACCEPTED:
                    self._thanked.record_stored(message.id)
                self._wake.set()
                if message.code is Code.UNSUPPORTED:
                    self._other_version(message)
            case SampleReply():
                self._samples.settle(message, now)
            case Err():
                self._samples.fail(message, now)
                self._sentence = f"The relay says: {safe_line(message.msg, MAX_QUOTED)}"
            case Stats():
                self._stats = message
            case Erased():
                if self._erased is not None and not self._erased.done():
                    self._erased.set_result(message.groups)
            case HandedOut():
                if self._in_class:
                    self._handed(message.content)
            case Thanks():
                if self._thanked is not None and self._publisher.swarm is not None:
                    self._thanked.count(message, self._publisher.swarm, {self._identity.key.hex()})
            case Taught():
                if self._thanked is not None and self._publisher.swarm is not None:
                    self._thanked.count_lesson(message, self._publisher.swarm, self._identity.key.hex())
            case RelayNotice():
                if message.twin is not None:
                    self._twin = message.twin, now
                self._sentence = f"The relay says: {safe_line(message.msg, MAX_QUOTED)}"
            case Bye():
                self._lesson_over = self._in_class
                raise ConnectionEnded(
                    f"The relay says goodbye: {safe_line(message.reason, MAX_QUOTED)}",
                    message.reconnect_after_ms,
                )

    def _other_version(self, ok: Ok) -> None:
        if self._joined is None or self._url is None:
            return
        relay, said = self._joined.hello.relay, safe_line(ok.msg, MAX_QUOTED)
        sentence = (
            f"{relay} is of another version of Shoal, so no answers can be exchanged: update the older of the "
            f"two. It says: {said}"
        )
        self._say("connected", self._url, sentence, relay)

    async def _write(self, connection: Connection, joined: Joined) -> None:
        if STATS_SUB in joined.hello.caps:
            await connection.send(AskStats(subscribe=True))
        if self._in_class and RESTING in joined.hello.caps:
            await connection.send(Rest(on=self._resting))
        if self._in_class and QUESTIONS in joined.hello.caps:
            await connection.send(AskQuestions())
        while True:
            self._wake.clear()
            now = time.monotonic()
            while self._asked:
                await connection.send(self._asked.popleft())
            for told in self._reporter.due(now, joined.hello.swarm, LESSONS in joined.hello.caps):
                await connection.send(told)
            for frame in self._publisher.due(now):
                await connection.send(frame)
                if self._asked:
                    break
            if self._publisher.overdue(now):
                raise ConnectionEnded(f"{connection.place} has stopped answering.")
            if self._asked:
                continue
            await _within(self._publisher.wait_s(now), self._wake.wait())


async def _within(seconds: float, answer: Awaitable[T]) -> T | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            return await answer
    return None


def _disk(error: sqlite3.Error) -> str:
    return f"The outbox can't be written ({error}): make room on the disk."
