"""The authors in a window: rosters of their keys, by family too, and what each key has there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.relay.store.lines import Line


class Roster:
    """Keys that can be drawn by position, entered and struck off in O(1). Positions change when one is struck
    off."""

    __slots__ = ("_keys", "_positions", "at")

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._positions: dict[bytes, int] = {}
        self.at = self._keys.__getitem__

    def enter(self, key: bytes) -> None:
        if key not in self._positions:
            self._positions[key] = len(self._keys)
            self._keys.append(key)

    def strike(self, key: bytes) -> None:
        position, last = self._positions.pop(key), self._keys.pop()
        if last != key:
            self._keys[position] = last
            self._positions[last] = position

    def __contains__(self, key: bytes) -> bool:
        return key in self._positions

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._keys)


class Section:
    """One family: how many groups it has, the keys that they are of, those of them that are known, and the
    sites, each with the number of levels where it has some."""

    __slots__ = ("addresses", "groups", "known", "peers")

    def __init__(self) -> None:
        self.groups = 0
        self.peers = Roster()
        self.known = Roster()
        self.addresses: dict[str, int] = {}


class Author:
    """What one key has in the window: all of it, and by family and level."""

    __slots__ = ("families", "key", "known", "line")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.known = False
        self.line = Line()
        self.families: dict[str, dict[int, Line]] = {}

    def lines(self, families: Iterable[str]) -> list[Line]:
        """Those of its groups in these families, each named once."""
        mine = self.families
        return [line for family in families if family in mine for line in mine[family].values()]
