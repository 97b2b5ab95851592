"""The state shared by all conversations of one relay: window, quotas, standings and presence, and the relay's
descriptions of itself.

It has two clocks: a monotonic one for waits and ages, and one of Unix seconds for timestamps and bans."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection
from hashlib import blake2b
from random import Random
from typing import TYPE_CHECKING

import msgspec

from app.common import signing
from app.common.rate import Rate
from app.relay import presence as relays
from app.relay.access import Access, OpenAccess
from app.relay.limits import KEYS_PER_ADDRESS, PER_ADDRESS, PER_KEY, QuotaBuckets, decrement, times
from app.relay.origin import LOOPBACK, networks
from app.relay.presence import Presence, RelayCounters
from app.relay.session.classroom import KEYS_PER_NETWORK, Classroom
from app.relay.session.receipts import ReceiptForwarder
from app.relay.session.sampling import Sampler
from app.relay.standing import Ban, Source, Standing, Standings
from app.relay.store.backing import Backing, Unavailable
from app.relay.store.queues import SITE_CHARS
from app.relay.store.store import Store
from app.relay.store.window import Clock
from app.sapo.families import FAMILIES
from app.sapo.questions import QUESTIONS_VERSION
from app.swarm.wire import limits, signin
from app.swarm.wire.frames import to_frame
from app.swarm.wire.protocol import (
    ARCHIVE,
    CAPABILITIES,
    CLASS,
    QUESTIONS,
    RECEIPTS,
    RESTING,
    VERSIONS,
    HandedOut,
    Info,
    Stats,
)

if TYPE_CHECKING:
    from app.relay.checking import Checker
    from app.relay.session.session import Session

SOFTWARE = "shoal/0.1"
CLASS_KEYS = Rate(60, 60)
"""Rate of new keys per address in a class: a whole school joins within minutes."""
SAVE_STANDINGS_EVERY_S = 60.0
"""Seconds between saves of the standings, which are also saved at the end: a kill loses a minute of them."""
STANDINGS_PER_WRITE = 64  # a few milliseconds of disk at a time
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
_KNOWN_KEYS = 50_000  # keys that signed in before; the oldest are forgotten


class RelayState:
    """The shared state of one relay. `seed` is the secret of the relay's key, from which its id is derived;
    `epoch` changes with every start. Call `open` first, except with a store in memory."""

    def __init__(
        self,
        seed: bytes,
        swarm: str,
        epoch: str,
        *,
        pow_bits: int = 0,
        access: Access | None = None,
        backing: Backing | None = None,
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
        self.store = Store(
            backing,
            self.standings.known,
            clock=clock,
            wall=wall,
            on_stored=self._count_stored,
            on_value=self._value,
        )
        self.window = self.store.window
        self.sampler = Sampler(self.window, rng)
        per_key = {**PER_KEY, **_TALK}
        per_address = {**PER_ADDRESS, **times(KEYS_PER_ADDRESS, _TALK), "order": _ORDER}
        if classroom:
            per_address |= {**times(KEYS_PER_NETWORK, per_key), "new-key": CLASS_KEYS}
        self.quotas = quotas or QuotaBuckets(clock, per_key, per_address)
        self.presence = Presence(clock)
        self.signed_in: Counter[str] = Counter()
        """Connections that have signed in, by each of their `networks`."""
        self.other_relays = relays.OtherRelays(clock)
        self._working: list[asyncio.Task[None]] = []
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
        self.on_twins: Callable[[Session], None] = lambda session: None
        """Called when another connection's groups have the numbers of this session's; the server tells both."""
        self.crowded: Callable[[], bool] = lambda: False
        """Returns True while only the places reserved for keys with standing are left."""
        self._wall = wall
        self._met: OrderedDict[bytes, None] = OrderedDict()
        self._stored: deque[float] = deque(maxlen=100_000)
        self.handout = to_frame(HandedOut(content=handout)) if classroom and handout else None
        lacking = {
            ARCHIVE: self.store.backing.archived is None,
            CLASS: not classroom,
            RESTING: not classroom,
            QUESTIONS: self.handout is None,
        }
        self.caps = tuple(cap for cap in CAPABILITIES if not lacking.get(cap))

    async def open(self) -> None:
        """Opens the store, which fills the window. Raises StoreError."""
        await self.store.open(self.other_relays.record_summary)
        self._working.append(asyncio.create_task(self._write_regularly(), name="writing standings"))
        if self.store.backing.shared:
            self._working.append(asyncio.create_task(self._tell(), name="telling who is here"))

    async def close(self) -> None:
        """Ends the tasks, saves the standings and closes the store, which finishes publishes in flight."""
        for task in self._working:
            task.cancel()
        if self.store.opened:
            await self.write_standings()
        await self.store.close()

    async def _write_regularly(self) -> None:
        while True:
            await asyncio.sleep(SAVE_STANDINGS_EVERY_S)
            await self.write_standings()

    async def write_standings(self) -> None:
        """Saves changed standings to the store. Any that it refuses are retried at the next save."""
        news = list(self.standings.pop_changed().items())
        for start in range(0, len(news), STANDINGS_PER_WRITE):
            put = [
                self.store.backing.kv_put(
                    f"standing.{key.hex()}",
                    None if known is None else msgspec.json.encode(known),
                    0.0 if known is None else known.until,
                )
                for key, known in news[start : start + STANDINGS_PER_WRITE]
            ]
            outcomes = await asyncio.gather(*put, return_exceptions=True)
            for (key, _), outcome in zip(news[start:], outcomes, strict=False):
                if isinstance(outcome, Unavailable):
                    self.standings.changed.add(key)
                elif isinstance(outcome, BaseException):
                    raise outcome

    async def _tell(self) -> None:
        while True:
            self.store.backing.presence(relays.encode_summary(len(self.presence)))
            await asyncio.sleep(relays.SUMMARY_EVERY_S)

    def now_ms(self) -> int:
        """The current time in Unix milliseconds."""
        return int(self._wall() * 1000)

    def wait_of_new_key(self, key: bytes, address: str) -> float:
        """Returns the seconds until `register_key` would record this key, 0 if it does now."""
        return 0.0 if key in self._met or address == LOOPBACK else self.quotas.wait("new-key", None, address)

    def arrive(self, session: Session, key: bytes, caps: Collection[str]) -> None:
        """Tells everybody concerned that a client has signed in with `key` and agreed on `caps`."""
        self.register_key(key, session.address)
        self.tally.sign_ins["welcome"] += 1
        self.presence.arrive(session.name, key)
        self.signed_in.update(networks(session.address))
        if RECEIPTS in caps:
            self.receipts.arrive(key, session)
        if self.classroom is not None and CLASS in caps:
            self.classroom.join(key, session.address)

    def leave(self, session: Session) -> None:
        """Tells everybody concerned that a client has gone, signed in or not."""
        self.presence.leave(session.name)
        if session.key is not None:
            decrement(self.signed_in, networks(session.address))
            self.receipts.leave(session.key, session)
            if self.classroom is not None:
                self.classroom.leave(session.key)

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
        names = reversed(networks(address))
        salt = self.store.backing.salt
        return "-".join(
            blake2b(one.encode(), digest_size=SITE_CHARS // 2, key=salt).hexdigest() for one in names
        )

    def _count_stored(self, age_s: float) -> None:
        self._stored.append(self.clock() - age_s)

    async def ban(self, source: Source, ban: Ban) -> None:
        """Bans a key or an address on every relay of its store. Raises Unavailable; the ban then applies
        to this relay only."""
        self._ban(source, ban)
        await self.store.backing.kv_put(_ban_key(source), msgspec.json.encode(ban), ban.until)

    async def lift(self, source: Source) -> None:
        """Lifts a ban on all relays. Raises Unavailable."""
        self.standings.bans.lift(source)
        await self.store.backing.kv_put(_ban_key(source), None, 0.0)

    def _ban(self, source: Source, ban: Ban) -> None:
        self.standings.bans.put(source, ban)
        self.on_ban(source, ban)
        if isinstance(source, bytes):
            self.store.drop_source(key=source)
        else:
            self.store.drop_source(address=self.blind(source))

    def _value(self, kind: str, name: str, value: bytes | None) -> None:
        """Applies a standing or a ban that has changed, here or at another relay."""
        if kind == "standing" and value is not None:
            self.standings.put(bytes.fromhex(name), _STANDING.decode(value))
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
            peers=self.other_relays.peers(len(self.presence)),
            relays=1 + self.other_relays.relays,
            rollouts_min=float(len(self._stored)),
            window=len(self.window),
            stored=self.store.backing.stored,
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
            versions=(QUESTIONS_VERSION,),
            limits=limits.RelayLimits(),
            quotas=limits.Quotas(),
        )


def _ban_key(source: Source) -> str:
    return f"key.{source.hex()}" if isinstance(source, bytes) else f"address.{source.encode().hex()}"
