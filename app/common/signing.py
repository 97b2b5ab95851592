"""Ed25519 signatures through libsodium, for nodes and relays alike, so that both agree on every signature.

OpenSSL accepts a forged signature under a small-order key for any message; libsodium refuses such keys."""

from __future__ import annotations

import nacl.bindings
import nacl.exceptions
import nacl.signing

SEED_BYTES = 32  # Ed25519
KEY_BYTES = 32  # Ed25519
SIGNATURE_BYTES = 64  # Ed25519


def public_key(seed: bytes) -> bytes:
    """Returns the 32-byte public key of a 32-byte seed. Raises ValueError for another length."""
    return bytes(_key(seed).verify_key)


def sign(seed: bytes, message: bytes) -> bytes:
    """Returns the 64-byte signature of a message; deterministic. Raises ValueError for another seed length."""
    return _key(seed).sign(message).signature


def verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    """Returns whether `signature` is valid for `message` under `key`. Never raises: wrong lengths give
    False."""
    if len(key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        nacl.bindings.crypto_sign_open(signature + message, key)
    except nacl.exceptions.BadSignatureError:
        return False
    return True


def _key(seed: bytes) -> nacl.signing.SigningKey:
    if len(seed) != SEED_BYTES:
        raise ValueError(f"A seed has {SEED_BYTES} bytes, not {len(seed)}.")
    return nacl.signing.SigningKey(seed)
