"""One client's conversation with the relay: a frame in, at most one frame out. Uses no sockets.

The connection (app.relay.server.connection) sends `hello` first, then passes every frame to `receive`, sends
the answer, and calls `closed` at the end. A frame is parsed strictly, admitted by the table of rules
(app.relay.session.admission), charged to its bucket, and only then handled: sign-in, publishing
(app.relay.session.publisher), sampling, the archive, reports, receipts, figures.
Publishing, the archive and erasing may have to wait; then a coroutine of the answer is returned.

A session holds the state of one client: its key, the agreed capabilities, its faults and refusals. Window,
quotas, standings and presence are shared by all sessions and belong to `RelayState`. Sockets, timers and the
order of answers belong to the connection, so every rule here can be replayed from frames and a clock."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from statistics import median
from typing import Any

from app.common.rate import Bucket, Rate
from app.relay.session.admission import BUCKETS, Facts, Verdict, decide
from app.relay.session.publisher import Outcome, Publisher
from app.relay.session.sampling import BatchHeader, batch, refusal, waiting_ms
from app.relay.session.shared import RelayState
from app.relay.standing import Treatment
from app.relay.store.backing import ArchivedGroup, Unavailable
from app.relay.store.turns import SampleQuery
from app.swarm.wire import limits
from app.swarm.wire.body import task_of
from app.swarm.wire.frames import decode_client_frame, decode_envelope, to_frame
from app.swarm.wire.limits import Code, Refused
from app.swarm.wire.protocol import (
    LESSONS,
    VERSIONS,
    AskQuestions,
    AskStats,
    Auth,
    Bye,
    ClassProgress,
    Erase,
    Erased,
    FromClient,
    Hello,
    Ok,
    Pub,
    Recall,
    Receipts,
    RelayNotice,
    Report,
    Rest,
    Sample,
    Welcome,
)
from app.swarm.wire.shared_sets import is_shared_set_family
from app.swarm.wire.signin import check_sign_in, signed_hello

MAX_FAULTS = 32
"""Number of unparsable frames after which a connection is closed."""
COLLISIONS_OF_TWINS = 3
"""Groups with a used number, other than those that were stored, after which two connections of one key are two
nodes: a copied data folder. One node that reconnects sends the same groups again."""
MAX_REFUSAL_RATE = Rate(60, 100)
"""Rate of rate-limit refusals per connection; a client above it ignores the wait it was told, and is
disconnected."""


_TWINS = (
    "Two nodes use this key at once, as after a data folder was copied: what one of them publishes is refused. "
    "Give one of them a new identity."
)


class Session:
    """One client's conversation, from `hello` to `closed`. `closing`: the connection must be closed after this
    frame; `greeted`: the client has signed in or requested figures."""

    __slots__ = (
        "_caps",
        "_faults",
        "_hello",
        "_hex",
        "_publisher",
        "_refusals",
        "_state",
        "address",
        "asked",
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
        self._publisher: Publisher | None = None
        self._hex = ""
        self.address = address
        self.name = secrets.token_hex(8)
        self.key: bytes | None = None
        self.subscribed = False
        self.greeted = False
        self.closing = False
        self.asked = False
        self.deliver: Callable[[bytes], object] = lambda frame: None
        """Sends a frame that the client did not request, or drops it if the send buffer is full."""

    @property
    def _signed_in(self) -> bytes:
        """The key of a client whose frame was admitted."""
        assert self.key is not None
        return self.key

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
        facts = self._facts(message)
        verdict = decide(message, facts)
        if verdict is not None:
            return self._refused(message, verdict)
        if not isinstance(message, Auth):
            self._state.quotas.take(BUCKETS[type(message)], self.key, self.address)
        match message:
            case Pub():
                return self._publish(message, written, facts.treatment)
            case Sample():
                return self._sample(message, facts.bytes_left)
            case Recall():
                return self._recalled(message, facts.bytes_left)
            case Auth():
                return self._auth(message)
            case Erase():
                return self._erased()
            case Report():
                self._report(message)
            case Receipts():
                self._receipts(message)
            case AskStats():
                return self._ask_stats(message)
            case ClassProgress():
                self._progress(message)
            case Rest() if self._state.classroom is not None:
                self._state.classroom.rest(self._signed_in, message.on)
            case AskQuestions():
                return self._state.handout
        return None

    def _facts(self, frame: FromClient) -> Facts:
        """Gathers what the rules ask about the sender of a frame."""
        state, key, address = self._state, self.key, self.address
        if isinstance(frame, Auth):
            return Facts() if self._hello is None else self._facts_of_stranger(frame, self._hello)
        bucket = BUCKETS[type(frame)]
        if key is None:
            return Facts(signed_in=False, wait_s=state.quotas.wait(bucket, None, address))
        treatment = state.standings.verdict(key, address)
        if isinstance(frame, Pub) and treatment != "blocked" and frame.pk != self._hex:
            author = state.standings.verdict(bytes.fromhex(frame.pk), address)
            treatment = treatment if author == "welcome" else author
        left = state.quotas.left("bytes", key, address) if isinstance(frame, Sample | Recall) else inf
        return Facts(
            agreed=self._caps,
            treatment=treatment,
            wait_s=state.quotas.wait(bucket, key, address),
            bytes_left=left,
        )

    def _facts_of_stranger(self, auth: Auth, hello: Hello) -> Facts:
        state, key = self._state, bytes.fromhex(auth.pk)
        try:
            check_sign_in(auth, hello)
            state.access.check(auth, hello)
        except Refused as refused:
            return Facts(signed_in=False, flaw=refused)
        return Facts(
            signed_in=False,
            treatment=state.standings.verdict(key, self.address),
            wait_s=state.wait_of_new_key(key, self.address),
            connections=state.presence.connections(key),
            known=key in state.standings.known,
            crowded=state.crowded(),
        )

    def _refused(self, frame: FromClient, verdict: Verdict) -> bytes | None:
        code, sentence, wait_s = verdict.code, verdict.sentence, verdict.wait_s
        if code is None:
            return None
        if isinstance(frame, Pub):
            return self._ok(frame.id, (code, sentence, wait_s))
        if verdict.fault:
            return self.fault(code, sentence)
        if isinstance(frame, Auth):
            self.closing = True
            self._state.tally.sign_ins[code] += 1
        elif code is Code.RATE_LIMITED:
            self._count_refusal()
        rid = frame.rid if isinstance(frame, Sample | Recall) else None
        return refusal(code, sentence, rid=rid, wait_s=wait_s)

    def fault(self, code: Code, sentence: str) -> bytes:
        """Refuses a frame that is not a valid message; marks the session as closing after MAX_FAULTS of
        them."""
        self._faults += 1
        self.closing = self._faults >= MAX_FAULTS
        return refusal(code, sentence)

    def _count_refusal(self) -> None:
        """Counts a refusal for a rate; disconnects a client that keeps asking."""
        if self._refusals is None:
            self._refusals = Bucket(MAX_REFUSAL_RATE.per_min, MAX_REFUSAL_RATE.burst)
        now = self._state.clock()
        if self._refusals.left(now) < 1:
            self.closing = True
            self.count_ended("refusals")
        self._refusals.take(1, now)

    def stats(self) -> bytes:
        return to_frame(self._state.stats())

    def tell_of_twin(self, asked: bool) -> None:
        """Tells the client that another node uses its key; `asked`: that it should take a new one."""
        self.asked = asked
        self.deliver(to_frame(RelayNotice(msg=_TWINS, twin=asked)))

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
        self._state.leave(self)

    def _auth(self, auth: Auth) -> bytes:
        state, key = self._state, bytes.fromhex(auth.pk)
        self.key, self._hex = key, auth.pk
        self._hello = None  # it would cost every idle connection a kilobyte
        self._caps = frozenset(auth.caps) & frozenset(state.caps)
        self._publisher = Publisher(state, key, self.address)
        self.greeted = True
        state.arrive(self, key, self._caps)
        return to_frame(Welcome(session=self.name, quotas=limits.Quotas(), time_ms=state.now_ms()))

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

    def _publish(self, pub: Pub, written: bytes, treatment: Treatment) -> bytes | Coroutine[Any, Any, bytes]:
        assert self._publisher is not None
        state, key = self._state, self._signed_in
        outcome = self._publisher.publish(pub, written, treatment)
        if self._publisher.collisions >= COLLISIONS_OF_TWINS and state.presence.connections(key) > 1:
            self._publisher.collisions = 0
            state.on_twins(self)
        return self._ok(pub.id, outcome) if isinstance(outcome, tuple) else self._ok_later(pub.id, outcome)

    def _sample(self, sample: Sample, bytes_left: float) -> bytes:
        state, key = self._state, self._signed_in
        ask = SampleQuery(
            key=key,
            k=sample.k,
            max_bytes=min(sample.max_bytes, int(bytes_left)),
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

    def _batch(self, key: bytes, figures: BatchHeader, raws: list[bytes]) -> bytes:
        state, tally = self._state, self._state.tally
        tally.samples += 1
        tally.items += len(raws)
        state.quotas.take("bytes", key, self.address, sum(map(len, raws)))
        return batch(figures, raws)

    async def _recalled(self, recall: Recall, bytes_left: float) -> bytes:
        state, key, now_ms = self._state, self._signed_in, self._state.now_ms()
        room = min(recall.max_bytes, int(bytes_left))
        taken: list[ArchivedGroup] = []
        try:  # twice as many, as the asker may have had some
            found = await state.store.recall(recall.tasks, 2 * recall.k, key, state.standings.weight)
        except Unavailable as error:
            return refusal(Code.ERROR, str(error), rid=recall.rid, wait_s=error.retry_after_s)
        given = state.sampler.given_to(key)
        for one in found:
            if len(taken) == recall.k or len(one.raw) > room or given.has(one.id):
                continue
            if await self._vouched_for(one):
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

    async def _vouched_for(self, group: ArchivedGroup) -> bool:
        """Whether a recalled group is true as far as this relay can tell; members check shared sets' groups."""
        state = self._state
        if state.checker is None or is_shared_set_family(task_of(decode_envelope(group.raw)).family):
            return True
        return await state.checker.vouches_for(group, state.clock())

    async def _erased(self) -> bytes:
        try:
            return to_frame(Erased(groups=await self._state.store.erase(self._signed_in)))
        except Unavailable as error:
            return refusal(Code.ERROR, str(error), wait_s=error.retry_after_s)

    def _report(self, report: Report) -> None:
        state, key = self._state, self._signed_in
        ids = [bytes.fromhex(id) for id in dict.fromkeys(report.ids)]
        if state.checker is not None:
            for id in ids:
                state.checker.record_report(key, id, report.reason)
            return
        for author in {group.key for id in ids if (group := state.window.find(id))}:
            state.standings.report(key, author)

    def _receipts(self, receipts: Receipts) -> None:
        """Forwards receipts. Those of a key without standing are dropped silently, except receipts for lessons,
        which newcomers may send too."""
        state, key = self._state, self._signed_in
        if key in state.standings.known:
            state.receipts.take(key, receipts, state.swarm, state.window)
        if receipts.lessons and LESSONS in self._caps:
            state.receipts.take_lessons(key, receipts, state.swarm)

    def _progress(self, progress: ClassProgress) -> None:
        assert self._state.classroom is not None
        self._state.classroom.progress(self._signed_in, self.address, progress)

    def _ask_stats(self, ask: AskStats) -> bytes:
        if ask.subscribe is not None:
            self.subscribed = ask.subscribe
        self.greeted = True
        if self.key is not None and LESSONS in self._caps:
            self._state.receipts.hand_over(self.key)
        return self.stats()
