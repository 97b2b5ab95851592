"""How a person did with the puzzles: right answers and all, family by family and level by level, in
HOME/puzzles.json."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.common import files

FILE = "puzzles.json"


class FamilyScore(msgspec.Struct, frozen=True):
    right: int = 0
    answered: int = 0


class DuelScore(msgspec.Struct, frozen=True):
    """Puzzles that both answered, and how many of them each solved."""

    puzzles: int = 0
    you: int = 0
    model: int = 0


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """`families` by name and level; `streak` counts right answers in a row, `best` is the longest there was.
    `against` are puzzles that the model answered as well, by family; `daily` is the last day (UTC, ISO) whose
    puzzle was solved."""

    version: int = 1
    families: dict[str, dict[int, FamilyScore]] = {}
    streak: int = 0
    best: int = 0
    against: dict[str, DuelScore] = {}
    daily: str = ""

    @property
    def total(self) -> FamilyScore:
        """
        >>> Scores(families={"gcd": {0: FamilyScore(1, 2), 1: FamilyScore(0, 1)}}).total
        FamilyScore(right=1, answered=3)
        """
        tallies = [one for levels in self.families.values() for one in levels.values()]
        return FamilyScore(sum(one.right for one in tallies), sum(one.answered for one in tallies))

    def after(self, family: str, level: int, solved: bool) -> Scores:
        """With one more answer.

        >>> after = Scores().after("gcd", 0, True).after("gcd", 0, False)
        >>> after.families, after.streak, after.best
        ({'gcd': {0: FamilyScore(right=1, answered=2)}}, 0, 1)
        """
        levels = self.families.get(family, {})
        was = levels.get(level, FamilyScore())
        now = FamilyScore(was.right + solved, was.answered + 1)
        streak = self.streak + 1 if solved else 0
        return msgspec.structs.replace(
            self,
            families={**self.families, family: {**levels, level: now}},
            streak=streak,
            best=max(self.best, streak),
        )

    def beside(self, family: str, you: bool, model: bool) -> Scores:
        """With one more puzzle that both answered.

        >>> Scores().beside("gcd", True, False).beside("gcd", True, True).against
        {'gcd': DuelScore(puzzles=2, you=2, model=1)}
        """
        was = self.against.get(family, DuelScore())
        now = DuelScore(was.puzzles + 1, was.you + you, was.model + model)
        return msgspec.structs.replace(self, against={**self.against, family: now})


def read(home: Path) -> tuple[Scores, str]:
    """The scores so far, and a sentence where the file was damaged, which is then moved aside."""
    found, complaint = files.kept_json(home / FILE, Scores)
    return found or Scores(), complaint


def write(home: Path, scores: Scores) -> None:
    """Raises OSError."""
    files.write_json(home / FILE, scores)
