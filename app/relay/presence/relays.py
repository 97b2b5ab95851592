"""Who is in the whole swarm, from what its relays tell each other every few seconds.

A key may be connected to two relays, so their counts cannot be added. Up to 2,000 keys a relay names a print of
each, and the union is exact; a larger one tells how many it has, which are added.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Annotated

import msgspec

from app.relay.store.window import Clock

EVERY_S = 5.0
GONE_S = 15.0
"""A relay that has said nothing for so long is not counted, nor are its peers."""
EXACT = 2_000
"""Keys of a relay that are named one by one."""
RELAYS = 1_000
_PRINT = 8
_KEPT_S = 1.0


class PresenceSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one relay says of itself: prints of its keys, or how many it has that it doesn't name."""

    prints: Annotated[bytes, msgspec.Meta(max_length=EXACT * _PRINT)] = b""
    unnamed: Annotated[int, msgspec.Meta(ge=0, le=1 << 32)] = 0

    def __post_init__(self) -> None:
        if len(self.prints) % _PRINT:
            raise ValueError("A summary has whole prints.")

    @classmethod
    def of(cls, keys: Collection[bytes]) -> PresenceSummary:
        if len(keys) > EXACT:
            return cls(unnamed=len(keys))
        return cls(prints=b"".join(blake2b(key, digest_size=_PRINT).digest() for key in keys))

    def split(self) -> list[bytes]:
        return [self.prints[at : at + _PRINT] for at in range(0, len(self.prints), _PRINT)]


def together(summaries: Collection[PresenceSummary]) -> int:
    """Different keys at all these relays: exact as long as each of them names its own."""
    prints = {one for summary in summaries for one in summary.split()}
    return len(prints) + sum(summary.unnamed for summary in summaries)


_summaries = msgspec.msgpack.Decoder(PresenceSummary)


class Crowd:
    """The other relays' last words."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._relays: dict[str, tuple[PresenceSummary, float]] = {}
        self._counted: tuple[float, int] | None = None

    def heard(self, relay: str, summary: bytes) -> None:
        """Another relay's summary; one that is none is passed over."""
        try:
            said = _summaries.decode(summary)
        except msgspec.MsgspecError:
            return
        if relay in self._relays or len(self._relays) < RELAYS:
            self._relays[relay] = said, self._clock()

    @property
    def relays(self) -> int:
        """Those heard of lately, this one not among them."""
        gone = self._clock() - GONE_S
        for relay in [relay for relay, (_, at) in self._relays.items() if at < gone]:
            del self._relays[relay]
        return len(self._relays)

    def peers(self, own: Collection[bytes]) -> int:
        """Keys in the whole swarm, with this relay's own ones. Counted anew once a second at most."""
        if not self.relays:
            self._counted = None
            return len(own)
        now = self._clock()
        if self._counted is None or now - self._counted[0] >= _KEPT_S:
            others = [summary for summary, _ in self._relays.values()]
            self._counted = now, together([PresenceSummary.of(own), *others])
        return self._counted[1]


def words(keys: Collection[bytes]) -> bytes:
    """A relay's own summary as it is sent."""
    return msgspec.msgpack.encode(PresenceSummary.of(keys))
