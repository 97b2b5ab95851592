"""Signing in: the relay proves its identity, the node's key answers its challenge, with a proof of work if
required.

The relay signs the bytes that opened the connection, and the node signs the relay's signature: neither
signature can be used on another connection."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from hashlib import sha256
from itertools import count

import msgspec

from app.common import signing
from app.swarm.wire.limits import Flaw, Refused
from app.swarm.wire.protocol import CAPABILITIES, OF_A_CLASS, Auth, Hello, highest_common_version

_RELAY = b"shoal-relay-v1\0"
_HELLO = b"shoal-hello-v1\0"
_AUTH = b"sapo-auth-v2\0"
_WORK = b"sapo-pow\0"
DAY_MS = 86_400_000


def relay_id(key: bytes) -> str:
    """The relay's id, derived from its public key.

    >>> relay_id(bytes(32))
    'relay-f5am5kfnns3a6fvyrrvcixp4fhi75iw2'
    """
    return "relay-" + base64.b32encode(sha256(_RELAY + key).digest()[:20]).decode().lower()


def is_relay_id(relay: str) -> bool:
    """True if an id has the form that is derived from a key; ids of version 1 were not."""
    return re.fullmatch(r"relay-[a-z2-7]{32}", relay) is not None


def hello_bytes(hello: Hello, opening: bytes) -> bytes:
    """The bytes that a relay signs. `opening`: the client's nonce, or the Noise handshake hash."""
    return _HELLO + hello.swarm.encode() + b"\0" + bytes.fromhex(hello.challenge) + opening


def signed_hello(seed: bytes, hello: Hello, opening: bytes) -> Hello:
    """Returns `hello` with the signature of the relay that has this seed."""
    return msgspec.structs.replace(hello, sig=signing.sign(seed, hello_bytes(hello, opening)).hex())


def check_hello(hello: Hello, opening: bytes) -> None:
    """Verifies that the relay has the key of its id and signed the opening of this connection. Raises
    Refused."""
    key = bytes.fromhex(hello.key)
    if hello.relay != relay_id(key):
        raise Refused(Flaw.BAD_SIGNATURE, "Its id is not that of its key.")
    if not signing.verifies(key, hello_bytes(hello, opening), bytes.fromhex(hello.sig)):
        raise Refused(Flaw.BAD_SIGNATURE, "Its signature does not hold.")


def auth_bytes(hello: Hello) -> bytes:
    """The bytes that `auth` signs."""
    return b"".join(
        (
            _AUTH,
            hello.swarm.encode(),
            b"\0",
            hello.relay.encode(),
            b"\0",
            bytes.fromhex(hello.challenge + hello.sig),
        )
    )


def sign_in(
    seed: bytes,
    hello: Hello,
    client: str,
    *,
    pow: str | None = None,
    invite: str | None = None,
    obeys: bool = False,
) -> Auth:
    """Creates the answer to `hello`, with the capabilities of both sides. `obeys`: the owner joined as a
    student. Raises Refused if no version is shared."""
    return Auth(
        pk=signing.public_key(seed).hex(),
        sig=signing.sign(seed, auth_bytes(hello)).hex(),
        proto=highest_common_version(hello.proto),
        caps=tuple(cap for cap in CAPABILITIES if cap in hello.caps and (obeys or cap not in OF_A_CLASS)),
        client=client,
        pow=pow,
        invite=invite,
    )


def check_sign_in(auth: Auth, hello: Hello) -> None:
    """Verifies an answer of `sign_in`: version, signature, proof of work. Raises Refused."""
    if auth.proto not in hello.proto:
        raise Refused(Flaw.OTHER_PROTOCOL, f"Version {auth.proto} was not offered.")
    if not signing.verifies(bytes.fromhex(auth.pk), auth_bytes(hello), bytes.fromhex(auth.sig)):
        raise Refused(Flaw.BAD_SIGNATURE, "The signature of the challenge does not hold.")
    if work_bits(auth.pk, hello.relay, hello.time_ms, auth.pow or "") < hello.pow_bits:
        raise Refused(Flaw.NO_WORK, f"This relay asks for a proof of work of {hello.pow_bits} bits.")


def work_bits(pk: str, relay: str, time_ms: int, nonce: str) -> int:
    """Leading zero bits of SHA-256("sapo-pow" 0x00 pk relay 0x00 day 0x00 nonce): a key's work for one day at
    one relay. `pk` is its 32 bytes, `day` the days since 1970 (UTC) in decimal, `nonce` its hex text."""
    day = str(time_ms // DAY_MS).encode()
    digest = sha256(_WORK + bytes.fromhex(pk) + relay.encode() + b"\0" + day + b"\0" + nonce.encode()).digest()
    return 256 - int.from_bytes(digest, "big").bit_length()


def find_work(
    pk: str, relay: str, time_ms: int, bits: int, give_up: Callable[[], bool] = lambda: False
) -> str | None:
    """Searches a nonce worth `bits`: 2^bits tries on average (20 bits: about a second). Blocks. Returns None if
    `give_up`, called every few milliseconds, returns True."""
    for n in count():
        if work_bits(pk, relay, time_ms, nonce := f"{n:x}") >= bits:
            return nonce
        if n % 4096 == 4095 and give_up():
            return None
    return None
