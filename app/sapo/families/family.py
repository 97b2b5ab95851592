"""The record that a family of puzzles is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from math import isnan
from typing import Any

import msgspec

from app.sapo.asking import MAX_ANSWER, SHORT
from app.sapo.seeds import HELD_OUT_SHARE, hashed

Entry = Mapping[str, Any]
"""An item as reasoning-gym gives it: `question`, `answer` and `metadata`."""

Content = str | int | tuple["Content", ...]
"""Plain data, so that its JSON is the same on every computer."""

LONGEST_EXAMPLE = 400
"""Characters; a longer worked example would crowd out the others."""


class FamilyKind(StrEnum):
    """Where a family stands among the others; the value is what people read."""

    NUMBERS = "Numbers"
    WORDS = "Words"
    TIME = "Time"
    LOGIC = "Logic"
    GRIDS = "Grids"
    PATHS = "Paths"
    YOURS = "Your questions"


def _always(entry: Entry) -> bool:
    return True


def _answer(entry: Entry) -> str:
    return str(entry["answer"])


def _question(entry: Entry) -> str:
    return str(entry["question"])


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A family of puzzles, `name` being the library's. See `app.sapo.families` for how to add one."""

    name: str
    title: str
    kind: FamilyKind
    levels: tuple[Mapping[str, Any], ...]
    """The library's settings for level 0, 1 and so on, from easy to hard."""
    opened: Callable[[Mapping[str, Any]], Any] | None = None
    """Opens the data set for a level's settings; needed if the library's own does not draw item i from seed + i
    alone."""
    content: Callable[[Entry], Content]
    """What the item is without its names, letters, wording, order and brackets, as far as these change nothing
    about its answer: items of equal content are held out together, at every level. See `contents`."""
    score: Callable[[str, Entry], float]
    """How right an answer is: 1 exactly if it is right; a value between if that is honest to show (it never
    trains); else 0. It parses and never runs the answer; call it through `judge`."""
    sound: Callable[[Entry], bool] = _always
    """Whether an item is a fair question: one meaning, a true answer, and none that can be copied from the
    question."""
    solution: Callable[[Entry], str] = _answer
    """An answer to a sound item that scores 1."""
    wording: Callable[[Entry], str] = _question
    """The question's text: the library's, or our own if that is broken or has two meanings."""
    work: Callable[[Entry], str] | None = None
    """What a careful pupil writes before the answer; None, or empty, where no small model could copy it."""
    thinned: tuple[Mapping[str, float], ...] = ()
    """By level: the share of items of a common sort that stay questions, so that no constant answer and no
    shortcut pays."""
    sort: Callable[[Entry], str] | None = None
    """The sort of an item, as `thinned` names it; by default its solution."""
    shortcuts: Mapping[str, Callable[[Entry], str]] = {}
    """By name: answers that know the family but avoid the work, which `./shoal bench puzzles` tries beside its
    own. None may solve more than a quarter of a level, or than `guess_rate`."""
    guess_rate: float = 0.2
    """The most that a constant answer solves at any level; above a fifth only where there are few answers."""
    guess: tuple[float, str] = (0.0, "")
    """The largest share of a level that can be solved without the skill, and by which answer (words for a
    sentence): a constant, or one of `shortcuts`. As measured by `./shoal bench puzzles --items 1000`; shown to
    the owner, and left empty below a fifth."""
    held_out_share: int = HELD_OUT_SHARE
    """One content in this many is held out; fewer than 8 where a level has few."""
    held_out: frozenset[int] | None = None
    """The contents that are held out, if they are listed instead of being one in `held_out_share`."""
    terse: bool = False
    """Whether an answer without work may serve as an example too."""
    paper: bool = False
    """Whether it is one of the nine families of the SAPO paper."""

    def judge(self, answer: str, entry: Entry) -> float:
        """The raw score in [0, 1]. An answer longer than MAX_ANSWER characters is no answer."""
        if len(answer) > MAX_ANSWER:
            return 0.0
        if answer == entry["answer"]:
            return 1.0
        return clamp(self.score(answer, entry))

    def asks(self, level: int, entry: Entry) -> bool:
        """Whether the library's item is accepted as a question, by this node and every other one."""
        if not self.sound(entry):
            return False
        shares = self.thinned[level] if level < len(self.thinned) else {}
        share = shares.get((self.sort or self.solution)(entry), 1.0) if shares else 1.0
        return share >= 1.0 or hashed("thinned", _question(entry).strip()) % 1000 < 1000 * share

    def content_hash(self, entry: Entry) -> int:
        """A 52-bit number for the item's content, the same on every computer."""
        return hashed("content", self.name, msgspec.json.encode(self.content(entry)))

    def holds_out(self, content_hash: int) -> bool:
        """Whether items of this content are reserved for probes. They are never trained on by any node."""
        if self.held_out is not None:
            return content_hash in self.held_out
        return content_hash % self.held_out_share == 0

    def worked(self, entry: Entry) -> str:
        """The work, the short mark and the answer; empty if there is no work or it is too long."""
        work = self.work(entry) if self.work else ""
        text = f"{work} {SHORT}{self.solution(entry)}".strip() if work or self.terse else ""
        return text if len(text) <= LONGEST_EXAMPLE else ""


def clamp(raw: float) -> float:
    """The nearest number in [0, 1]; 0 for NaN."""
    return 0.0 if isnan(raw) else min(max(raw, 0.0), 1.0)
