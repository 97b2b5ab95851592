from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from app.common.rate import Rate
from app.common.signing import public_key
from app.relay.limits import PER_ADDRESS, PER_KEY, QuotaBuckets
from app.relay.origin import LOOPBACK
from app.relay.session.session import MAX_FAULTS, MAX_REFUSAL_RATE, Session
from app.relay.session.shared import RelayState
from app.relay.standing import Ban
from app.sapo.groups import GroupRecord
from app.sapo.questions import QUESTIONS_VERSION, Coordinates
from app.swarm.wire.body import Body, seal, unseal
from app.swarm.wire.frames import decode_envelope, decode_relay_frame, to_frame
from app.swarm.wire.limits import Code
from app.swarm.wire.protocol import (
    AskStats,
    Bye,
    Err,
    FromClient,
    Hello,
    Ok,
    Pub,
    Report,
    Sample,
    SampleReply,
    Stats,
    Welcome,
)
from app.swarm.wire.signin import find_work, sign_in
from tests.relay.clock import Clock

SWARM = "example-swarm"
ANN, BOB = bytes(range(32)), bytes(range(1, 33))


class Talk:
    """A state, and whoever talks to it."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock(1_800_000_000.0)
        self.state = RelayState(
            bytes(32), SWARM, "1", clock=self.clock, wall=self.clock, rng=Random(1), **options
        )

    def session(self, seed: bytes | None = ANN, address: str = "net") -> Session:
        session = Session(self.state, address)
        if seed is not None:
            assert isinstance(self.sign_in(session, seed), Welcome)
        return session

    def sign_in(self, session: Session, seed: bytes, **options: str) -> Any:
        hello = decode_relay_frame(session.hello())
        assert isinstance(hello, Hello)
        return say(session, sign_in(seed, hello, "shoal/0.1", **options))

    def pub(
        self, seed: bytes = ANN, key_seq: int = 1, enc: Any = "plain", swarm: str = SWARM, **changes: Any
    ) -> Pub:
        where = {"family": "gcd", "level": 0, "seed": 2**41, "index": 0, "version": QUESTIONS_VERSION}
        where |= {name: changes.pop(name) for name in list(changes) if name in where}
        created = int((self.clock.now - changes.pop("age_s", 0)) * 1000)
        group = GroupRecord(
            coordinates=Coordinates(**where),
            completions_G=("#1", "#2"),
            finished_G=(True, True),
            model="starter",
        )
        return Pub.of(seal(Body.of(group, (1, 0), swarm, key_seq, created), seed, enc))


def say(session: Session, message: FromClient) -> Any:
    answer = session.receive(to_frame(message))
    assert answer is None or isinstance(answer, bytes)
    return None if answer is None else decode_relay_frame(answer)


def test_two_publish_and_sample_each_other_and_bytes_stay_as_they_came() -> None:
    talk = Talk()
    ann, bob = talk.session(ANN), talk.session(BOB, "elsewhere")
    from_ann, from_bob = talk.pub(ANN), talk.pub(BOB, 2, enc="zlib")
    assert say(ann, from_ann) == Ok(id=from_ann.id, code=Code.ACCEPTED, time_ms=int(talk.clock.now * 1000))
    assert say(bob, from_bob).code == Code.ACCEPTED
    talk.clock.now += 3
    for session, expected in ((ann, from_bob), (bob, from_ann)):
        batch = say(session, Sample(rid=9, k=8))
        assert isinstance(batch, SampleReply)
        assert (batch.rid, batch.window, batch.eligible, batch.sources) == (9, 2, 1, 1)
        assert batch.age_p50_s == 3
        assert bytes(batch.items[0]) == msgspec.json.encode(expected.envelope())
        assert unseal(decode_envelope(batch.items[0]), SWARM).completions == ("#1", "#2")
        again = say(session, Sample(rid=10, k=8, families=("gcd",)))
        assert (again.items, again.sources) == ((), 1)  # not twice within the hour
        assert say(session, Sample(rid=11, k=8, families=("lcm",))).sources == 0
    stats = say(ann, AskStats())
    assert stats == Stats(peers=2, relays=1, rollouts_min=2.0, window=2, stored=2, families={"gcd": 2})
    assert talk.state.counts == {Code.ACCEPTED: 2}


BOMB = base64.b64encode(zlib.compress(b" " * 10_000_000)).decode()
Spoil = Callable[[Talk], Pub]
REFUSED: dict[str, tuple[Spoil, Code]] = {
    "stale": (lambda talk: talk.pub(age_s=1801), Code.STALE),
    "ahead": (lambda talk: talk.pub(age_s=-121), Code.INVALID),
    "other swarm": (lambda talk: talk.pub(swarm="other-swarm"), Code.INVALID),
    "no family": (lambda talk: talk.pub(family="no_such"), Code.INVALID),
    "no level": (lambda talk: talk.pub(level=63), Code.INVALID),
    "other version": (lambda talk: talk.pub(version="9.9.9/1"), Code.UNSUPPORTED),
    "older ladder": (lambda talk: talk.pub(version="0.1.25/1"), Code.UNSUPPORTED),
    "bad id": (lambda talk: msgspec.structs.replace(talk.pub(), id="0" * 64), Code.INVALID),
    "forged": (lambda talk: msgspec.structs.replace(talk.pub(), sig="0" * 128), Code.INVALID),
    "a bomb": (lambda talk: msgspec.structs.replace(talk.pub(), enc="zlib", body=BOMB), Code.INVALID),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_group_that_is_wrong_is_refused_and_adds_nothing(name: str) -> None:
    talk = Talk()
    session = talk.session()
    spoil, code = REFUSED[name]
    answer = say(session, spoil(talk))
    assert isinstance(answer, Ok) and answer.code == code and answer.msg
    assert len(talk.state.window) == 0 and not session.closing
    assert say(session, talk.pub()).code == Code.ACCEPTED  # its number was not used up


def test_a_number_is_used_once() -> None:
    talk = Talk()
    session = talk.session()
    assert say(session, talk.pub(key_seq=5000)).code == Code.ACCEPTED
    assert say(session, talk.pub(key_seq=5000)).code == Code.DUPLICATE
    assert say(session, talk.pub(key_seq=5000, level=1)).code == Code.DUPLICATE
    assert say(session, talk.pub(key_seq=3976)).code == Code.ACCEPTED
    assert say(session, talk.pub(key_seq=3975)).code == Code.STALE
    assert len(talk.state.window) == 2


def test_two_nodes_with_one_key_are_noticed_and_one_that_reconnects_is_not() -> None:
    """A node that comes back sends again what it sent; the copy of a data folder sends other groups under the
    same numbers. While there is one line of the key, nobody is called a twin."""
    talk = Talk()
    told: list[Session] = []
    talk.state.on_twins = told.append
    first = talk.session()
    for number in range(1, 6):
        assert say(first, talk.pub(key_seq=number)).code == Code.ACCEPTED
        assert say(first, talk.pub(key_seq=number, level=1)).code == Code.DUPLICATE
    second = talk.session()
    for number in range(1, 6):
        assert say(second, talk.pub(key_seq=number)).code == Code.DUPLICATE
    assert not told
    for number in range(1, 6):
        assert say(second, talk.pub(key_seq=number, level=1)).code == Code.DUPLICATE
    assert told == [second]


def test_nothing_but_stats_before_signing_in() -> None:
    talk = Talk()
    session = talk.session(None)
    assert say(session, talk.pub()).code == Code.RESTRICTED
    refused = say(session, Sample(rid=4, k=1))
    assert (refused.code, refused.rid) == (Code.RESTRICTED, 4)
    assert say(session, Report(ids=("0" * 64,), reason="dup")).code == Code.RESTRICTED
    assert say(session, AskStats()).peers == 0
    assert say(session, AskStats(subscribe=True)).code == Code.UNSUPPORTED and not session.subscribed


def test_signing_in_is_refused_with_its_reason_and_the_connection_closed() -> None:
    talk = Talk(pow_bits=8)
    mine, other = talk.session(None), talk.session(None)
    hello, theirs = decode_relay_frame(mine.hello()), decode_relay_frame(other.hello())
    assert isinstance(hello, Hello) and isinstance(theirs, Hello) and hello.challenge != theirs.challenge
    work = find_work(public_key(ANN).hex(), hello.relay, hello.time_ms, 8)
    assert say(mine, sign_in(ANN, theirs, "shoal/0.1", pow=work)).code == Code.INVALID and mine.closing
    lazy = talk.session(None)
    assert talk.sign_in(lazy, ANN).code == Code.POW and lazy.closing
    later = talk.session(None)
    wrong = msgspec.structs.replace(
        sign_in(ANN, decode_relay_frame(later.hello()), "shoal/0.1", pow=work), proto="2.0"
    )  # type: ignore[arg-type]
    assert say(later, wrong).code == Code.UNSUPPORTED and later.closing
    good = talk.session(None)
    auth = sign_in(ANN, decode_relay_frame(good.hello()), "shoal/0.1", pow=work)  # type: ignore[arg-type]
    assert isinstance(say(good, auth), Welcome) and not good.closing
    assert say(good, auth).code == Code.INVALID and not good.closing
    assert talk.state.presence.sessions == 1


def test_connections_and_new_keys_are_bounded_and_leaving_makes_room() -> None:
    talk = Talk()
    first, _ = talk.session(), talk.session()
    third = talk.session(None)
    refused = talk.sign_in(third, ANN)
    assert (refused.code, third.closing) == (Code.RATE_LIMITED, True) and refused.retry_after_ms > 0
    first.closed()
    third.closed()
    talk.session()
    for n in range(9):
        talk.session(bytes([n + 100] * 32))
    eleventh = talk.session(None)
    assert talk.sign_in(eleventh, bytes([99] * 32)).code == Code.RATE_LIMITED
    for n in range(20):
        talk.session(bytes([n + 150] * 32), LOOPBACK)


def test_quotas_say_when_to_come_back() -> None:
    clock = Clock(1_800_000_000.0)
    few = {
        **PER_KEY,
        "publish": Rate(30, 1),
        "sample": Rate(12, 1),
        "stats": Rate(60, 1),
        "report": Rate(12, 1),
    }
    talk = Talk(quotas=QuotaBuckets(clock, few, PER_ADDRESS))
    session = talk.session()
    assert say(session, talk.pub(key_seq=1)).code == Code.ACCEPTED
    refused = say(session, talk.pub(key_seq=2))
    assert (refused.code, refused.retry_after_ms) == (Code.RATE_LIMITED, 2000)
    say(session, Sample(rid=1, k=1))
    refused = say(session, Sample(rid=2, k=1))
    assert (refused.code, refused.rid, refused.retry_after_ms) == (Code.RATE_LIMITED, 2, 5000)
    assert isinstance(say(session, AskStats()), Stats)
    assert say(session, AskStats()).code == Code.RATE_LIMITED
    assert say(session, Report(ids=("0" * 64,), reason="dup")) is None
    assert say(session, Report(ids=("0" * 64,), reason="dup")).code == Code.RATE_LIMITED
    clock.now += 2
    assert say(session, talk.pub(key_seq=2)).code == Code.ACCEPTED


def test_a_shadowed_key_is_told_the_same_and_adds_nothing() -> None:
    talk = Talk()
    session = talk.session()
    talk.state.standings.bans.put(
        public_key(ANN), Ban(until=talk.clock.now + 60, reason="", by="test", shadow=True)
    )
    assert say(session, talk.pub()).code == Code.ACCEPTED
    assert say(session, talk.pub()).code == Code.DUPLICATE
    assert say(session, talk.pub(key_seq=2, level=63)).code == Code.INVALID
    assert len(talk.state.window) == 0 and talk.state.stats().rollouts_min == 0
    assert isinstance(say(session, Sample(rid=1, k=1)), SampleReply)


def test_a_ban_holds_at_once_and_at_the_next_sign_in() -> None:
    talk = Talk()
    session = talk.session()
    talk.state.standings.bans.put("net", Ban(until=talk.clock.now + 60, reason="", by="test"))
    assert say(session, talk.pub()).code == Code.BLOCKED
    assert say(session, Sample(rid=3, k=1)).code == Code.BLOCKED
    again = talk.session(None)
    assert talk.sign_in(again, BOB).code == Code.BLOCKED and again.closing
    assert isinstance(talk.sign_in(talk.session(None, "elsewhere"), BOB), Welcome)


def test_a_report_makes_a_check_likelier() -> None:
    talk = Talk()
    ann, bob = talk.session(), talk.session(BOB)
    published = talk.pub()
    say(ann, published)
    assert say(bob, Report(ids=(published.id, "0" * 64), reason="bad_reward")) is None
    assert talk.state.standings.of(public_key(ANN)).suspicion > 0


def test_a_subscription_begins_and_ends() -> None:
    session = Talk().session()
    say(session, AskStats(subscribe=True))
    say(session, AskStats())
    assert session.subscribed
    say(session, AskStats(subscribe=False))
    assert not session.subscribed


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"", Code.INVALID),
        (b"[]", Code.INVALID),
        (b'{"t":"sample","rid":1', Code.INVALID),
        (b'{"t":"sample","rid":1,"k":"\xff"}', Code.INVALID),
        (b'{"t":"sample","rid":1,"k":1,"more":2}', Code.INVALID),
        (b'{"t":"sample","rid":1,"k":65}', Code.INVALID),
        (b'{"t":"dance"}', Code.UNSUPPORTED),
        (b'{"t":"pub","id":"x"}', Code.INVALID),
        (b" " * 65_537, Code.INVALID),
        (b"[" * 60_000, Code.INVALID),
    ],
)
def test_what_is_no_message_is_refused_and_too_much_of_it_ends_the_connection(frame: bytes, code: Code) -> None:
    session = Talk().session()
    for n in range(MAX_FAULTS):
        assert not session.closing, n
        answer = decode_relay_frame(session.receive(frame) or b"")
        assert isinstance(answer, Err) and answer.code == code
    assert session.closing


def test_bye_and_leaving() -> None:
    talk = Talk()
    session = talk.session()
    assert decode_relay_frame(session.bye("restart", 500)) == Bye(reason="restart", reconnect_after_ms=500)
    session.closed()
    session.closed()
    assert len(talk.state.presence) == 0


def test_a_group_may_be_signed_by_a_key_that_the_node_had_before() -> None:
    talk = Talk()
    session = talk.session(BOB)
    published = talk.pub(ANN, key_seq=7)
    assert say(session, published).code == Code.ACCEPTED
    kept = talk.state.window.find(bytes.fromhex(published.id))
    assert kept is not None and kept.key == public_key(ANN)
    assert talk.state.store.sequences.check(public_key(ANN), 7) == "used"
    assert public_key(BOB) not in talk.state.store.sequences
    assert say(talk.session(ANN), talk.pub(ANN, key_seq=7)).code == Code.DUPLICATE


@pytest.mark.parametrize("banned", [ANN, BOB])
def test_a_ban_holds_for_who_signs_and_for_who_sends(banned: bytes) -> None:
    talk = Talk()
    session = talk.session(BOB)
    for shadow, code in ((True, Code.ACCEPTED), (False, Code.BLOCKED)):
        ban = Ban(until=talk.clock.now + 60, reason="", by="test", shadow=shadow)
        talk.state.standings.bans.put(public_key(banned), ban)
        assert say(session, talk.pub(ANN, key_seq=1 + shadow)).code == code
    assert len(talk.state.window) == 0


def test_authors_never_met_count_as_new_keys_of_the_address() -> None:
    talk = Talk()
    session = talk.session(BOB)
    codes = [say(session, talk.pub(bytes([n] * 32), key_seq=n)).code for n in range(100, 111)]
    assert codes == [Code.ACCEPTED] * 9 + [Code.RATE_LIMITED] * 2
    forged = msgspec.structs.replace(talk.pub(bytes([120] * 32), key_seq=120), sig="0" * 128)
    assert say(session, forged).code == Code.INVALID
    assert public_key(bytes([120] * 32)) not in talk.state._met


def test_who_goes_on_asking_in_spite_of_refusals_is_let_go() -> None:
    talk = Talk()
    eve, ann = talk.session(None), talk.session(ANN, "elsewhere")
    answers = []
    while not eve.closing and len(answers) < 1000:
        answers.append(say(eve, AskStats()))
    refused = [one for one in answers if isinstance(one, Err)]
    assert {one.code for one in refused} == {Code.RATE_LIMITED} and len(refused) == MAX_REFUSAL_RATE.burst + 1
    assert talk.state.tally.ended["refusals"] == 1
    for _ in range(500):  # one that asks twice as often as it may, for eight minutes
        say(ann, AskStats())
        say(ann, AskStats())
        talk.clock.now += 1
    assert not ann.closing
