"""Bodies and envelopes: exact bytes, exact limits, one refusal for everything else."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common import signing
from app.sapo.groups import HUMAN_MODEL, GroupRecord
from app.sapo.questions import Coordinates
from app.swarm.wire.body import Body, Envelope, WireTask, body_id, check_age, public_model_name, seal, unseal
from app.swarm.wire.limits import (
    MAX_AHEAD_S,
    MAX_BODY_BYTES,
    MAX_COMPLETION_CHARS,
    STALE_AFTER_S,
    Code,
    Flaw,
    Refused,
)

SEED = bytes(range(32))
SWARM = "example-swarm"
NOW_MS = 1_800_000_000_000


def signed(raw: str | bytes, swarm: str = SWARM, **changed: str) -> Envelope:
    """An envelope whose id and signature hold, whatever its body says."""
    content = raw.encode() if isinstance(raw, str) else raw
    key = bytes.fromhex(changed.get("pk", signing.public_key(SEED).hex()))
    digest = body_id(swarm, key, content)
    fields = {
        "id": digest.hex(),
        "pk": signing.public_key(SEED).hex(),
        "sig": signing.sign(SEED, digest).hex(),
        "body": content.decode(),
    }
    return msgspec.convert({**fields, **changed}, Envelope)


def flaw(envelope: Envelope, swarm: str = SWARM) -> Flaw:
    with pytest.raises(Refused) as refusal:
        unseal(envelope, swarm)
    assert refusal.value.sentence
    return refusal.value.flaw


@pytest.mark.parametrize("enc", ["plain", "zlib"])
def test_a_sealed_body_comes_out_as_it_went_in(body: Body, group: GroupRecord, enc: Any) -> None:
    read = unseal(seal(body, SEED, enc), SWARM)
    assert read == body
    assert read.group() == group


def test_the_id_does_not_depend_on_compression(body: Body) -> None:
    assert seal(body, SEED, "plain").id == seal(body, SEED, "zlib").id


def test_the_signed_bytes_are_those_that_came_not_those_that_we_would_write(plain: dict[str, Any]) -> None:
    written_elsewhere = json.dumps(plain, indent=3, sort_keys=True)
    assert unseal(signed(written_elsewhere), SWARM).key_seq == 7


def test_the_id_binds_body_and_swarm(body: Body) -> None:
    sealed = seal(body, SEED)
    assert flaw(msgspec.structs.replace(sealed, body=sealed.body + " ")) == Flaw.BAD_ID
    assert flaw(sealed, "other-swarm") == Flaw.BAD_ID


def test_a_body_that_names_another_swarm_than_it_was_hashed_for_is_refused(plain: dict[str, Any]) -> None:
    assert flaw(signed(json.dumps({**plain, "swarm": "other-swarm"}))) == Flaw.OTHER_SWARM


def test_a_signature_of_somebody_else_is_refused(body: Body) -> None:
    sealed = seal(body, SEED)
    other = signing.public_key(b"x" * 32).hex()
    assert flaw(msgspec.structs.replace(sealed, pk=other)) == Flaw.BAD_ID
    assert flaw(signed(sealed.body, pk=other)) == Flaw.BAD_SIGNATURE
    assert flaw(msgspec.structs.replace(sealed, sig="00" * 64)) == Flaw.BAD_SIGNATURE


def test_the_forged_signature_of_a_small_order_key_is_refused(body: Body) -> None:
    """Key 01 00 .. 00 with its own bytes and 32 zeros as signature: OpenSSL takes it for every message."""
    key = b"\1" + bytes(31)
    forged = signed(seal(body, SEED).body, pk=key.hex(), sig=(key + bytes(32)).hex())
    assert flaw(forged) == Flaw.BAD_SIGNATURE


Spoil = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda b: b.update(v=2),
        lambda b: b.update(v="1"),
        lambda b: b.update(note="hello"),
        lambda b: b.pop("swarm"),
        lambda b: b.pop("finished"),
        lambda b: b.update(swarm="Ex Ample"),
        lambda b: b.update(key_seq=0),
        lambda b: b.update(key_seq=2**53),
        lambda b: b.update(key_seq=-1),
        lambda b: b.update(key_seq=1.5),
        lambda b: b.update(key_seq=None),
        lambda b: b.update(created_ms="now"),
        lambda b: b.update(created_ms=10**400),
        lambda b: b.update(model="/home/ann/cats"),
        lambda b: b.update(model="a/b/c"),
        lambda b: b.update(model="starter\n"),
        lambda b: b.update(model="x" * 200),
        lambda b: b["task"].update(family="chain sum"),
        lambda b: b["task"].update(family="__import__('os')"),
        lambda b: b["task"].update(level=-1),
        lambda b: b["task"].update(level=True),
        lambda b: b["task"].update(seed=2**53),
        lambda b: b["task"].update(index=2**20),
        lambda b: b["task"].update(version="latest"),
        lambda b: b["task"].pop("version"),
        lambda b: b["task"].update(question="What is 1+1?"),
        lambda b: b.update(completions=b["completions"][:3]),
        lambda b: b.update(finished=[True] * 5),
        lambda b: b.update(rewards=[1, 0]),
        lambda b: b.update(completions=["#1"], finished=[True], rewards=[1]),
        lambda b: b.update(completions=["#1"] * 17, finished=[True] * 17, rewards=[1] + [0] * 16),
        lambda b: b.update(completions=["x" * (MAX_COMPLETION_CHARS + 1), "", "", ""]),
        lambda b: b.update(completions=[1, "", "", ""]),
        lambda b: b.update(rewards=[2, 0, 0, 0]),
        lambda b: b.update(rewards=[0.5, 0, 0, 0]),
        lambda b: b.update(rewards=[True, False, False, False]),
        lambda b: b.update(rewards=[0, 0, 0, 0]),
        lambda b: b.update(rewards=[0, 0, 1, 0]),  # the third was cut off
        lambda b: b.update(finished=[1, 1, 0, 1]),
    ],
)  # fmt: skip
def test_a_body_of_another_shape_is_refused_though_its_signature_holds(
    plain: dict[str, Any], spoil: Spoil
) -> None:
    spoil(plain)
    assert flaw(signed(json.dumps(plain))) == Flaw.WRONG_SHAPE


@pytest.mark.parametrize("raw", ["", "nonsense", "{", "[" * 20_000, '{"v":1}}', "\ufeff{}"])
def test_a_body_that_is_not_json_is_refused(raw: str) -> None:
    assert flaw(signed(raw)) in {Flaw.NOT_JSON, Flaw.WRONG_SHAPE}


def test_the_longest_completions_that_are_allowed_pass(plain: dict[str, Any]) -> None:
    plain["completions"] = ["x" * MAX_COMPLETION_CHARS, "é" * MAX_COMPLETION_CHARS, "", ""]
    assert (
        len(unseal(signed(json.dumps(plain, ensure_ascii=False)), SWARM).completions[1]) == MAX_COMPLETION_CHARS
    )


def test_a_body_is_measured_in_bytes_before_it_is_read() -> None:
    assert flaw(signed("x" * (MAX_BODY_BYTES + 1))) == Flaw.TOO_LARGE
    assert flaw(signed("é" * (MAX_BODY_BYTES // 2 + 1))) == Flaw.TOO_LARGE
    assert flaw(signed("x" * MAX_BODY_BYTES)) == Flaw.NOT_JSON


def test_what_we_cannot_send_is_refused_before_it_is_signed(group: GroupRecord) -> None:
    def sent(*completions: str) -> Envelope:
        changed = msgspec.structs.replace(group, completions_G=completions)
        return seal(Body.of(changed, (1, 1, 0, 0), SWARM, 1, NOW_MS), SEED)

    for completions, expected in (
        (("x" * (MAX_COMPLETION_CHARS + 1), "", "", ""), Flaw.WRONG_SHAPE),
        (("🐟" * MAX_COMPLETION_CHARS,) * 4, Flaw.TOO_LARGE),
        (("\ud800", "", "", ""), Flaw.NOT_JSON),
    ):
        with pytest.raises(Refused) as refusal:
            sent(*completions)
        assert refusal.value.flaw == expected


def packed(raw: bytes, content: bytes | None = None) -> Envelope:
    body = base64.b64encode(zlib.compress(raw) if content is None else content).decode()
    digest = body_id(SWARM, signing.public_key(SEED), raw)
    return Envelope(
        id=digest.hex(),
        pk=signing.public_key(SEED).hex(),
        sig=signing.sign(SEED, digest).hex(),
        body=body,
        enc="zlib",
    )


def test_a_compressed_body_cannot_blow_up_or_hide_something(plain: dict[str, Any]) -> None:
    raw = json.dumps(plain).encode()
    good = zlib.compress(raw)
    assert unseal(packed(raw), SWARM).key_seq == 7
    assert flaw(packed(bytes(50_000_000))) == Flaw.TOO_LARGE
    assert flaw(packed(raw, good + b"more")) == Flaw.BAD_ENCODING
    assert flaw(packed(raw, good[:-4])) == Flaw.BAD_ENCODING
    assert flaw(packed(raw, b"no zlib")) == Flaw.BAD_ENCODING
    assert flaw(packed(raw, b"")) == Flaw.BAD_ENCODING
    for body in ("%%%", "AAA", base64.b64encode(good).decode() + "\n", "é"):
        assert flaw(msgspec.structs.replace(packed(raw), body=body)) == Flaw.BAD_ENCODING


def test_age_in_both_directions() -> None:
    check_age(NOW_MS, NOW_MS)
    check_age(NOW_MS - STALE_AFTER_S * 1000, NOW_MS)
    check_age(NOW_MS + MAX_AHEAD_S * 1000, NOW_MS)
    for created_ms, expected, code in (
        (NOW_MS - STALE_AFTER_S * 1000 - 1, Flaw.STALE, Code.STALE),
        (NOW_MS - 86_400_000, Flaw.STALE, Code.STALE),
        (NOW_MS + MAX_AHEAD_S * 1000 + 1, Flaw.AHEAD, Code.INVALID),
        (NOW_MS + 86_400_000, Flaw.AHEAD, Code.INVALID),
    ):
        with pytest.raises(Refused) as refusal:
            check_age(created_ms, NOW_MS)
        assert (refusal.value.flaw, refusal.value.code) == (expected, code)


@pytest.mark.parametrize(
    "private",
    ["/home/ann/cats", "C:\\Users\\ann\\cats", "~/cats", "../cats", "a/b/c", "", "cats for ann", "./cats",
     "x\n"],
)  # fmt: skip
def test_a_path_never_leaves_as_a_model_name(private: str, group: GroupRecord) -> None:
    assert public_model_name(private) == "local"
    sent = Body.of(msgspec.structs.replace(group, model=private), (1, 1, 0, 0), SWARM, 1, NOW_MS)
    assert sent.model == "local"


@settings(deadline=None)
@given(
    st.builds(
        Coordinates,
        family=st.from_regex(r"\A[a-z][a-z0-9_]{0,47}\Z"),
        level=st.integers(0, 63),
        seed=st.integers(0, 2**53 - 1),
        index=st.integers(0, 2**20 - 1),
    ),
    st.lists(st.tuples(st.text(max_size=60), st.booleans()), min_size=1, max_size=15),
    st.integers(1, 2**53 - 1),
)
def test_every_group_that_can_be_sent_arrives(
    where: Coordinates, answers: list[tuple[str, bool]], key_seq: int
) -> None:
    """The first completion is the one that is right, so that the group is informative."""
    completions, finished = zip(("#1", True), *answers, strict=True)
    group = GroupRecord(coordinates=where, completions_G=completions, finished_G=finished, model="starter")
    body = Body.of(group, (1, *[0] * len(answers)), SWARM, key_seq, NOW_MS)
    assert unseal(seal(body, SEED), SWARM).group() == group


def test_a_task_says_all_that_coordinates_say() -> None:
    assert set(WireTask.__struct_fields__) == set(Coordinates.__struct_fields__)


def test_a_key_that_stands_twice_in_a_body_is_refused(plain: dict[str, Any]) -> None:
    text = json.dumps(plain, separators=(",", ":"))
    assert unseal(signed(text), SWARM)
    for twice in (
        text.replace('"rewards":', '"rewards":[0,1],"rewards":', 1),
        text.replace('"seed":', '"seed":1,"seed":', 1),
        text.replace('"seed":', '"\\u0073eed":1,"seed":', 1),
        text.replace('"seed":', '"seed" :1,"seed":', 1),
    ):
        with pytest.raises(Refused, match="twice"):
            unseal(signed(twice), SWARM)


def test_anothers_body_has_another_id_under_another_key(plain: dict[str, Any]) -> None:
    text = json.dumps(plain).encode()
    mine, theirs = (body_id(SWARM, key, text) for key in (b"a" * 32, b"b" * 32))
    assert mine != theirs
    envelope = signed(text)
    with pytest.raises(Refused) as refusal:
        unseal(msgspec.structs.replace(envelope, pk=signing.public_key(bytes(32)).hex()), SWARM)
    assert refusal.value.flaw == Flaw.BAD_ID


def test_a_persons_group_is_one_right_answer_marked_under_the_signature(group: GroupRecord) -> None:
    person = msgspec.structs.replace(group, completions_G=("4-1=3 #3",), finished_G=(True,), model=HUMAN_MODEL)
    body = Body.of(person, (1,), SWARM, 7, NOW_MS)
    assert body.model == HUMAN_MODEL and unseal(seal(body, SEED), SWARM) == body
    for wrong, rewards in (
        (person, (0,)),
        (msgspec.structs.replace(person, model="starter"), (1,)),
        (msgspec.structs.replace(person, completions_G=("#3", "#4"), finished_G=(True, True)), (1, 0)),
        (msgspec.structs.replace(person, finished_G=(False,)), (1,)),
    ):
        with pytest.raises(Refused):
            Body.of(wrong, rewards, SWARM, 7, NOW_MS)
