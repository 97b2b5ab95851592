"""One client's conversation with the relay: a frame in, at most one frame out. Uses no sockets.

The connection (app.relay.server.connection) sends `hello` first, then passes every frame to `receive`, sends
the answer, and calls `closed` at the end. A frame is parsed strictly and its rate checked before it is handled:
sign-in, publishing (app.relay.session.publisher), sampling, the archive, reports, receipts, figures.
Publishing, the archive and erasing may have to wait; then a coroutine of the answer is returned.

A session holds the state of one client: its key, the agreed capabilities, its faults and refusals. Window,
quotas, standings and presence are shared by all sessions and belong to `RelayState`. Sockets, timers and the
order of answers belong to the connection, so every rule here can be replayed from frames and a clock."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Coroutine
from statistics import median
from typing import Any

from app.common.rate import Bucket, Rate
from app.relay.session.publisher import Outcome, SignedInKey
from app.relay.session.sampling import BatchHeader, batch, refusal, waiting_ms
from app.relay.session.shared import CONNECTIONS_OF_A_KEY, RelayState
from app.relay.store.backing import ArchivedGroup, Unavailable
from app.relay.store.turns import SampleQuery
from app.swarm.wire import limits
from app.swarm.wire.frames import decode_client_frame, to_frame
from app.swarm.wire.limits import Code, Flaw, Refused
from app.swarm.wire.protocol import (
    ARCHIVE,
    CLASS,
    LESSONS,
    QUESTIONS,
    RECEIPTS,
    STATS_SUB,
    VERSIONS,
    ZLIB,
    AskQuestions,
    AskStats,
    Auth,
    Bye,
    ClassProgress,
    Erase,
    Erased,
    Hello,
    Ok,
    Pub,
    Recall,
    Receipts,
    Report,
    Sample,
    Welcome,
)
from app.swarm.wire.signin import check_sign_in, signed_hello

MAX_FAULTS = 32
"""Number of unparsable frames after which a connection is closed."""
REFUSALS = Rate(60, 100)
"""Rate of rate-limit refusals per connection; a client above it ignores the wait it was told, and is
disconnected."""
NOT_INVITED_S = 60.0
"""Seconds after which a node that may not sign in may ask again: the operator may have allowed it meanwhile."""


class Session:
    """One client's conversation, from `hello` to `closed`. `closing`: the connection must be closed after this
    frame; `greeted`: the client has signed in or requested figures."""

    __slots__ = (
        "_caps",
        "_faults",
        "_hello",
        "_publisher",
        "_refusals",
        "_state",
        "address",
        "closing",
        "deliver",
        "greeted",
        "key",
        "name",
        "subscribed",
    )

    def __init__(self, state: RelayState, address: str, opening: bytes = b"") -> None:
        """`opening` is the nonce or handshake bytes that opened the connection; `hello` signs them."""
        self._state = state
        hello = Hello(
            proto=VERSIONS,
            relay=state.relay,
            key=state.key.hex(),
            sig="",
            swarm=state.swarm,
            epoch=state.epoch,
            time_ms=state.now_ms(),
            challenge=secrets.token_hex(32),
            caps=state.caps,
            limits=limits.RelayLimits(),
            pow_bits=state.pow_bits,
        )
        self._hello: Hello | None = signed_hello(state.seed, hello, opening)
        self._caps: frozenset[str] = frozenset()
        self._faults = 0
        self._refusals: Bucket | None = None
        self._publisher: SignedInKey | None = None
        self.address = address
        self.name = secrets.token_hex(8)
        self.key: bytes | None = None
        self.subscribed = False
        self.greeted = False
        self.closing = False
        self.deliver: Callable[[bytes], object] = lambda frame: None
        """Sends a frame that the client did not request, or drops it if the send buffer is full."""

    def hello(self) -> bytes:
        """The first frame to the client, before it signs in."""
        assert self._hello is not None
        return to_frame(self._hello)

    def receive(self, frame: bytes) -> bytes | Coroutine[Any, Any, bytes] | None:
        """Handles one frame. Returns the answer, a coroutine of it, or None if the frame has no answer. No
        input of a client raises."""
        try:
            message, written = decode_client_frame(frame)
        except Refused as refused:
            return self.fault(refused.code, refused.sentence)
        match message:
            case Pub():
                outcome = self._publish(message, written)
                if isinstance(outcome, tuple):
                    return self._ok(message.id, outcome)
                return self._ok_later(message.id, outcome)
            case Sample():
                return self._sample(message)
            case Recall():
                return self._recall(message)
            case Auth():
                return self._auth(message)
            case Erase():
                return self._erase()
            case Report():
                return self._report(message)
            case Receipts():
                return self._receipts(message)
            case AskStats():
                return self._ask_stats(message)
            case ClassProgress():
                return self._progress(message)
            case AskQuestions():
                return self._hand_out()

    def fault(self, code: Code, sentence: str) -> bytes:
        """Refuses a frame that is not a valid message; marks the session as closing after MAX_FAULTS of
        them."""
        self._faults += 1
        self.closing = self._faults >= MAX_FAULTS
        return refusal(code, sentence)

    def _too_often(self, sentence: str, wait_s: float, rid: int | None = None) -> bytes:
        """Refuses a request for its rate; disconnects a client that keeps asking."""
        self._count_refusal()
        return refusal(Code.RATE_LIMITED, sentence, rid=rid, wait_s=wait_s)

    def _count_refusal(self) -> None:
        if self._refusals is None:
            self._refusals = Bucket(REFUSALS.per_min, REFUSALS.burst)
        now = self._state.clock()
        if self._refusals.left(now) < 1:
            self.closing = True
            self.count_ended("refusals")
        self._refusals.take(1, now)

    def stats(self) -> bytes:
        return to_frame(self._state.stats())

    def bye(self, reason: str, reconnect_after_ms: int) -> bytes:
        self.closing = True
        return to_frame(Bye(reason=reason, reconnect_after_ms=reconnect_after_ms))

    def count_received(self, size: int) -> None:
        """Counts a received frame of `size` bytes."""
        self._state.tally.bytes_in += size

    def count_sent(self, size: int) -> None:
        self._state.tally.bytes_out += size

    def count_ended(self, reason: str) -> None:
        """Counts the reason for which the relay ended this connection."""
        self._state.tally.ended[reason] += 1

    def closed(self) -> None:
        """Releases what the session holds in the shared state. Call it whenever the connection has ended."""
        self._state.presence.leave(self.name)
        if self.key is not None:
            self._state.receipts.leave(self.key, self)

    def _auth(self, auth: Auth) -> bytes:
        if self._hello is None:
            return self.fault(Code.INVALID, "This connection has signed in already.")
        state, key = self._state, bytes.fromhex(auth.pk)
        self.closing = True
        try:
            check_sign_in(auth, self._hello)
            state.access.check(auth, self._hello)
        except Refused as refused:
            later = NOT_INVITED_S if refused.flaw is Flaw.NOT_INVITED else None
            return self._turned_away(refused.code, refused.sentence, wait_s=later)
        if state.standings.verdict(key, self.address) == "blocked":
            return self._turned_away(Code.BLOCKED, "This key or address is banned here.")
        if state.presence.connections(key) >= CONNECTIONS_OF_A_KEY:
            return self._turned_away(Code.RATE_LIMITED, "This key is connected twice already.", wait_s=30.0)
        if key not in state.standings.known and state.crowded():
            return self._turned_away(
                Code.RATE_LIMITED,
                "This relay is nearly full, and has room for keys it knows only.",
                wait_s=30.0,
            )
        wait = state.register_key(key, self.address)
        if wait > 0:
            return self._turned_away(
                Code.RATE_LIMITED, "Too many new keys come from this address.", wait_s=wait
            )
        self.closing = False
        self.key = key
        self._hello = None  # it would cost every idle connection a kilobyte
        self._caps = frozenset(auth.caps) & frozenset(state.caps)
        self._publisher = SignedInKey(state, key, self.address, zlib=ZLIB in self._caps)
        self.greeted = True
        state.tally.sign_ins["welcome"] += 1
        state.presence.arrive(self.name, key)
        if RECEIPTS in self._caps:
            state.receipts.arrive(key, self)
        if state.classroom is not None and CLASS in self._caps:
            state.classroom.join(key, self.address)
        return to_frame(Welcome(session=self.name, quotas=limits.Quotas(), time_ms=state.now_ms()))

    def _turned_away(self, code: Code, sentence: str, *, wait_s: float | None = None) -> bytes:
        self._state.tally.sign_ins[code] += 1
        return refusal(code, sentence, wait_s=wait_s)

    def _ok(self, id: str, outcome: Outcome) -> bytes:
        code, sentence, wait_s = outcome
        state = self._state
        state.counts[code] += 1
        if code is Code.RATE_LIMITED:
            self._count_refusal()
        return to_frame(
            Ok(id=id, code=code, msg=sentence, retry_after_ms=waiting_ms(wait_s), time_ms=state.now_ms())
        )

    async def _ok_later(self, id: str, outcome: Awaitable[Outcome]) -> bytes:
        return self._ok(id, await outcome)

    def _publish(self, pub: Pub, written: bytes) -> Outcome | Coroutine[Any, Any, Outcome]:
        if self._publisher is None:
            return Code.RESTRICTED, "Sign in before publishing.", None
        return self._publisher.publish(pub, written)

    def _sample(self, sample: Sample) -> bytes:
        state, key = self._state, self.key
        if key is None:
            return refusal(Code.RESTRICTED, "Sign in before sampling.", rid=sample.rid)
        room = self._room("sample", key, sample)
        if isinstance(room, bytes):
            return room
        ask = SampleQuery(
            key=key,
            k=sample.k,
            max_bytes=room,
            families=sample.families,
            max_age_s=sample.max_age_s,
            per_key=sample.per_key_cap,
        )
        drawn = state.sampler.sample(ask, state.standings.weights)
        if state.classroom is not None:
            for group in drawn.groups:
                state.classroom.record_given(group.key, key, group.family)
        arrived = [group.arrived for group in drawn.groups]
        figures = BatchHeader(
            rid=sample.rid,
            window=drawn.window,
            eligible=drawn.eligible,
            sources=drawn.sources,
            age_p50_s=round(max(0.0, state.clock() - median(arrived)), 3) if arrived else None,
        )
        return self._batch(key, figures, [group.raw for group in drawn.groups])

    def _room(self, kind: str, key: bytes, ask: Sample | Recall) -> int | bytes:
        """Returns the maximum bytes of the answer, or the refusal to send instead."""
        state = self._state
        if state.standings.verdict(key, self.address) == "blocked":
            return refusal(Code.BLOCKED, "This key or address is banned here.", rid=ask.rid)
        room = min(ask.max_bytes, int(state.quotas.left("bytes", key, self.address)))
        if room < min(ask.max_bytes, limits.FRAME_BYTES):
            return self._too_often("The bytes of this minute are used up.", 5.0, ask.rid)
        wait = state.quotas.take(kind, key, self.address)
        if wait > 0:
            return self._too_often("This key or address samples too often.", wait, ask.rid)
        return room

    def _batch(self, key: bytes, figures: BatchHeader, raws: list[bytes]) -> bytes:
        state, tally = self._state, self._state.tally
        tally.samples += 1
        tally.items += len(raws)
        state.quotas.take("bytes", key, self.address, sum(map(len, raws)))
        return batch(figures, raws)

    def _recall(self, recall: Recall) -> bytes | Coroutine[Any, Any, bytes]:
        state, key = self._state, self.key
        if key is None:
            return refusal(Code.RESTRICTED, "Sign in before sampling.", rid=recall.rid)
        if state.store.backing.archived is None or ARCHIVE not in self._caps:
            return refusal(Code.UNSUPPORTED, "An archive was not agreed on.", rid=recall.rid)
        room = self._room("recall", key, recall)
        return room if isinstance(room, bytes) else self._recalled(key, recall, room)

    async def _recalled(self, key: bytes, recall: Recall, room: int) -> bytes:
        state, now_ms = self._state, self._state.now_ms()
        taken: list[ArchivedGroup] = []
        try:  # twice as many, as the asker may have had some
            found = await state.store.recall(recall.tasks, 2 * recall.k, key, state.standings.weight)
        except Unavailable as error:
            return refusal(Code.ERROR, str(error), rid=recall.rid, wait_s=error.retry_after_s)
        given = state.sampler.given_to(key)
        for one in found:
            if len(taken) < recall.k and len(one.raw) <= room and not given.has(one.id):
                given.add(one.id)
                room -= len(one.raw)
                taken.append(one)
        figures = BatchHeader(
            rid=recall.rid,
            window=state.store.backing.archived or 0,
            eligible=len(found),
            sources=len({one.key for one in found}),
            age_p50_s=round(max(0, now_ms - median(one.arrived_ms for one in taken)) / 1000, 3)
            if taken
            else None,
        )
        return self._batch(key, figures, [one.raw for one in taken])

    def _erase(self) -> bytes | Coroutine[Any, Any, bytes]:
        if self.key is None:
            return refusal(Code.RESTRICTED, "Sign in before erasing.")
        wait = self._state.quotas.take("erase", self.key, self.address)
        if wait > 0:
            return self._too_often("This key or address erases too often.", wait)
        return self._erased(self.key)

    async def _erased(self, key: bytes) -> bytes:
        try:
            return to_frame(Erased(groups=await self._state.store.erase(key)))
        except Unavailable as error:
            return refusal(Code.ERROR, str(error), wait_s=error.retry_after_s)

    def _report(self, report: Report) -> bytes | None:
        state, key = self._state, self.key
        if key is None:
            return refusal(Code.RESTRICTED, "Sign in before reporting.")
        wait = state.quotas.take("report", key, self.address)
        if wait > 0:
            return self._too_often("This key or address reports too often.", wait)
        ids = [bytes.fromhex(id) for id in dict.fromkeys(report.ids)]
        if state.checker is not None:
            for id in ids:
                state.checker.record_report(key, id, report.reason)
            return None
        for author in {group.key for id in ids if (group := state.window.find(id))}:
            state.standings.report(key, author)
        return None

    def _receipts(self, receipts: Receipts) -> bytes | None:
        """Forwards receipts. Those of a key without standing are dropped silently, except receipts for lessons,
        which newcomers may send too."""
        state, key = self._state, self.key
        if key is None:
            return refusal(Code.RESTRICTED, "Sign in before sending receipts.")
        if RECEIPTS not in self._caps:
            return refusal(Code.UNSUPPORTED, "Receipts were not agreed on.")
        wait = state.quotas.take("receipts", key, self.address)
        if wait > 0:
            return self._too_often("This key or address sends receipts too often.", wait)
        if state.standings.verdict(key, self.address) == "welcome":
            if key in state.standings.known:
                state.receipts.take(key, receipts, state.swarm, state.window)
            if receipts.lessons and LESSONS in self._caps:
                state.receipts.take_lessons(key, receipts, state.swarm)
        return None

    def _progress(self, progress: ClassProgress) -> bytes | None:
        room, key = self._state.classroom, self.key
        if room is None or key is None or CLASS not in self._caps:
            return self.fault(Code.UNSUPPORTED, "This was not agreed on: join with an invite to a class.")
        if self._state.quotas.take("progress", key, self.address) == 0:
            room.progress(key, self.address, progress)
        return None

    def _hand_out(self) -> bytes:
        state, key = self._state, self.key
        if state.handout is None or key is None or QUESTIONS not in self._caps:
            return self.fault(Code.UNSUPPORTED, "This was not agreed on: join with an invite to a class.")
        if (wait := state.quotas.take("questions", key, self.address)) > 0:
            return self._too_often("This key or address asks too often.", wait)
        return state.handout

    def _ask_stats(self, ask: AskStats) -> bytes:
        wait = self._state.quotas.take("stats", self.key, self.address)
        if wait > 0:
            return self._too_often("This key or address asks too often.", wait)
        if ask.subscribe and STATS_SUB not in self._caps:
            return refusal(Code.UNSUPPORTED, "A subscription was not agreed on.")
        if ask.subscribe is not None:
            self.subscribed = ask.subscribe
        self.greeted = True
        if self.key is not None and LESSONS in self._caps:
            self._state.receipts.hand_over(self.key)
        return self.stats()
