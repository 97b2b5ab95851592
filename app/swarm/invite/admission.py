"""The content of `auth.invite` where a relay asks for an invite: a token.

It is signed by the relay's operator; anyone who holds it may join until it ends, or only one key may:

    t1.<until>.<pk | any>.<Ed25519("shoal-token-v1" 0x00 swarm 0x00 until 0x00 pk-or-any)>

The key of a private swarm is never sent: it makes the line itself, see `app.swarm.wire.noise`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.swarm.invite.invite import Invite
from app.swarm.invite.private import Private, is_access_key
from app.swarm.wire import signing
from app.swarm.wire.protocol import Hello
from app.swarm.wire.refusals import Flaw, Refused

ANYBODY = "any"
_TOKEN = re.compile(r"t1\.([0-9]{1,12})\.([0-9a-f]{64}|any)\.([0-9a-f]{128})")
_SIGNED = b"shoal-token-v1\0"


def mint(operator: bytes, swarm: str, until_s: int, pk: str = ANYBODY) -> str:
    """A token for a swarm, by its operator's 32-byte seed. `until_s` is in Unix seconds; `pk`, in hex, is the
    only key that may use it. Raises ValueError for other shapes."""
    token = f"t1.{until_s}.{pk}.{signing.sign(operator, _token_bytes(swarm, str(until_s), pk)).hex()}"
    if not _TOKEN.fullmatch(token):
        raise ValueError("A token ends at a whole Unix second, for a key of 64 hex digits or for any.")
    return token


def check_token(token: str, operators: Iterable[bytes], swarm: str, pk: str, now_s: float) -> None:
    """The relay's side of `mint`, by the public keys that may sign. Raises Refused."""
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise Refused(Flaw.NOT_INVITED, "This relay asks for an invite of its operator, and this is none.")
    until, who, signature = found.groups()
    signed = _token_bytes(swarm, until, who)
    if not any(signing.verifies(key, signed, bytes.fromhex(signature)) for key in operators):
        raise Refused(Flaw.NOT_INVITED, "The invite wasn't signed by this relay's operator: ask for one.")
    if who not in (ANYBODY, pk):
        raise Refused(Flaw.NOT_INVITED, "The invite was made for another key: ask for one of your own.")
    if now_s >= int(until):
        raise Refused(Flaw.NOT_INVITED, "The invite has ended: ask the operator for a new one.")


def credential(invite: Invite | None, hello: Hello) -> str | None:
    """The `invite` of the answer to `hello`. None where there is nothing to show: also where the relay or the
    swarm is not the invite's, because a token that was shown to another relay is that relay's as well."""
    if invite is None or invite.token is None or is_access_key(invite.token):
        return None
    if invite.relay not in (None, hello.relay) or invite.swarm not in (None, hello.swarm):
        return None
    return invite.token


def joining(private: Private, found: Invite) -> Invite:
    """The invite to a private swarm's relay, for those who hold its key."""
    return Invite(url=found.url, swarm=private.swarm, relay=found.relay, token=private.token)


def _token_bytes(swarm: str, until: str, who: str) -> bytes:
    return _SIGNED + swarm.encode() + b"\0" + until.encode() + b"\0" + who.encode()
