"""PROTOCOL.md: its worked examples are right to the byte, its numbers and words are the code's.

Ids and signatures are checked with hashlib and PyNaCl from the page's own formulas, not with our functions.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import nacl.signing
import pytest

from app.swarm import limits, names, protocol, signin
from app.swarm.body import Body, Task, unseal
from app.swarm.refusals import Code

PAGE = (Path(protocol.__file__).parent / "PROTOCOL.md").read_text(encoding="utf-8")
HELLO, AUTH, BODY, PUB, OK = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)


def test_the_group_s_id_and_signature() -> None:
    key = nacl.signing.SigningKey(bytes(range(32)))
    envelope = json.loads(PUB)
    digest = hashlib.sha256(b"sapo-rollout-v1\0example-swarm\0" + BODY.encode()).digest()
    assert envelope["body"] == BODY
    assert envelope["id"] == digest.hex()
    assert envelope["sig"] == key.sign(digest).signature.hex()
    assert envelope["pk"] == bytes(key.verify_key).hex()


def test_the_signature_of_the_challenge() -> None:
    key = nacl.signing.SigningKey(bytes(range(32)))
    signed = b"sapo-auth-v1\0example-swarm\0relay.example\0" + b"\x0f" * 32
    assert json.loads(AUTH)["sig"] == key.sign(signed).signature.hex()


def test_the_work() -> None:
    pk = bytes.fromhex(json.loads(AUTH)["pk"])
    digest = hashlib.sha256(b"sapo-pow\0" + pk + b"relay.example\0" + b"20833\0" + b"5a1").hexdigest()
    assert digest.startswith("000")
    assert signin.work_bits(pk.hex(), "relay.example", 1_800_000_000_000, "5a1") >= 12


@pytest.mark.parametrize("text", [HELLO, OK])
def test_a_relay_s_example_is_what_we_write(text: str) -> None:
    assert protocol.to_frame(protocol.from_relay(text.encode())) == text.encode()


@pytest.mark.parametrize("text", [AUTH, PUB])
def test_a_client_s_example_is_what_we_write(text: str) -> None:
    assert protocol.to_frame(protocol.from_client(text.encode())) == text.encode()


def test_the_example_is_taken() -> None:
    hello, auth, pub = (
        protocol.from_relay(HELLO.encode()),
        protocol.from_client(AUTH.encode()),
        protocol.from_client(PUB.encode()),
    )
    assert isinstance(hello, protocol.Hello) and isinstance(auth, protocol.Auth)
    assert isinstance(pub, protocol.Pub)
    signin.check_sign_in(auth, hello)
    assert msgspec.json.encode(unseal(pub, "example-swarm")) == BODY.encode()


def test_every_field_and_code_is_on_the_page() -> None:
    structs = [*get_args(protocol.FromClient), *get_args(protocol.FromRelay), protocol.Info, Body, Task]
    structs += [limits.Limits, limits.Quotas]
    words = set(re.findall(r"`([a-z0-9_-]+)`", PAGE))
    for one in structs:
        assert set(one.__struct_fields__) - words == set(), one.__name__
    for code in Code:
        (row,) = [line for line in PAGE.splitlines() if line.startswith("|") and f"`{code.value}`" in line]
        assert row.split("|")[2].strip() == ("yes" if code.final else "no"), code


def test_the_name() -> None:
    assert f"`{names.name(bytes.fromhex(json.loads(AUTH)['pk']))}`" in PAGE


def test_every_limit_is_on_the_page() -> None:
    for number in (
        limits.FRAME, limits.BATCH_FRAME, limits.BATCH, limits.BODY, limits.COMPLETION, limits.AHEAD_S,
        limits.OLDEST_S // 60, limits.SAMPLE, limits.MAX_GROUP,
    ):  # fmt: skip
        assert re.search(rf"(?<![\d,]){number:,}(?![\d,])", PAGE), number
