"""Messages: every one survives the wire, every bad one becomes one typed refusal."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common import signing
from app.swarm.wire import frames, protocol, signin
from app.swarm.wire.body import Body, Envelope, seal, unseal
from app.swarm.wire.frames import decode_relay_frame, from_client, to_frame
from app.swarm.wire.limits import FRAME_BYTES, Code, Flaw, Refused, RelayLimits
from tests.swarm.wire.test_conformance import FRAMES, compact

SEED = bytes(range(32))
ID = "ab" * 32
SIG = "cd" * 64
HELLO = protocol.Hello(
    proto=("1.1",), relay="relay.example", swarm="example-swarm", epoch="e1", time_ms=5, challenge="0f" * 32,
    key=ID, sig=SIG, caps=("zlib", "zstd-d1"), limits=RelayLimits(), pow_bits=3,
)  # fmt: skip


def refused(read: Any, frame: bytes) -> Refused:
    with pytest.raises(Refused) as refusal:
        read(frame)
    return refusal.value


def test_a_published_envelope_reaches_the_reader_as_it_was_sealed(body: Body) -> None:
    """The relay takes the envelope out of `pub`, encodes it once and joins the bytes into batches."""
    sealed = seal(body, SEED)
    published = from_client(to_frame(protocol.Pub.of(sealed)))
    assert isinstance(published, protocol.Pub)
    kept = msgspec.json.encode(published.envelope())
    frame = (
        b'{"t":"batch","rid":1,"items":[' + kept + b",12," + kept + b"],"
        b'"window":2,"eligible":2,"sources":1,"age_p50_s":null}'
    )
    batch = decode_relay_frame(frame)
    assert isinstance(batch, protocol.SampleReply)
    good, bad, again = batch.items
    assert frames.decode_envelope(good) == frames.decode_envelope(again) == sealed
    assert refused(frames.decode_envelope, bytes(bad)).flaw == Flaw.WRONG_SHAPE
    assert unseal(frames.decode_envelope(good), "example-swarm") == body


def test_sizes_are_checked_first() -> None:
    assert refused(frames.decode_envelope, b" " * (FRAME_BYTES + 1)).flaw == Flaw.TOO_LARGE
    assert refused(frames.decode_info, b" " * (FRAME_BYTES + 1)).flaw == Flaw.TOO_LARGE
    quotes = protocol.Pub(id=ID, pk=ID, sig=SIG, body='"' * FRAME_BYTES)
    assert refused(to_frame, quotes).flaw == Flaw.TOO_LARGE  # type: ignore[arg-type]


def test_signing_in() -> None:
    work = signin.find_work(signing.public_key(SEED).hex(), HELLO.relay, HELLO.time_ms, HELLO.pow_bits)
    auth = signin.sign_in(SEED, HELLO, "shoal/0.1", pow=work)
    assert auth.caps == ("zlib",)
    signin.check_sign_in(auth, HELLO)
    for other in (
        {"relay": "evil.example"}, {"swarm": "other-swarm"}, {"challenge": "00" * 32}, {"sig": "00" * 64}
    ):  # fmt: skip
        hello = msgspec.structs.replace(HELLO, **other)
        with pytest.raises(Refused) as refusal:
            signin.check_sign_in(auth, hello)
        assert refusal.value.flaw == Flaw.BAD_SIGNATURE


def test_a_relay_proves_which_one_it_is_on_this_connection() -> None:
    seed, opening = b"r" * 32, b"o" * 32
    key = signing.public_key(seed)
    unsigned = msgspec.structs.replace(HELLO, key=key.hex(), relay=signin.relay_id(key))
    hello = signin.signed_hello(seed, unsigned, opening)
    signin.check_hello(hello, opening)
    assert signin.is_relay_id(hello.relay) and not signin.is_relay_id("192.168.1.20:8777")
    other = signing.public_key(b"x" * 32)
    for changed, opened in (
        (hello, b"p" * 32), (hello, b""),
        (msgspec.structs.replace(hello, swarm="other-swarm"), opening),
        (msgspec.structs.replace(hello, challenge="00" * 32), opening),
        (msgspec.structs.replace(hello, relay=signin.relay_id(other)), opening),
        (msgspec.structs.replace(hello, relay=signin.relay_id(other), key=other.hex()), opening),
    ):  # fmt: skip
        with pytest.raises(Refused) as refusal:
            signin.check_hello(changed, opened)
        assert refusal.value.flaw == Flaw.BAD_SIGNATURE


def test_work_is_done_where_it_is_asked_for() -> None:
    asking = msgspec.structs.replace(HELLO, pow_bits=12)
    pk = signing.public_key(SEED).hex()
    work = signin.find_work(pk, asking.relay, asking.time_ms, 12)
    signin.check_sign_in(signin.sign_in(SEED, asking, "shoal/0.1", pow=work), asking)
    signin.check_sign_in(signin.sign_in(SEED, asking, "shoal/0.1"), msgspec.structs.replace(HELLO, pow_bits=0))
    lazy = next(
        f"{n:x}" for n in range(99) if signin.work_bits(pk, asking.relay, asking.time_ms, f"{n:x}") < 12
    )
    for spared in (None, lazy):
        with pytest.raises(Refused) as refusal:
            signin.check_sign_in(signin.sign_in(SEED, asking, "shoal/0.1", pow=spared), asking)
        assert (refusal.value.flaw, refusal.value.code) == (Flaw.NO_WORK, Code.POW)


def test_the_highest_common_version_is_spoken() -> None:
    assert protocol.highest_common_version(("3.0", "1.1", "1.0")) == "1.1"
    with pytest.raises(Refused) as refusal:
        protocol.highest_common_version(("1.0", "2.0"))
    assert refusal.value.code == Code.UNSUPPORTED


def test_work_is_bound_to_key_relay_and_day() -> None:
    day = 86_400_000
    nonce = signin.find_work(ID, "r", day, 8)
    assert signin.work_bits(ID, "r", 2 * day - 1, nonce) >= 8
    others = [
        signin.work_bits("00" * 32, "r", day, nonce),
        signin.work_bits(ID, "s", day, nonce),
        signin.work_bits(ID, "r", 2 * day, nonce),
    ]
    assert min(others) < 8


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_frames = [compact(frame) for way in FRAMES.values() for frame in way["taken"]]


def _reads_or_refuses(frame: bytes) -> None:
    """The property: a message or a Refused with a sentence, never another exception."""
    for read in (from_client, decode_relay_frame, frames.decode_envelope, frames.decode_info):
        try:
            message = read(frame)
        except Refused as refusal:
            assert refusal.sentence and len(refusal.sentence) <= 200
            continue
        if isinstance(message, Envelope) and not isinstance(message, protocol.Pub):
            with pytest.raises(Refused):
                unseal(message, "example-swarm")


@settings(max_examples=350)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(frame: bytes) -> None:
    _reads_or_refuses(frame)


@settings(max_examples=350)
@given(st.sampled_from(_frames), st.data())
def test_a_message_with_a_part_exchanged_is_read_or_refused(frame: bytes, data: st.DataObject) -> None:
    values = json.loads(frame)
    field = data.draw(st.sampled_from(sorted(values)))
    values[field] = data.draw(_json)
    _reads_or_refuses(json.dumps(values).encode())


@settings(max_examples=350)
@given(st.sampled_from(_frames), st.integers(0, 500), st.integers(0, 500), st.binary(max_size=6))
def test_a_message_with_bytes_exchanged_is_read_or_refused(
    frame: bytes, start: int, width: int, put: bytes
) -> None:
    _reads_or_refuses(frame[:start] + put + frame[start + width :])


@given(st.text(alphabet='"\\:, {}abid', max_size=40))
def test_what_a_text_says_is_no_key(text: str) -> None:
    pub = protocol.Pub(id=ID, pk=ID, sig=SIG, body=text, enc="plain")
    assert from_client(to_frame(pub)) == pub
    twice = to_frame(pub)[:-1] + b',"enc":"plain"}'
    assert refused(from_client, twice).flaw == Flaw.NOT_JSON
    assert (
        refused(frames.decode_envelope, msgspec.json.encode(pub.envelope())[:-1] + b',"body":"x"}').flaw
        == Flaw.NOT_JSON
    )
