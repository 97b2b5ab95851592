from __future__ import annotations

import asyncio
import builtins
import time
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest

from app.relay.checking import MAX_REPORTED, MAX_WAITING_PER_KEY, Checker, CheckResult, _Waiting, rescore
from app.relay.session.shared import RelayState
from app.relay.standing import MIN_PROBATION_S, PROBATION_GROUPS, after_honest
from app.relay.store.backing import CheckedGroup
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates, QuestionError, UnsoundQuestion, generate
from app.sapo.scoring.sandbox import Sandbox, SandboxError
from app.swarm.wire.body import Envelope
from tests.relay.talking import group, key, sealed, until

SWARM = "shoal"
FAST = 10_000.0
"""Checks a second: no pauses."""


def raw(envelope: Envelope) -> bytes:
    return msgspec.json.encode(envelope)


def unsound() -> Coordinates:
    """Where there is no question: every second item of this family has no one true answer."""
    for number in range(100):
        where = Coordinates(family="propositional_logic", level=0, seed=2**41 + number * 10**7, index=0)
        try:
            generate(where)
        except UnsoundQuestion:
            return where
    raise AssertionError("Every question is sound.")


def test_a_claim_is_compared_with_what_the_sandbox_says(sandbox: Sandbox) -> None:
    assert rescore(sandbox, SWARM, raw(sealed(1, 1))) is CheckResult.HONEST
    assert rescore(sandbox, SWARM, raw(sealed(1, 1, enc="zlib"))) is CheckResult.HONEST
    assert rescore(sandbox, SWARM, raw(sealed(1, 1, rewards=(0, 1)))) is CheckResult.FALSE
    assert rescore(sandbox, SWARM, b"{") is CheckResult.FALSE
    elsewhere = msgspec.structs.replace(group(1), coordinates=group(2).coordinates)
    assert rescore(sandbox, SWARM, raw(sealed(1, 1, made=elsewhere))) in (CheckResult.FALSE, CheckResult.HONEST)


PAYLOADS = (
    "#[__import__('builtins').__dict__.__setitem__('PWNED', True)]",
    "#__import__('os').system('touch /tmp/pwned') or 1",
    "#[x for x in [1] if setattr(__import__('builtins'),'PWNED',True)]",
    "#9**9**9**9",
    "#" + "(" * 4000,
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_an_answer_that_would_run_is_only_wrong(sandbox: Sandbox, payload: str) -> None:
    child = sandbox.pid
    assert rescore(sandbox, SWARM, raw(sealed(1, 1, wrong=payload))) is CheckResult.HONEST
    assert not hasattr(builtins, "PWNED") and sandbox.pid == child


class Words:
    """Stands for a sandbox that knows no questions."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.closed = False
        self.pid = None

    def score(self, where: Coordinates, answers: object) -> list[float]:
        raise self._error

    def close(self) -> None:
        self.closed = True


def publish(state: RelayState, envelope: Envelope, number: int, checker: Checker | None) -> bytes:
    id = bytes.fromhex(envelope.id)
    record = CheckedGroup(
        id=id,
        key=bytes.fromhex(envelope.pk),
        key_seq=number,
        address="net",
        family="gcd",
        level=0,
        arrived_ms=state.now_ms(),
        raw=raw(envelope),
    )
    assert state.store.publish(record) == "accepted"
    if checker is not None:
        checker.published(id, record.key)
    return id


@asynccontextmanager
async def checking(state: RelayState, **options: Any) -> Any:
    checker = state.checker = Checker(state, Random(1), **({"per_s": FAST} | options))
    task = asyncio.create_task(checker.run())
    try:
        yield checker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert checker.pid is None  # its process has ended with it


def a_state() -> RelayState:
    return RelayState(bytes(32), SWARM, "1", rng=Random(1))


async def done(checker: Checker, findings: int) -> None:
    async def enough() -> bool:
        return sum(checker.counts.values()) >= findings

    await until(enough)


def test_fifty_honest_groups_and_a_day_end_a_probation_and_three_lies_end_everything() -> None:
    async def story() -> None:
        state = a_state()
        bans = []
        state.on_ban = lambda source, ban: bans.append(source)
        async with checking(state) as checker:
            for number in range(1, PROBATION_GROUPS + 1):
                publish(state, sealed(1, number), number, checker)
                if number % MAX_WAITING_PER_KEY == 0:
                    await done(checker, number)
            await done(checker, PROBATION_GROUPS)
            standing = state.standings.of(key(1))
            assert standing.honest == PROBATION_GROUPS and standing.probation, "a day is missing"
            assert after_honest(standing, standing.first + MIN_PROBATION_S).known
            for number in range(1, 4):
                publish(state, sealed(2, number, rewards=(0, 1)), number, checker)
                id = publish(state, sealed(2, number + 10), number + 10, None)
                await done(checker, PROBATION_GROUPS + number)
                assert (id in state.window) == (number < 3)
            assert checker.counts == {"honest": PROBATION_GROUPS, "false": 3}
            assert state.standings.verdict(key(2), "net") == "blocked" and set(bans) == {key(2)}
            assert state.standings.verdict(key(1), "net") == "welcome"
            assert key(2) not in state.window.peers and len(state.window) == PROBATION_GROUPS

    asyncio.run(story())


def test_a_report_is_looked_into_and_a_wrong_one_costs_the_reporter() -> None:
    async def story() -> None:
        state = a_state()
        async with checking(state) as checker:
            good = publish(state, sealed(1, 1), 1, None)
            bad = publish(state, sealed(2, 2, rewards=(0, 1)), 2, None)
            checker.record_report(key(3), good, "bad_reward")
            checker.record_report(key(4), bad, "bad_reward")
            checker.record_report(key(2), bad, "bad_reward")  # its own
            await done(checker, 2)
            assert good in state.window and bad not in state.window
            assert state.standings.of(key(3)).error > state.standings.of(key(4)).error
            assert state.standings.of(key(1)).honest == 1 and state.standings.of(key(1)).suspicion == 0
            before = state.standings.of(key(4)).error
            checker.record_report(key(4), good, "bad_reward")  # known to be honest: no second look
            assert checker.waiting_groups == 0 and state.standings.of(key(4)).error > before
            checker.record_report(key(5), good, "bad_sig")  # was checked when it came
            assert state.standings.of(key(5)).error > 0.1
            checker.record_report(key(6), good, "unsafe")
            assert state.standings.of(key(1)).suspicion > 0 and state.standings.of(key(6)).error == 0.1
            for _ in range(9):
                checker.record_report(key(3), good, "bad_reward")
            checker.record_report(key(3), good, "unsafe")  # nobody listens to it any more
            assert state.standings.of(key(1)).suspicion == pytest.approx(0.2)

    asyncio.run(story())


def test_what_is_no_question_is_a_lie_and_what_was_not_made_is_only_dropped(sandbox: Sandbox) -> None:
    made = GroupRecord(
        coordinates=unsound(), completions_G=("#1", "#2"), finished_G=(True, True), model="starter"
    )
    assert rescore(sandbox, SWARM, raw(sealed(1, 1, made=made))) is CheckResult.NO_QUESTION

    async def story() -> None:
        state = a_state()
        slow = Words(QuestionError("not made within 5 seconds"))
        async with checking(state, open_sandbox=lambda: slow) as checker:
            id = publish(state, sealed(1, 1), 1, checker)
            await done(checker, 1)
            assert checker.counts == {"unmade": 1} and id not in state.window
            assert state.standings.of(key(1)).false_claims == () and state.standings.of(key(1)).honest == 0
        assert slow.closed

    asyncio.run(story())


def test_without_a_sandbox_the_relay_goes_on() -> None:
    async def story() -> None:
        state = a_state()
        async with checking(state, open_sandbox=lambda: Words(SandboxError("It does not start."))) as checker:
            id = publish(state, sealed(1, 1), 1, checker)
            await done(checker, 1)
            assert not checker.working and id in state.window and checker.counts == {"skipped": 1}

    asyncio.run(story())


class Slow(Words):
    def score(self, where: Coordinates, answers: object) -> list[float]:
        time.sleep(0.5)
        return [1.0, 0.0]


def test_a_slow_check_holds_up_nobody() -> None:
    async def story() -> None:
        state = a_state()
        async with checking(state, open_sandbox=lambda: Slow(ValueError())) as checker:
            publish(state, sealed(1, 1), 1, checker)
            ticks = 0
            while not checker.counts:
                await asyncio.sleep(0.01)
                ticks += 1
            assert ticks > 10

    asyncio.run(story())


def test_a_full_queue_gives_up_any_group_and_counts_it() -> None:
    state = a_state()
    checker = Checker(state, Random(1))
    for number in range(MAX_WAITING_PER_KEY + 3):
        publish(state, sealed(1, number + 1), number + 1, checker)
    assert checker.waiting_groups == MAX_WAITING_PER_KEY and checker.counts == {"skipped": 3}
    waiting = _Waiting(MAX_REPORTED, Random(1))
    kept = [waiting.put(bytes([n // 256, n % 256]), bytes([n % 250])) for n in range(1000)]
    assert len(waiting) == MAX_REPORTED and sum(kept) == MAX_REPORTED
    left = []
    while (id := waiting.take()) is not None:
        left.append(int.from_bytes(id, "big"))
    assert len(set(left)) == MAX_REPORTED and min(left) < 500 < max(
        left
    )  # neither the first nor the last alone
    assert waiting.put(b"again", b"x") and len(waiting) == 1
