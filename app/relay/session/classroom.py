"""A classroom's records for its teacher: each student's skills over time, and which groups went to whom.

It stores keys instead of people's names (app.relay.page.teacher has the teacher's own notes), and only what
protocol messages say. Everything is bounded, kept in memory and lost when the relay ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from app.relay.origin import LOOPBACK
from app.sapo.families import FAMILIES
from app.swarm.wire.protocol import ClassProgress

MAX_PUPILS = 200  # several school classes
AWAY_S = 120.0
"""Seconds of silence after which a student may be removed from a full class, so that short-lived keys do not
block it."""
KEYS_PER_COMPUTER, KEYS_PER_NETWORK = 8, 64
"""Maximum keys of one address in a class, including removed ones: for a computer on the local network, and for
an address on the internet, which may be a whole school."""
MAX_MEASUREMENTS = 500
"""Maximum measurements kept per student."""
MAX_DISCOVERIES = 300  # the latest; the page shows fewer
MAX_AUTHOR_READER_PAIRS = 20_000  # half of all pairs of a full class


class ClassMeasurement(msgspec.Struct, frozen=True):
    """One measurement: its time (Unix seconds), the node's round, and the shares solved (0 to 1), overall and
    by family."""

    at: float
    round: int
    share: float
    families: dict[str, float]


class Discovery(msgspec.Struct, frozen=True):
    """`pupil` solved its first held-out questions of `family`. `before`: the authors whose groups of that
    family it had received by then, most groups first; `after_s`: seconds since the latest of these groups, None
    if there was none."""

    at: float
    pupil: bytes
    family: str
    before: tuple[bytes, ...]
    after_s: float | None


class Pupil:
    """A student: one key of the class."""

    __slots__ = ("address", "came", "failed", "got", "latest", "marks", "rests", "solved")

    def __init__(self, at: float, address: str) -> None:
        self.address = address
        self.marks: list[ClassMeasurement] = []
        self.got: dict[str, Counter[bytes]] = {}
        """Number of groups received, by family and author."""
        self.came: dict[str, float] = {}
        """When the latest group of a family was received (Unix seconds)."""
        self.failed: set[str] = set()
        """Families in which some measurement was 0."""
        self.solved: set[str] = set()
        self.latest = at
        """When it was last heard of (Unix seconds); of one that is away, since when."""
        self.rests: bool | None = None
        """Whether it rests now; None if its version doesn't say so."""


class Classroom:
    """The students of one class. `learning`: False while the teacher has paused training. `clock` returns Unix
    seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.learning = True
        self.pupils: dict[bytes, Pupil] = {}
        """Students who agreed to be in the class, by key."""
        self.past: dict[bytes, Pupil] = {}
        """Students with measurements who were removed to make room, at most MAX_PUPILS."""
        self.turned_away = 0
        """Number of joins refused because the class was full."""
        self.shared: Counter[bytes] = Counter()
        self.journeys: Counter[tuple[bytes, bytes]] = Counter()
        """Number of groups passed from one student to another, by (author, receiver)."""
        self.discoveries: list[Discovery] = []

    def join(self, key: bytes, address: str) -> bool:
        """Adds a key that agrees to be in the class. Returns False if the class is full."""
        now, pupil = self._clock(), self.pupils.get(key)
        if pupil is None:
            back = key in self.past
            if not (back or self._room_for(address)) or not (
                len(self.pupils) < MAX_PUPILS or self._made_room(now)
            ):
                self.turned_away += 1
                return False
            pupil = self.pupils[key] = self.past.pop(key) if back else Pupil(now, address)
        pupil.latest = now
        return True

    def progress(self, key: bytes, address: str, told: ClassProgress) -> None:
        """Records a student's report of its progress. Ignores unknown families."""
        if not self.join(key, address):
            return
        now, pupil = self._clock(), self.pupils[key]
        families = {name: share for name, share in told.families.items() if name in FAMILIES}
        pupil.marks.append(ClassMeasurement(now, told.round, told.share, families))
        del pupil.marks[:-MAX_MEASUREMENTS]
        for name, share in families.items():
            if share <= 0.0:
                pupil.failed.add(name)
            elif name not in pupil.solved:
                pupil.solved.add(name)
                if name in pupil.failed:  # otherwise it could solve it from the start
                    self._discovered(key, pupil, name, now)

    def rest(self, key: bytes, on: bool) -> None:
        """Records that a student's model rests, or learns again."""
        if key in self.pupils:
            self.pupils[key].rests = on

    def leave(self, key: bytes) -> None:
        """Records that a connection of this key has ended."""
        if key in self.pupils:
            self.pupils[key].latest = self._clock()

    def published(self, key: bytes) -> None:
        if key in self.pupils:
            self.shared[key] += 1

    def record_given(self, author: bytes, asker: bytes, family: str) -> None:
        """Records that a group of `author` was given to `asker`. Ignored unless both are in the class."""
        pupil = self.pupils.get(asker)
        if pupil is None or author not in self.pupils:
            return
        pupil.latest = self._clock()
        pupil.got.setdefault(family, Counter())[author] += 1
        pupil.came[family] = pupil.latest
        if (author, asker) in self.journeys or len(self.journeys) < MAX_AUTHOR_READER_PAIRS:
            self.journeys[author, asker] += 1

    def _room_for(self, address: str) -> bool:
        if address == LOOPBACK:
            return True
        indoors = address.endswith(("/32", "/128"))
        there = sum(one.address == address for one in (*self.pupils.values(), *self.past.values()))
        return there < (KEYS_PER_COMPUTER if indoors else KEYS_PER_NETWORK)

    def _made_room(self, now: float) -> bool:
        """Removes a student silent for at least AWAY_S, preferably one without measurements, and its journeys.
        Returns False if no student qualifies."""
        away = [(key, one) for key, one in self.pupils.items() if now - one.latest >= AWAY_S]
        if not away:
            return False
        key, pupil = min(away, key=lambda one: (bool(one[1].marks), one[1].latest))
        if pupil.marks and len(self.past) >= MAX_PUPILS:
            return False
        if pupil.marks:
            self.past[key] = pupil
        del self.pupils[key]
        self.shared.pop(key, None)
        for pair in [pair for pair in self.journeys if key in pair]:
            del self.journeys[pair]
        return True

    def _discovered(self, key: bytes, pupil: Pupil, family: str, now: float) -> None:
        got, came = pupil.got.get(family, Counter()), pupil.came.get(family)
        before = tuple(author for author, _ in got.most_common(3))
        self.discoveries.append(Discovery(now, key, family, before, None if came is None else now - came))
        del self.discoveries[:-MAX_DISCOVERIES]
