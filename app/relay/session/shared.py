"""The state shared by all conversations of one relay: window, quotas, standings and presence, and the relay's
descriptions of itself.

It has two clocks: a monotonic one for waits and ages, and one of Unix seconds for timestamps and bans."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Coroutine
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from app.common import signing
from app.common.rate import Rate
from app.relay import presence as relays
from app.relay.access import Access, OpenAccess
from app.relay.limits import PER_ADDRESS, PER_KEY, QuotaBuckets
from app.relay.origin import LOOPBACK, wider_network
from app.relay.presence import Presence, RelayCounters
from app.relay.session.classroom import Classroom
from app.relay.session.sampling import Sampler
from app.relay.session.underway import PublishesInFlight, ReceiptForwarder
from app.relay.standing import Ban, Source, Standing, Standings
from app.relay.store.archive import Archive
from app.relay.store.backplane import Backplane, CheckedGroup, MemoryBroker, Sequences, Unavailable
from app.relay.store.queues import SITE
from app.relay.store.window import Added, Clock, Window, WindowLimits
from app.sapo.families import FAMILIES
from app.sapo.questions import VERSION
from app.swarm.wire import limits, signin
from app.swarm.wire.frames import to_frame
from app.swarm.wire.protocol import ARCHIVE, CAPABILITIES, CLASS, QUESTIONS, VERSIONS, HandedOut, Info, Stats

if TYPE_CHECKING:
    from app.relay.checking import Checker

SOFTWARE = "shoal/0.1"
CONNECTIONS_OF_A_KEY = 2
CLASS_KEYS = Rate(60, 60)
"""Rate of new keys per address in a class: a whole school joins within minutes."""
WRITE_EVERY_S = 60.0
"""Seconds between saves of the standings, which are also saved at the end: a kill loses a minute of them."""
WRITTEN_AT_ONCE = 64
_BAN, _STANDING = msgspec.json.Decoder(Ban), msgspec.json.Decoder(Standing)
_TALK = {
    "report": Rate(12, 12),
    "receipts": Rate(12, 12),
    "stats": Rate(60, 30),
    "progress": Rate(12, 12),
    "questions": Rate(4, 4),
    "recall": Rate(limits.RECALLS_PER_MIN, limits.RECALLS_PER_MIN),
    "erase": Rate(1, 2),
}
_ORDER = Rate(60, 30)
_KNOWN_KEYS = 50_000
_DROPPED = 50_000
_ERASED = 10_000


class RelayState:
    """The shared state of one relay. `seed` is the secret of the relay's key, from which its id is derived;
    `epoch` changes with every start. Call `open` first, except with the memory backplane."""

    def __init__(
        self,
        seed: bytes,
        swarm: str,
        epoch: str,
        *,
        pow_bits: int = 0,
        access: Access | None = None,
        backplane: Backplane | None = None,
        archive: Archive | None = None,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
        rng: Random | None = None,
        quotas: QuotaBuckets | None = None,
        classroom: bool = False,
        handout: str = "",
    ) -> None:
        """`handout` is the content of a question set file that the teacher of a classroom hands out."""
        rng = rng or Random()
        self.seed = seed
        self.key = signing.public_key(seed)
        self.relay = signin.relay_id(self.key)
        self.swarm = swarm
        self.epoch = epoch
        self.pow_bits = pow_bits
        self.access = access or OpenAccess("pow" if pow_bits else "open")
        self.clock = clock
        self.standings = Standings(wall, rng, name=self.relay)
        self.window = Window(WindowLimits(), clock, self.standings.known)
        self.sampler = Sampler(self.window, rng)
        self.quotas = quotas or QuotaBuckets(
            clock,
            {**PER_KEY, **_TALK},
            {
                **PER_ADDRESS,
                **({"new-key": CLASS_KEYS} if classroom else {}),
                **{kind: Rate(16 * rate.per_min, 16 * rate.burst) for kind, rate in _TALK.items()},
                "order": _ORDER,
            },
        )
        self.presence = Presence(clock)
        self.other_relays = relays.OtherRelays(clock)
        self._working: list[asyncio.Task[None]] = []
        self._forgetting: set[asyncio.Task[int]] = set()
        self.sequences = Sequences()
        self.classroom = Classroom(wall) if classroom else None
        self.figures_due = asyncio.Event()
        """Set to send the swarm's figures to all subscribers now instead of at the next interval."""
        self.counts: Counter[str] = Counter()
        """Answers to published groups, by code."""
        self.tally = RelayCounters(clock)
        self.receipts = ReceiptForwarder()
        self.checker: Checker | None = None
        """Scores some groups again; None if checks are off."""
        self.on_ban: Callable[[Source, Ban], None] = lambda source, ban: None
        """Called for every ban, from this relay or another; the server closes connections in it."""
        self.crowded: Callable[[], bool] = lambda: False
        """Returns True while only the places reserved for keys with standing are left."""
        self._wall = wall
        self._met: OrderedDict[bytes, None] = OrderedDict()
        self._stored: deque[float] = deque(maxlen=100_000)
        self._flights = PublishesInFlight(self.tally)
        self._dropped: OrderedDict[bytes, None] = OrderedDict()
        self._erased: OrderedDict[bytes, int] = OrderedDict()
        """Erased keys, and the time (Unix milliseconds) before which their groups were erased."""
        self.archive = archive
        self.handout = to_frame(HandedOut(content=handout)) if classroom and handout else None
        lacking = {ARCHIVE: archive is None, CLASS: not classroom, QUESTIONS: self.handout is None}
        self.caps = tuple(cap for cap in CAPABILITIES if not lacking.get(cap))
        self.backplane: Backplane = backplane or MemoryBroker()
        self.opened = isinstance(self.backplane, MemoryBroker)
        if isinstance(self.backplane, MemoryBroker):
            self.backplane.open(self._take, self._value)

    async def open(self) -> None:
        """Starts the backplane, which fills the window. Raises BackplaneError."""
        await self.backplane.start(self._take, self._value, self.other_relays.record_summary)
        self.opened = True
        self._working.append(asyncio.create_task(self._write_regularly(), name="writing standings"))
        if self.archive is not None:
            self._working.append(asyncio.create_task(self.archive.run(), name="writing the archive"))
        if self.backplane.shared:
            self._working.append(asyncio.create_task(self._tell(), name="telling who is here"))

    async def close(self) -> None:
        """Ends the tasks, saves the standings and closes the backplane, which finishes publishes in flight."""
        for task in self._working:
            task.cancel()
        if self.opened:
            await self.write_standings()
        await self.backplane.close()
        if self.archive is not None:
            await asyncio.gather(*self._forgetting)
            await self.archive.close()

    async def _write_regularly(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            await self.write_standings()

    async def write_standings(self) -> None:
        """Saves changed standings to the backplane. Any that it refuses are retried at the next save."""
        news = list(self.standings.pop_changed().items())
        for start in range(0, len(news), WRITTEN_AT_ONCE):
            put = [
                self.backplane.kv_put(
                    f"standing.{key.hex()}",
                    None if known is None else msgspec.json.encode(known),
                    0.0 if known is None else known.until,
                )
                for key, known in news[start : start + WRITTEN_AT_ONCE]
            ]
            outcomes = await asyncio.gather(*put, return_exceptions=True)
            for (key, _), outcome in zip(news[start:], outcomes, strict=False):
                if isinstance(outcome, Unavailable):
                    self.standings.changed.add(key)
                elif isinstance(outcome, BaseException):
                    raise outcome

    async def _tell(self) -> None:
        while True:
            self.backplane.presence(relays.encode_summary(self.presence.keys))
            await asyncio.sleep(relays.EVERY_S)

    def now_ms(self) -> int:
        """The current time in Unix milliseconds."""
        return int(self._wall() * 1000)

    def register_key(self, key: bytes, address: str) -> float:
        """Records a key that signs in or publishes from `address`. Returns 0, or the seconds to wait if too
        many new keys come from there."""
        if key not in self._met and address != LOOPBACK:
            wait = self.quotas.take("new-key", None, address)
            if wait > 0:
                return wait
        self._met[key] = None
        self._met.move_to_end(key)
        if len(self._met) > _KNOWN_KEYS:
            self._met.popitem(last=False)
        return 0.0

    def blind(self, address: str) -> str:
        """Returns keyed hashes of an address and, before it, of its wider network, if there is one: the form in
        which addresses are stored with groups and sent to other relays."""
        whole = wider_network(address)
        names = (address,) if whole is None else (whole, address)
        salt = self.backplane.salt
        return "-".join(blake2b(one.encode(), digest_size=SITE // 2, key=salt).hexdigest() for one in names)

    def publish(self, record: CheckedGroup) -> Added | Coroutine[Any, Any, Added]:
        """Sends a new group to the backplane, which passes it to the window. The group counts as stored, and
        its sequence number as used, only once the backplane has it. The coroutine raises Unavailable;
        cancelling it does not undo the publish."""
        if len(record.raw) > self.window.largest:
            return "too-large"
        if self.window.knows(record.id):
            return "duplicate"
        same = self._flights.outcome_of_duplicate(record)
        if same is not None:
            return same
        added = self.backplane.publish(record)
        return added if isinstance(added, str) else self._flights.begin(record, added)

    def _take(self, record: CheckedGroup) -> Added:
        """Adds a group from the backplane to the window: of a client of this relay or of another, or stored
        earlier."""
        if self.sequences.look(record.key, record.key_seq) == "used" and not self.window.knows(record.id):
            return "duplicate"  # another group bears the number
        if self._erased and record.arrived_ms < self._erased.get(record.key, 0):
            return "duplicate"
        age_s = max(0.0, self._wall() - record.arrived_ms / 1000)
        added = self.window.add(
            id=record.id,
            key=record.key,
            address=record.address,
            family=record.family,
            level=record.level,
            raw=record.raw,
            arrived=self.clock() - age_s,
        )
        if added == "accepted":
            self.sequences.use(record.key, record.key_seq)
            self._stored.append(self.clock() - age_s)
            self.tally.hour.note(record.family, age_s)
            if record.id in self._dropped:
                self.window.drop(record.id)
            elif self.archive is not None:
                self.archive.note(record)
        return added

    async def ban(self, source: Source, ban: Ban) -> None:
        """Bans a key or an address on every relay of this backplane. Raises Unavailable; the ban then applies
        to this relay only."""
        self._ban(source, ban)
        await self.backplane.kv_put(_ban_key(source), msgspec.json.encode(ban), ban.until)

    async def lift(self, source: Source) -> None:
        """Lifts a ban on all relays. Raises Unavailable."""
        self.standings.bans.lift(source)
        await self.backplane.kv_put(_ban_key(source), None, 0.0)

    async def drop(self, id: bytes) -> None:
        """Removes a group from the windows of all relays. Raises Unavailable."""
        self.window.drop(id)
        await self.backplane.kv_put(f"drop.{id.hex()}", b"", self._wall() + self.window.limits.age_s)

    async def erase(self, key: bytes) -> int:
        """Deletes all groups that a key has signed until now, from window, archive and store, on every relay of
        this backplane. Returns how many this relay had. Its sequence numbers, standing and bans are kept.
        Raises Unavailable."""
        author, until_ms = self.window.authors.get(key), self.now_ms() + 1
        there = author.queue.groups if author is not None else 0
        kept = 0 if self.archive is None else await self.archive.forget(key=key, until_ms=until_ms)
        value = until_ms.to_bytes(8, "big")
        await self.backplane.kv_put(f"erase.{key.hex()}", value, self._wall() + limits.ARCHIVED_S)
        await self.backplane.erase(key)
        return max(there, kept)

    def _erase(self, key: bytes, until_ms: int) -> None:
        self._erased[key] = until_ms
        if len(self._erased) > _ERASED:
            self._erased.popitem(last=False)
        self.window.drop_key(key, self.clock() - self._wall() + (until_ms - 0.5) / 1000)
        self._forget(key=key, until_ms=until_ms)

    def _forget(self, **what: Any) -> None:
        """Deletes groups from the archive in a background task. `what`: the arguments of `Archive.forget`."""
        if self.archive is not None:
            task = asyncio.get_running_loop().create_task(self.archive.forget(**what))
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)

    def _ban(self, source: Source, ban: Ban) -> None:
        self.standings.bans.put(source, ban)
        self.on_ban(source, ban)
        if isinstance(source, bytes):
            self.window.drop_key(source)
            self._forget(key=source)
        else:
            self.window.drop_address(self.blind(source))
            self._forget(address=self.blind(source))

    def _value(self, key: str, value: bytes | None) -> None:
        """Applies a value that has changed, here or at another relay."""
        kind, _, name = key.partition(".")
        if kind == "numbers" and value is not None:
            self.sequences.put(
                bytes.fromhex(name), int.from_bytes(value[:8], "big"), int.from_bytes(value[8:], "big")
            )
            return
        if kind == "standing" and value is not None:
            self.standings.put(bytes.fromhex(name), _STANDING.decode(value))
        elif kind == "erase" and value is not None:
            self._erase(bytes.fromhex(name), int.from_bytes(value, "big"))
        elif kind == "drop" and value is not None:
            id = bytes.fromhex(name)
            self._forget(id=id)
            self._dropped[id] = None
            if len(self._dropped) > _DROPPED:
                self._dropped.popitem(last=False)
            self.window.drop(id)
        elif kind in ("key", "address"):
            source: Source = bytes.fromhex(name) if kind == "key" else bytes.fromhex(name).decode()
            if value is None:
                self.standings.bans.lift(source)
            else:
                self._ban(source, _BAN.decode(value))

    def stats(self) -> Stats:
        minute = self.clock() - 60
        while self._stored and self._stored[0] < minute:
            self._stored.popleft()
        self.window.expire()
        families: Counter[str] = Counter()
        for (family, _), groups in self.window.sizes.items():
            families[family] += groups
        return Stats(
            peers=self.other_relays.peers(self.presence.keys),
            relays=1 + self.other_relays.relays,
            rollouts_min=float(len(self._stored)),
            window=len(self.window),
            stored=self.backplane.stored,
            families=dict(sorted(families.items())),
            learning=None if self.classroom is None else self.classroom.learning,
        )

    def info(self) -> Info:
        return Info(
            relay=self.relay,
            swarm=self.swarm,
            proto=VERSIONS,
            software=SOFTWARE,
            time_ms=self.now_ms(),
            access=self.access.mode,
            pow_bits=self.pow_bits,
            caps=self.caps,
            families=tuple(sorted(FAMILIES)),
            versions=(VERSION,),
            limits=limits.RelayLimits(),
            quotas=limits.Quotas(),
        )


def _ban_key(source: Source) -> str:
    return f"key.{source.hex()}" if isinstance(source, bytes) else f"address.{source.encode().hex()}"
