"""Keys, names, recovery words and the file that earlier versions encrypted."""

from __future__ import annotations

import copy
import hashlib
import json
import re

import msgspec
import nacl.pwhash
import nacl.secret
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common import signing
from app.swarm.identity import identity as names
from app.swarm.identity.identity import Identity, IdentityError, decrypt

SEED = bytes(range(32))
SALT = bytes(16)


def sealed(passphrase: str) -> bytes:
    """A file as earlier versions sealed it, at the lowest cost of argon2id."""
    size = nacl.secret.SecretBox.KEY_SIZE
    key = nacl.pwhash.argon2id.kdf(size, passphrase.encode(), SALT, 1, 8192)
    box = nacl.secret.SecretBox(key).encrypt(SEED).hex()
    stored = {"v": 1, "public_key": Identity(SEED).key.hex(), "operations": 1, "memory": 8192}
    return json.dumps({**stored, "salt": SALT.hex(), "box": box}).encode()


def test_a_name_belongs_to_its_key_for_ever() -> None:
    assert Identity(SEED).name == names.node_name(signing.public_key(SEED)) == "prompt-falcon-6895"
    lists = " ".join((*names.MANNERS, "|", *names.ANIMALS)).encode()
    assert (
        hashlib.sha256(lists).hexdigest() == "2d4a88bb21f00f082376e5e98e2a3d4f26b0b7e5a378bc99b81d2f55d84586f6"
    ), "names.py: a changed word renames nodes"


@given(st.binary(min_size=32, max_size=32))
@settings(deadline=None)
def test_names_are_two_words_and_four_digits(key: bytes) -> None:
    assert re.fullmatch(r"[a-z]{2,9}-[a-z]{2,9}-[0-9]{4}", names.node_name(key))


def test_every_word_can_turn_up() -> None:
    seen = [names.node_name(bytes([i % 256, i // 256])).split("-") for i in range(6000)]
    assert {one[0] for one in seen} == set(names.MANNERS) and len(names.MANNERS) == 128
    assert {one[1] for one in seen} == set(names.ANIMALS) and len(names.ANIMALS) == 128


def test_published_recovery_words() -> None:
    """The vectors of BIP-39 for 256 bits of zeros and of ones."""
    assert Identity(bytes(32)).words() == "abandon " * 23 + "art"
    assert Identity(b"\xff" * 32).words() == "zoo " * 23 + "vote"


@given(st.binary(min_size=32, max_size=32))
@settings(max_examples=30)
def test_recovery_words_bring_the_key_back(seed: bytes) -> None:
    words = Identity(seed).words()
    assert Identity.from_words(words).seed() == seed
    assert Identity.from_words(f"\n  {words.upper()}".replace(" ", " \t\n")).seed() == seed


def test_wrong_recovery_words_say_what_is_wrong() -> None:
    words = Identity(SEED).words().split()
    with pytest.raises(IdentityError, match="Word 3 "):
        Identity.from_words(" ".join([*words[:2], "abandonn", *words[3:]]))
    with pytest.raises(IdentityError, match="these are 23"):
        Identity.from_words(" ".join(words[:-1]))
    with pytest.raises(IdentityError, match="these are 0"):
        Identity.from_words("")
    with pytest.raises(IdentityError, match="together"):
        Identity.from_words(" ".join([words[1], words[0], *words[2:]]))
    with pytest.raises(IdentityError, match="these are 12"):
        Identity.from_words("abandon " * 11 + "about")


def test_new_identities_differ() -> None:
    assert len({Identity.new() for _ in range(20)}) == 20


def test_a_secret_does_not_slip_out() -> None:
    identity = Identity(SEED)
    assert SEED.hex() not in repr(identity) and str(SEED) not in f"{identity} {[identity]}"
    with pytest.raises(TypeError):
        copy.copy(identity)  # as pickle would
    with pytest.raises(ValueError):
        Identity(b"short")


def test_a_sealed_file_opens_with_its_passphrase_alone() -> None:
    content = sealed("correct horse")
    assert decrypt(content, "correct horse").seed() == SEED
    with pytest.raises(IdentityError, match="doesn't open"):
        decrypt(content, "correct horsf")


def test_an_accent_is_typed_one_way_or_the_other() -> None:
    content = sealed("caf\u00e9 noir")
    assert decrypt(content, "cafe\u0301 noir").seed() == SEED


def test_a_damaged_file_is_an_error_with_a_remedy_and_costs_no_memory() -> None:
    good = msgspec.json.decode(sealed("correct horse"))
    for changed in (
        {"memory": 2**40}, {"operations": 10**6}, {"salt": "00"}, {"box": "xyz"}, {"v": 2}, {"extra": 1},
    ):  # fmt: skip
        with pytest.raises(IdentityError, match="recovery words"):
            decrypt(msgspec.json.encode({**good, **changed}), "correct horse")
    for content in (b"", b"\xff", b"{}"):
        with pytest.raises(IdentityError, match="recovery words"):
            decrypt(content, "correct horse")
    for changed in ({"box": good["box"][:-2] + "00"}, {"box": "00"}):
        with pytest.raises(IdentityError, match="doesn't open"):
            decrypt(msgspec.json.encode({**good, **changed}), "correct horse")
    with pytest.raises(IdentityError, match="another key"):
        decrypt(msgspec.json.encode({**good, "public_key": "00" * 32}), "correct horse")
