"""Messages: every one survives the wire, every bad one becomes one typed refusal."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common import signing
from app.swarm.wire import frames, protocol, signin
from app.swarm.wire.body import Body, Envelope, seal, unseal
from app.swarm.wire.frames import decode_relay_frame, from_client, to_frame
from app.swarm.wire.limits import BATCH_FRAME, FRAME_BYTES, Code, Flaw, Quotas, Refused, RelayLimits

SEED = bytes(range(32))
ID = "ab" * 32
SIG = "cd" * 64
HELLO = protocol.Hello(
    proto=("1.1",), relay="relay.example", swarm="example-swarm", epoch="e1", time_ms=5, challenge="0f" * 32,
    key=ID, sig=SIG, caps=("zlib", "zstd-d1"), limits=RelayLimits(), pow_bits=3,
)  # fmt: skip
FROM_CLIENT = [
    protocol.Auth(pk=ID, sig=SIG, proto="1.1", caps=("zlib",), client="shoal/0.1", pow="ff", invite="a.b-c_d"),
    protocol.Pub(id=ID, pk=ID, sig=SIG, body="{}", enc="zlib"),
    protocol.Sample(rid=1, k=8, families=("gcd",), max_age_s=60, per_key_cap=1),
    protocol.Recall(rid=2, k=8, tasks=(protocol.WantedQuestions(family="gcd", level=0, seed=5, index=1),)),
    protocol.Erase(),
    protocol.Report(ids=(ID,), reason="bad_reward"),
    protocol.Receipts(items=(protocol.Receipt(id=ID, sig=SIG),)),
    protocol.Receipts(lessons=(protocol.LessonReceipt(author=ID, family="gcd", sig=SIG),)),
    protocol.AskStats(subscribe=True),
    protocol.ClassProgress(round=3, share=0.5, families={"gcd": 0.25}),
    protocol.Rest(on=True),
    protocol.AskQuestions(),
]
FROM_RELAY = [
    HELLO,
    protocol.Welcome(session="s", quotas=Quotas(), time_ms=5),
    protocol.Err(code=Code.RATE_LIMITED, msg="slower", rid=1, retry_after_ms=100),
    protocol.Ok(id=ID, code=Code.ACCEPTED, time_ms=5),
    protocol.SampleReply(
        rid=1, items=(msgspec.Raw(b'{"id":1}'),), window=9, eligible=5, sources=3, age_p50_s=1.5
    ),
    protocol.Stats(peers=2, relays=1, rollouts_min=2.5, window=9, families={"gcd": 9}),
    protocol.Erased(groups=3),
    protocol.HandedOut(content='{"name": "Caf\u00e9", "rows": []}' * 9000),
    protocol.Thanks(id=ID, pk=ID, sig=SIG),
    protocol.Taught(pk=ID, family="gcd", sig=SIG),
    protocol.RelayNotice(msg="Maintenance at noon"),
    protocol.RelayNotice(msg="Two nodes use this key at once.", twin=True),
    protocol.Bye(reason="restart", reconnect_after_ms=1000),
]


def refused(read: Any, frame: bytes) -> Refused:
    with pytest.raises(Refused) as refusal:
        read(frame)
    return refusal.value


@pytest.mark.parametrize("message", FROM_CLIENT, ids=lambda one: type(one).__name__)
def test_a_client_s_message_survives_the_wire(message: protocol.FromClient) -> None:
    assert from_client(to_frame(message)) == message


@pytest.mark.parametrize("message", FROM_RELAY, ids=lambda one: type(one).__name__)
def test_a_relay_s_message_survives_the_wire(message: protocol.FromRelay) -> None:
    assert decode_relay_frame(to_frame(message)) == message


def test_no_message_was_forgotten_above() -> None:
    assert {type(one) for one in FROM_CLIENT} == set(get_args(protocol.FromClient))
    assert {type(one) for one in FROM_RELAY} == set(get_args(protocol.FromRelay))


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


def test_a_relay_refuses_what_it_does_not_know_and_a_client_passes_over_it() -> None:
    for message in FROM_CLIENT:
        frame = json.dumps({**json.loads(to_frame(message)), "extra": 1}).encode()
        assert refused(from_client, frame).flaw == Flaw.WRONG_SHAPE
    for message in FROM_RELAY:
        frame = json.dumps({**json.loads(to_frame(message)), "extra": {"a": [1]}}).encode()
        assert type(decode_relay_frame(frame)) is type(message)


def test_an_unknown_type_is_unsupported_and_not_an_error_of_shape() -> None:
    for read in (from_client, decode_relay_frame):
        refusal = refused(read, b'{"t":"teleport","to":"moon"}')
        assert (refusal.flaw, refusal.code) == (Flaw.UNKNOWN_TYPE, Code.UNSUPPORTED)
    assert refused(from_client, to_frame(HELLO)).flaw == Flaw.UNKNOWN_TYPE
    assert refused(decode_relay_frame, to_frame(FROM_CLIENT[0])).flaw == Flaw.UNKNOWN_TYPE


@pytest.mark.parametrize(
    "frame",
    [b"", b"{", b"\xff\xfe", b'{"t":"pub"', b'{"t":"stats","subscribe":tru', b'\xef\xbb\xbf{"t":"stats"}',
     b'{"t":"stats"}{}', b'{"t":"stats","x":' + b"[" * 30_000, b'{"t":"report","ids":["\xff"],"reason":"dup"}',
     b'{"t":"pub","id":"\\ud800"}', b"\0" * 100],
)  # fmt: skip
def test_what_is_no_json_is_refused(frame: bytes) -> None:
    assert refused(from_client, frame).flaw in {Flaw.NOT_JSON, Flaw.WRONG_SHAPE}
    assert refused(decode_relay_frame, frame).code in {Code.INVALID, Code.UNSUPPORTED}


@pytest.mark.parametrize(
    "change",
    [
        {"id": ID.upper()}, {"id": ID + "\n"}, {"id": ID[:-1]}, {"pk": 1}, {"pk": None}, {"sig": SIG + "00"},
        {"body": {}}, {"enc": "gzip"}, {"enc": 0},
    ],
)  # fmt: skip
def test_an_envelope_has_exactly_one_spelling(change: dict[str, Any]) -> None:
    frame = json.dumps({**json.loads(to_frame(FROM_CLIENT[1])), **change}).encode()
    assert refused(from_client, frame).flaw == Flaw.WRONG_SHAPE


@pytest.mark.parametrize(
    "change",
    [{"k": 0}, {"k": 65}, {"max_bytes": 512 * 1024 + 1}, {"families": []}, {"rid": -1}, {"rid": 1e300}],
)  # fmt: skip
def test_a_sample_stays_within_its_limits(change: dict[str, Any]) -> None:
    frame = json.dumps({**json.loads(to_frame(FROM_CLIENT[2])), **change}).encode()
    assert refused(from_client, frame).flaw == Flaw.WRONG_SHAPE


def test_sizes_are_checked_first() -> None:
    assert refused(from_client, b" " * (FRAME_BYTES + 1)).flaw == Flaw.TOO_LARGE
    assert refused(decode_relay_frame, b" " * (BATCH_FRAME + 1)).flaw == Flaw.TOO_LARGE
    padded = b'{"t":"notice","msg":"x"' + b" " * FRAME_BYTES + b"}"
    assert refused(decode_relay_frame, padded).flaw == Flaw.TOO_LARGE
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


def test_final_codes_are_those_that_empty_the_outbox() -> None:
    assert {code for code in Code if code.final} == {
        Code.ACCEPTED, Code.DUPLICATE, Code.STALE, Code.INVALID, Code.BLOCKED,
    }  # fmt: skip


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_frames = [to_frame(one) for one in (*FROM_CLIENT, *FROM_RELAY)]


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


@pytest.mark.parametrize(
    "twice",
    [
        '{"t":"sample","rid":1,"k":8,"rid":2}',
        '{"t":"sample","rid":1,"k":8,"k":8}',
        '{"t":"sample","rid":1,"k":8,"\\u006b":9}',
        '{"t":"sample","rid":1, "k" : 8,"k":9}',
        '{"t":"sample","t":"sample","rid":1,"k":8}',
    ],
)
def test_a_key_that_stands_twice_is_refused(twice: str) -> None:
    assert refused(from_client, twice.encode()).flaw == Flaw.NOT_JSON


@pytest.mark.parametrize("blank", ["", " ", "\n", "\t"])
def test_keys_may_be_written_as_json_lets_them(blank: str) -> None:
    text = f'{{{blank}"t"{blank}:{blank}"report"{blank},"ids":["{ID}"],"reaso\\u006e":"bad_reward"}}'
    assert from_client(text.encode()) == protocol.Report(ids=(ID,), reason="bad_reward")


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
