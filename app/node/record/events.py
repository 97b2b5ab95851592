"""The events that a node sends to other programs: one JSON object per line, written with `--json`. The keys are
a stable contract."""

from __future__ import annotations

from typing import Any, Literal, Self, TextIO

import msgspec

from app.node.record.records import Probe, Record, Round
from engines.contract import EngineInfo


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    pass


class Started(_Event, frozen=True, tag="start"):
    """The model is loaded and the first round can begin. `round`: the last saved round, 0 for a new model."""

    model: str
    engine: EngineInfo
    home: str
    round: int
    recipe: str
    local: int
    external: int
    families: dict[str, int]
    """Levels by family."""
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
    """The node's public identity. `kept`: where the key is stored, "keyring", "file", or "memory" (for this run
    only)."""

    name: str
    public_key: str
    kept: str


class LinkChanged(_Event, frozen=True, tag="link"):
    """The connection to a relay changed: "connected", "lost", or "refused" (not established). Without one the
    node trains alone. `retry_s`: seconds until the next attempt."""

    state: Literal["connected", "lost", "refused"]
    url: str
    relay: str | None
    swarm: str | None
    sentence: str
    retry_s: float | None


class SwarmDone(_Event, frozen=True, tag="swarm"):
    """Swarm traffic, reported after every round and at the end. In this run, `received`, `accepted` and
    `refused` (by reason) count peers' groups, and `published` own groups; over all runs in this data folder,
    `created`, `acknowledged`, `waiting`, `held` and `dropped` count own groups. `peers`, `window` and `stored`
    are the relay's figures, None while disconnected."""

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
    """The result of a placement: the prompt style, and levels by family (empty if the model cannot begin with
    any yet). `later`: families that join when it is their turn. `waiting`: families that are still too hard.
    `lesson`: number of the model's own right answers that the next round trains on."""

    round: int
    way: str
    families: dict[str, int]
    later: tuple[str, ...]
    waiting: tuple[str, ...]
    lesson: int
    seconds: float
    sentence: str


class SkillLearned(_Event, frozen=True, tag="skill"):
    """Peers' right answers have opened a family that the model could not begin with. `authors` (`from` in
    JSON): names of their authors. `answers`: how many were taught. `before`, `after`: shares of right answers
    in the lesson's trials. `question` and `answer`: one of the examples taught."""

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
    """Training has stopped making progress. `cause`: a value of app.learning.flat.FlatCause. The sentence says
    what is being done about it."""

    round: int
    cause: str
    sentence: str


class WaitingToBegin(_Event, frozen=True, tag="holding"):
    """The node is ready, and waits for the command to begin its first round."""

    round: int


class RulingChanged(_Event, frozen=True, tag="decision"):
    """The decision whether to train, or its reason, has changed (see app.node.record.snapshot.Ruling). The node
    stops the trainer process when told to wait, and starts it when told to run."""

    round: int
    run: bool
    reason: str
    sentence: str
    short: str
    values: dict[str, str]
    until: float | None


class SettingsNow(_Event, frozen=True, tag="settings"):
    """The owner's settings, by the keys of app.node.rules.preferences. Sent at the start and after every
    change."""

    round: int
    values: dict[str, Any]


class CommandRefused(_Event, frozen=True, tag="refused"):
    """A line on standard input was not a valid command, or could not be executed; it had no other effect."""

    round: int
    command: str
    sentence: str


class NodeEnded(_Event, frozen=True, tag="end"):
    """The last event of a run. `reason`: "rounds", "stopped" or "failed"."""

    round: int
    reason: str
    sentence: str
    pass_at_1: float | None
    stderr: float | None

    @classmethod
    def at(cls, probe: Probe | None, **fields: Any) -> Self:
        """Creates the event with the result of the latest probe."""
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
    """Writes events to a stream. Create it before anything redirects standard output. `whole`: records are
    written with all fields that the history has, for a window that shows them."""

    def __init__(self, stream: TextIO, whole: bool = False) -> None:
        self._stream, self._whole = stream, whole

    def __call__(self, event: Event) -> None:
        """Writes one event. Raises BrokenPipeError if the reader is gone."""
        told = event.event_fields() if isinstance(event, Record) and not self._whole else event
        self._stream.write(msgspec.json.encode(told).decode() + "\n")
        self._stream.flush()
