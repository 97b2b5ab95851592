"""PROTOCOL.md: its worked examples are right to the byte, its numbers and words are the code's.

Ids and signatures are checked with hashlib and PyNaCl from the page's own formulas, not with our functions.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import nacl.pwhash
import nacl.signing
import pytest
from mnemonic import Mnemonic

from app.swarm.identity import identity
from app.swarm.invite import private as admission
from app.swarm.invite.private import PrivateSwarm
from app.swarm.wire import frames, limits, noise, protocol, signin
from app.swarm.wire.body import Body, WireTask, unseal
from app.swarm.wire.limits import Code

PAGE = (Path(protocol.__file__).parents[1] / "PROTOCOL.md").read_text(encoding="utf-8")
HELLO, AUTH, BODY, PUB, OK = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)


def test_the_group_s_id_and_signature() -> None:
    key = nacl.signing.SigningKey(bytes(range(32)))
    envelope = json.loads(PUB)
    digest = hashlib.sha256(
        b"sapo-rollout-v2\0example-swarm\0" + bytes(key.verify_key) + BODY.encode()
    ).digest()
    assert envelope["body"] == BODY
    assert envelope["id"] == digest.hex()
    assert envelope["sig"] == key.sign(digest).signature.hex()
    assert envelope["pk"] == bytes(key.verify_key).hex()


def test_the_signature_of_a_receipt() -> None:
    key = nacl.signing.SigningKey(bytes(range(32, 64)))
    told, lessons = re.findall(r"```\n(\{\"t\":\"receipts\".*?)\n```", PAGE)
    (item,) = json.loads(told)["items"]
    signed = hashlib.sha256(b"shoal-receipt-v1\0example-swarm\0" + bytes.fromhex(item["id"])).digest()
    assert item["id"] == json.loads(PUB)["id"]
    assert item["sig"] == key.sign(signed).signature.hex()
    (lesson,) = json.loads(lessons)["lessons"]
    assert lesson["author"] == json.loads(PUB)["pk"]
    claimed = bytes.fromhex(lesson["author"]) + lesson["family"].encode()
    signed = hashlib.sha256(b"shoal-lesson-v1\0example-swarm\0" + claimed).digest()
    assert lesson["sig"] == key.sign(signed).signature.hex()
    for one in (told, lessons):
        read = frames.from_client(one.encode())
        assert isinstance(read, protocol.Receipts) and frames.to_frame(read).decode() == one


def test_the_signature_of_the_challenge() -> None:
    key = nacl.signing.SigningKey(bytes(range(32)))
    hello = json.loads(HELLO)
    signed = f"sapo-auth-v2\0example-swarm\0{hello['relay']}\0".encode() + b"\x0f" * 32
    assert json.loads(AUTH)["sig"] == key.sign(signed + bytes.fromhex(hello["sig"])).signature.hex()


def test_the_relay_s_id_and_signature() -> None:
    hello, key = json.loads(HELLO), nacl.signing.SigningKey(bytes(range(32, 64)))
    assert hello["key"] == bytes(key.verify_key).hex()
    digest = hashlib.sha256(b"shoal-relay-v1\0" + bytes(key.verify_key)).digest()[:20]
    assert hello["relay"] == "relay-" + base64.b32encode(digest).decode().lower()
    signed = b"shoal-hello-v1\0example-swarm\0" + b"\x0f" * 32 + b"\x0e" * 32
    assert hello["sig"] == key.sign(signed).signature.hex()
    read = frames.decode_relay_frame(HELLO.encode())
    assert isinstance(read, protocol.Hello)
    signin.check_hello(read, b"\x0e" * 32)


def test_the_sealed_line() -> None:
    first, bound, second, notice = re.findall(r"^([0-9a-f]{64,})$", PAGE, re.MULTILINE)
    (key,) = re.findall(r"give the access key `([0-9a-f]{64})`", PAGE)
    prologue = b"shoal-private-line-v1\0private-ae2kktxb43fggys7"
    client = noise.Initiator(bytes.fromhex(key), prologue, b"\x01" * 32)
    relay = noise.Responder(bytes.fromhex(key), prologue, b"\x02" * 32)
    assert client.write_message().hex() == first
    assert relay.read_message(bytes.fromhex(first)) == b"" and relay.begin_answer().hex() == bound
    assert relay.finish_answer(b"{}")[0].hex() == second
    opened, hello, line = client.read_message(bytes.fromhex(second))
    assert (opened.hex(), hello) == (bound, b"{}")
    assert line[1].decrypt(bytes.fromhex(notice)) == b'{"t":"notice","msg":"hi"}'
    assert PrivateSwarm(bytes.fromhex(key)).prologue == prologue and len(first) == 2 * noise.OPENING_BYTES


def test_a_token_of_the_operator() -> None:
    key = nacl.signing.SigningKey(bytes(range(32)))
    (token,) = re.findall(r"`(t1\.[0-9][^`]*)`", PAGE)
    _, until, who, signature = token.split(".")
    signed = b"shoal-token-v1\0example-swarm\0" + until.encode() + b"\0" + who.encode()
    assert signature == key.sign(signed).signature.hex()
    admission.check_token(
        token, [bytes(key.verify_key)], "example-swarm", json.loads(AUTH)["pk"], int(until) - 1
    )


def test_six_words_give_the_key_and_the_swarm() -> None:
    (words,) = re.findall(r"`([a-z]+(?: [a-z]+){5})`", PAGE)
    number = 0
    for word in words.split():
        number = number << 11 | Mnemonic("english").wordlist.index(word)
    check = hashlib.sha256(b"shoal-private-check-v1\0" + (number >> 6).to_bytes(8, "big")).digest()[0] >> 2
    assert number & 63 == check
    salt = hashlib.sha256(b"shoal-private-v1").digest()[:16]
    key = nacl.pwhash.argon2id.kdf(32, words.encode(), salt, 12, 64 * 2**20)
    assert f"`{key.hex()}`" in PAGE
    digest = hashlib.sha256(b"shoal-private-swarm-v1\0" + key).digest()[:10]
    assert f"`private-{base64.b32encode(digest).decode().lower()}`" in PAGE


def test_the_work() -> None:
    pk = bytes.fromhex(json.loads(AUTH)["pk"])
    relay, work = json.loads(HELLO)["relay"], json.loads(AUTH)["pow"]
    digest = hashlib.sha256(b"sapo-pow\0" + pk + f"{relay}\0".encode() + b"20833\0" + work.encode()).hexdigest()
    assert digest.startswith("000")
    assert signin.work_bits(pk.hex(), relay, 1_800_000_000_000, work) >= 12


@pytest.mark.parametrize("text", [HELLO, OK])
def test_a_relay_s_example_is_what_we_write(text: str) -> None:
    assert frames.to_frame(frames.decode_relay_frame(text.encode())) == text.encode()


@pytest.mark.parametrize("text", [AUTH, PUB])
def test_a_client_s_example_is_what_we_write(text: str) -> None:
    assert frames.to_frame(frames.from_client(text.encode())) == text.encode()


def test_the_example_is_taken() -> None:
    hello, auth, pub = (
        frames.decode_relay_frame(HELLO.encode()),
        frames.from_client(AUTH.encode()),
        frames.from_client(PUB.encode()),
    )
    assert isinstance(hello, protocol.Hello) and isinstance(auth, protocol.Auth)
    assert isinstance(pub, protocol.Pub)
    signin.check_sign_in(auth, hello)
    assert msgspec.json.encode(unseal(pub, "example-swarm")) == BODY.encode()


def test_every_field_and_code_is_on_the_page() -> None:
    structs = [*get_args(protocol.FromClient), *get_args(protocol.FromRelay), protocol.Info, Body, WireTask]
    structs += [limits.RelayLimits, limits.Quotas]
    words = set(re.findall(r"`([a-z0-9_-]+)`", PAGE))
    for one in structs:
        assert set(one.__struct_fields__) - words == set(), one.__name__
    for code in Code:
        (row,) = [line for line in PAGE.splitlines() if line.startswith("|") and f"`{code.value}`" in line]
        assert row.split("|")[2].strip() == ("yes" if code.final else "no"), code


def test_the_name() -> None:
    assert f"`{identity.node_name(bytes.fromhex(json.loads(AUTH)['pk']))}`" in PAGE


def test_every_limit_is_on_the_page() -> None:
    for number in (
        limits.FRAME_BYTES, limits.BATCH_FRAME, limits.BATCH_BYTES, limits.MAX_BODY_BYTES,
        limits.MAX_COMPLETION_CHARS, limits.MAX_AHEAD_S, limits.STALE_AFTER_S // 60, limits.MAX_SAMPLE_GROUPS,
        limits.MAX_COMPLETIONS,
    ):  # fmt: skip
        assert re.search(rf"(?<![\d,]){number:,}(?![\d,])", PAGE), number
