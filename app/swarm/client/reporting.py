"""The reports of a node to a relay about the groups it read: which were bad, and by receipts which taught
it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal

from app.swarm.client.receipts import receipt
from app.swarm.identity.identity import Identity
from app.swarm.wire.limits import REPORT_IDS
from app.swarm.wire.protocol import Receipts, Report

EVERY_S = 6.0
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
        """The connection is over."""
        self._learned.clear()

    def due(self, now: float, swarm: str) -> Iterator[Report | Receipts]:
        """What may be sent by now."""
        if self._reports and now - self._reported >= EVERY_S:
            self._reported = now
            yield self._next_report()
        if self._learned and now - self._receipted >= EVERY_S:
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
