"""Receipts: a node that learned from a group may tell its author so, signed and without content.

A relay forwards only receipts of keys with standing, once per key and group (PROTOCOL.md). The author does not
rely on this: it checks the signature, accepts receipts for its own groups only, and counts each key once per
group. A relay can still invent keys; that only makes a figure wrong on its own clients' pages.

A receipt for a lesson says that an author's answers taught a whole family. It is sent by newcomers, who have no
standing, so it is counted once per key and family and shown as another model's unverified claim."""

from __future__ import annotations

import datetime
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.common import files, signing
from app.sapo.families import FAMILIES
from app.swarm.identity.identity import Identity
from app.swarm.wire.limits import MAX_REPORT_IDS
from app.swarm.wire.protocol import LessonReceipt, Receipt, Receipts, Report, Taught, Thanks

FILE = "thanks.json"
_DOMAIN, _LESSON_DOMAIN = b"shoal-receipt-v1\0", b"shoal-lesson-v1\0"
_OWN = 4096
"""Maximum own groups remembered: those of some hours, while a group is given out for half an hour."""
_MAX = 16_384
"""Maximum receipts remembered, so that none counts twice, and maximum distinct keys counted per day."""
MAX_PUPILS = 100
"""Maximum distinct keys counted per family."""
_TOLD = 8
"""Maximum new students queued to be shown to the owner; the oldest are dropped."""


def receipt_bytes(swarm: str, id: str) -> bytes:
    """The bytes that a receipt for a group signs."""
    return sha256(_DOMAIN + swarm.encode() + b"\0" + bytes.fromhex(id)).digest()


def receipt(seed: bytes, swarm: str, id: str) -> Receipt:
    """Signs a receipt: the owner of `seed` learned from the group `id`."""
    return Receipt(id=id, sig=signing.sign(seed, receipt_bytes(swarm, id)).hex())


def is_valid_receipt(pk: str, swarm: str, id: str, sig: str) -> bool:
    return signing.verifies(bytes.fromhex(pk), receipt_bytes(swarm, id), bytes.fromhex(sig))


def lesson_bytes(swarm: str, author: str, family: str) -> bytes:
    """The bytes that a receipt for a lesson signs. `author` is a key in hex."""
    return sha256(_LESSON_DOMAIN + swarm.encode() + b"\0" + bytes.fromhex(author) + family.encode()).digest()


def lesson_receipt(seed: bytes, swarm: str, author: str, family: str) -> LessonReceipt:
    """Signs a receipt for a lesson: answers of `author` taught the owner of `seed` this family."""
    signed = signing.sign(seed, lesson_bytes(swarm, author, family))
    return LessonReceipt(author=author, family=family, sig=signed.hex())


def is_valid_lesson_receipt(pk: str, swarm: str, author: str, family: str, sig: str) -> bool:
    return signing.verifies(bytes.fromhex(pk), lesson_bytes(swarm, author, family), bytes.fromhex(sig))


class DailyReceipts(msgspec.Struct, frozen=True):
    """The keys that learned from this node's groups on one day of the local calendar."""

    day: str = ""
    keys: tuple[str, ...] = ()


class _Kept(DailyReceipts, frozen=True):
    """The file's content: today's receipts, and over all days the families that this node has published and the
    keys that say they learned one of them from it."""

    given: tuple[str, ...] = ()
    taught: dict[str, tuple[str, ...]] = {}


class ReceiptCounter:
    """Counts receipts for this node's groups and for lessons. The day's count and the lessons' keys are saved
    in `folder`; the ids by which receipts for groups are checked are not, so nothing is counted twice after a
    restart."""

    def __init__(self, folder: Path, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        self._path, self._today = folder / FILE, today
        found, _ = files.read_or_set_aside(self._path, _Kept)
        found = found or _Kept()
        self._day = DailyReceipts(found.day, found.keys)
        self._given = dict.fromkeys(found.given)
        self._taught = {family: list(keys) for family, keys in found.taught.items()}
        self._new: deque[tuple[str, str]] = deque(maxlen=_TOLD)
        self._own: OrderedDict[str, None] = OrderedDict()
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    def record_stored(self, id: str) -> None:
        """Remembers an own group that a relay has stored."""
        _remember(self._own, id, _OWN)

    def count(self, thanks: Thanks, swarm: str, own_keys: set[str]) -> bool:
        """Counts a receipt if it is valid: for one of this node's groups, signed by another key, not counted
        before. Returns whether it was."""
        pair = thanks.id, thanks.pk
        if thanks.id not in self._own or thanks.pk in own_keys or pair in self._seen:
            return False
        if not is_valid_receipt(thanks.pk, swarm, thanks.id, thanks.sig):
            return False
        _remember(self._seen, pair, _MAX)
        day = self.today
        keys = day.keys if thanks.pk in day.keys or len(day.keys) >= _MAX else (*day.keys, thanks.pk)
        self._day = DailyReceipts(self._now(), keys)
        return True

    def record_published(self, family: str) -> None:
        """Remembers that this node has published groups of `family`."""
        self._given[family] = None

    def count_lesson(self, taught: Taught, swarm: str, own_key: str) -> bool:
        """Counts a receipt for a lesson if it is valid: for a family that this node has published, signed by
        another key, not counted before. Returns whether it was."""
        keys = self._taught.get(taught.family, [])
        if taught.pk == own_key or taught.pk in keys or len(keys) >= MAX_PUPILS:
            return False
        if taught.family not in FAMILIES or taught.family not in self._given:
            return False
        if not is_valid_lesson_receipt(taught.pk, swarm, own_key, taught.family, taught.sig):
            return False
        self._taught[taught.family] = [*keys, taught.pk]
        self._new.append((taught.family, taught.pk))
        return True

    @property
    def taught(self) -> dict[str, int]:
        """Number of other models that say this node's answers taught them, by family."""
        return {family: len(keys) for family, keys in sorted(self._taught.items())}

    @property
    def pupils(self) -> int:
        """Number of different models that say this node's answers taught them."""
        return len({key for keys in self._taught.values() for key in keys})

    def pop_new_lessons(self) -> list[tuple[str, str]]:
        """Returns the (family, key) pairs counted since the last call, at most the latest eight."""
        new = list(self._new)
        self._new.clear()
        return new

    @property
    def today(self) -> DailyReceipts:
        return self._day if self._day.day == self._now() else DailyReceipts(self._now())

    def save(self) -> None:
        """Writes the file. Raises OSError."""
        if self._day.day or self._given:
            day = self._day
            kept = _Kept(
                day=day.day,
                keys=day.keys,
                given=tuple(self._given),
                taught={family: tuple(keys) for family, keys in self._taught.items()},
            )
            files.write_json(self._path, msgspec.to_builtins(kept))

    def _now(self) -> str:
        return self._today().isoformat()


def _remember(seen: OrderedDict[Any, None], one: object, most: int) -> None:
    seen[one] = None
    if len(seen) > most:
        seen.popitem(last=False)


REPORT_EVERY_S = 6.0
"""Minimum seconds between two reports, and between two messages of receipts: relays allow twelve a minute."""
_REPORTS, _LESSONS = 256, 64  # reports and lesson receipts that wait for a relay

Complaint = Literal["bad_reward", "bad_sig", "unsafe", "dup"]


class Reporter:
    """Queues reports and receipts for lessons, which survive a reconnect, and receipts for groups, which do
    not. `now` arguments are monotonic seconds."""

    def __init__(self, identity: Identity, now: float) -> None:
        self._identity = identity
        self._reports: deque[tuple[Complaint, str]] = deque(maxlen=_REPORTS)
        self._learned: deque[str] = deque(maxlen=MAX_REPORT_IDS)
        self._lessons: deque[tuple[str, str]] = deque(maxlen=_LESSONS)
        self._reported = self._receipted = now

    def report(self, ids: Iterable[str], reason: Complaint) -> None:
        """Queues reports of bad groups."""
        self._reports.extend((reason, id) for id in ids)

    def thank(self, ids: Iterable[str]) -> None:
        """Queues receipts for groups that this node learned from."""
        self._learned.extend(ids)

    def thank_for_lessons(self, lessons: Iterable[tuple[str, str]]) -> None:
        """Queues receipts for lessons: an author's key, and the family that a lesson of its answers taught."""
        self._lessons.extend(lessons)

    def on_disconnect(self) -> None:
        """Drops receipts for groups that were not sent."""
        self._learned.clear()

    def due(self, now: float, swarm: str, lessons: bool) -> Iterator[Report | Receipts]:
        """Yields the messages that may be sent now: at most one report and one message of receipts every
        REPORT_EVERY_S. `lessons`: whether this relay forwards receipts for lessons."""
        if self._reports and now - self._reported >= REPORT_EVERY_S:
            self._reported = now
            yield self._next_report()
        taught = dict.fromkeys(self._lessons) if lessons else {}
        if (self._learned or taught) and now - self._receipted >= REPORT_EVERY_S:
            self._receipted = now
            ids, seed = dict.fromkeys(self._learned), self._identity.seed()
            self._learned.clear()
            if taught:
                self._lessons.clear()
            yield Receipts(
                items=tuple(receipt(seed, swarm, id) for id in ids),
                lessons=tuple(lesson_receipt(seed, swarm, *one) for one in taught),
            )

    def _next_report(self) -> Report:
        reason = self._reports[0][0]
        ids = [id for one, id in self._reports if one == reason][:MAX_REPORT_IDS]
        left = [(one, id) for one, id in self._reports if one != reason or id not in ids]
        self._reports.clear()
        self._reports.extend(left)
        return Report(ids=tuple(dict.fromkeys(ids)), reason=reason)
