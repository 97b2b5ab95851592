"""The figures that a relay counts about itself, in plain numbers that cost next to nothing to raise: the
status page, the metrics and the operator's `status` read them when they are asked, and never in between."""

from __future__ import annotations

from collections import Counter

from app.relay.store.window import Clock

HOUR_MIN = 60


class Hour:
    """Groups of the last hour by family, counted minute by minute."""

    __slots__ = ("_clock", "_minutes")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._minutes: dict[int, Counter[str]] = {}

    def note(self, family: str, age_s: float = 0.0) -> None:
        """A group has come in, or came in so long ago."""
        minute = int((self._clock() - age_s) // 60)
        families = self._minutes.get(minute)
        if families is None:
            oldest = self._oldest()
            self._minutes = {at: kept for at, kept in self._minutes.items() if at > oldest}
            families = self._minutes[minute] = Counter()
        families[family] += 1

    def totals(self) -> Counter[str]:
        """The last hour, up to a minute less."""
        oldest = self._oldest()
        total: Counter[str] = Counter()
        for minute, families in self._minutes.items():
            if minute > oldest:
                total.update(families)
        return total

    def _oldest(self) -> int:
        return int(self._clock() // 60) - HOUR_MIN


class RelayTally:
    """Since the relay was started: frames and bytes of the websockets in both directions, samples answered and
    the groups in them, sign-ins by result, connections turned away or ended by their reason, groups that the
    backplane had to be waited for and the seconds until it had them."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "ended",
        "hour",
        "items",
        "samples",
        "sign_ins",
        "started",
        "waited",
        "waited_s",
    )

    def __init__(self, clock: Clock) -> None:
        self.started = clock()
        self.bytes_in = 0
        self.bytes_out = 0
        self.samples = 0
        self.items = 0
        self.waited = 0
        self.waited_s = 0.0
        self.sign_ins: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.hour = Hour(clock)
