"""PrivateSwarm swarms: six words that a few people share, and the keys derived from them.

    words -> argon2id -> access key (32 bytes) -> swarm id

The words carry 60 random bits and 6 that check them. Each guess at them costs half a second and 64 MB, so that
neither the swarm id, which everybody on a network may see, nor a sign-in gives them away."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterable
from hashlib import sha256

import msgspec
import nacl.pwhash

from app.common import signing
from app.swarm.invite.invite import (
    WORD_COUNT,
    Invite,
    InviteError,
    is_invite_number,
    number_from_words,
    split_words,
    words_from_number,
)
from app.swarm.wire.limits import Flaw, Refused
from app.swarm.wire.protocol import Hello

_BITS, _CHECK_BITS = 60, 6

_OPERATIONS, _MEMORY = 12, 64 * 2**20
"""Cost of one guess (argon2id passes, bytes). Like the salt and the names below, part of every code: never
change them."""
_SALT = sha256(b"shoal-private-v1").digest()[: nacl.pwhash.argon2id.SALTBYTES]
_CHECK = b"shoal-private-check-v1\0"
_SWARM = b"shoal-private-swarm-v1\0"
_LINE = b"shoal-private-line-v1\0"
_KEY_BYTES = 32
_TOKEN = re.compile(r"a1\.([0-9a-f]{64})")


class PrivateError(ValueError):
    """The words or the key belong to no private swarm; the message says why and what to do."""


class PrivateSwarm(msgspec.Struct, frozen=True):
    """A private swarm's access key, which is as secret as its words."""

    key: bytes

    @property
    def swarm(self) -> str:
        """The swarm's id: public, and different for every code."""
        digest = sha256(_SWARM + self.key).digest()[:10]
        return "private-" + base64.b32encode(digest).decode().lower()

    @property
    def prologue(self) -> bytes:
        """The Noise prologue of this swarm's connections; see `app.swarm.wire.noise`."""
        return _LINE + self.swarm.encode()

    @property
    def token(self) -> str:
        """The access key as text, for an invite or an environment variable: `a1.` and 64 hex digits."""
        return f"a1.{self.key.hex()}"

    def __repr__(self) -> str:
        return f"<PrivateSwarm {self.swarm}>"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("", repr(self))]


def new_words() -> str:
    """Draws six words for a new private swarm, separated by blanks; never words that are a valid invite."""
    while is_invite_number(number := _checked(secrets.randbits(_BITS))):
        continue
    return words_from_number(number)


def validate_words(text: str) -> str:
    """Checks the words and returns them in canonical form: lower case, single blanks; hyphens and commas
    between them are accepted. Detects nearly every typing error without the slow key derivation: unknown words
    always, others 63 times of 64. Raises PrivateError."""
    words = split_words(text)
    if len(words) != WORD_COUNT:
        raise PrivateError(
            f"A private swarm has {WORD_COUNT} words; these are {len(words)}: enter all of them."
        )
    try:
        number = number_from_words(words)
    except InviteError as error:
        raise PrivateError(str(error)) from None
    if is_invite_number(number):
        raise PrivateError("These six words are an invite: enter them in the field for an invite.")
    if _checked(number >> _CHECK_BITS) != number:
        raise PrivateError(
            "Every word is in the list, but together they are no code: one is wrong, or two are swapped."
        )
    return " ".join(words)


def private_swarm_from_text(text: str) -> PrivateSwarm:
    """Derives the private swarm of six words (half a second and 64 MB), or parses an access key `a1.<hex>`
    (fast). Raises PrivateError."""
    if text.strip().startswith("a1."):
        return parse_access_key(text.strip())
    secret = validate_words(text).encode()
    return PrivateSwarm(nacl.pwhash.argon2id.kdf(_KEY_BYTES, secret, _SALT, _OPERATIONS, _MEMORY))


def parse_access_key(text: str) -> PrivateSwarm:
    """Parses a private swarm's access key. Raises PrivateError."""
    found = _TOKEN.fullmatch(text)
    if found is None:
        raise PrivateError("This is no access key of a private swarm: it has a1. and 64 hex digits.")
    return PrivateSwarm(bytes.fromhex(found[1]))


def is_access_key(token: str | None) -> bool:
    """True if an invite's token is a private swarm's key, which is never sent."""
    return token is not None and token.startswith("a1.")


def _checked(number: int) -> int:
    """Appends 6 check bits to 60 bits."""
    check = int.from_bytes(sha256(_CHECK + number.to_bytes(8, "big")).digest()[:1], "big") >> (8 - _CHECK_BITS)
    return number << _CHECK_BITS | check


ANY_KEY = "any"
_ADMISSION_TOKEN = re.compile(r"t1\.([0-9]{1,12})\.([0-9a-f]{64}|any)\.([0-9a-f]{128})")
_SIGNED = b"shoal-token-v1\0"


def mint(operator: bytes, swarm: str, until_s: int, pk: str = ANY_KEY) -> str:
    """Signs an admission token, the content of `auth.invite`, for a swarm with its operator's 32-byte seed:

        t1.<until>.<pk | any>.<Ed25519("shoal-token-v1" 0x00 swarm 0x00 until 0x00 pk-or-any)>

    `until_s`: expiry in Unix seconds; `pk`: the only key (hex) that may use it. The key of a private swarm is
    never sent (see `app.swarm.wire.noise`). Raises ValueError for invalid arguments."""
    token = f"t1.{until_s}.{pk}.{signing.sign(operator, _token_bytes(swarm, str(until_s), pk)).hex()}"
    if not _ADMISSION_TOKEN.fullmatch(token):
        raise ValueError("A token ends at a whole Unix second, for a key of 64 hex digits or for any.")
    return token


def check_token(token: str, operators: Iterable[bytes], swarm: str, pk: str, now_s: float) -> None:
    """Verifies a token of `mint` against the operators' public keys. Raises Refused."""
    found = _ADMISSION_TOKEN.fullmatch(token)
    if found is None:
        raise Refused(Flaw.NOT_INVITED, "This relay asks for an invite of its operator, and this is none.")
    until, who, signature = found.groups()
    signed = _token_bytes(swarm, until, who)
    if not any(signing.verifies(key, signed, bytes.fromhex(signature)) for key in operators):
        raise Refused(Flaw.NOT_INVITED, "The invite wasn't signed by this relay's operator: ask for one.")
    if who not in (ANY_KEY, pk):
        raise Refused(Flaw.NOT_INVITED, "The invite was made for another key: ask for one of your own.")
    if now_s >= int(until):
        raise Refused(Flaw.NOT_INVITED, "The invite has ended: ask the operator for a new one.")


def token_to_present(invite: Invite | None, hello: Hello) -> str | None:
    """The invite's token, to be sent in answer to `hello`. None without one, for a private swarm's key, and if
    the relay or swarm is not the invite's: another relay could reuse the token."""
    if invite is None or invite.token is None or is_access_key(invite.token):
        return None
    if invite.relay not in (None, hello.relay) or invite.swarm not in (None, hello.swarm):
        return None
    return invite.token


def private_invite(private: PrivateSwarm, found: Invite) -> Invite:
    """Creates the invite to the relay `found` of a private swarm, including the swarm's access key."""
    return Invite(url=found.url, swarm=private.swarm, relay=found.relay, token=private.token)


def _token_bytes(swarm: str, until: str, who: str) -> bytes:
    return _SIGNED + swarm.encode() + b"\0" + until.encode() + b"\0" + who.encode()
