"""Receipts: who learned from a group may say so to its author, signed and without content.

A relay passes on only those of keys with standing, and each key's once a group (PROTOCOL.md). It is not trusted
with that: the author checks the signature, takes its own groups alone, and counts each key once a group too. A
relay can still make up keys; all it gains is a wrong figure on the pages of its guests.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from app.common import files
from app.swarm.wire import signing
from app.swarm.wire.protocol import Receipt, Thanks

FILE = "thanks.json"
_DOMAIN = b"shoal-receipt-v1\0"
_OWN = 4096
"""Own groups that are remembered: those of some hours. A group is handed out for half an hour."""
_MOST = 16_384
"""Receipts that are remembered, so that none counts twice; keys that are told apart in a day."""


def receipt_bytes(swarm: str, id: str) -> bytes:
    """What a receipt signs."""
    return sha256(_DOMAIN + swarm.encode() + b"\0" + bytes.fromhex(id)).digest()


def receipt(seed: bytes, swarm: str, id: str) -> Receipt:
    """That the owner of `seed` learned from the group `id`."""
    return Receipt(id=id, sig=signing.sign(seed, receipt_bytes(swarm, id)).hex())


def holds(pk: str, swarm: str, id: str, sig: str) -> bool:
    return signing.verifies(bytes.fromhex(pk), receipt_bytes(swarm, id), bytes.fromhex(sig))


class Day(msgspec.Struct, frozen=True):
    """The receipts of one day by the local calendar: the keys that learned from groups of this node, and how
    many groups."""

    day: str = ""
    keys: tuple[str, ...] = ()
    groups: int = 0


class Thanked:
    """Counts receipts for groups of this node's. The day's count lies in `folder` and outlives the node; what
    they are checked by does not, so nothing is counted again after a start."""

    def __init__(self, folder: Path, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        self._path, self._today = folder / FILE, today
        found, _ = files.kept_json(self._path, Day)
        self._day = found or Day()
        self._own: OrderedDict[str, None] = OrderedDict()
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    def record_stored(self, id: str) -> None:
        """A relay has stored this group of ours."""
        _note(self._own, id, _OWN)

    def count(self, thanks: Thanks, swarm: str, own_keys: set[str]) -> bool:
        """Whether it counts: for a group of ours, signed by another key, for the first time."""
        pair = thanks.id, thanks.pk
        if thanks.id not in self._own or thanks.pk in own_keys or pair in self._seen:
            return False
        if not holds(thanks.pk, swarm, thanks.id, thanks.sig):
            return False
        _note(self._seen, pair, _MOST)
        day = self.today
        keys = day.keys if thanks.pk in day.keys or len(day.keys) >= _MOST else (*day.keys, thanks.pk)
        self._day = Day(self._now(), keys, day.groups + 1)
        return True

    @property
    def today(self) -> Day:
        return self._day if self._day.day == self._now() else Day(self._now())

    def save(self) -> None:
        """Raises OSError."""
        if self._day.day:
            files.write_json(self._path, msgspec.to_builtins(self._day))

    def _now(self) -> str:
        return self._today().isoformat()


def _note(seen: OrderedDict[Any, None], one: object, most: int) -> None:
    seen[one] = None
    if len(seen) > most:
        seen.popitem(last=False)
