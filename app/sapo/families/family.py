"""The record type that describes a family of puzzles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from math import isnan
from typing import Any

import msgspec

from app.sapo.asking import MAX_ANSWER, SHORT_MARK, read_answer
from app.sapo.seeds import HELD_OUT_SHARE, hashed_seed

Entry = Mapping[str, Any]
"""An item as reasoning-gym gives it: `question`, `answer` and `metadata`."""

Content = str | int | tuple["Content", ...]
"""Plain data, so that its JSON is the same on every computer."""

LONGEST_EXAMPLE = 400
"""Maximum characters of a worked example; a longer one would crowd out the others."""


class FamilyKind(StrEnum):
    """The group in which a family is listed; the value is shown to people."""

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
    """A family of puzzles; `name` is the library's. See `app.sapo.families` for how to add one."""

    name: str
    title: str
    kind: FamilyKind
    levels: tuple[Mapping[str, Any], ...]
    """The library's settings for levels 0, 1 and so on, from easy to hard."""
    opened: Callable[[Mapping[str, Any]], Any] | None = None
    """Creates the data set for a level's settings; needed if the library's own does not draw item i from seed +
    i alone."""
    content: Callable[[Entry], Content]
    """Returns the item without names, letters, wording, order and brackets, as far as these do not affect its
    answer. Items of equal content are held out together, at every level. See `contents`."""
    score: Callable[[str, Entry], float]
    """Scores an answer: exactly 1 if it is right; a value between 0 and 1 for partial credit (displayed, never
    trained on); else 0. It parses and never executes the answer; call it through `judge`."""
    sound: Callable[[Entry], bool] = _always
    """Whether an item is a fair question: one meaning, a correct true answer, and none that can be copied from
    the question."""
    solution: Callable[[Entry], str] = _answer
    """Returns an answer to a sound item that scores 1."""
    wording: Callable[[Entry], str] = _question
    """Returns the question's text: the library's, or our own if that is broken or ambiguous."""
    work: Callable[[Entry], str] | None = None
    """Returns the work that precedes a worked answer; None, or empty, if a small model could not imitate it."""
    thinned: tuple[Mapping[str, float], ...] = ()
    """By level: the share of items of a common sort that are accepted as questions, so that constant answers
    and shortcuts do not pay."""
    sort: Callable[[Entry], str] | None = None
    """Returns the sort of an item, as named in `thinned`; by default its solution."""
    shortcuts: Mapping[str, Callable[[Entry], str]] = {}
    """By name: answers that use knowledge of the family but avoid the work, which `./shoal bench puzzles` tries
    in addition to its own. None may solve more than a quarter of a level, or more than `guess_rate`."""
    guess_rate: float = 0.2
    """Maximum share that a constant answer may solve at any level; above a fifth only if there are few possible
    answers."""
    guess: tuple[float, str] = (0.0, "")
    """The largest share of a level that can be solved without the skill, and by which answer (words for a
    sentence): a constant, or one of `shortcuts`. Measured by `./shoal bench puzzles --items 1000`; shown to the
    owner, and empty below a fifth."""
    held_out_share: int = HELD_OUT_SHARE
    """One content in this many is held out; less than 8 if a level has few contents."""
    held_out: frozenset[int] | None = None
    """The hashes of the held-out contents, if they are listed instead of being one in `held_out_share`."""
    marked: bool = True
    """Whether an answer stands behind a mark. The answers of the owner's sets without work are the whole
    reply."""

    def read(self, completion: str) -> str | None:
        """Returns the answer in a completion, or None without one, as `read_answer` finds it."""
        return read_answer(completion, self.marked)

    def judge(self, answer: str, entry: Entry) -> float:
        """Returns the raw score in [0, 1]; 0 for an answer longer than MAX_ANSWER characters."""
        if len(answer) > MAX_ANSWER:
            return 0.0
        if answer == entry["answer"]:
            return 1.0
        return clamp(self.score(answer, entry))

    def accepts(self, level: int, entry: Entry) -> bool:
        """Whether an item is used as a question: it is sound and not thinned out. The same on every node."""
        if not self.sound(entry):
            return False
        shares = self.thinned[level] if level < len(self.thinned) else {}
        share = shares.get((self.sort or self.solution)(entry), 1.0) if shares else 1.0
        return share >= 1.0 or hashed_seed("thinned", _question(entry).strip()) % 1000 < 1000 * share

    def content_hash(self, entry: Entry) -> int:
        """Returns a 52-bit hash of the item's content, identical on every computer."""
        return hashed_seed("content", self.name, msgspec.json.encode(self.content(entry)))

    def holds_out(self, content_hash: int) -> bool:
        """Whether items of this content are reserved for probes and never trained on by any node."""
        if self.held_out is not None:
            return content_hash in self.held_out
        return content_hash % self.held_out_share == 0

    def worked(self, entry: Entry) -> str:
        """Returns the work, the short mark and the answer, or the bare answer of a family without marks; empty
        if there is no work or it is too long."""
        if not self.marked:
            return self.solution(entry)
        work = self.work(entry) if self.work else ""
        own = self.kind is FamilyKind.YOURS  # whose answer without work may serve too
        text = f"{work} {SHORT_MARK}{self.solution(entry)}".strip() if work or own else ""
        return text if len(text) <= LONGEST_EXAMPLE else ""


def clamp(raw: float) -> float:
    """Clamps a number to [0, 1]; 0 for NaN."""
    return 0.0 if isnan(raw) else min(max(raw, 0.0), 1.0)
