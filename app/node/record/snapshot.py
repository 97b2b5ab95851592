"""The snapshot: one frozen value, replaced at every change, which is all that views read."""

from __future__ import annotations

from enum import Enum

import msgspec

from app.common.text import rounded_duration
from app.node.record.reasons import Effort
from app.node.record.records import GroupRow, Probe, Round
from app.swarm.client.status import Peer
from app.swarm.wire.limits import LoggedMessage
from engines.contract import EngineInfo


class Phase(Enum):
    """The node's current activity. The value is the phrase that views show, followed by the progress if
    known."""

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
"""Phrases shown instead of the values of some phases. The values themselves must not change: windows and nodes
of other versions know them."""


class FamilyView(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a family: `latest` is the share of `questions` held-out questions solved, `first` the
    share at the first probe, `practised` the share of right answers in training. Fields that only a history
    knows are empty in a snapshot."""

    name: str
    title: str
    level: int
    levels: int
    kind: str = ""
    """One of `app.sapo.families.family.FamilyKind`; empty if the family is unknown here."""
    questions: int = 0
    latest: float | None = None
    first: float | None = None
    """None until it was measured twice."""
    practised: float | None = None
    learned_from: tuple[str, ...] = ()
    """Names of the peers whose answers opened this family."""


class SwarmView(msgspec.Struct, frozen=True, kw_only=True):
    """The swarm as this node sees it. Counts are for this run; `waiting`: own groups without a final answer
    yet."""

    name: str = ""
    """This node's own name, derived from its key; empty until the key is loaded."""
    connected: bool = False
    relay: str = ""
    sentence: str = ""
    """The state of the connection."""
    in_class: bool = False
    """Whether the owner joined as a student of a class."""
    lesson_over: bool = False
    """Whether its lesson has ended: no relay is tried until the owner joins again."""
    class_paused: bool = False
    """Whether the class's teacher has paused it."""
    online: int = 0
    """Others online."""
    ready: int = 0
    """Number of checked groups available to a round."""
    taken: int = 0
    taken_last: int = 0
    """Number of peers' groups trained on: in this run (`taken`), and in the latest round."""
    sources: int = 0
    """Number of different peers these groups came from."""
    given: int = 0
    """Own groups that a relay has acknowledged."""
    helped: int = 0
    """Number of models that reported today that they learned from this node's groups."""
    taught: dict[str, int] = {}
    """By family: how many models ever reported that this node's answers opened it for them."""
    pupils: int = 0
    """Number of different models in these reports."""
    given_ever: int = 0
    """Own groups that a relay has acknowledged in all runs."""
    waiting: int = 0
    received: int = 0
    refused: dict[str, int] = {}
    """Number of received groups that failed a check, by reason; the latest reason is last."""
    invite: str = ""
    """The invite to this relay; empty where it would reveal a secret."""
    peers: tuple[Peer, ...] = ()
    """At most 500 peers, the most recently seen last."""
    open_port: int | None = None
    """The port on which this computer runs a relay for its network; None if it does not."""
    relay_name: str = ""
    """The relay's address as shown to people; empty without a relay."""
    bytes_per_hour: int = 0
    received_per_hour: int = 0
    """Bytes that connections to relays carried in the last hour, of this run and earlier ones."""
    messages: tuple[LoggedMessage, ...] = ()
    """The latest ten messages in each direction as sent, newest last, at most 64 KB. The secret in an `auth`
    message is left out."""


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """The decision of the rules: whether to run, and the reason. `reason` is a value of
    app.node.record.reasons.Reason, whose texts, with `values` filled in, are `sentence` and `short`. `until`:
    Unix time at which this may change without further events."""

    run: bool
    reason: str
    sentence: str
    short: str
    values: dict[str, str] = {}
    until: float | None = None
    idle_s: float | None = None
    idle_need_s: float | None = None
    """`idle_s`: seconds since the computer was last used. `idle_need_s`: how many are needed. Set only if this
    is the reason."""
    dial: str
    effort: Effort
    watts: float = 0.0
    """An estimate of what learning draws now; 0 before it is known."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """`round`: the round in flight. `safe_round`: the last checkpoint. Times are in seconds; moments are Unix
    times. `done` of `total` completions count within the phase (kinds of puzzles while PLACING, right answers
    while GATHERING); `eta_s`: estimated seconds left of the phase."""

    model: str
    recipe: str
    home: str
    solo: bool
    started_at: float
    engine: EngineInfo | None = None
    phase: Phase = Phase.STARTING
    round: int = 1
    last_round: int | None = None
    """The round at which this run ends; None for no end."""
    lesson: bool = False
    """Whether this phase is of a lesson from other models' answers: reading and learning them, and the trial
    afterwards. False in an ordinary round and in the first lesson."""
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


def phase_phrase(phase: Phase) -> str:
    """Returns the phrase that people read for a phase."""
    return _FOR_PEOPLE.get(phase, phase.value)


def progress_line(snapshot: Snapshot) -> str:
    """Returns the phase and its progress as a line of text.

    >>> progress_line(Snapshot(model="m", recipe="r", home="h", solo=True, started_at=0.0, phase=Phase.SAMPLING,
    ...                done=14, total=32, eta_s=40.2))
    'answer 14 of 32, about 40 s'
    """
    if snapshot.phase is Phase.PAUSED and snapshot.ruling is not None:
        return snapshot.ruling.short
    left = (
        f", about {rounded_duration(snapshot.eta_s)}"
        if snapshot.eta_s is not None and snapshot.eta_s >= 1
        else ""
    )
    if snapshot.phase is Phase.PLACING:
        kinds = f", kind {snapshot.done} of {snapshot.total}" if snapshot.done and snapshot.total else ""
        if snapshot.lesson:
            return "testing what a lesson from others changes" + kinds
        if snapshot.safe_round and not snapshot.total:
            return "trying other kinds of puzzles"
        return phase_phrase(snapshot.phase) + kinds
    if snapshot.phase is Phase.GATHERING:
        return f"{phase_phrase(snapshot.phase)}, {snapshot.done} of {snapshot.total}"
    if snapshot.lesson:
        return "learning from other models' answers" + left
    if snapshot.phase not in (Phase.SAMPLING, Phase.PROBING) or not snapshot.total:
        return phase_phrase(snapshot.phase)
    what = "answer" if snapshot.phase is Phase.SAMPLING else f"{phase_phrase(snapshot.phase)}: answer"
    return f"{what} {snapshot.done} of {snapshot.total}{left}"


def curve_sentence(curve: tuple[Probe, ...]) -> str:
    """Returns a sentence about the latest and the first point of the curve.

    >>> curve_sentence((Probe(round=0, share=0.16, stderr=0.023), Probe(round=30, share=0.31, stderr=0.029)))
    'New puzzles solved: 31.0 % ± 2.9 after round 30, 16.0 % ± 2.3 at round 0.'
    """
    if not curve:
        return "It hasn't been measured yet."
    last, first = curve[-1], curve[0]
    now = f"{last.subject}: {last}"
    if first is last:
        return f"{now} at round {last.round}."
    return f"{now} after round {last.round}, {first} at round {first.round}."
