"""What the window shows: one frozen value, replaced as a whole. Every page is a function of it and of nothing
else.

Moments are seconds of `time.time()`, shares are in [0, 1]. Whatever a node may not know (a swarm, a phase, the
text of a question) is optional, and a page says so instead of inventing it."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from app.node.snapshot import Phase as Step
from app.node.snapshot import Ruling
from app.ui.engine_pack import EnginePack
from app.ui.holdings import Holdings
from app.ui.renewal import Renewal
from engines.contract import EngineInfo


class State(Enum):
    """What the node is to the person in front of the window. The tray has an icon for each family of these."""

    NEW = "new"
    """Never asked to learn."""
    STARTING = "starting"
    LEARNING = "learning"
    WAITING = "waiting"
    """A rule holds it back, or it is about to be started again; `reason` says which."""
    PAUSED = "paused"
    STOPPING = "stopping"
    FAILED = "failed"
    """`problem` says why; nothing goes on by itself."""


class Value(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Problem(Value, frozen=True):
    """An error as people see it: what it is called, what happened, and what to do."""

    title: str
    sentence: str
    remedy: str


class Point(Value, frozen=True):
    """One probe, with its standard error."""

    round: int
    pass_at_1: float
    stderr: float
    at: float = 0.0


class Milestone(Value, frozen=True):
    """A family reached `level` (from 0) at this moment; level -1 is its first right answer in training."""

    level: int
    at: float


class Family(Value, frozen=True):
    """`latest` of `questions` held-out questions were solved, `first` at the first probe. `solved` and
    `answered` count training answers at this level over the last rounds."""

    name: str
    title: str
    level: int
    levels: int
    questions: int = 0
    latest: float | None = None
    first: float | None = None
    solved: int = 0
    answered: int = 0
    milestones: tuple[Milestone, ...] = ()
    trend: tuple[float, ...] = ()
    """Every probe's share, oldest first."""


class Answer(Value, frozen=True):
    text: str
    solved: bool


class Group(Value, frozen=True):
    """One question with its answers, made here or taken from a peer. `question` is None where only its
    coordinates are known."""

    round: int
    at: float
    family: str
    level: int
    answers: tuple[Answer, ...]
    question: str | None = None
    peer: str | None = None
    """Who made it; None for this computer."""


class Peer(Value, frozen=True):
    name: str
    model: str = ""
    seen_at: float | None = None
    groups: int = 0
    """Of this peer's groups, how many this model learned from."""


class Message(Value, frozen=True):
    """One message that left or came, word for word."""

    at: float
    outgoing: bool
    kind: str
    size: int
    text: str


class Swarm(Value, frozen=True):
    """`given` own groups were acknowledged by a relay and `waiting` have no answer yet; `taken` were trained
    on."""

    name: str = ""
    connected: bool = False
    relay: str = ""
    sentence: str = ""
    invite: str = ""
    online: int = 0
    given: int = 0
    waiting: int = 0
    taken: int = 0
    received: int = 0
    refused: dict[str, int] = {}
    relay_name: str = ""
    """The relay's address."""
    bytes_per_hour: float | None = None
    received_per_hour: float | None = None
    """Of all messages sent and received in the last 60 minutes."""
    helped: int | None = None
    peers: tuple[Peer, ...] = ()
    messages: tuple[Message, ...] = ()


class Round(Value, frozen=True):
    """A finished round of the history."""

    round: int
    run: int
    at: float
    seconds: float
    informative_own: int
    informative_peer: int
    train_solved: float
    solved: int
    answered: int


class Run(Value, frozen=True):
    run: int
    started: float
    ended: float | None
    first_round: int
    last_round: int | None
    outcome: str | None
    engine: str


class Happening(Value, frozen=True):
    """A sentence of the history's log."""

    at: float
    round: int
    kind: str
    sentence: str


class Today(Value, frozen=True):
    """Counts since local midnight."""

    solved: int = 0
    answered: int = 0
    rounds: int = 0


class View(Value, frozen=True):
    """`round` is the round in flight, `safe_round` the last safe point."""

    state: State = State.NEW
    reason: str = ""
    """One sentence: why it learns, waits or stands still."""
    until: float | None = None
    """When that ends by itself."""
    ruling: Ruling | None = None
    """What the node's rules say; None while no node runs."""
    rules: dict[str, Any] = {}
    """The settings of app.node.preferences, by key."""
    trial_until: float | None = None
    """Up to then it learns also while somebody uses the computer, because its owner has just begun."""
    problem: Problem | None = None
    news: str = ""
    """The node's latest sentence for its owner."""
    home: str = ""
    solo: bool = True
    model: str = ""
    recipe: str = ""
    engine: EngineInfo | None = None
    step: Step | None = None
    step_since: float | None = None
    round: int = 0
    last_round: int | None = None
    done: int = 0
    total: int = 0
    left_s: float | None = None
    round_s: float | None = None
    tokens_per_s: float | None = None
    safe_round: int = 0
    safe_at: float | None = None
    curve: tuple[Point, ...] = ()
    families: tuple[Family, ...] = ()
    groups: tuple[Group, ...] = ()
    """The newest first, a few hundred at most."""
    rounds: tuple[Round, ...] = ()
    """Oldest first."""
    runs: tuple[Run, ...] = ()
    happenings: tuple[Happening, ...] = ()
    """Oldest first."""
    today: Today = Today()
    swarm: Swarm | None = None
    models: Holdings | None = None
    """None until somebody has asked for them."""
    pack: EnginePack | None = None
    """The engine of an installed app; a checkout brings its own."""
    renewal: Renewal = Renewal()


def wilson(share: float, n: int, z: float = 1.0) -> tuple[float, float]:
    """The Wilson interval of a share seen in `n` trials: where the true one plausibly lies, within `z` standard
    errors (Wilson 1927, equation for p).

    >>> wilson(0.5, 100), wilson(0.0, 28)
    ((0.4502, 0.5498), (0.0, 0.0345))
    """
    if n <= 0:
        return 0.0, 1.0
    centre = share + z * z / (2 * n)
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    low, high = (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)
    return round(max(0.0, low), 4), round(min(1.0, high), 4)
