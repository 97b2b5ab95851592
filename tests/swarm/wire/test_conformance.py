"""Our implementation over the cases that freeze the protocol for every language (app/swarm/conformance)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from app.common import signing
from app.sapo.groups import GroupRecord
from app.sapo.questions import QUESTIONS_VERSION, Coordinates
from app.sapo.scoring.sandbox import Sandbox
from app.swarm import wire
from app.swarm.client import receipts
from app.swarm.identity import identity
from app.swarm.intake.intake import Intake
from app.swarm.intake.reasons import reason_of_flaw
from app.swarm.invite import private
from app.swarm.wire import frames, noise, protocol, signin
from app.swarm.wire.body import Body, Envelope, body_id, check_age, seal, unseal
from app.swarm.wire.limits import Flaw, Refused
from app.swarm.wire.shared_sets import SharedSet

Case = dict[str, Any]
FOLDER = Path(wire.__file__).parents[1] / "conformance"
FRAMES, GROUPS, PRIVATE, SIGNATURES = (
    json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("frames", "groups", "private", "signatures")
)
HELLO = msgspec.convert(FRAMES["from_relay"]["taken"][0], protocol.Hello)
DIRECTIONS: dict[str, tuple[Callable[[bytes], Any], tuple[type, ...]]] = {
    "to_relay": (frames.from_client, get_args(protocol.FromClient)),
    "from_relay": (frames.decode_relay_frame, get_args(protocol.FromRelay)),
}


def says(case: Case | str) -> str:
    return case if isinstance(case, str) else str(case.get("says", ""))


def changed(text: str, case: Case) -> bytes:
    for old, new, *times in case.get("replace", []):
        assert old in text, "a case that changes nothing proves nothing"
        text = text.replace(old, new * (times[0] if times else 1), 1)
    return text.encode()


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def enveloped(case: Case) -> bytes:
    raw, seed = changed(GROUPS["body"], case), bytes.fromhex(GROUPS["seed"])
    key = signing.public_key(seed)
    digest = body_id(GROUPS["swarm"], key, raw)
    made = {"id": digest.hex(), "pk": key.hex(), "sig": signing.sign(seed, digest).hex(), "body": raw.decode()}
    return compact({**made, "enc": "plain", **case.get("envelope", {})})


def verdict(item: bytes) -> Flaw | Body:
    try:
        body = unseal(frames.decode_envelope(item), GROUPS["swarm"])
        check_age(body.created_ms, GROUPS["now_ms"])
    except Refused as refused:
        return refused.flaw
    return body


def test_the_example_is_written_as_it_stands() -> None:
    body = msgspec.json.decode(GROUPS["body"], type=Body)
    expected = Envelope(**{name: GROUPS[name] for name in ("id", "pk", "sig", "body")})
    assert seal(body, bytes.fromhex(GROUPS["seed"])) == expected
    packed = seal(body, bytes.fromhex(GROUPS["seed"]), "zlib")
    assert packed.id == expected.id and unseal(packed, GROUPS["swarm"]) == body


@pytest.mark.parametrize("case", GROUPS["taken"], ids=says)
def test_a_group_is_taken(case: Case) -> None:
    body = verdict(enveloped(case))
    assert isinstance(body, Body) and seal(body, bytes(32)).body.encode() == msgspec.json.encode(body)


@pytest.mark.parametrize("case", GROUPS["refused"], ids=says)
def test_a_group_is_refused(case: Case, sandbox: Sandbox) -> None:
    item, flaw = enveloped(case), Flaw(case["refused"])
    assert verdict(item) is flaw
    assert Refused(flaw, "").code == ("stale" if flaw is Flaw.STALE else "invalid")
    assert Intake(sandbox, GROUPS["swarm"], []).check(item, GROUPS["now_ms"]) is reason_of_flaw(flaw)


@pytest.mark.parametrize("case", GROUPS["puzzles"], ids=says)
def test_a_group_that_the_puzzle_judges(case: Case, sandbox: Sandbox) -> None:
    """The wire is frozen, puzzles are not: these cases are of today's version."""
    today = [[json.loads(GROUPS["body"])["task"]["version"], QUESTIONS_VERSION], *case.get("replace", [])]
    intake = Intake(sandbox, GROUPS["swarm"], [])
    found = intake.check(enveloped({"replace": today}), GROUPS["now_ms"])
    assert isinstance(verdict(enveloped(case)), Body)
    if "refused" in case:
        assert found == case["refused"] and found.sentence.endswith(".")  # type: ignore[union-attr]
        found = intake.check(enveloped({"replace": today[:1]}), GROUPS["now_ms"])
    assert isinstance(found, GroupRecord), "a refusal costs the next one nothing"
    assert found.question == GROUPS["question"] and found.rewards_G == (1, 0, 0)


@pytest.mark.parametrize("way", DIRECTIONS)
def test_every_frame_is_read_and_written(way: str) -> None:
    read, types = DIRECTIONS[way]
    messages = [read(compact(frame)) for frame in FRAMES[way]["taken"]]
    assert {type(one) for one in messages} == set(types)
    for message, frame in zip(messages, FRAMES[way]["taken"], strict=True):
        assert frames.to_frame(message) == compact(frame)
        assert type(read(json.dumps(frame, indent=1).encode())) is type(message), "written otherwise"
        more = compact({**frame, "extra": {"a": [1]}})
        if way == "from_relay":
            assert type(read(more)) is type(message)
        else:
            with pytest.raises(Refused) as refusal:
                read(more)
            assert refusal.value.flaw is Flaw.WRONG_SHAPE


@pytest.mark.parametrize(
    ("way", "case"), [(way, case) for way in DIRECTIONS for case in FRAMES[way]["refused"]], ids=says
)
def test_a_frame_is_refused(way: str, case: Case) -> None:
    frame = bytes.fromhex(case["hex"]) if "hex" in case else changed(case["frame"], case)
    with pytest.raises(Refused) as refusal:
        DIRECTIONS[way][0](frame)
    assert refusal.value.flaw == case["refused"]


@pytest.mark.parametrize("case", SIGNATURES["ed25519"], ids=says)
def test_a_signature(case: Case) -> None:
    key, message, sig = (bytes.fromhex(case[name]) for name in ("key", "message", "sig"))
    assert signing.verifies(key, message, sig) is case["holds"]


MADE: dict[str, Callable[[Case, bytes], Case]] = {
    "relay": lambda one, _: {"relay": signin.relay_id(bytes.fromhex(one["key"]))},
    "name": lambda one, _: {"name": identity.node_name(bytes.fromhex(one["key"]))},
    "work": lambda one, _: {"bits": signin.work_bits(one["pk"], one["relay"], one["time_ms"], one["pow"])},
    "group": lambda one, seed: {
        "id": (id := body_id(one["swarm"], bytes.fromhex(one["pk"]), one["body"].encode())).hex(),
        "sig": signing.sign(seed, id).hex(),
    },
    "hello": lambda one, seed: {
        "sig": signin.signed_hello(
            seed, msgspec.structs.replace(HELLO, challenge=one["challenge"]), bytes.fromhex(one["opening"])
        ).sig
    },
    "auth": lambda one, seed: {"sig": signin.sign_in(seed, HELLO, "shoal/0.1").sig},
    "receipt": lambda one, seed: {"sig": receipts.receipt(seed, one["swarm"], one["id"]).sig},
    "lesson": lambda one, seed: {
        "sig": receipts.lesson_receipt(seed, one["swarm"], one["author"], one["family"]).sig
    },
    "token": lambda one, seed: {"token": private.mint(seed, one["swarm"], one["until"], one["who"])},
}


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind in MADE for case in SIGNATURES[kind]], ids=says
)
def test_what_is_made_of_keys(kind: str, case: Case) -> None:
    made = MADE[kind](case, bytes.fromhex(case.get("seed", "")))
    assert {**case, **made} == case


def test_the_example_signs_in() -> None:
    auth = frames.from_client(compact(FRAMES["to_relay"]["taken"][0]))
    assert isinstance(auth, protocol.Auth)
    signin.check_hello(HELLO, bytes.fromhex(SIGNATURES["hello"][0]["opening"]))
    signin.check_sign_in(auth, HELLO)


@pytest.mark.parametrize("case", PRIVATE["lines"], ids=says)
def test_a_sealed_line(case: Case) -> None:
    secret, prologue, client, relay = (
        bytes.fromhex(case[name]) for name in ("secret", "prologue", "client", "relay")
    )
    ours, theirs = noise.Initiator(secret, prologue, client), noise.Responder(secret, prologue, relay)
    (_, hi, first), (_, answer, second), *rest = (
        (who, bytes.fromhex(text), bytes.fromhex(sealed)) for who, text, sealed in case["messages"]
    )
    assert ours.write_message(hi) == first and theirs.read_message(first) == hi
    assert theirs.begin_answer().hex() == case["opening"]
    sent, there = theirs.finish_answer(answer)
    opening, heard, here = ours.read_message(sent)
    assert (sent, heard, opening.hex()) == (second, answer, case["opening"])
    for who, text, sealed in rest:
        sender, receiver = (here, there) if who == "client" else (there, here)
        assert sender[0].encrypt(text) == sealed and receiver[1].decrypt(sealed) == text


@pytest.mark.parametrize("point", PRIVATE["refused_points"])
def test_a_key_that_shares_nothing_is_refused(point: str) -> None:
    relay = noise.Responder(bytes(32), b"p")
    relay._theirs = bytes.fromhex(point)
    with pytest.raises(noise.NoiseError):
        relay.begin_answer()


def test_six_words_and_a_shared_set() -> None:
    for case in PRIVATE["words"]:
        found = private.private_swarm_from_text(case["words"])
        assert (found.token, found.swarm) == (f"a1.{case['access_key']}", case["swarm"])
    case = PRIVATE["set"]
    shared = SharedSet(family="mine", key=bytes.fromhex(case["key"]))
    where = Coordinates(family=shared.wire, level=0, seed=0, index=0)
    group = GroupRecord(
        coordinates=where, completions_G=(case["completion"],), finished_G=(True,), model="local"
    )
    opened = shared.decrypt_group(group)
    assert shared.wire == case["family"] and opened is not None and opened.completions_G == (case["text"],)
