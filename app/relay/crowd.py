"""Who is in the whole swarm, from what its relays tell each other every few seconds.

A key may be connected to two relays, so their counts cannot be added. Up to 2,000 keys a relay names a print of
each, and the union is exact; above that it sends a sketch of fixed size (HyperLogLog: Flajolet and others,
2007). Sketches are united by taking the larger of each two registers, and the count is "about": 2.3 % off as a
standard deviation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import blake2b
from math import log
from typing import Annotated

import msgspec

from app.relay.window import Clock

EVERY_S = 5.0
GONE_S = 15.0
"""A relay that has said nothing for so long is not counted, nor are its peers."""
EXACT = 2_000
"""Keys of a relay that are named one by one."""
RELAYS = 1_000
_PRINT = 8
_BITS = 11
REGISTERS = 1 << _BITS
_KEPT_S = 1.0


def count(registers: bytes) -> float:
    """How many different prints went into a sketch, about. Flajolet and others 2007, figure 3: the harmonic
    mean of 2^register times a constant, and where registers are still empty and the mean small the count that
    their number tells (linear counting). With 64 bits no correction is needed at the other end."""
    m = len(registers)
    raw = 0.7213 / (1 + 1.079 / m) * m * m / sum(2.0**-register for register in registers)
    empty = registers.count(0)
    return m * log(m / empty) if empty and raw <= 2.5 * m else raw


def sketch(prints: Iterable[bytes]) -> bytes:
    """A register for each value of the first 11 bits: the most leading zeros, plus one, of the other 53."""
    registers = bytearray(REGISTERS)
    rest = 64 - _BITS
    for one in prints:
        number = int.from_bytes(one, "big")
        place = number >> rest
        rank = rest - (number & ((1 << rest) - 1)).bit_length() + 1
        if rank > registers[place]:
            registers[place] = rank
    return bytes(registers)


class Summary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one relay says of itself: its connections, and its keys as prints or as a sketch."""

    connections: Annotated[int, msgspec.Meta(ge=0, le=1 << 32)]
    prints: Annotated[bytes, msgspec.Meta(max_length=EXACT * _PRINT)] = b""
    registers: Annotated[bytes, msgspec.Meta(max_length=REGISTERS)] = b""

    def __post_init__(self) -> None:
        if len(self.prints) % _PRINT or len(self.registers) not in (0, REGISTERS):
            raise ValueError("A summary has whole prints and all registers or none.")

    @classmethod
    def of(cls, keys: Collection[bytes], connections: int) -> Summary:
        prints = [blake2b(key, digest_size=_PRINT).digest() for key in keys]
        if len(prints) <= EXACT:
            return cls(connections=connections, prints=b"".join(prints))
        return cls(connections=connections, registers=sketch(prints))

    def split(self) -> list[bytes]:
        return [self.prints[at : at + _PRINT] for at in range(0, len(self.prints), _PRINT)]


def together(summaries: Collection[Summary]) -> int:
    """Different keys at all these relays: exact as long as each of them names its own."""
    prints = {one for summary in summaries for one in summary.split()}
    sketches = [summary.registers for summary in summaries if summary.registers]
    if not sketches:
        return len(prints)
    return round(count(bytes(map(max, *sketches, sketch(prints)))))


_summaries = msgspec.msgpack.Decoder(Summary)


class Crowd:
    """The other relays' last words."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._relays: dict[str, tuple[Summary, float]] = {}
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
            self._counted = now, together([Summary.of(own, 0), *others])
        return self._counted[1]


def words(keys: Collection[bytes], connections: int) -> bytes:
    """A relay's own summary as it is sent."""
    return msgspec.msgpack.encode(Summary.of(keys, connections))
