"""Sentences about a View that several places show: the page, the side bar, the tray. Having one source, they
never disagree."""

from __future__ import annotations

import re
import time
from datetime import date

from PySide6.QtCore import QDateTime, QLocale

from app.models.catalogue import title
from app.node.record.reasons import Reason
from app.node.record.snapshot import Ruling, SwarmView
from app.sapo.families import FAMILIES
from app.ui.language.texts import counted, family_titles, number, percent, span, tr, translated
from app.ui.view import engine_words
from app.ui.view.learned import LearnedToday
from app.ui.view.view import NodeStatus, Step, View

_OPEN_STATES = (NodeStatus.LEARNING, NodeStatus.STARTING)


def state_name(state: NodeStatus) -> str:
    """Returns a state in a word or two."""
    return {
        NodeStatus.NEW: tr("Not started"),
        NodeStatus.STARTING: tr("Starting"),
        NodeStatus.LEARNING: tr("learning").capitalize(),  # "Learning" is a heading, and another word elsewhere
        NodeStatus.WAITING: tr("Waiting"),
        NodeStatus.PAUSED: tr("Paused"),
        NodeStatus.STOPPING: tr("Stopping"),
        NodeStatus.FAILED: tr("Stopped by a problem"),
    }[state]


def power(view: View) -> str:
    """Returns a sentence on the power that learning draws; empty where a graphics card draws more, and before
    it is known."""
    watts = view.ruling.watts if view.ruling is not None else 0.0
    if not watts or view.engine is None or view.engine.device != "CPU":
        return ""
    return tr("About {watts} W now (estimate).", watts=number(watts, 1 if watts < 5 else 0))


def reason(view: View, now: float) -> str:
    """Returns a sentence on why the node does what it does."""
    pack = view.pack
    if pack is not None and pack.doing is not None and not pack.usable:
        return tr("{what}: {line}", what=engine_words.heading(pack), line=engine_words.short(pack.doing))
    ruling = view.ruling
    if ruling is not None and ruling.reason != Reason.RUNNING.value:
        return ruling_sentence(ruling, now)
    match view.state:
        case NodeStatus.NEW:
            return tr("Ready when you are.")
        case NodeStatus.STARTING:
            return tr("Loading the model.")
        case NodeStatus.LEARNING if view.step is Step.NO_ROOM:
            return tr("The disk is full: free up some space. Learning continues by itself.")
        case NodeStatus.LEARNING if view.solo:
            return tr("Learning on its own. Nothing leaves this computer.")
        case NodeStatus.LEARNING:
            return tr("Learning with others.")
        case NodeStatus.WAITING if view.until is not None:
            wait = max(0.0, view.until - now)
            return tr("{sentence} It restarts in {span}.", sentence=_ended(view.reason), span=span(wait))
        case NodeStatus.STOPPING:
            return tr("Saving what it learned.")
        case _:
            return view.reason


def ruling_sentence(ruling: Ruling, now: float) -> str:
    """Returns a ruling's sentence in the person's language; if only a newer node knows the reason, it may stay
    English."""
    known, values = known_reason(ruling), dict(ruling.values)
    if ruling.until is not None and "until" in values:
        values["until"] = until(ruling.until, now)
    return tr(known.sentence, **values) if known is not None else translated(ruling.sentence)


def known_reason(ruling: Ruling) -> Reason | None:
    """Returns the reason of the ruling; None if this window does not know it."""
    return next((reason for reason in Reason if reason.value == ruling.reason), None)


def is_held_back(view: View) -> bool:
    """Whether the rules or the owner prevent learning at the moment."""
    return view.ruling is not None and not view.ruling.run


def waits_for_absence(view: View) -> str:
    """Returns how long the computer must be unused before the model learns; empty if it also learns while
    somebody uses it, or not at all."""
    rules, waits = view.rules, view.willing and view.rules.get("contribute_when_idle")
    return span(float(rules["idle_s"])) if waits and "idle_s" in rules else ""


def finishing(view: View) -> bool:
    return view.ruling is not None and view.ruling.reason == Reason.FINISHING.value


def contributes(view: View) -> bool:
    """Whether the model learns whenever the rules allow it."""
    return view.state in (NodeStatus.LEARNING, NodeStatus.STARTING, NodeStatus.WAITING)


def clock(moment: float, now: float) -> str:
    """Returns a Unix time as a time of day, with the weekday if it is another day."""
    return _written(moment, tr("HH:mm") if _same_day(moment, now) else tr("ddd HH:mm"))


def until(moment: float, now: float) -> str:
    """Returns a future Unix time as `clock` does, with its date if it is not this week."""
    days = (date.fromtimestamp(moment) - date.fromtimestamp(now)).days
    return _written(moment, tr("d MMMM")) if days > 6 else clock(moment, now)


def day(moment: float) -> str:
    """Returns a Unix time as a date: "21 Nov 2026" with the month in the person's language."""
    return _written(moment, tr("d MMM yyyy"))


def moment(at: float, now: float) -> str:
    """Returns a Unix time for a table: the time of day, and the date if it is another day."""
    return _written(at, tr("HH:mm") if _same_day(at, now) else tr("d MMM yyyy HH:mm"))


def _same_day(one: float, other: float) -> bool:
    return time.localtime(one)[:3] == time.localtime(other)[:3]


def _written(moment: float, form: str) -> str:
    """Formats a Unix time; `form` is a format of QDateTime, which each language can translate."""
    return QLocale().toString(QDateTime.fromSecsSinceEpoch(int(moment)), form)


def round_line(view: View) -> str:
    """Returns the progress of the run: "Round 42", or "Round 42 of 100"."""
    if view.step in (Step.PROBING, Step.PLACING, Step.GATHERING):
        if view.safe_round:
            return tr("After round {n}", n=number(view.safe_round))
        return tr("Before round 1") if view.step is Step.PROBING else tr("Placement")
    if view.last_round:
        return tr("Round {n} of {all}", n=number(view.round), all=number(view.last_round))
    return tr("Round {n}", n=number(view.round))


_DIGEST = re.compile(r"-[0-9a-f]{12}$")
"""Matches the end of the name of a folder made from a file (app.models.gguf_shelf)."""


def model_name(view: View) -> str:
    """Returns the model's title in the catalogue, or the last part of its name."""
    return _DIGEST.sub("", title(view.model))


_LONG_S = 10
"""Minimum seconds of a step that is worth showing."""


def step_line(view: View) -> str:
    """Returns the current step, with progress if known: "answer 14 of 32, about 40 s"."""
    step = view.step
    if step is None:
        return ""
    left = tr(", about {span}", span=span(view.left_s)) if view.left_s is not None and view.left_s >= 1 else ""
    if step is Step.PLACING:
        if not view.done or not view.total:
            return tr("looking for puzzles that suit it")
        return tr("looking for puzzles that suit it, kind {n} of {all}", n=view.done, all=view.total)
    if step is Step.GATHERING:
        return tr("collecting right answers to learn from, {n} of {all}", n=view.done, all=view.total)
    if view.total and step in (Step.SAMPLING, Step.PROBING):
        what = tr("answer {n} of {all}", n=view.done, all=view.total)
        lead = tr("measuring, ") if step is Step.PROBING else ""
        return f"{lead}{what}{left}"
    if step is Step.LEARNING and view.lesson and view.skill:
        return tr("learning your rows") + left
    if step is Step.LEARNING and view.left_s is not None and view.left_s >= _LONG_S:
        return tr("learning from the answers") + left
    if step is Step.DRAWING and view.round_s:
        return tr("about {span} a round", span=span(view.round_s))
    solving = tr("answering your rows") if view.skill else tr("solving puzzles")
    return {
        Step.STARTING: "",
        Step.LOADING: tr("loading the model"),
        Step.PROBING: tr("measuring on rows kept aside") if view.skill else tr("measuring on new puzzles"),
        Step.HOLDING: tr("waiting for the others"),
        Step.PAUSED: "",
        Step.DRAWING: solving,
        Step.SAMPLING: solving,
        Step.SCORING: tr("checking the answers"),
        Step.LEARNING: tr("learning from the answers"),
        Step.SAVING: tr("saving"),
        Step.RESTING: tr("resting"),
        Step.WAITING: tr("waiting to restart"),
        Step.NO_ROOM: tr("waiting for space on the disk"),
        Step.SENDING: tr("sending the last answers"),
        Step.STOPPING: tr("stopping"),
    }[step]


def device(view: View) -> str:
    if view.engine is None:
        return ""
    return tr("on the processor") if view.engine.device == "CPU" else tr("on the graphics card")


def why_device(view: View) -> str:
    """Returns why that device was chosen, and its details: "torch on CPU, float32, 2 threads"."""
    engine = view.engine
    if engine is None:
        return ""
    threads = tr(", {n} threads", n=engine.threads) if engine.device == "CPU" and engine.threads > 1 else ""
    exact = tr("{name} on {device}, {dtype}", name=engine.name, device=engine.device, dtype=engine.dtype)
    if engine.device == "CPU":
        why = tr("It learns on the processor: Shoal found no graphics card it can use.")
    else:
        why = tr("It learns on the graphics card, the fastest here.")
    return f"{why} ({exact}{threads})"


def working(view: View) -> bool:
    return view.state in _OPEN_STATES


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) or not sentence else sentence + "."


def guessing_sentence(family: str) -> str:
    """Returns a sentence on how many of a family's puzzles one and the same guess solves; empty if they are
    less than a fifth."""
    share, answer = FAMILIES[family].guess if family in FAMILIES else (0.0, "")
    if not answer:
        return ""
    return tr("Always guessing {answer} solves {n} of 100 at most.", answer=tr(answer), n=number(100 * share))


def meeting_point(swarm: SwarmView | None) -> str:
    """Returns a sentence that this computer hosts the relay of its network, and where; empty if it does not."""
    if swarm is None or swarm.open_port is None:
        return ""
    return tr(
        "This computer is the meeting point: port {port} is open to your network while it learns with others.",
        port=swarm.open_port,
    )


def meeting_point_to_be() -> str:
    """Returns a sentence on what happens if no swarm is found."""
    return tr(
        "No swarm here yet? Then this computer becomes the meeting point: it opens a port to your network."
    )


def learned_sentence(learned: LearnedToday) -> str:
    """Returns what others' answers brought today, and how sure that is; empty without answers of others."""
    if not learned.answers or not learned.authors:
        return ""
    first, others, what = learned.authors[0], len(learned.authors) - 1, number(learned.answers)
    whose = counted("{name} and {n} other", "{name} and {n} others", others, name=first) if others else first
    said = tr("Learned from {answers} answers of {whose} today.", answers=what, whose=whose)
    if not learned.better:
        return f"{said} {tr('It is too early to tell what they bring.')}"
    family, before, now = learned.better[0]
    brought = tr(
        "Surely better since: {family}, {before} → {now} right.",
        family=family_titles([family])[0],
        before=percent(before),
        now=percent(now),
    )
    return f"{said} {brought}"
