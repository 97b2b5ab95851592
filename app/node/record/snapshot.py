"""The snapshot that every view shows: one frozen value, replaced whenever something changes. Views read it
and nothing else."""

from __future__ import annotations

from enum import Enum

import msgspec

from app.common.text import span
from app.node.record.reasons import Effort
from app.node.record.records import GroupRow, Probe, Round
from app.swarm.wire.limits import LineMessage
from engines.contract import EngineInfo


class Phase(Enum):
    """What the node is doing. The value is the sentence's beginning; progress is added where there is some."""

    STARTING = "starting"
    LOADING = "loading the model"
    PLACING = "finding out what this model can begin with"
    GATHERING = "collecting right answers for its first lesson"
    PROBING = "measuring on held-out questions"
    HOLDING = "waiting for the others"
    PAUSED = "paused"
    """The trainer process has ended; `Snapshot.ruling` says why and until when."""
    DRAWING = "drawing questions"
    SAMPLING = "answering"
    SCORING = "checking the answers"
    LEARNING = "learning"
    SAVING = "saving"
    RESTING = "resting"
    WAITING = "waiting to start the trainer again"
    NO_ROOM = "waiting for space on the disk"
    SENDING = "handing over the last groups"
    STOPPING = "stopping"


_FOR_PEOPLE = {
    Phase.PROBING: "measuring on new puzzles",
    Phase.SENDING: "sending the last answers",
    Phase.DRAWING: "picking puzzles",
    Phase.WAITING: "waiting to restart",
}
"""Phases that people call differently from their value, which windows and nodes of other versions know."""


class LevelReached(msgspec.Struct, frozen=True, kw_only=True):
    """A family reached `level` (from 0) at this moment; level -1 is its first right answer in training."""

    level: int
    at: float


class FamilyView(msgspec.Struct, frozen=True, kw_only=True):
    """How a family stands: `latest` of `questions` held-out questions were solved, `first` at the first probe,
    `practised` of the latest training answers. A snapshot leaves out what only a history knows."""

    name: str
    title: str
    level: int
    levels: int
    kind: str = ""
    """One of `app.sapo.families.family.FamilyKind`; empty if the family is not known here."""
    questions: int = 0
    latest: float | None = None
    first: float | None = None
    practised: float | None = None
    milestones: tuple[LevelReached, ...] = ()
    trend: tuple[float, ...] = ()
    """Every probe's share, oldest first."""
    learned_from: tuple[str, ...] = ()
    """Names of the peers whose answers taught it to begin with this family."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A peer whose groups passed the check in this run; `seen_at` in seconds since 1970."""

    name: str
    model: str = ""
    seen_at: float | None = None
    groups: int = 0
    families: tuple[str, ...] = ()
    """The families of its latest groups, at most six, the latest last."""
    since: float | None = None
    """When the first of its groups that arrived in this run was made."""


class SwarmView(msgspec.Struct, frozen=True, kw_only=True):
    """The swarm as this node sees it; counts are of this run, `waiting` is all that has no final answer yet."""

    name: str = ""
    """This node's own name, derived from its key; empty until the key is loaded."""
    connected: bool = False
    relay: str = ""
    sentence: str = ""
    """The state of the connection."""
    in_class: bool = False
    """Whether the owner joined as a student of a class."""
    class_paused: bool = False
    """Whether the class's teacher has paused it."""
    online: int = 0
    """Others online."""
    ready: int = 0
    """Checked groups that a round may take."""
    taken: int = 0
    taken_last: int = 0
    """Peers' groups trained on: in this run, and in the latest round."""
    sources: int = 0
    """Different peers they came from."""
    given: int = 0
    """Own groups that a relay has acknowledged."""
    helped: int = 0
    helped_with: int = 0
    """Other models that reported today that they learned from this node's groups, and from how many groups."""
    taught: dict[str, int] = {}
    """By family: how many other models ever said that this node's answers taught it to them."""
    pupils: int = 0
    """How many models that are in all."""
    given_ever: int = 0
    """The same with earlier runs included."""
    waiting: int = 0
    received: int = 0
    refused: dict[str, int] = {}
    """Reason to received groups that failed the check, the latest reason last."""
    invite: str = ""
    """The invite to this relay; empty where it would reveal a secret."""
    peers: tuple[Peer, ...] = ()
    """At most 500, the most recently seen last."""
    open_port: int | None = None
    """The port on which this computer hosts the relay for its network; None if it does not."""
    relay_name: str = ""
    """The relay's address as shown to people; empty without a relay."""
    bytes_per_hour: int | None = None
    received_per_hour: int | None = None
    """Bytes of all messages sent and received in the last 60 minutes; None before the first connection."""
    messages: tuple[LineMessage, ...] = ()
    """The latest ten messages each way as they were sent, the newest last, 64 KB at most. The secret in an
    `auth` message is left out."""


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """What learning takes: `watts` now and kilowatt hours of this calendar month. `measured` is False if any
    part of the month is an estimate."""

    watts: float
    month_kwh: float
    measured: bool = False


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules say: whether to run, and why (not). `reason` is a value of app.node.record.reasons.Reason,
    whose texts, filled in from `values`, are `sentence` and `short`. `until`: seconds since 1970 at which this
    may change by itself."""

    run: bool
    reason: str
    sentence: str
    short: str
    values: dict[str, str] = {}
    until: float | None = None
    idle_s: float | None = None
    idle_need_s: float | None = None
    """How long nobody has used the computer, and how long that must be; only if this is the reason."""
    dial: str
    effort: Effort
    energy: Energy | None = None


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`round` is the round in flight, `safe_round` the last checkpoint; times are seconds, of `time.time()`
    where they are moments. `done` of `total` completions count within the phase (kinds of puzzles
    while PLACING, right answers while GATHERING), `eta_s` is what is left of it."""

    model: str
    recipe: str
    home: str
    solo: bool
    started_at: float
    engine: EngineInfo | None = None
    phase: Phase = Phase.STARTING
    round: int = 1
    last_round: int | None = None
    """Where this run ends, None for no end."""
    done: int = 0
    total: int = 0
    eta_s: float | None = None
    curve: tuple[Probe, ...] = ()
    families: tuple[FamilyView, ...] = ()
    waiting: tuple[str, ...] = ()
    """Names of families that are too hard for this model yet."""
    answers: tuple[GroupRow, ...] = ()
    """Some of the latest round's groups, with their questions."""
    last: Round | None = None
    """The latest round of this run."""
    swarm: SwarmView | None = None
    ruling: Ruling | None = None
    """None for a node that runs without rules."""
    safe_round: int = 0
    safe_at: float | None = None
    note: str | None = None
    noted_at: float = 0.0


def said(phase: Phase) -> str:
    """A phase as people read it."""
    return _FOR_PEOPLE.get(phase, phase.value)


def doing(snapshot: Snapshot) -> str:
    """The phase and its progress as a line of text.

    >>> doing(Snapshot(model="m", recipe="r", home="h", solo=True, started_at=0.0, phase=Phase.SAMPLING,
    ...                done=14, total=32, eta_s=40.2))
    'answer 14 of 32, about 40 s'
    """
    if snapshot.phase is Phase.PAUSED and snapshot.ruling is not None:
        return snapshot.ruling.short
    left = f", about {span(snapshot.eta_s)}" if snapshot.eta_s is not None and snapshot.eta_s >= 1 else ""
    if snapshot.phase is Phase.PLACING:
        kinds = f", kind {snapshot.done} of {snapshot.total}" if snapshot.total else ""
        return said(snapshot.phase) + kinds
    if snapshot.phase is Phase.GATHERING:
        return f"{said(snapshot.phase)}, {snapshot.done} of {snapshot.total}"
    if snapshot.phase not in (Phase.SAMPLING, Phase.PROBING) or not snapshot.total:
        return said(snapshot.phase)
    what = "answer" if snapshot.phase is Phase.SAMPLING else f"{said(snapshot.phase)}: answer"
    return f"{what} {snapshot.done} of {snapshot.total}{left}"


def standing(curve: tuple[Probe, ...]) -> str:
    """How the curve is doing, as a sentence.

    >>> standing((Probe(round=0, share=0.16, stderr=0.023), Probe(round=30, share=0.31, stderr=0.029)))
    'New puzzles solved: 31.0 % ± 2.9 after round 30, 16.0 % ± 2.3 at round 0.'
    """
    if not curve:
        return "It hasn't been measured yet."
    last, first = curve[-1], curve[0]
    now = f"New puzzles solved: {last}"
    if first is last:
        return f"{now} at round {last.round}."
    return f"{now} after round {last.round}, {first} at round {first.round}."
