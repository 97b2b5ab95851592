"""The events that a node tells other programs: one JSON object a line, written with `--json`. The keys are a
contract."""

from __future__ import annotations

from typing import Any, Literal, Self, TextIO

import msgspec

from app.node.record.records import Probe, Record, Round
from engines.contract import EngineInfo


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    pass


class Started(_Event, frozen=True, tag="start"):
    """The model is loaded and the first round can begin. `round` is the last safe one, 0 for a new start."""

    model: str
    engine: EngineInfo
    home: str
    round: int
    recipe: str
    local: int
    external: int
    families: dict[str, int]
    """Family to level."""
    shuffled_rewards: bool


class CheckpointSaved(_Event, frozen=True, tag="checkpoint"):
    round: int
    folder: str


class TrainerRestarted(_Event, frozen=True, tag="trainer_restarted"):
    """The trainer process ended unexpectedly; another one is started after `wait_s`."""

    round: int
    sentence: str
    wait_s: float


class NodeNote(_Event, frozen=True, tag="note"):
    """Something the owner should know, for example that a damaged checkpoint was set aside."""

    round: int
    sentence: str


class IdentityNamed(_Event, frozen=True, tag="identity"):
    """Who this node is to others. `kept` is "keyring", "file" or, for this run only, "memory"."""

    name: str
    public_key: str
    kept: str


class LinkChanged(_Event, frozen=True, tag="link"):
    """The connection to a relay changed: "connected", "lost", or "refused" (none was made). Until it is back
    the node learns alone. `retry_s` is seconds until the next try."""

    state: Literal["connected", "lost", "refused"]
    url: str
    relay: str | None
    swarm: str | None
    sentence: str
    retry_s: float | None


class SwarmDone(_Event, frozen=True, tag="swarm"):
    """What went to the swarm and came from it, after every round and at the end. `received`, `accepted` and
    `refused` (by reason) count groups of peers in this run, `published` own ones; `created`, `acknowledged`,
    `waiting`, `held` and `dropped` count everything this home ever made. `peers`, `window` and `stored` are the
    relay's figures, None while it is away."""

    round: int
    connected: bool
    published: int
    received: int
    accepted: int
    refused: dict[str, int]
    ready: int
    created: int
    acknowledged: int
    waiting: int
    held: int
    dropped: int
    peers: int | None
    window: int | None
    stored: int | None


class PlacementDone(_Event, frozen=True, tag="placement"):
    """The result of a placement: the way of asking, and family to level (empty where the model can do nothing
    yet). `later` are families that join when their turn comes, `waiting` are still too hard; `lesson` counts
    own right answers that the next round teaches."""

    round: int
    way: str
    families: dict[str, int]
    later: tuple[str, ...]
    waiting: tuple[str, ...]
    lesson: int
    seconds: float
    sentence: str


class SkillLearned(_Event, frozen=True, tag="skill"):
    """Peers' right answers have opened a family that the model could not begin with. `authors` (told as
    `from`) are their authors' names, `answers` how many were taught, `before` and `after` the shares of right
    answers in its trial; `question` and `answer` are one of those that it began with."""

    round: int
    family: str
    level: int
    authors: tuple[str, ...] = msgspec.field(name="from")
    answers: int
    before: float
    after: float
    question: str
    answer: str
    sentence: str


class ProgressStalled(_Event, frozen=True, tag="flat"):
    """Progress has stopped: `cause` is a value of app.learning.flat.FlatCause; the sentence says what is being
    done."""

    round: int
    cause: str
    sentence: str


class WaitingToBegin(_Event, frozen=True, tag="holding"):
    """Everything is ready, and the first round waits for the order to begin."""

    round: int


class RulingChanged(_Event, frozen=True, tag="decision"):
    """The rules have another reason to run or to wait; see app.node.record.snapshot.Ruling. Waiting ends the
    trainer, running starts it again."""

    round: int
    run: bool
    reason: str
    sentence: str
    short: str
    values: dict[str, str]
    until: float | None


class SettingsNow(_Event, frozen=True, tag="settings"):
    """The owner's settings, by the keys of app.node.rules.preferences; at the start and after every change."""

    round: int
    values: dict[str, Any]


class CommandRefused(_Event, frozen=True, tag="refused"):
    """A line on standard input was not a command, or one that cannot be carried out; it had no other effect."""

    round: int
    command: str
    sentence: str


class NodeEnded(_Event, frozen=True, tag="end"):
    """The last line. `reason` is "rounds", "stopped" or "failed"."""

    round: int
    reason: str
    sentence: str
    pass_at_1: float | None
    stderr: float | None

    @classmethod
    def at(cls, probe: Probe | None, **fields: Any) -> Self:
        """Where the curve stands then."""
        return cls(pass_at_1=probe.share if probe else None, stderr=probe.stderr if probe else None, **fields)


Event = (
    Started
    | Round
    | Probe
    | CheckpointSaved
    | TrainerRestarted
    | NodeNote
    | IdentityNamed
    | LinkChanged
    | SwarmDone
    | PlacementDone
    | SkillLearned
    | ProgressStalled
    | WaitingToBegin
    | RulingChanged
    | SettingsNow
    | CommandRefused
    | NodeEnded
)


class JsonLines:
    """Writes events to a stream. Built before anything redirects standard output. With `whole` records come as
    the history has them, for a window that shows it."""

    def __init__(self, stream: TextIO, whole: bool = False) -> None:
        self._stream, self._whole = stream, whole

    def __call__(self, event: Event) -> None:
        """Raises BrokenPipeError when no one reads any more."""
        told = event.told() if isinstance(event, Record) and not self._whole else event
        self._stream.write(msgspec.json.encode(told).decode() + "\n")
        self._stream.flush()
