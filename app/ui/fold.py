"""From the node's lines to the View, one after another. Pure: no Qt, no files, no clock of its own.

Events the window does not know are passed over, fields it does not know too: an older window must live with a
newer node. A line that is no JSON object raises FoldError, because then the stream cannot be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import localtime, mktime
from typing import Any

import msgspec

from app.node.reasons import Reason
from app.node.snapshot import Ruling
from app.sapo.families import FAMILIES
from app.ui.model import (
    Answer,
    Family,
    Group,
    Happening,
    Milestone,
    Peer,
    Point,
    Round,
    State,
    Step,
    Swarm,
    Today,
    View,
)
from app.ui.past import GROUPS, Past, round_row
from app.ui.texts import tr
from engines.contract import EngineInfo

WINDOW = 20
"""Rounds over which training answers of a family are counted."""
HAPPENINGS = 5000

Levels = dict[str, tuple[int, int, int]]


class FoldError(ValueError):
    """A line that is no message of a node."""


class _Started(msgspec.Struct):
    model: str
    round: int
    recipe: str
    engine: EngineInfo
    home: str = ""
    external: int = 0
    families: dict[str, int] = {}


class _Round(msgspec.Struct):
    round: int
    informative_own: int
    informative_peer: int
    train_solved: float
    seconds: float
    tokens_per_s: float
    families: Levels = {}
    peers: dict[str, int] = {}


class _Probe(msgspec.Struct):
    round: int
    pass_at_1: float
    stderr: float
    families: dict[str, float]
    questions: int


class _Link(msgspec.Struct):
    state: str
    url: str
    sentence: str


class _SwarmDone(msgspec.Struct):
    """Counts of the node's event of that name; see app.node.events."""

    connected: bool
    received: int
    refused: dict[str, int]
    acknowledged: int
    waiting: int
    peers: int | None


class _Snapshot(msgspec.Struct):
    """What of app.node.snapshot.Snapshot the window takes; a missing field means: as before."""

    phase: str = ""
    round: int | None = None
    last_round: int | None = None
    done: int = 0
    total: int = 0
    eta_s: float | None = None
    safe_round: int | None = None
    safe_at: float | None = None
    answers: tuple[dict[str, Any], ...] | None = None
    ruling: Ruling | None = None
    swarm: dict[str, Any] | None = None


class Fold:
    """`view` is always current. `levels` and `probed` are kept beside it: families are computed from them."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._levels: list[tuple[float, Levels]] = []
        self._probed: list[tuple[int, float, int, dict[str, float]]] = []
        self._now_at: dict[str, int] = {}
        self._run = 0

    def change(self, **fields: object) -> None:
        self.view = msgspec.structs.replace(self.view, **fields)

    def recall(self, past: Past) -> None:
        """Takes over a history as it lies on the disk."""
        self._levels, self._probed = list(past.levels), list(past.probed)
        self._run = max((run.run for run in past.runs), default=0)
        if past.levels:
            self._now_at = {
                name: counts[0] for _, levels in past.levels[-WINDOW:] for name, counts in levels.items()
            } | self._now_at
        last = past.rounds[-1] if past.rounds else None
        self.change(
            curve=past.curve,
            rounds=past.rounds,
            runs=past.runs,
            happenings=past.happenings,
            groups=self.view.groups or past.groups,
            safe_round=last.round if last else 0,
            safe_at=last.at if last else None,
            round_s=last.seconds if last else self.view.round_s,
        )
        self.change(families=self._families())

    def line(self, line: bytes, now: float) -> str:
        """Takes one line in; returns the event's name. Raises FoldError."""
        try:
            event = msgspec.json.decode(line)
            name = event["event"]
            self._take(name, event, now)
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            raise FoldError(f"A line of the node could not be understood: {error}") from error
        return str(name)

    def tick(self, now: float) -> None:
        """The day may have ended."""
        self.change(today=today(self.view.rounds, now))

    def _take(self, name: str, event: dict[str, Any], now: float) -> None:
        match name:
            case "start":
                self._started(msgspec.convert(event, _Started), now)
            case "round":
                self._round(msgspec.convert(event, _Round), now)
            case "probe":
                self._probe(msgspec.convert(event, _Probe), now)
            case "checkpoint":
                self.change(safe_round=int(event["round"]), safe_at=now)
            case "note" | "trainer_restarted":
                self._happened(name, int(event["round"]), str(event["sentence"]), now)
                if name == "trainer_restarted":
                    self._step(Step.WAITING, now)
            case "identity":
                self._swarm(name=str(event["name"]))
            case "link":
                link = msgspec.convert(event, _Link)
                self._swarm(connected=link.state == "connected", relay=link.url, sentence=link.sentence)
            case "swarm":
                done = msgspec.convert(event, _SwarmDone)
                self._swarm(
                    connected=done.connected,
                    received=done.received,
                    refused=done.refused,
                    given=done.acknowledged,
                    waiting=done.waiting,
                    online=done.peers or 0,
                )
            case "settings":
                self.change(rules=dict(event["values"]))
            case "refused":
                self._happened(name, int(event["round"]), str(event["sentence"]), now)
            case "snapshot":
                self._snapshot(msgspec.convert(event["snapshot"], _Snapshot), now)

    def _started(self, event: _Started, now: float) -> None:
        self._now_at.update(event.families)
        self.change(
            state=State.LEARNING,
            reason="",
            until=None,
            problem=None,
            model=event.model,
            recipe=event.recipe,
            engine=event.engine,
            home=event.home or self.view.home,
            round=event.round + 1,
            safe_round=event.round,
        )
        self._step(Step.DRAWING if self._probed else Step.PROBING, now)
        self.change(families=self._families())

    def _round(self, event: _Round, now: float) -> None:
        row = round_row(
            event.round,
            self._run,
            now,
            event.seconds,
            event.informative_own,
            event.informative_peer,
            event.train_solved,
            event.families,
        )
        self._levels.append((now, event.families))
        self._now_at.update({name: counts[0] for name, counts in event.families.items()})
        kept = self.view.rounds
        while kept and kept[-1].round >= event.round:
            kept = kept[:-1]
        self.change(
            state=self.view.state if self.view.ruling else State.LEARNING,
            rounds=(*kept, row),
            round=event.round + 1,
            round_s=event.seconds,
            tokens_per_s=event.tokens_per_s,
            done=0,
            total=0,
            left_s=None,
        )
        if event.peers:
            self._learned_from(event.peers, now)
        self._step(Step.DRAWING, now)
        self.change(families=self._families(), today=today(self.view.rounds, now))

    def _swarm(self, **fields: object) -> None:
        self.change(swarm=msgspec.structs.replace(self.view.swarm or Swarm(), **fields))

    def _learned_from(self, peers: dict[str, int], now: float) -> None:
        before = self.view.swarm or Swarm()
        rows = {peer.name: peer for peer in before.peers}
        for name, groups in peers.items():
            row = rows.get(name, Peer(name=name))
            rows[name] = msgspec.structs.replace(row, groups=row.groups + groups, seen_at=now)
        self._swarm(peers=tuple(rows.values()), taken=before.taken + sum(peers.values()))

    def _probe(self, event: _Probe, now: float) -> None:
        point = Point(round=event.round, pass_at_1=event.pass_at_1, stderr=event.stderr, at=now)
        curve = tuple(old for old in self.view.curve if old.round < event.round)
        self._probed = [old for old in self._probed if old[0] < event.round]
        self._probed.append((event.round, now, event.questions, event.families))
        self.change(curve=(*curve, point), done=0, total=0, left_s=None)
        self._step(Step.DRAWING, now)
        self.change(families=self._families())

    def _happened(self, kind: str, round: int, sentence: str, now: float) -> None:
        row = Happening(at=now, round=round, kind=kind, sentence=sentence)
        self.change(happenings=(*self.view.happenings[-HAPPENINGS + 1 :], row), news=sentence)

    def _snapshot(self, snapshot: _Snapshot, now: float) -> None:
        if step := _step_named(snapshot.phase):
            self._step(step, now)
        fields: dict[str, object] = dict(done=snapshot.done, total=snapshot.total, left_s=snapshot.eta_s)
        fields |= {
            name: value
            for name in ("round", "last_round", "safe_round", "safe_at")
            if (value := getattr(snapshot, name)) is not None
        }
        if snapshot.ruling is not None:
            fields |= _ruled(snapshot.ruling, snapshot.phase)
        if snapshot.swarm is not None:
            fields["swarm"] = _swarm(snapshot.swarm, self.view.swarm)
        if snapshot.answers:
            made = tuple(_group(answer, self.view.round, now) for answer in snapshot.answers)
            fields["groups"] = merge_groups(made, self.view.groups)
        self.change(**fields)

    def saw_groups(self, groups: Sequence[Group]) -> None:
        self.change(groups=merge_groups(groups, self.view.groups))

    def _step(self, step: Step, now: float) -> None:
        if step is not self.view.step or self.view.step_since is None:
            self.change(step=step, step_since=now)

    def _families(self) -> tuple[Family, ...]:
        return families(self._now_at, self._levels, self._probed)


def families(
    now_at: dict[str, int],
    levels: Sequence[tuple[float, Levels]],
    probed: Sequence[tuple[int, float, int, dict[str, float]]],
) -> tuple[Family, ...]:
    """What is known of every family in play, in the order of their titles."""
    milestones = _milestones(levels)
    made = []
    for name in now_at or (probed[-1][3] if probed else {}):
        level = now_at.get(name, 0)
        recent = [counts for _, found in levels[-WINDOW:] if (counts := found.get(name)) and counts[0] == level]
        trend = tuple(shares[name] for _, _, _, shares in probed if name in shares)
        known = FAMILIES.get(name)
        made.append(
            Family(
                name=name,
                title=tr(known.title) if known else name,
                level=level,
                levels=len(known.levels) if known else level + 1,
                questions=_share_of(name, probed[-1][2], probed[-1][3]) if probed else 0,
                latest=trend[-1] if trend else None,
                first=trend[0] if trend else None,
                trend=trend,
                solved=sum(counts[1] for counts in recent),
                answered=sum(counts[2] for counts in recent),
                milestones=milestones.get(name, ()),
            )
        )
    return tuple(sorted(made, key=lambda family: family.title))


def _share_of(name: str, questions: int, shares: dict[str, float]) -> int:
    """How many of a probe's questions are of one family: they are dealt out evenly, the first ones get the rest
    (app.sapo.probe)."""
    names = sorted(shares)
    return (questions + len(names) - 1 - names.index(name)) // len(names) if name in shares else 0


def _milestones(levels: Iterable[tuple[float, Levels]]) -> dict[str, tuple[Milestone, ...]]:
    """First right answer in training, and every level reached beyond the first seen."""
    found: dict[str, list[Milestone]] = {}
    highest: dict[str, int] = {}
    solved: set[str] = set()
    for at, families in levels:
        for name, (level, right, _) in families.items():
            if right and name not in solved:
                solved.add(name)
                found.setdefault(name, []).append(Milestone(level=-1, at=at))
            if level > highest.setdefault(name, level):
                highest[name] = level
                found.setdefault(name, []).append(Milestone(level=level, at=at))
    return {name: tuple(rows) for name, rows in found.items()}


def today(rounds: Sequence[Round], now: float) -> Today:
    """Counts since local midnight; rounds from the future (a clock set back) count as well."""
    day = localtime(now)
    midnight = mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
    solved = answered = count = 0
    for row in reversed(rounds):
        if row.at < midnight:
            break
        solved, answered, count = solved + row.solved, answered + row.answered, count + 1
    return Today(solved=solved, answered=answered, rounds=count)


def merge_groups(new: Sequence[Group], old: Sequence[Group]) -> tuple[Group, ...]:
    """The newest first; rounds that are in `new` replace those in `old`."""
    rounds = {group.round for group in new}
    kept = [group for group in old if group.round not in rounds]
    return tuple([*new, *kept][:GROUPS])


def _ruled(ruling: Ruling, phase: str) -> dict[str, object]:
    """What a ruling makes of the state. A node that may run and is not there yet is starting."""
    if ruling.run:
        begins = (Step.STARTING, Step.LOADING)
        state = State.STARTING if _step_named(phase) in begins else State.LEARNING
    else:
        by_owner = ruling.reason in (Reason.PAUSED.value, Reason.SNOOZED.value)
        state = State.PAUSED if by_owner else State.WAITING
    return dict(ruling=ruling, state=state, until=ruling.until, problem=None)


def _step_named(phase: str) -> Step | None:
    return next((step for step in Step if phase in (step.value, step.name)), None)


def _group(answer: dict[str, Any], round: int, now: float) -> Group:
    texts = answer.get("completions_G") or [answer.get("completion", "")]
    rewards = answer.get("rewards_G") or [answer.get("solved", False)]
    return Group(
        round=int(answer.get("round", max(0, round - 1))),
        at=float(answer.get("at", now)),
        family=str(answer["family"]),
        level=int(answer.get("level", -1)),
        question=answer.get("question"),
        peer=answer.get("who"),
        answers=tuple(
            Answer(text=str(text), solved=bool(right)) for text, right in zip(texts, rewards, strict=False)
        ),
    )


def _swarm(found: dict[str, Any], before: Swarm | None) -> Swarm:
    """The node's SwarmView; `online` is its `peers`, rows and messages come when they changed."""
    fields = {
        name: found[name]
        for name in Swarm.__struct_fields__
        if name in found and name not in ("peers", "messages")
    }
    rows = found.get("peer_rows")
    peers = msgspec.convert(rows, tuple[Peer, ...]) if rows is not None else (before.peers if before else ())
    messages = found.get("messages")
    kept = before.messages if before else ()
    made = msgspec.convert(fields | {"online": found.get("peers", 0)}, Swarm)
    if messages is not None:
        kept = msgspec.convert({"messages": messages}, Swarm).messages
    return msgspec.structs.replace(made, peers=peers, messages=kept)
