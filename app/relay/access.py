"""The rules that the operator of a relay sets when starting it, beyond who carries the groups and who may
sign in."""

from __future__ import annotations

import logging
import re
import socket
from pathlib import Path
from typing import Protocol

import msgspec

from app.relay.origin import Network
from app.swarm.invite.private import Private, check_token
from app.swarm.wire.limits import Flaw, Refused
from app.swarm.wire.protocol import AccessMode, Auth, Hello

# Who may sign in at a relay: everybody, who did some work, who was invited, who is on a list, or who knows the
# six words. Work may be asked for beside any of the others (`hello.pow_bits`, checked with the signature).

WORK_BITS = 20
"""About a second of one core, for `--access pow` without a number."""
MOST_WORK_BITS = 28
"""About four minutes: more would lock out slow computers rather than attackers."""
_LONGEST_LIST = 8 * 2**20

_log = logging.getLogger(__name__)


class AccessError(Exception):
    """A relay cannot decide who may sign in; the message says why and what to do."""


class Access(Protocol):
    """A rule that decides who may sign in."""

    @property
    def mode(self) -> AccessMode:
        """The mode that the info document states."""

    @property
    def private(self) -> Private | None:
        """Whose key every line is sealed with; None where lines are open."""

    def check(self, auth: Auth, hello: Hello) -> None:
        """Checks the answer to `hello`, whose signature is already verified. Raises Refused."""


class OpenAccess(msgspec.Struct, frozen=True):
    """Everybody; `pow` when work is asked for."""

    mode: AccessMode = "open"
    private: None = None

    def check(self, auth: Auth, hello: Hello) -> None:
        return


class InviteAccess(msgspec.Struct, frozen=True):
    """Who holds a token that one of the operators, known by their public keys, signed for this swarm."""

    operators: frozenset[bytes]
    mode: AccessMode = "invite"
    private: None = None

    def check(self, auth: Auth, hello: Hello) -> None:
        if auth.invite is None:
            raise Refused(Flaw.NOT_INVITED, "This relay is for invited nodes: ask its operator for an invite.")
        check_token(auth.invite, self.operators, hello.swarm, auth.pk, hello.time_ms / 1000)


class PrivateSwarmAccess(msgspec.Struct, frozen=True):
    """Who knows a private swarm's six words: no one else's line gets as far as a sign-in."""

    private: Private
    mode: AccessMode = "private"

    def check(self, auth: Auth, hello: Hello) -> None:
        return


class AllowListAccess:
    """The keys in a file, one in hex a line, the rest of a line after # for people. It is read again when it
    has changed; a file that is gone or wrong then leaves the list as it was."""

    mode: AccessMode = "allowlist"
    private = None

    def __init__(self, path: Path) -> None:
        """Raises AccessError where the file cannot be read or a line is no key."""
        self._path = path
        self._mark = _mark(path)
        self._keys = _keys(path)

    def check(self, auth: Auth, hello: Hello) -> None:
        self._look_again()
        if auth.pk not in self._keys:
            raise Refused(Flaw.NOT_INVITED, "This key is not on the relay's list: send it to the operator.")

    def _look_again(self) -> None:
        try:
            mark = _mark(self._path)
            if mark == self._mark:
                return
            self._mark = mark
            self._keys = _keys(self._path)
        except AccessError as error:
            _log.warning("%s The list stays as it was.", error)


def _mark(path: Path) -> tuple[int, int, int] | None:
    """Changes with the file; None while there is none, so that a warning comes once."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _keys(path: Path) -> frozenset[str]:
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST_LIST + 1)
    except OSError as error:
        raise AccessError(
            f"The list of keys {path} cannot be read ({error.strerror}): check its path."
        ) from error
    if len(content) > _LONGEST_LIST:
        raise AccessError(f"The list of keys {path} is larger than 8 MB: shorten it.")
    keys = set()
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        key = line.partition("#")[0].strip().lower()
        if key and not re.fullmatch(r"[0-9a-f]{64}", key):
            raise AccessError(f"Line {number} of {path} is no key: write 64 hex digits, or put # before words.")
        keys.add(key)
    return frozenset(keys - {""})


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """`proxies` may say where clients come from; `operators` are the keys whose orders count; `contact` stands
    on the status page; `checks`: whether groups are scored again; `metrics` is where the metrics are asked for,
    listening already; `public` the URL that nodes use, where another than was bound; `sockets` the most open
    connections, None for what the system grants."""

    proxies: tuple[Network, ...] = ()
    operators: frozenset[bytes] = frozenset()
    contact: str = ""
    checks: bool = True
    metrics: socket.socket | None = None
    public: str | None = None
    sockets: int | None = None
    teacher: str = ""
    """What the link to a classroom's page ends with; empty where there is none."""
