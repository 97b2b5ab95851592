"""The operator's settings for starting a relay, above all the rules for who may sign in."""

from __future__ import annotations

import logging
import re
import socket
from pathlib import Path
from typing import Protocol

import msgspec

from app.relay.origin import Network
from app.swarm.invite.private import PrivateSwarm, check_token
from app.swarm.wire.limits import Flaw, Refused
from app.swarm.wire.protocol import AccessMode, Auth, Hello

WORK_BITS = 20
"""Bits of work for `--access pow` without a number: about a second of one core."""
MAX_WORK_BITS = 28
"""Maximum bits of work, about four minutes: more would lock out slow computers rather than attackers."""
_LONGEST_LIST = 8 * 2**20  # bytes: 100,000 keys

_log = logging.getLogger(__name__)


class AccessSetupError(Exception):
    """The sign-in rule cannot be set up; the message says why and what to do."""


class Access(Protocol):
    """A rule that decides who may sign in. Work may be required with any of them (`hello.pow_bits`, which is
    checked with the signature)."""

    @property
    def mode(self) -> AccessMode:
        """The access mode stated in the info document."""

    @property
    def private(self) -> PrivateSwarm | None:
        """The private swarm whose key encrypts every connection; None if connections are not encrypted."""

    def check(self, auth: Auth, hello: Hello) -> None:
        """Checks the client's answer to `hello`, whose signature is already verified. Raises Refused."""


class OpenAccess(msgspec.Struct, frozen=True):
    """Lets everybody in, also in mode `pow`: there the proof of work was verified together with the
    signature."""

    mode: AccessMode = "open"
    private: None = None

    def check(self, auth: Auth, hello: Hello) -> None:
        return


class InviteAccess(msgspec.Struct, frozen=True):
    """Lets in keys with an invite token for this swarm, signed by one of `operators` (public keys)."""

    operators: frozenset[bytes]
    mode: AccessMode = "invite"
    private: None = None

    def check(self, auth: Auth, hello: Hello) -> None:
        if auth.invite is None:
            raise Refused(Flaw.NOT_INVITED, "This relay is for invited nodes: ask its operator for an invite.")
        check_token(auth.invite, self.operators, hello.swarm, auth.pk, hello.time_ms / 1000)


class PrivateSwarmAccess(msgspec.Struct, frozen=True):
    """Lets in everybody who reaches the sign-in: without the private swarm's six words a client already fails
    at the handshake."""

    private: PrivateSwarm
    mode: AccessMode = "private"

    def check(self, auth: Auth, hello: Hello) -> None:
        return


class AllowListAccess:
    """Lets in the keys in a file: one key in hex per line, comments after #. The file is read again when it
    changes; while it is missing or invalid, the previous list stays in use."""

    mode: AccessMode = "allowlist"
    private = None

    def __init__(self, path: Path) -> None:
        """Raises AccessSetupError if the file cannot be read or a line is not a key."""
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
        except AccessSetupError as error:
            _log.warning("%s The list stays as it was.", error)


def _mark(path: Path) -> tuple[int, int, int] | None:
    """Modification time (ns), size and inode of the file, to detect changes. None if there is no file, so that
    the warning is logged only once."""
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
        raise AccessSetupError(
            f"The list of keys {path} cannot be read ({error.strerror}): check its path."
        ) from error
    if len(content) > _LONGEST_LIST:
        raise AccessSetupError(f"The list of keys {path} is larger than 8 MB: shorten it.")
    keys = set()
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        key = line.partition("#")[0].strip().lower()
        if key and not re.fullmatch(r"[0-9a-f]{64}", key):
            raise AccessSetupError(
                f"Line {number} of {path} is no key: write 64 hex digits, or put # before words."
            )
        keys.add(key)
    return frozenset(keys - {""})


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's settings. `proxies`: reverse proxies whose header about the client is trusted;
    `operators`: public keys whose commands are accepted; `contact`: shown on the status page; `checks`: whether
    groups are scored again; `metrics`: listening socket of the metrics; `public`: URL for nodes if it differs
    from the bound address; `sockets`: maximum open connections, None for the system's limit."""

    proxies: tuple[Network, ...] = ()
    operators: frozenset[bytes] = frozenset()
    contact: str = ""
    checks: bool = True
    metrics: socket.socket | None = None
    public: str | None = None
    sockets: int | None = None
    unlimited_here: bool = False
    """Whether this computer's own connections have no limits, for experiments."""
    teacher: str = ""
    """Secret last part of the URL of a classroom's teacher page; empty if this is not a classroom."""
    people: Path | None = None
    """The file in which a classroom's teacher notes whose model each is."""
