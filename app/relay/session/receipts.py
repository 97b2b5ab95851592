"""Receipts, forwarded to a group's author: once per group and key, and only from keys with standing.

A receipt for an absent author is dropped, and none is sent to other relays. Only receipts for lessons wait in
memory, because newcomers learn from authors who have left."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from app.relay.store.window import Window
from app.swarm.client.receipts import is_valid_lesson_receipt, is_valid_receipt
from app.swarm.wire.frames import to_frame
from app.swarm.wire.protocol import Receipts, Taught, Thanks

_PASSED = 65_536  # receipts remembered, so that none is forwarded twice
_AUTHORS, _OF_AUTHOR, _OF_PUPIL = 1024, 64, 256
"""Maximum authors for whom receipts for lessons wait, maximum waiting receipts per author, and maximum receipts
for lessons forwarded per sending key."""
_PUPILS = 16_384  # lesson receipts remembered, for the same reason


class ReceiptListener(Protocol):
    """A session of this relay whose client receives receipts."""

    deliver: Callable[[bytes], object]


class ReceiptForwarder:
    """Forwards receipts to connected authors. Only receipts for lessons are kept for absent ones."""

    def __init__(self) -> None:
        self._here: dict[bytes, set[ReceiptListener]] = {}
        self._passed: OrderedDict[bytes, None] = OrderedDict()
        self._pupils: OrderedDict[bytes, set[tuple[bytes, str]]] = OrderedDict()
        """By sending key: the (author, family) pairs whose receipt was forwarded."""
        self._waiting: OrderedDict[bytes, list[Taught]] = OrderedDict()

    def arrive(self, key: bytes, session: ReceiptListener) -> None:
        """Adds a session that receives receipts for `key`."""
        self._here.setdefault(key, set()).add(session)

    def leave(self, key: bytes, session: ReceiptListener) -> None:
        """Removes the session. Idempotent; ignores unknown ones."""
        sessions = self._here.get(key)
        if sessions is not None:
            sessions.discard(session)
            if not sessions:
                del self._here[key]

    def take(self, key: bytes, receipts: Receipts, swarm: str, window: Window) -> None:
        """Forwards receipts for groups, sent by `key`, which has standing. Skips repetitions, groups that are
        not in the window or are its own, and wrong signatures."""
        for one in receipts.items:
            id = bytes.fromhex(one.id)
            group = window.find(id)
            if group is None or group.key == key or id + key in self._passed:
                continue
            if not is_valid_receipt(key.hex(), swarm, one.id, one.sig):
                continue
            self._passed[id + key] = None
            if len(self._passed) > _PASSED:
                self._passed.popitem(last=False)
            self._tell(group.key, Thanks(id=one.id, pk=key.hex(), sig=one.sig))

    def take_lessons(self, key: bytes, receipts: Receipts, swarm: str) -> None:
        """Forwards receipts for lessons, sent by `key`: one per author and family. Those for absent authors
        wait for `hand_over`."""
        told = self._pupils.setdefault(key, set())
        if len(self._pupils) > _PUPILS:
            self._pupils.popitem(last=False)
        for one in receipts.lessons:
            author = bytes.fromhex(one.author)
            pair = (author, one.family)
            if author == key or pair in told or len(told) >= _OF_PUPIL:
                continue
            if not is_valid_lesson_receipt(key.hex(), swarm, one.author, one.family, one.sig):
                continue
            told.add(pair)
            taught = Taught(pk=key.hex(), family=one.family, sig=one.sig)
            if author in self._here:
                self._tell(author, taught)
            elif len(waiting := self._waiting.setdefault(author, [])) < _OF_AUTHOR:
                waiting.append(taught)
                if len(self._waiting) > _AUTHORS:
                    self._waiting.popitem(last=False)

    def hand_over(self, key: bytes) -> None:
        """Sends the author `key` the receipts for lessons that have waited for it."""
        for taught in self._waiting.pop(key, ()):
            self._tell(key, taught)

    def _tell(self, author: bytes, told: Thanks | Taught) -> None:
        sessions = self._here.get(author)
        if sessions:
            frame = to_frame(told)
            for session in sessions:
                session.deliver(frame)
