"""What a node tells other programs: one JSON object a line, written with `--json`. The keys are a contract."""

from __future__ import annotations

from typing import Any, Literal, TextIO

import msgspec

from app.node.records import ProbeRow, RoundRow
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


class RoundDone(_Event, frozen=True, tag="round"):
    """A finished round, safely stored. `train_solved` is the share of right answers among this round's
    own, which is not the curve: the curve is the probe. `informative_peer` counts peers' groups trained on.
    Shares are in [0, 1]; `seconds` include everything from drawing to saving."""

    round: int
    informative_own: int
    informative_peer: int
    train_solved: float
    seconds: float
    own_groups: int
    worked_share: float
    finished_share: float
    tokens: int
    tokens_per_s: float
    stepped: bool
    loss: float | None
    grad_norm: float | None
    families: dict[str, tuple[int, int, int]]
    """Family to (level, solved, answered)."""
    peers: dict[str, int]
    """Peer to groups trained on."""
    peer_groups: int
    """Taken from peers, of which `peer_unfit` were too long for this model."""
    peer_unfit: int
    gated_right: int
    gated_wrong: int
    """Peers' answers kept out because this model would hardly have written them."""
    peer_share: float
    """Peers' share of all weight in the batch."""
    mismatch: float | None
    """Mean |learner's - sampler's| log-prob of a token (nats); None where the learner itself samples."""
    capped: float | None
    """Share of those tokens whose importance weight is at its cap."""


class ProbeDone(_Event, frozen=True, tag="probe"):
    """Pass@1 on the held-out questions with its standard error; `families` has each family's own."""

    round: int
    pass_at_1: float
    stderr: float
    families: dict[str, float]
    questions: int
    worked_share: float
    finished_share: float
    seconds: float


class Checkpointed(_Event, frozen=True, tag="checkpoint"):
    round: int
    folder: str


class TrainerRestarted(_Event, frozen=True, tag="trainer_restarted"):
    """The trainer process ended by itself and another one is started after `wait_s`."""

    round: int
    sentence: str
    wait_s: float


class Noted(_Event, frozen=True, tag="note"):
    """Something the owner should know, for example that a damaged checkpoint was set aside."""

    round: int
    sentence: str


class Named(_Event, frozen=True, tag="identity"):
    """Who this node is to others. `kept` is "keyring", "file" or, for this run only, "memory"."""

    name: str
    public_key: str
    kept: str


class LinkChanged(_Event, frozen=True, tag="link"):
    """The connection to a relay: "connected", "lost", or not had ("refused"). Until it is back the
    node goes on alone. `retry_s` is when the next try comes."""

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


class Holding(_Event, frozen=True, tag="holding"):
    """Everything is ready, and the first round waits for the order to begin."""

    round: int


class Decided(_Event, frozen=True, tag="decision"):
    """The rules' reason to run or to wait is another one now; see app.node.snapshot.Ruling. Waiting ends the
    trainer, running starts it again."""

    round: int
    run: bool
    reason: str
    sentence: str
    short: str
    values: dict[str, str]
    until: float | None


class SettingsNow(_Event, frozen=True, tag="settings"):
    """The owner's settings, by the keys of app.node.preferences; at the start and after every change."""

    round: int
    values: dict[str, Any]


class Refused(_Event, frozen=True, tag="refused"):
    """A line on standard input was no command, or one that cannot be followed; nothing else happened."""

    round: int
    command: str
    sentence: str


class Ended(_Event, frozen=True, tag="end"):
    """The last line. `reason` is "rounds", "stopped" or "failed"."""

    round: int
    reason: str
    sentence: str
    pass_at_1: float | None
    stderr: float | None


Event = (
    Started
    | RoundDone
    | ProbeDone
    | Checkpointed
    | TrainerRestarted
    | Noted
    | Named
    | LinkChanged
    | SwarmDone
    | Holding
    | Decided
    | SettingsNow
    | Refused
    | Ended
)


def round_done(row: RoundRow) -> RoundDone:
    details = row.details
    return RoundDone(
        round=row.round,
        informative_own=row.informative_own,
        informative_peer=row.informative_peer,
        train_solved=row.train_solved,
        seconds=row.seconds,
        own_groups=details.own_groups,
        worked_share=details.worked_share,
        finished_share=details.finished_share,
        tokens=details.tokens,
        tokens_per_s=details.tokens_per_s,
        stepped=details.loss is not None,
        loss=details.loss,
        grad_norm=details.grad_norm,
        families=details.families,
        peers=details.peers,
        peer_groups=details.peer_groups,
        peer_unfit=details.peer_unfit,
        gated_right=details.gated_right,
        gated_wrong=details.gated_wrong,
        peer_share=details.peer_share,
        mismatch=details.mismatch,
        capped=details.capped,
    )


def probe_done(row: ProbeRow) -> ProbeDone:
    return ProbeDone(
        round=row.round,
        pass_at_1=row.pass_at_1,
        stderr=row.stderr,
        families=row.details.families,
        questions=row.questions,
        worked_share=row.details.worked_share,
        finished_share=row.details.finished_share,
        seconds=row.details.seconds,
    )


class JsonLines:
    """Writes events to a stream. Built before anything redirects standard output."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __call__(self, event: Event) -> None:
        """Raises BrokenPipeError when nobody reads any more."""
        self._stream.write(msgspec.json.encode(event).decode() + "\n")
        self._stream.flush()
