"""The state of a node's connection for display to its owner: status and changes of it, and the text of the
latest messages.

Bytes are converted to text only on request, and an invite's token is removed before anything is stored."""

from __future__ import annotations

import binascii
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Literal

import msgspec

from app.swarm.client.traffic import TrafficCounter
from app.swarm.wire.limits import FRAME_TYPE, MAX_BODY_BYTES, LoggedMessage

MAX_MESSAGES = 20
"""Messages kept, half of them sent and half received, so that the relay's figures, which arrive every ten
seconds, do not displace what this computer sent."""
MAX_BYTES = 64 * 1024
"""Maximum bytes kept of all messages together, half for each direction."""
MAX_KEPT_MESSAGE_BYTES = 16 * 1024
"""Maximum bytes kept of one message; the text says how much is omitted. A batch exceeds it, a single group
rarely."""
HIDDEN = "(hidden: it opens the swarm)"
UNPACKED = "\n\nthe same body before it was compressed:\n"


class ConnectionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the connection's state: `connected`, `lost`, or could not be opened (`refused`). `sentence`
    describes it for the owner; `retry_s` is the time until the next try in seconds."""

    state: Literal["connected", "lost", "refused"]
    url: str
    relay: str | None
    swarm: str | None
    sentence: str
    retry_s: float | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot of the client. `peers` to `families` are the relay's figures, None until it has sent them.
    `created` groups are `waiting` for a relay's final answer, `acknowledged` (stored, or counted as too old),
    `refused` by it, or `dropped` because the outbox was full. `held` groups are in memory only, because no
    swarm is known yet. `next_try_s` is None while connected."""

    connected: bool
    url: str | None
    relay: str | None
    swarm: str | None
    peers: int | None
    window: int | None
    stored: int | None
    families: Mapping[str, int] | None
    clock_offset_ms: int
    held: int
    created: int
    waiting: int
    acknowledged: int
    refused: int
    dropped: int
    sentence: str
    next_try_s: float | None
    in_class: bool = False
    """True if the owner joined as a student, and the relay serves a class where one is connected."""
    lesson_over: bool = False
    """True once a class's lesson has ended; no relay is tried any more."""
    learning: bool | None = None
    """False while the teacher has paused training; None outside a class, or before it is known."""
    twin: bool | None = None
    """Whether this computer should take a new identity, because another one uses the same key (a copied data
    folder); None: no other one does."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A peer whose groups passed the checks in this run. `seen_at` and `since`: Unix time."""

    name: str
    model: str = ""
    seen_at: float | None = None
    groups: int = 0
    families: tuple[str, ...] = ()
    """Families of its latest groups, at most six, latest last."""
    learned: int = 0
    """Number of its groups that rounds of this run trained on."""
    unused: str = ""
    """Why that is 0: a sentence."""
    since: float | None = None
    """Creation time of the first group by this peer that arrived in this run."""


class _KeptMessage(msgspec.Struct, frozen=True):
    number: int
    at: float
    size: int
    raw: bytes


class _Direction:
    """Latest messages of one direction."""

    __slots__ = ("bytes", "kept")

    def __init__(self) -> None:
        self.kept: deque[_KeptMessage] = deque()
        self.bytes = 0

    def keep(self, one: _KeptMessage) -> None:
        self.kept.append(one)
        self.bytes += len(one.raw)
        while len(self.kept) > MAX_MESSAGES // 2 or self.bytes > MAX_BYTES // 2:
            self.bytes -= len(self.kept.popleft().raw)


class Ledger:
    """The latest messages of one client over all its connections, and in `traffic` the bytes of all of them."""

    def __init__(self, traffic: TrafficCounter | None = None, wall: Callable[[], float] = time.time) -> None:
        self.traffic, self._wall = traffic or TrafficCounter(), wall
        self._out, self._in = _Direction(), _Direction()
        self._numbers = count()
        self._shown: tuple[LoggedMessage, ...] | None = ()

    def record_sent(self, frame: bytes) -> None:
        self._note(self._out, frame)

    def record_received(self, frame: bytes) -> None:
        self._note(self._in, frame)

    @property
    def messages(self) -> tuple[LoggedMessage, ...]:
        """The latest messages, newest last. Returns the same tuple object until another message is sent or
        received."""
        if self._shown is None:
            numbered = sorted([*_told(self._out, True), *_told(self._in, False)], key=lambda one: one[0])
            self._shown = tuple(message for _, message in numbered)
        return self._shown

    def _note(self, way: _Direction, frame: bytes) -> None:
        raw = _without_proof(frame) if _kind(frame) == "auth" else frame[:MAX_KEPT_MESSAGE_BYTES]
        way.keep(_KeptMessage(next(self._numbers), self._wall(), len(frame), raw))
        self._shown = None


def _told(way: _Direction, outgoing: bool) -> Iterator[tuple[int, LoggedMessage]]:
    """The newest messages of one direction that fit into the limit, newest first, with their numbers."""
    room = MAX_BYTES // 2
    for one in reversed(way.kept):
        message = _message(one.at, outgoing, one.size, one.raw)
        room -= len(message.text.encode())
        if room < 0:
            return
        yield one.number, message


def _kind(raw: bytes) -> str:
    found = FRAME_TYPE.match(raw)
    return found[1].decode() if found else "?"


def _without_proof(frame: bytes) -> bytes:
    """Replaces the invite in an `auth` message. Its signature is valid for one challenge only and is kept."""
    auth: dict[str, Any] = msgspec.json.decode(frame)
    if auth.get("invite") is not None:
        auth["invite"] = HIDDEN
    return msgspec.json.encode(auth)


def _message(at: float, outgoing: bool, size: int, raw: bytes) -> LoggedMessage:
    kind, text = _kind(raw), raw.decode(errors="replace")
    if size > MAX_KEPT_MESSAGE_BYTES:
        text += f" … ({size - len(raw)} bytes more)"
    elif outgoing and kind == "pub":
        text += _unpacked(raw)
    return LoggedMessage(at=at, outgoing=outgoing, kind=kind, size=size, text=text)


def _unpacked(raw: bytes) -> str:
    """The decompressed body of a group that this node sent compressed; empty if it was not."""
    pub: dict[str, Any] = msgspec.json.decode(raw)
    if pub.get("enc") != "zlib":
        return ""
    return UNPACKED + zlib.decompressobj().decompress(binascii.a2b_base64(pub["body"]), MAX_BODY_BYTES).decode()
