"""The handshake beside the framework's own words: sections 4.3, 5.1 to 5.3, 9 and 12 of revision 34, written
down once more, token by token, from other primitives (OpenSSL's X25519 and ChaCha20-Poly1305)."""

from __future__ import annotations

import hmac
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.swarm.wire.noise import Cipher, Initiator, NoiseError, Responder

exceptions = pytest.importorskip("cryptography.exceptions")  # installed on Linux
x25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.x25519")
aead = pytest.importorskip("cryptography.hazmat.primitives.ciphers.aead")

NAME = b"Noise_NNpsk0_25519_ChaChaPoly_SHA256"
PATTERN = (("psk", "e"), ("e", "ee"))
SMALL_ORDER = [
    # every point whose order divides eight, and their other writings (curve25519's "may the fourth" list)
    "00" * 32,
    "01" + "00" * 31,
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "ec" + "ff" * 30 + "7f",
    "ed" + "ff" * 30 + "7f",
    "ee" + "ff" * 30 + "7f",
]

short = st.binary(max_size=80)
keys = st.binary(min_size=32, max_size=32)


def hkdf(chain: bytes, material: bytes, outputs: int) -> list[bytes]:
    """4.3."""
    temp = hmac.new(chain, material, sha256).digest()
    made = [b""]
    for number in range(outputs):
        made.append(hmac.new(temp, made[-1] + bytes([number + 1]), sha256).digest())
    return made[1:]


class CipherState:
    """5.1, with the nonce of 12.3: four zero bytes and n, little-endian."""

    def __init__(self, key: bytes) -> None:
        self.key, self.n = key, 0

    def _nonce(self) -> bytes:
        self.n += 1
        return bytes(4) + (self.n - 1).to_bytes(8, "little")

    def encrypt(self, ad: bytes, text: bytes) -> bytes:
        return bytes(aead.ChaCha20Poly1305(self.key).encrypt(self._nonce(), text, ad))

    def decrypt(self, ad: bytes, sealed: bytes) -> bytes:
        return bytes(aead.ChaCha20Poly1305(self.key).decrypt(self._nonce(), sealed, ad))


class HandshakeState:
    """5.2 and 5.3 for one side; in a handshake with a psk each `e` is mixed into the key as well (9.2)."""

    def __init__(self, prologue: bytes, psk: bytes, own: bytes) -> None:
        self.h = self.ck = sha256(NAME).digest()  # longer than 32 bytes, so it is hashed
        self.mix_hash(prologue)
        self.psk, self.e = psk, x25519.X25519PrivateKey.from_private_bytes(own)
        self.tokens = list(PATTERN)

    def mix_hash(self, data: bytes) -> None:
        self.h = sha256(self.h + data).digest()

    def mix_key(self, material: bytes) -> None:
        self.ck, key = hkdf(self.ck, material, 2)
        self.cipher = CipherState(key)

    def shared(self, token: str) -> None:
        if token == "psk":
            self.ck, hashed, key = hkdf(self.ck, self.psk, 3)
            self.mix_hash(hashed)
            self.cipher = CipherState(key)
        else:
            self.mix_key(self.e.exchange(x25519.X25519PublicKey.from_public_bytes(self.re)))

    def write(self, payload: bytes) -> bytes:
        message = b""
        for token in self.tokens.pop(0):
            if token == "e":
                public = self.e.public_key().public_bytes_raw()
                message += public
                self.mix_hash(public)
                self.mix_key(public)
            else:
                self.shared(token)
        sealed = self.cipher.encrypt(self.h, payload)
        self.mix_hash(sealed)
        return message + sealed

    def read(self, message: bytes) -> bytes:
        for token in self.tokens.pop(0):
            if token == "e":
                self.re, message = message[:32], message[32:]
                self.mix_hash(self.re)
                self.mix_key(self.re)
            else:
                self.shared(token)
        payload = self.cipher.decrypt(self.h, message)
        self.mix_hash(message)
        return payload

    def split(self) -> tuple[CipherState, CipherState]:
        """From initiator to responder, and back."""
        first, second = hkdf(self.ck, b"", 2)
        return CipherState(first), CipherState(second)


@settings(deadline=None)
@given(keys, keys, keys, short, st.tuples(short, short), st.lists(st.tuples(st.booleans(), short), max_size=6))
def test_both_sides_say_and_hear_what_the_framework_says(
    psk: bytes,
    one: bytes,
    other: bytes,
    prologue: bytes,
    payloads: tuple[bytes, bytes],
    talk: list[tuple[bool, bytes]],
) -> None:
    """Our initiator with its responder, our responder with its initiator, and messages in any order."""
    client, relay = Initiator(psk, prologue, one), Responder(psk, prologue, other)
    theirs = HandshakeState(prologue, psk, other)
    assert theirs.read(client.write_message(payloads[0])) == payloads[0]
    bound, payload, ours = client.read_message(theirs.write(payloads[1]))
    assert payload == payloads[1] and client.hash == theirs.h

    spoken = HandshakeState(prologue, psk, one)
    assert relay.read_message(spoken.write(payloads[0])) == payloads[0]
    assert relay.begin_answer() == bound, "both sides are bound to the same"
    message, answered = relay.finish_answer(payloads[1])
    assert spoken.read(message) == payloads[1] and relay.hash == spoken.h == client.hash

    (out, back), (heard, said) = theirs.split(), spoken.split()
    for from_client, text in talk:
        if from_client:
            assert out.decrypt(b"", ours[0].encrypt(text)) == text
            assert answered[1].decrypt(heard.encrypt(b"", text)) == text
        else:
            assert ours[1].decrypt(back.encrypt(b"", text)) == text
            assert said.decrypt(b"", answered[0].encrypt(text)) == text


def test_neither_side_hears_itself() -> None:
    client, relay = Initiator(bytes(32), b""), Responder(bytes(32), b"")
    relay.read_message(client.write_message())
    relay.begin_answer()
    message, theirs = relay.finish_answer(b"")
    _, _, ours = client.read_message(message)
    for sender, receiver in (ours, theirs):
        with pytest.raises(NoiseError):
            receiver.decrypt(sender.encrypt(b"mirrored"))


@pytest.mark.parametrize("point", SMALL_ORDER)
@pytest.mark.parametrize("high", [0, 0x80])
def test_a_key_that_shares_nothing_is_refused_by_both(point: str, high: int) -> None:
    """Of who knows the words, in the framework's own hand."""
    raw = bytearray.fromhex(point)
    raw[-1] |= high
    spoken = HandshakeState(b"p", bytes(32), bytes(32))
    spoken.shared("psk")
    spoken.mix_hash(bytes(raw))
    spoken.mix_key(bytes(raw))
    relay = Responder(bytes(32), b"p")
    relay.read_message(bytes(raw) + spoken.cipher.encrypt(spoken.h, b""))
    with pytest.raises(NoiseError):
        relay.begin_answer()
    client = Initiator(bytes(32), b"p")
    client.write_message()
    with pytest.raises(NoiseError):
        client.read_message(bytes(raw) + bytes(16))


def test_the_last_number_is_never_used() -> None:
    """5.1: 2^64 - 1 is reserved, and who comes to it stops."""
    one = Cipher(bytes(32))
    one._n = 2**64 - 2
    same = CipherState(bytes(32))
    same.n = one._n
    sealed = one.encrypt(b"the last")
    assert same.decrypt(b"", sealed) == b"the last"
    for over in (one.encrypt, one.decrypt):
        with pytest.raises(NoiseError):
            over(sealed)


def test_the_oracle_itself_refuses_what_was_changed() -> None:
    cipher = CipherState(bytes(32))
    with pytest.raises(exceptions.InvalidTag):
        CipherState(bytes(32)).decrypt(b"", cipher.encrypt(b"", b"text")[:-1] + b"\0")
