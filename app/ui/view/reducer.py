"""Builds the View from the node's lines, one after another. Pure: no Qt, no files, no clock.

At the start `recall` loads the history; then `line` handles each line of the running node in order, and `tick`
starts a new day. Rounds and probes come complete, as the history has them; the node's state comes in snapshots.
`Fold` owns the current `view`, a frozen value that is replaced at every change; `Control`
(app.ui.process.control) owns the process and decides when pages are redrawn.

Unknown events and fields are skipped, because an older window must work with a newer node, and nothing is
computed from log texts. A line that is not a JSON object raises FoldError, because then the stream cannot be
trusted."""

from __future__ import annotations

from collections.abc import Sequence
from time import localtime, mktime
from typing import Any

import msgspec

from app.node.history.history import MAX_GROUPS_READ, History
from app.node.record.reasons import Reason
from app.node.record.records import JOINED_QUESTIONS, GroupRow, LogEntry, Probe, Round
from app.node.record.snapshot import FamilyView, Ruling, Snapshot
from app.sapo.families import FAMILIES
from app.sapo.sets.question_set import is_owners_set
from app.ui.language.texts import family_titles, tr
from app.ui.view.learned import learned_today
from app.ui.view.view import NodeStatus, Step, Today, View, with_model_state

WINDOW = 20
"""Number of latest rounds of a history whose families count as active."""
HAPPENINGS = 5000
_ENGINE = ("model", "recipe", "engine", "home")
_PLACE = ("round", "last_round", "safe_round", "safe_at")


class FoldError(ValueError):
    """A line is not a message of a node."""


class Fold:
    """Folds the node's lines into `view`, which is always current."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._levels: dict[str, int] = {}
        """Where families stand now."""

    def change(self, **fields: object) -> None:
        self.view = msgspec.structs.replace(self.view, **fields)

    def recall(self, past: History) -> None:
        """Loads a history from the disk."""
        last = past.rounds[-1] if past.rounds else None
        known = {name: counts[0] for one in past.rounds[-WINDOW:] for name, counts in one.families.items()}
        self._levels = known | self._levels
        self._show(
            curve=past.curve,
            rounds=past.rounds,
            taken=sum(row.taken for row in past.rounds),
            runs=past.runs,
            happenings=past.happenings,
            groups=self.view.groups or past.groups,
            safe_round=last.round if last else 0,
            safe_at=last.at if last else None,
        )

    def line(self, line: bytes, now: float) -> str:
        """Handles one line; returns the event's name. Raises FoldError."""
        try:
            event = msgspec.json.decode(line)
            name = event["event"]
            self._take(name, event, now)
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            raise FoldError(f"A line of the node could not be understood: {error}") from error
        return str(name)

    def tick(self, now: float) -> None:
        """Starts a new day in the counts if the day has changed."""
        self.change(today=today(self.view.rounds, now))

    def _take(self, name: str, event: dict[str, Any], now: float) -> None:
        match name:
            case "start":
                skill = next(filter(is_owners_set, event["families"]), "")
                if skill != self.view.skill:
                    self._levels, self.view = (
                        {},
                        with_model_state(self.view, model=self.view.model, skill=skill),
                    )
                self._levels |= event["families"]
                self._show()
                self.change(state=NodeStatus.LEARNING, reason="", until=None, problem=None)
            case "round":
                self._round(msgspec.convert(event, Round))
                self.tick(now)
            case "probe":
                self._probe(msgspec.convert(event, Probe))
            case "decision":
                self._append(name, event, str(event["sentence"]), now)
            case "note" | "trainer_restarted" | "refused" | "flat":
                self._happened(name, event, str(event["sentence"]), now)
            case "placement":
                self._levels = dict(event["families"]) or self._levels
                self._happened(name, event, str(event["sentence"]), now)
            case "skill":
                self._levels |= {event["family"]: event["level"]}
                self._show()
                self._happened(name, event, str(event["sentence"]), now)
            case "settings":
                self.change(rules=dict(event["values"]))
            case "snapshot":
                self._snapshot(event["snapshot"], now)

    def _happened(self, kind: str, event: dict[str, Any], sentence: str, now: float) -> None:
        self._append(kind, event, sentence, now)
        self.change(news=sentence)

    def _append(self, kind: str, event: dict[str, Any], sentence: str, now: float) -> None:
        row = LogEntry(at=now, round=int(event["round"]), kind=kind, sentence=sentence)
        self.change(happenings=(*self.view.happenings[-HAPPENINGS + 1 :], row))

    def _round(self, row: Round) -> None:
        """Adds a round; one that was played again replaces the earlier one."""
        self._levels |= {name: counts[0] for name, counts in row.families.items()}
        kept, taken = self.view.rounds, self.view.taken + row.taken
        while kept and kept[-1].round >= row.round:
            taken -= kept[-1].taken
            kept = kept[:-1]
        self._show(rounds=(*kept, row), taken=taken)

    def _probe(self, row: Probe) -> None:
        """Adds a probe; one over other questions begins a new curve."""
        mark = row.questions_mark
        kept = (old for old in self.view.curve if old.round < row.round and old.questions_mark == mark)
        self._show(curve=(*kept, row))

    def _show(self, **fields: object) -> None:
        self.change(**fields)
        view = self.view
        self.change(families=families(self._levels, view.rounds, view.curve))

    def _snapshot(self, told: dict[str, Any], now: float) -> None:
        """Updates the state; fields that are missing in the message stay unchanged."""
        snapshot, before = msgspec.convert(told, Snapshot), self.view
        fields: dict[str, object] = dict(done=snapshot.done, total=snapshot.total, left_s=snapshot.eta_s)
        if snapshot.engine is not None:
            fields |= {name: getattr(snapshot, name) for name in (*_ENGINE, *_PLACE)}
        if snapshot.phase is not before.step or before.step_since is None:
            fields |= dict(step=snapshot.phase, step_since=now)
        if snapshot.ruling is not None:
            fields |= _ruled(snapshot.ruling, snapshot.phase)
        if (swarm := snapshot.swarm) is not None and not before.solo:  # a node that leaves may still tell
            if before.swarm is not None and "messages" not in told["swarm"]:
                swarm = msgspec.structs.replace(swarm, messages=before.swarm.messages)
            fields["swarm"] = swarm
        fields["lesson"] = snapshot.lesson
        fields["waiting"] = family_titles(snapshot.waiting)
        if snapshot.answers:
            fields["groups"] = merge_groups(snapshot.answers, before.groups)
        self.change(**fields)


def families(levels: dict[str, int], rounds: Sequence[Round], curve: Sequence[Probe]) -> tuple[FamilyView, ...]:
    """Returns a FamilyView of every active family, sorted by title; () before the first measurement and round.
    `levels` has each family's current level."""
    if not rounds and not curve:
        return ()  # a placement still finds out which of them it can begin with
    taught: dict[str, tuple[str, ...]] = {}
    practised: set[str] = set()
    for one in rounds:  # a lesson also teaches families further that were known before
        practised |= one.families.keys()
        taught |= {name: one.lesson_from for name in one.lesson_families if name not in practised}
    made = []
    for name in levels or (curve[-1].families if curve else {}):
        level = levels.get(name, 0)
        measured = [probe.families | probe.joined for probe in curve]
        trend = tuple(shares[name] for shares in measured if name in shares)
        known = FAMILIES.get(name)
        made.append(
            FamilyView(
                name=name,
                title=tr(known.title) if known else name,
                level=level,
                levels=len(known.levels) if known else level + 1,
                kind=known.kind if known else "",
                questions=_share_of(name, curve[-1]) if curve else 0,
                latest=trend[-1] if trend else None,
                first=trend[0] if len(trend) > 1 else None,
                learned_from=taught.get(name, ()),
            )
        )
    return tuple(sorted(made, key=lambda family: family.title))


def _share_of(name: str, probe: Probe) -> int:
    """Returns how many of a probe's questions belong to one family: they are spread evenly, and the first
    families get the remainder (app.sapo.probe). Families that joined later have their own count."""
    if name in probe.joined:
        return JOINED_QUESTIONS
    names = sorted(probe.families)
    return (probe.questions + len(names) - 1 - names.index(name)) // len(names) if name in names else 0


def today(rounds: Sequence[Round], now: float) -> Today:
    """Returns counts since local midnight, including rounds from the future (a clock set back)."""
    day = localtime(now)
    midnight = mktime((day.tm_year, day.tm_mon, day.tm_mday, 0, 0, 0, 0, 0, -1))
    before = next((at for at in range(len(rounds), 0, -1) if rounds[at - 1].at < midnight), 0)
    some = rounds[before:]
    return Today(
        solved=sum(row.solved for row in some),
        answered=sum(row.answered for row in some),
        rounds=len(some),
        learned=learned_today(some),
    )


def merge_groups(new: Sequence[GroupRow], old: Sequence[GroupRow]) -> tuple[GroupRow, ...]:
    """Returns the groups newest first; rounds that are in `new` replace those in `old`."""
    rounds = {group.round for group in new}
    kept = [group for group in old if group.round not in rounds]
    return tuple([*new, *kept][:MAX_GROUPS_READ])


def _ruled(ruling: Ruling, phase: Step) -> dict[str, object]:
    """The fields that follow from a ruling. A node that may run but is not running yet is starting."""
    if ruling.run:
        state = NodeStatus.STARTING if phase in (Step.STARTING, Step.LOADING) else NodeStatus.LEARNING
    else:
        by_owner = ruling.reason in (Reason.PAUSED.value, Reason.SNOOZED.value)
        state = NodeStatus.PAUSED if by_owner else NodeStatus.WAITING
    return dict(ruling=ruling, state=state, until=ruling.until, problem=None)
