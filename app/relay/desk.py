"""What all conversations of one relay share: its window, quotas, standings and presence, and what it says of
itself. One clock that never goes back for waiting and ageing, one of Unix seconds for stamps and bans."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from random import Random

from app.relay.presence import Presence
from app.relay.quota import PER_ADDRESS, PER_KEY, Quotas, Rate
from app.relay.sampling import Sampler
from app.relay.sequence import Sequences
from app.relay.standing import Standings
from app.relay.window import Clock, Window
from app.relay.window import Limits as WindowLimits
from app.sapo.families import FAMILIES
from app.sapo.questions import VERSION
from app.swarm import limits
from app.swarm.protocol import STATS_SUB, VERSIONS, ZLIB, Info, Stats

SOFTWARE = "shoal/0.1"
CAPABILITIES = (ZLIB, STATS_SUB)
CONNECTIONS_OF_A_KEY = 2
LOOPBACK = "loopback"
"""The address of this computer itself, where many nodes may start at once: its new keys are not counted."""

_TALK = {"report": Rate(12, 12), "stats": Rate(60, 30)}
_KNOWN_KEYS = 50_000


class Desk:
    """`relay` is the id that clients sign for, `epoch` changes with every start."""

    def __init__(
        self,
        relay: str,
        swarm: str,
        epoch: str,
        *,
        pow_bits: int = 0,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
        rng: Random | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        rng = rng or Random()
        self.relay = relay
        self.swarm = swarm
        self.epoch = epoch
        self.pow_bits = pow_bits
        self.clock = clock
        self.window = Window(WindowLimits(), clock)
        self.sampler = Sampler(self.window, rng)
        self.quotas = quotas or Quotas(
            clock,
            {**PER_KEY, **_TALK},
            {**PER_ADDRESS, **{kind: Rate(16 * rate.per_min, 16 * rate.burst) for kind, rate in _TALK.items()}},
        )
        self.standings = Standings(wall, rng, name=relay)
        self.presence = Presence(clock)
        self.sequences = Sequences()
        self.counts: Counter[str] = Counter()
        """Answers to published groups, by code."""
        self._wall = wall
        self._met: OrderedDict[bytes, None] = OrderedDict()
        self._stored: deque[float] = deque(maxlen=100_000)

    def now_ms(self) -> int:
        """Unix milliseconds."""
        return int(self._wall() * 1000)

    def met(self, key: bytes, address: str) -> float:
        """Note a key that signs in; 0, or the seconds to wait where an address brings too many new ones."""
        if key not in self._met and address != LOOPBACK:
            wait = self.quotas.take("new-key", None, address)
            if wait > 0:
                return wait
        self._met[key] = None
        self._met.move_to_end(key)
        if len(self._met) > _KNOWN_KEYS:
            self._met.popitem(last=False)
        return 0.0

    def stored(self) -> None:
        """Count a group that has just come into the window."""
        self._stored.append(self.clock())

    def stats(self) -> Stats:
        minute = self.clock() - 60
        while self._stored and self._stored[0] < minute:
            self._stored.popleft()
        self.window.expire()
        families: Counter[str] = Counter()
        for (family, _), groups in self.window.sizes.items():
            families[family] += groups
        return Stats(
            peers=self.presence.here().peers,
            relays=1,
            rollouts_min=float(len(self._stored)),
            window=len(self.window),
            families=dict(sorted(families.items())),
        )

    def info(self) -> Info:
        return Info(
            relay=self.relay,
            swarm=self.swarm,
            proto=VERSIONS,
            software=SOFTWARE,
            time_ms=self.now_ms(),
            access="pow" if self.pow_bits else "open",
            pow_bits=self.pow_bits,
            caps=CAPABILITIES,
            families=tuple(sorted(FAMILIES)),
            versions=(VERSION,),
            limits=limits.Limits(),
            quotas=limits.Quotas(),
        )
