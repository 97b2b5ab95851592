"""Noise_NNpsk0_25519_ChaChaPoly_SHA256: an encrypted and authenticated connection between two who share a
secret.

The Noise Protocol Framework, revision 34 (noiseprotocol.org), sections 4, 5, 9 and 12, with libsodium's X25519
and ChaCha20-Poly1305. Both sides draw ephemeral keys, so that learning the secret later does not decrypt a
recorded connection. One deviation: a message may be longer than 65,535 bytes.

    -> psk, e
    <- e, ee
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

import nacl.bindings
import nacl.exceptions

OPENING_BYTES = 48
"""Bytes of the first message without a payload: a public key and a tag."""
TAG_BYTES = 16
"""Bytes that encryption adds to a message."""
_NAME = b"Noise_NNpsk0_25519_ChaChaPoly_SHA256"
_KEY = 32
_LAST = 2**64 - 1
"""Reserved nonce: no message may have it (5.1)."""

_encrypt = nacl.bindings.crypto_aead_chacha20poly1305_ietf_encrypt
_decrypt = nacl.bindings.crypto_aead_chacha20poly1305_ietf_decrypt


class NoiseError(Exception):
    """A message was not encrypted with the shared secret, or not for this connection, or is out of order."""


class Cipher:
    """One direction of a connection: messages are numbered, so that none can be repeated, omitted or
    reordered."""

    __slots__ = ("_key", "_n")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._n = 0

    def encrypt(self, text: bytes, ad: bytes = b"") -> bytes:
        """Encrypts the next message. Raises NoiseError after the last nonce."""
        nonce = self._nonce()
        self._n += 1
        return _encrypt(text, ad, nonce, self._key)

    def decrypt(self, sealed: bytes, ad: bytes = b"") -> bytes:
        """Decrypts the next message. Raises NoiseError, after which the connection must be closed."""
        nonce = self._nonce()
        try:
            text = _decrypt(sealed, ad, nonce, self._key)
        except (nacl.exceptions.CryptoError, ValueError) as error:
            raise NoiseError("A message was not sealed by the other side of this line.") from error
        self._n += 1
        return text

    def _nonce(self) -> bytes:
        if self._n >= _LAST:
            raise NoiseError("This line has used up its numbers: connect again.")
        return bytes(4) + self._n.to_bytes(8, "little")


CipherPair = tuple[Cipher, Cipher]
"""(encrypts sent messages, decrypts received messages)."""


class _Handshake:
    """SymmetricState (5.2) and the ephemeral key of one side. `hash` binds everything exchanged so far."""

    def __init__(self, secret: bytes, prologue: bytes, ephemeral: bytes | None = None) -> None:
        self._own = ephemeral or secrets.token_bytes(_KEY)
        self.hash = self._chain = sha256(_NAME).digest()
        self._mix_hash(prologue)
        self._mix_secret(secret)

    def _mix_hash(self, data: bytes) -> None:
        self.hash = sha256(self.hash + data).digest()

    def _mix_key(self, material: bytes) -> None:
        self._chain, key = _derived(self._chain, material, 2)
        self._cipher = Cipher(key)

    def _mix_secret(self, secret: bytes) -> None:
        self._chain, hashed, key = _derived(self._chain, secret, 3)
        self._mix_hash(hashed)
        self._cipher = Cipher(key)

    def _say_key(self) -> bytes:
        public = nacl.bindings.crypto_scalarmult_base(self._own)
        self._mix_hash(public)
        self._mix_key(public)
        return public

    def _hear_key(self, message: bytes) -> tuple[bytes, bytes]:
        """Returns the other side's ephemeral key and the rest of the message. Raises NoiseError."""
        theirs = message[:_KEY]
        if len(theirs) != _KEY:
            raise NoiseError("A message of the handshake was cut short.")
        self._mix_hash(theirs)
        self._mix_key(theirs)
        return theirs, message[_KEY:]

    def _agree(self, theirs: bytes) -> None:
        try:
            self._mix_key(nacl.bindings.crypto_scalarmult(self._own, theirs))
        except (nacl.exceptions.CryptoError, RuntimeError) as error:
            raise NoiseError("The other side's key is invalid.") from error

    def _seal(self, payload: bytes) -> bytes:
        sealed = self._cipher.encrypt(payload, self.hash)
        self._mix_hash(sealed)
        return sealed

    def _open(self, sealed: bytes) -> bytes:
        payload = self._cipher.decrypt(sealed, self.hash)
        self._mix_hash(sealed)
        return payload

    def _split(self) -> tuple[bytes, bytes]:
        first, second = _derived(self._chain, b"", 2)
        return first, second


class Initiator(_Handshake):
    """The side that opens the connection: call `write_message`, then `read_message`."""

    def write_message(self, payload: bytes = b"") -> bytes:
        return self._say_key() + self._seal(payload)

    def read_message(self, message: bytes) -> tuple[bytes, bytes, CipherPair]:
        """Reads the responder's message. Returns the handshake hash that its payload is bound to, the payload,
        and the ciphers. Raises NoiseError."""
        theirs, sealed = self._hear_key(message)
        self._agree(theirs)
        bound = self.hash
        payload = self._open(sealed)
        first, second = self._split()
        return bound, payload, (Cipher(first), Cipher(second))


class Responder(_Handshake):
    """The side that accepts the connection: call `read_message`, `begin_answer`, then `finish_answer` with the
    answer's payload."""

    def read_message(self, message: bytes) -> bytes:
        """Reads the initiator's message; returns its payload. Raises NoiseError."""
        self._theirs, sealed = self._hear_key(message)
        return self._open(sealed)

    def begin_answer(self) -> bytes:
        """Completes the key agreement. Returns the handshake hash over everything so far and both sides' keys,
        to which the answer's payload will be bound. Raises NoiseError."""
        self._said = self._say_key()
        self._agree(self._theirs)
        return self.hash

    def finish_answer(self, payload: bytes) -> tuple[bytes, CipherPair]:
        message = self._said + self._seal(payload)
        first, second = self._split()
        return message, (Cipher(second), Cipher(first))


def _derived(chain: bytes, material: bytes, keys: int) -> tuple[bytes, ...]:
    """HKDF (4.3): `keys` keys of 32 bytes."""
    secret = hmac.digest(chain, material, "sha256")
    found: list[bytes] = []
    for number in range(1, keys + 1):
        found.append(hmac.digest(secret, (found[-1] if found else b"") + bytes([number]), "sha256"))
    return tuple(found)
