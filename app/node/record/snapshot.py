"""The snapshot that every view shows: one frozen value, replaced whenever something changes. Views read it
and nothing else."""

from __future__ import annotations

from enum import Enum

import msgspec

from app.common.text import span
from app.node.record.effort import Effort
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
    """The trainer has ended; `Snapshot.ruling` says why and until when."""
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
"""Where the value, which windows and nodes of other versions know, is not what people say."""


class FamilyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One family: its level of how many, the share solved in training of late, and at the first and latest
    probe."""

    title: str
    level: int
    levels: int
    solved: float | None
    first_probe: float | None
    latest_probe: float | None


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A peer whose groups passed the check in this run; `seen_at` in seconds since 1970."""

    name: str
    model: str = ""
    seen_at: float | None = None
    groups: int = 0
    families: tuple[str, ...] = ()
    """The families of its latest groups, at most six, the latest last."""
    since: float | None = None
    """When the first group of it was made that came in this run."""


class SwarmView(msgspec.Struct, frozen=True, kw_only=True):
    """The swarm as this node sees it; counts are of this run, `waiting` is all that has no final answer yet."""

    name: str = ""
    """This node's own, derived from its key; empty until the key is there."""
    connected: bool = False
    relay: str = ""
    sentence: str = ""
    """How the link stands."""
    in_class: bool = False
    """The owner joined as one of a class."""
    class_paused: bool = False
    """By its teacher."""
    online: int = 0
    """Others online."""
    ready: int = 0
    """Checked groups that a round may take."""
    taken: int = 0
    taken_last: int = 0
    """Peers' groups trained on: of this run, and in the latest round."""
    sources: int = 0
    """Different peers they came from."""
    given: int = 0
    """Own groups that a relay has acknowledged."""
    helped: int = 0
    helped_with: int = 0
    """Other models that said today that they learned from this node's groups, and from how many."""
    taught: dict[str, int] = {}
    """By family: how many other models ever said that this node's answers taught it to them."""
    pupils: int = 0
    """How many models that are in all."""
    given_ever: int = 0
    """Those of earlier runs among them."""
    waiting: int = 0
    received: int = 0
    refused: dict[str, int] = {}
    """Reason to received groups that failed the check, the latest reason last."""
    invite: str = ""
    """How others come to this relay; empty where that would tell a secret."""
    peers: tuple[Peer, ...] = ()
    """The latest seen last, at most 500."""
    open_port: int | None = None
    """The port at which this computer is itself the meeting point, for its whole network; else None."""
    relay_name: str = ""
    """The relay's address, as people know it; empty while there is none."""
    bytes_per_hour: int | None = None
    received_per_hour: int | None = None
    """Bytes of all messages that left and that came in the last 60 minutes; None before there is a line."""
    messages: tuple[LineMessage, ...] = ()
    """The latest ten of each way as they went over the line, the newest last, 64 KB at most. An `auth` is told
    without what opens the swarm."""


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """What learning takes: `watts` at present and kilowatt hours of this calendar month. `measured` is False
    where any part of the month is an estimate."""

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
    """How long no one has used the computer, and how long that must be; only where this is the reason."""
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
    families: tuple[FamilyRow, ...] = ()
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
    """A phase for people."""
    return _FOR_PEOPLE.get(phase, phase.value)


def doing(snapshot: Snapshot) -> str:
    """The phase as a line for people.

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
    """Where the curve stands, in a sentence.

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
