"""Spot checks: some groups are scored again here, and compared with what their authors claimed. `standings`
says how many of each key's.

A check regenerates the question and scores the completions in a sandbox process, in a thread beside the loop,
so that neither a slow question nor a hostile answer can delay anybody. Checks use a bounded share of the
machine: a few a second at most; groups that do not fit into the queue are counted, not checked. Which group is
next, and which one a full queue drops, is drawn at random, so that a false claim cannot be hidden behind a
crowd. A false claim costs its author the group, and after three in a day everything. Reports by others lead to
a check of the reported group; a reporter of an honest one is believed less."""

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

from app.relay.standing import LEAST_WEIGHT, Ban, Source, Standings
from app.relay.store.backplane import Unavailable
from app.relay.store.window import Window
from app.sapo.questions import QuestionError, UnsoundQuestion
from app.sapo.scoring.sandbox import Sandbox, SandboxError, score_group
from app.swarm.wire.body import Envelope, unseal
from app.swarm.wire.limits import Refused

QUEUE, REPORTED = 512, 128
"""Groups that wait for a check, drawn by standing and named in reports."""
WAITING_OF_A_KEY = 16
"""Maximum checks waiting for one author, and for one reporter."""
CHECKS_PER_S = 20.0
"""A check of eight answers costs this process 0.2 ms and the sandbox as much (measured): at most 0.4 % of a
core each, however many new keys come at once."""
AT_ONCE = 4
JUDGE_S = 1.0
"""Seconds for one answer. Four times what a node allows: a busy machine must not make an honest key a liar."""
AGAIN_S = 60.0
"""Seconds until a sandbox that did not start is tried again."""
IDLE_S = 600.0
"""Seconds without work after which the sandbox is closed: it takes 90 MB."""
_KNOWN = 8192

_log = logging.getLogger(__name__)
_envelopes = msgspec.json.Decoder(Envelope)


class CheckResult(StrEnum):
    """The result of a check. `UNMADE`: the question was not made in time, which may be nobody's fault."""

    HONEST = "honest"
    FALSE = "false"
    NO_QUESTION = "no-question"
    UNMADE = "unmade"


class CheckedRelay(Protocol):
    """The parts of a relay that checking needs."""

    swarm: str
    window: Window
    standings: Standings

    async def ban(self, source: Source, ban: Ban) -> None: ...
    async def drop(self, id: bytes) -> None: ...


def judge(sandbox: Sandbox, swarm: str, raw: bytes) -> CheckResult:
    """Scores one envelope's completions again and compares. Blocking. Raises SandboxError."""
    try:
        body = unseal(_envelopes.decode(raw), swarm)
    except (Refused, msgspec.MsgspecError):
        return CheckResult.FALSE
    try:
        for _ in range(2):  # a lie is a lie the second time too, a stutter of the machine is not
            if score_group(sandbox, body.group()).rewards_G == body.rewards:
                return CheckResult.HONEST
    except UnsoundQuestion:
        return CheckResult.NO_QUESTION
    except QuestionError:
        return CheckResult.UNMADE
    return CheckResult.FALSE


class _Waiting:
    """Groups waiting for a check, at most `most` in all and a limited number of one source; when full, one of
    them is dropped at random."""

    def __init__(self, most: int, rng: Random) -> None:
        self._most = most
        self._rng = rng
        self._ids: list[tuple[bytes, bytes]] = []
        self._sources: Counter[bytes] = Counter()

    def put(self, id: bytes, source: bytes) -> bool:
        """Adds a group. Returns False if this group, or another that it replaces, will not be checked."""
        if self._sources[source] >= WAITING_OF_A_KEY:
            return False
        kept = len(self._ids) < self._most or self.take() is None
        self._ids.append((id, source))
        self._sources[source] += 1
        return kept

    def take(self) -> bytes | None:
        """Removes and returns a random one; None if nothing waits."""
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
    """The checks of one relay. `published` and `reported` cost next to nothing; `run` does the work."""

    def __init__(
        self,
        state: CheckedRelay,
        rng: Random | None = None,
        *,
        open_sandbox: Callable[[], Sandbox] = lambda: Sandbox(JUDGE_S),
        per_s: float = CHECKS_PER_S,
    ) -> None:
        rng = rng or Random()
        self._state = state
        self._open = open_sandbox
        self._pause_s = AT_ONCE / per_s
        self._drawn = _Waiting(QUEUE, rng)
        self._named = _Waiting(REPORTED, rng)
        self._turn = (self._drawn, self._named)
        self._reporters: dict[bytes, set[bytes]] = {}
        self._honest: OrderedDict[bytes, None] = OrderedDict()
        """Groups found honest lately: reports of them are wrong, without another check."""
        self._wake = asyncio.Event()
        self._sandbox: Sandbox | None = None
        self.counts: Counter[str] = Counter()
        """Findings, and `skipped`: groups that were due but did not fit in."""
        self.working = True
        """False while the sandbox does not start."""

    def published(self, id: bytes, key: bytes) -> None:
        """A client of this relay has published a new group with this key."""
        if self._state.standings.due(key):
            if not self._drawn.put(id, key):
                self.counts["skipped"] += 1
            self._wake.set()

    def reported(self, reporter: bytes, id: bytes, reason: str) -> None:
        """Somebody reports a bad group. Rewards are checked; signatures were checked on arrival; any other
        reason only raises suspicion."""
        standings, group = self._state.standings, self._state.window.find(id)
        if group is None or group.key == reporter or standings.weight(reporter) <= LEAST_WEIGHT:
            return
        if reason == "bad_sig" or (reason == "bad_reward" and id in self._honest):
            standings.wrong_report(reporter)
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
    def waiting(self) -> int:
        return len(self._drawn) + len(self._named)

    @property
    def pid(self) -> int | None:
        """Process id of the sandbox."""
        return self._sandbox.pid if self._sandbox is not None else None

    async def run(self) -> None:
        """Checks until cancelled."""
        try:
            while True:
                if not self.waiting:
                    await self._rest()
                for _ in range(AT_ONCE):
                    await self._next()
                await asyncio.sleep(self._pause_s)
        finally:
            self._close()

    async def _rest(self) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(IDLE_S):
                await self._wake.wait()
        except TimeoutError:
            self._close()
            await self._wake.wait()

    async def _next(self) -> None:
        """Checks one group, alternating between reported ones and ones drawn at random."""
        self._turn = self._turn[::-1]
        id = self._turn[0].take() or self._turn[1].take()
        if id is None:
            return
        reporters = self._reporters.pop(id, set())
        group = self._state.window.find(id)
        if group is None or id in self._honest:
            return
        if self._sandbox is None:
            self._sandbox = self._open()
        try:
            finding = await asyncio.to_thread(judge, self._sandbox, self._state.swarm, group.raw)
            self.working = True
        except SandboxError as error:
            self._close()
            if self.working:
                _log.warning("Groups are not checked: %s", error)
            self.working = False
            self.counts["skipped"] += 1
            await asyncio.sleep(AGAIN_S)
            return
        self.counts[finding] += 1
        await self._act(finding, id, group.key, reporters)

    async def _act(self, finding: CheckResult, id: bytes, key: bytes, reporters: set[bytes]) -> None:
        standings = self._state.standings
        if finding is CheckResult.HONEST:
            standings.honest(key)
            self._honest[id] = None
            if len(self._honest) > _KNOWN:
                self._honest.popitem(last=False)
            for reporter in reporters:
                standings.wrong_report(reporter)
            return
        await _try(self._state.drop(id))
        if finding is not CheckResult.UNMADE:
            ban = standings.false_claim(key)
            if ban is not None:
                await _try(self._state.ban(key, ban))

    def _close(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


async def _try(action: Coroutine[Any, Any, None]) -> None:
    """Awaits an action of the backplane and ignores that it is unavailable: the effect holds here already, and
    other relays find out by their own checks."""
    with suppress(Unavailable):
        await action
