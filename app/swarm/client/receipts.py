"""Receipts: a node that learned from a group may say so to its author, signed and without content.

A relay passes on only those of keys with standing, and each key's once per group (PROTOCOL.md). The author does
not trust it with that: it checks the signature, accepts receipts for its own groups alone, and also counts each
key once per group. A relay can still make up keys; all it gains is a wrong figure on its guests' pages."""

from __future__ import annotations

import datetime
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.common import files, signing
from app.swarm.identity.identity import Identity
from app.swarm.wire.limits import REPORT_IDS
from app.swarm.wire.protocol import Receipt, Receipts, Report, Thanks

FILE = "thanks.json"
_DOMAIN = b"shoal-receipt-v1\0"
_OWN = 4096
"""Own groups remembered: those of some hours, while a group is handed out for half an hour."""
_MOST = 16_384
"""Receipts remembered, so that none counts twice; and the most keys counted in a day."""


def receipt_bytes(swarm: str, id: str) -> bytes:
    """The bytes that a receipt signs."""
    return sha256(_DOMAIN + swarm.encode() + b"\0" + bytes.fromhex(id)).digest()


def receipt(seed: bytes, swarm: str, id: str) -> Receipt:
    """A receipt: the owner of `seed` learned from the group `id`."""
    return Receipt(id=id, sig=signing.sign(seed, receipt_bytes(swarm, id)).hex())


def receipt_holds(pk: str, swarm: str, id: str, sig: str) -> bool:
    return signing.verifies(bytes.fromhex(pk), receipt_bytes(swarm, id), bytes.fromhex(sig))


class Day(msgspec.Struct, frozen=True):
    """The receipts of one day by the local calendar: the keys that learned from groups of this node, and how
    many groups."""

    day: str = ""
    keys: tuple[str, ...] = ()
    groups: int = 0


class Thanked:
    """Counts receipts for this node's groups. The day's count is saved in `folder`; the groups and receipts it
    is checked against are not, so nothing is counted twice after a restart."""

    def __init__(self, folder: Path, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        self._path, self._today = folder / FILE, today
        found, _ = files.kept_json(self._path, Day)
        self._day = found or Day()
        self._own: OrderedDict[str, None] = OrderedDict()
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    def record_stored(self, id: str) -> None:
        """Remembers an own group that a relay has stored."""
        _remember(self._own, id, _OWN)

    def count(self, thanks: Thanks, swarm: str, own_keys: set[str]) -> bool:
        """Whether it counts: for a group of ours, signed by another key, for the first time."""
        pair = thanks.id, thanks.pk
        if thanks.id not in self._own or thanks.pk in own_keys or pair in self._seen:
            return False
        if not receipt_holds(thanks.pk, swarm, thanks.id, thanks.sig):
            return False
        _remember(self._seen, pair, _MOST)
        day = self.today
        keys = day.keys if thanks.pk in day.keys or len(day.keys) >= _MOST else (*day.keys, thanks.pk)
        self._day = Day(self._now(), keys, day.groups + 1)
        return True

    @property
    def today(self) -> Day:
        return self._day if self._day.day == self._now() else Day(self._now())

    def save(self) -> None:
        """Writes the file. Raises OSError."""
        if self._day.day:
            files.write_json(self._path, msgspec.to_builtins(self._day))

    def _now(self) -> str:
        return self._today().isoformat()


def _remember(seen: OrderedDict[Any, None], one: object, most: int) -> None:
    seen[one] = None
    if len(seen) > most:
        seen.popitem(last=False)


# The reports of a node to a relay about the groups it read: which were bad, and by receipts which taught it.

REPORT_EVERY_S = 6.0
"""Seconds between two reports, and between two messages of receipts: relays allow twelve a minute."""
_REPORTS = 256

Complaint = Literal["bad_reward", "bad_sig", "unsafe", "dup"]


class Reporter:
    """Collects reports, which outlive a connection, and receipts, which do not. `now` is monotonic."""

    def __init__(self, identity: Identity, now: float) -> None:
        self._identity = identity
        self._reports: deque[tuple[Complaint, str]] = deque(maxlen=_REPORTS)
        self._learned: deque[str] = deque(maxlen=REPORT_IDS)
        self._reported = self._receipted = now

    def report(self, ids: Iterable[str], reason: Complaint) -> None:
        """Adds bad groups."""
        self._reports.extend((reason, id) for id in ids)

    def thank(self, ids: Iterable[str]) -> None:
        """Adds groups that this node learned from."""
        self._learned.extend(ids)

    def on_disconnect(self) -> None:
        """Forgets receipts that the ended connection did not send."""
        self._learned.clear()

    def due(self, now: float, swarm: str) -> Iterator[Report | Receipts]:
        """The messages that may be sent now: at most one report and one of receipts every 6 s."""
        if self._reports and now - self._reported >= REPORT_EVERY_S:
            self._reported = now
            yield self._next_report()
        if self._learned and now - self._receipted >= REPORT_EVERY_S:
            self._receipted = now
            ids = dict.fromkeys(self._learned)
            self._learned.clear()
            yield Receipts(items=tuple(receipt(self._identity.seed(), swarm, id) for id in ids))

    def _next_report(self) -> Report:
        reason = self._reports[0][0]
        ids = [id for one, id in self._reports if one == reason][:REPORT_IDS]
        left = [(one, id) for one, id in self._reports if one != reason or id not in ids]
        self._reports.clear()
        self._reports.extend(left)
        return Report(ids=tuple(dict.fromkeys(ids)), reason=reason)
