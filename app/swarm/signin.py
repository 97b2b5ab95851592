"""Signing in: a relay's challenge, the key's signature over it, and the work that a relay may ask for."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from itertools import count

from app.swarm import signing
from app.swarm.protocol import STATS_SUB, ZLIB, Auth, Hello, agree
from app.swarm.refusals import Flaw, Refused

_AUTH = b"sapo-auth-v1\0"
_WORK = b"sapo-pow\0"
DAY_MS = 86_400_000


def auth_bytes(swarm: str, relay: str, challenge: str) -> bytes:
    """What `auth` signs. The relay's id is inside, so that one relay cannot pass on another one's challenge."""
    return _AUTH + swarm.encode() + b"\0" + relay.encode() + b"\0" + bytes.fromhex(challenge)


def sign_in(
    seed: bytes, hello: Hello, client: str, *, pow: str | None = None, invite: str | None = None
) -> Auth:
    """The answer to `hello`, with the capabilities of both sides. Raises Refused for other versions."""
    return Auth(
        pk=signing.public_key(seed).hex(),
        sig=signing.sign(seed, auth_bytes(hello.swarm, hello.relay, hello.challenge)).hex(),
        proto=agree(hello.proto),
        caps=tuple(cap for cap in (ZLIB, STATS_SUB) if cap in hello.caps),
        client=client,
        pow=pow,
        invite=invite,
    )


def check_sign_in(auth: Auth, hello: Hello) -> None:
    """The relay's side of `sign_in`: signature, version, work. Raises Refused."""
    if auth.proto not in hello.proto:
        raise Refused(Flaw.OTHER_PROTOCOL, f"Version {auth.proto} was not offered.")
    signed = auth_bytes(hello.swarm, hello.relay, hello.challenge)
    if not signing.verifies(bytes.fromhex(auth.pk), signed, bytes.fromhex(auth.sig)):
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
    """A nonce worth `bits`, by trying 2^bits of them on average (20 bits: about a second). Blocks meanwhile.
    None when `give_up`, which is asked every few milliseconds, says so."""
    for n in count():
        if work_bits(pk, relay, time_ms, nonce := f"{n:x}") >= bits:
            return nonce
        if n % 4096 == 4095 and give_up():
            return None
    return None
