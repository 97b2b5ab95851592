"""Whatever bytes come, a conversation answers with a message of the protocol or not at all, raises nothing, and
lets nothing into the window that is not a whole, well signed group."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.common.signing import public_key, sign
from app.relay.checking import Checker
from app.relay.session.session import Session
from app.relay.session.shared import RelayState
from app.swarm.wire.body import Envelope, body_id, unseal
from app.swarm.wire.frames import decode_relay_frame, to_frame
from app.swarm.wire.protocol import AskStats, Pub, Report, Sample
from app.swarm.wire.signin import sign_in
from tests.relay.talking import sealed, seed

SWARM = "shoal"
CASES = settings(max_examples=250, suppress_health_check=list(HealthCheck))
GOOD = [
    to_frame(Pub.of(sealed(1, 1))),
    to_frame(Pub.of(sealed(1, 2, enc="zlib"))),
    to_frame(Sample(rid=1, k=8, families=("gcd",), max_age_s=60, per_key_cap=2)),
    to_frame(Report(ids=("ab" * 32,), reason="bad_reward")),
    to_frame(AskStats(subscribe=True)),
]

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["pub", "sample", "stats", "zlib", "gcd", "ab" * 32, "cd" * 64, "0.1.25/1"]),
    lambda inside: (
        st.lists(inside, max_size=4) | st.dictionaries(st.sampled_from(["t", "rid", "k", "ids"]), inside)
    ),
    max_leaves=6,
)


def a_session() -> tuple[RelayState, Session]:
    state = RelayState(bytes(32), SWARM, "1", rng=Random(1))
    state.checker = Checker(state, Random(1))
    session = Session(state, "loopback")
    hello: Any = decode_relay_frame(session.hello())
    session.receive(to_frame(sign_in(seed(1), hello, "test/1")))
    assert session.key is not None
    return state, session


def heard(frame: bytes) -> None:
    """Say it to a new conversation, twice, and look at what comes of it."""
    state, session = a_session()
    for _ in range(2):
        answer = session.receive(frame)
        assert answer is None or isinstance(answer, bytes)
        if answer is not None:
            decode_relay_frame(answer)
    for kept in state.window:
        body = unseal(msgspec.json.decode(kept.raw, type=Envelope), SWARM)
        assert body.task.family == kept.family and len(body.completions) == len(body.rewards)
    assert len(state.window) <= 1
    assert state.presence.sessions == 1
    session.closed()
    assert state.presence.sessions == 0


@CASES
@given(st.binary(max_size=400))
def test_any_bytes(frame: bytes) -> None:
    heard(frame)


@CASES
@given(st.data())
def test_a_good_message_with_bytes_changed(data: st.DataObject) -> None:
    frame = bytearray(data.draw(st.sampled_from(GOOD)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(frame) - 1))
        match data.draw(st.sampled_from(["change", "remove", "insert", "cut"])):
            case "change":
                frame[place] = data.draw(st.integers(0, 255))
            case "remove":
                del frame[place : place + data.draw(st.integers(1, 20))]
            case "insert":
                frame[place:place] = data.draw(st.binary(min_size=1, max_size=8))
            case "cut":
                del frame[max(1, place) :]
        if not frame:
            break
    heard(bytes(frame))


@CASES
@given(st.sampled_from(GOOD), st.data())
def test_a_good_message_with_a_field_changed(frame: bytes, data: st.DataObject) -> None:
    message = json.loads(frame)
    name = data.draw(st.sampled_from([*message, "more", "t"]))
    message[name] = data.draw(VALUES)
    heard(json.dumps(message).encode("utf-8", "surrogatepass"))


@CASES
@given(st.data())
def test_a_signed_body_with_a_field_changed(data: st.DataObject) -> None:
    """The signature holds, the content is anything."""
    body = json.loads(sealed(1, 1).body)
    within = data.draw(st.sampled_from([body, body["task"]]))
    within[data.draw(st.sampled_from([*within, "more"]))] = data.draw(VALUES)
    text = json.dumps(body)
    digest = body_id(SWARM, public_key(seed(1)), text.encode())
    envelope = Envelope(
        id=digest.hex(), pk=public_key(seed(1)).hex(), sig=sign(seed(1), digest).hex(), body=text, enc="plain"
    )
    heard(to_frame(Pub.of(envelope)))
