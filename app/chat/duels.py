"""How blind duels ended: which of two answers the owner liked better without knowing whose they were. Counts by
model, in HOME/duels.json; no question and no answer is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from app.chat.race import Result
from app.common import files

FILE = "duels.json"
Count = Annotated[int, msgspec.Meta(ge=0)]
Ended = Literal["before", "after", "same"]


class DuelTally(msgspec.Struct, frozen=True, kw_only=True):
    before: Count = 0
    after: Count = 0
    same: Count = 0

    def plus(self, ended: Ended) -> DuelTally:
        """
        >>> DuelTally(after=2).plus("after").plus("same")
        DuelTally(before=0, after=3, same=1)
        """
        return msgspec.structs.replace(self, **{ended: getattr(self, ended) + 1})

    @property
    def sure(self) -> bool:
        """Whether chance alone hardly explains the difference."""
        return Result(won=self.after, lost=self.before).sure


class Duels(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    models: dict[str, DuelTally] = {}


def note(home: Path, model: str, ended: Ended) -> DuelTally:
    """Counts one more duel of this model; its tally now. Raises OSError where it cannot be kept."""
    known = files.kept_json(home / FILE, Duels)[0] or Duels()
    tally = known.models.get(model, DuelTally()).plus(ended)
    files.write_json(home / FILE, Duels(models={**known.models, model: tally}))
    return tally
