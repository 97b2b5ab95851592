"""Spot checks: the relay scores some groups again and compares the rewards with those that the authors claimed.
`standings` decides the fraction per key.

A check regenerates the question and scores the completions in a sandbox process, in a thread beside the event
loop, so that neither a slow question nor a hostile answer delays anybody. What is recalled from the archive,
which newcomers learn from, is checked before it is given (`vouches_for`). The load is bounded: a few checks a
second; groups that do not fit into the queue are counted, not checked. The next group to check, and the one
that a full queue drops, are drawn at random, so that a false claim cannot be hidden by many others. A false
claim removes the group; three in a day remove all groups of its author. A report leads to a check of the
reported group; reporting an honest one costs the reporter trust."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from random import Random
from typing import Any, Protocol

import msgspec

from app.common.rate import Bucket, Rate
from app.relay.standing import MIN_WEIGHT, Ban, Source, Standings
from app.relay.store.backing import ArchivedGroup, Unavailable
from app.relay.store.store import Store
from app.sapo.questions import QuestionError, UnsoundQuestion
from app.sapo.scoring.sandbox import Sandbox, SandboxError, score_group
from app.swarm.wire.body import Envelope, unseal
from app.swarm.wire.limits import Refused

MAX_QUEUED, MAX_REPORTED = 512, 128
"""Maximum groups waiting for a check: those drawn by standing, and those named in reports."""
MAX_WAITING_PER_KEY = 16
"""Maximum waiting checks per author, and per reporter."""
CHECKS_PER_S = 20.0
"""Maximum checks per second. A check of eight answers costs this process 0.2 ms and the sandbox as much
(measured): at most 0.4 % of a core each, regardless of the number of new keys."""
CHECKS_AT_ONCE = 4  # checks between two pauses, so that the sandbox is not started for each
JUDGE_LIMIT_S = 1.0
"""Time limit for scoring one answer, four times that of a node: a busy machine must not make an honest claim
look false."""
RETRY_SANDBOX_S = 60.0
"""Seconds until a sandbox that failed to start is tried again."""
CLOSE_IDLE_SANDBOX_S = 600.0
"""Seconds without work after which the sandbox is closed: it takes 90 MB."""
RECALL_CHECKS = Rate(60 * CHECKS_PER_S, 400)
"""Checks of groups that are about to be recalled: each is checked once."""
_KNOWN = 32_768  # ids of groups found honest, and of those found false: no second check of them

_log = logging.getLogger(__name__)
_envelopes = msgspec.json.Decoder(Envelope)


class CheckResult(StrEnum):
    """The result of a check. `UNMADE`: the question could not be generated in time, which may be nobody's
    fault."""

    HONEST = "honest"
    FALSE = "false"
    NO_QUESTION = "no-question"
    UNMADE = "unmade"


class CheckedRelay(Protocol):
    """The parts of a relay that checks need."""

    swarm: str
    store: Store
    standings: Standings

    async def ban(self, source: Source, ban: Ban) -> None: ...


def rescore(sandbox: Sandbox, swarm: str, raw: bytes) -> CheckResult:
    """Scores an envelope's completions again and compares them with the claimed rewards. Blocks. Raises
    SandboxError."""
    try:
        body = unseal(_envelopes.decode(raw), swarm)
    except (Refused, msgspec.MsgspecError):
        return CheckResult.FALSE
    try:
        for _ in range(2):  # a false claim fails again, a hiccup of the machine does not
            if score_group(sandbox, body.group()).rewards_G == body.rewards:
                return CheckResult.HONEST
    except UnsoundQuestion:
        return CheckResult.NO_QUESTION
    except QuestionError:
        return CheckResult.UNMADE
    return CheckResult.FALSE


class _Waiting:
    """Groups waiting for a check, at most `most` in all and MAX_WAITING_PER_KEY per source. When full, a random
    one is dropped."""

    def __init__(self, most: int, rng: Random) -> None:
        self._most = most
        self._rng = rng
        self._ids: list[tuple[bytes, bytes]] = []
        self._sources: Counter[bytes] = Counter()

    def put(self, id: bytes, source: bytes) -> bool:
        """Adds a group. Returns False if this group, or one dropped for it, will not be checked."""
        if self._sources[source] >= MAX_WAITING_PER_KEY:
            return False
        kept = len(self._ids) < self._most or self.take() is None
        self._ids.append((id, source))
        self._sources[source] += 1
        return kept

    def take(self) -> bytes | None:
        """Removes and returns a random group id; None if it is empty."""
        if not self._ids:
            return None
        place = self._rng.randrange(len(self._ids))
        self._ids[place], self._ids[-1] = self._ids[-1], self._ids[place]
        id, source = self._ids.pop()
        self._sources[source] -= 1
        if not self._sources[source]:
            del self._sources[source]
        return id

    def __len__(self) -> int:
        return len(self._ids)


class Checker:
    """The spot checks of one relay. `published` and `record_report` only queue groups; `run` scores them."""

    def __init__(
        self,
        state: CheckedRelay,
        rng: Random | None = None,
        *,
        open_sandbox: Callable[[], Sandbox] = lambda: Sandbox(JUDGE_LIMIT_S),
        per_s: float = CHECKS_PER_S,
    ) -> None:
        rng = rng or Random()
        self._state = state
        self._open = open_sandbox
        self._pause_s = CHECKS_AT_ONCE / per_s
        self._drawn = _Waiting(MAX_QUEUED, rng)
        self._named = _Waiting(MAX_REPORTED, rng)
        self._turn = (self._drawn, self._named)
        self._reporters: dict[bytes, set[bytes]] = {}
        self._honest: OrderedDict[bytes, None] = OrderedDict()
        self._false: OrderedDict[bytes, None] = OrderedDict()
        self._recalling, self._retry_at = asyncio.Lock(), 0.0
        """Groups found honest recently: a report of one is wrong without another check."""
        self._recalls = Bucket(RECALL_CHECKS.per_min, RECALL_CHECKS.burst)
        self._wake = asyncio.Event()
        self._sandbox: Sandbox | None = None
        self.counts: Counter[str] = Counter()
        """Results by name, and `skipped`: groups that were due for a check but did not fit into the queue."""
        self.working = True
        """False while the sandbox fails to start."""

    def published(self, id: bytes, key: bytes) -> None:
        """Queues a new group of `key` for a check, with the probability that the key's standing gives."""
        if self._state.standings.draw_check(key):
            if not self._drawn.put(id, key):
                self.counts["skipped"] += 1
            self._wake.set()

    def record_report(self, reporter: bytes, id: bytes, reason: str) -> None:
        """Records a report against the group `id`: its author becomes more suspect, and with the reason
        bad_reward the group is queued for a check. A report known to be wrong lowers the standing of
        `reporter`."""
        standings, group = self._state.standings, self._state.store.window.find(id)
        if group is None or group.key == reporter or standings.weight(reporter) <= MIN_WEIGHT:
            return
        if reason == "bad_sig" or (reason == "bad_reward" and id in self._honest):
            standings.record_wrong_report(reporter)
            return
        standings.report(reporter, group.key)
        if reason != "bad_reward":
            return
        if id in self._reporters:
            self._reporters[id].add(reporter)
        elif self._named.put(id, reporter):
            self._reporters[id] = {reporter}
            self._wake.set()
        else:
            self.counts["skipped"] += 1

    @property
    def waiting_groups(self) -> int:
        return len(self._drawn) + len(self._named)

    @property
    def pid(self) -> int | None:
        """Process id of the sandbox."""
        return self._sandbox.pid if self._sandbox is not None else None

    async def run(self) -> None:
        """Checks queued groups until cancelled."""
        try:
            while True:
                if not self.waiting_groups:
                    await self._rest()
                for _ in range(CHECKS_AT_ONCE):
                    await self._next()
                await asyncio.sleep(self._pause_s)
        finally:
            self._close()

    async def _rest(self) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(CLOSE_IDLE_SANDBOX_S):
                await self._wake.wait()
        except TimeoutError:
            async with self._recalling:
                self._close()
            await self._wake.wait()

    async def _next(self) -> None:
        """Checks one group, alternating between reported and randomly drawn ones."""
        self._turn = self._turn[::-1]
        id = self._turn[0].take() or self._turn[1].take()
        if id is None:
            return
        reporters = self._reporters.pop(id, set())
        group = self._state.store.window.find(id)
        if group is None or id in self._honest:
            return
        if await self._check(id, group.key, group.raw, reporters) is None:
            await asyncio.sleep(RETRY_SANDBOX_S)

    async def vouches_for(self, group: ArchivedGroup, now: float) -> bool:
        """Whether a group's claim was found true, now or before. Without time for a check, one of a key with
        standing is trusted; where checks don't work, any."""
        self._wake.set()
        async with self._recalling:  # one claim counts once, however many ask for it at the same time
            if group.id in self._honest or group.id in self._false:
                return group.id in self._honest
            if (self.working or now >= self._retry_at) and self._recalls.left(now) >= 1:
                self._recalls.take(1, now)
                finding = await self._check(group.id, group.key, group.raw, set())
                if finding is None:
                    self._retry_at = now + RETRY_SANDBOX_S
                return finding is CheckResult.HONEST or finding is None
            return not self.working or group.key in self._state.standings.known

    async def _check(self, id: bytes, key: bytes, raw: bytes, reporters: set[bytes]) -> CheckResult | None:
        """Scores a group again and acts on what is found; None if the sandbox doesn't work."""
        if self._sandbox is None:
            self._sandbox = self._open()
        try:
            finding = await asyncio.to_thread(rescore, self._sandbox, self._state.swarm, raw)
            self.working = True
        except SandboxError as error:
            self._close()
            if self.working:
                _log.warning("Groups are not checked: %s", error)
            self.working = False
            self.counts["skipped"] += 1
            return None
        self.counts[finding] += 1
        await self._act(finding, id, key, reporters)
        return finding

    async def _act(self, finding: CheckResult, id: bytes, key: bytes, reporters: set[bytes]) -> None:
        standings = self._state.standings
        if finding is CheckResult.HONEST:
            standings.record_honest(key)
            _remember(self._honest, id)
            for reporter in reporters:
                standings.record_wrong_report(reporter)
            return
        _remember(self._false, id)
        await _try(self._state.store.drop(id))
        if finding is not CheckResult.UNMADE:
            ban = standings.false_claim(key)
            if ban is not None:
                await _try(self._state.ban(key, ban))

    def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


def _remember(found: OrderedDict[bytes, None], id: bytes) -> None:
    found[id] = None
    if len(found) > _KNOWN:
        found.popitem(last=False)


async def _try(action: Coroutine[Any, Any, None]) -> None:
    """Awaits an action of the store, ignoring Unavailable: this relay has already acted, and other relays
    find out by their own checks."""
    with suppress(Unavailable):
        await action
