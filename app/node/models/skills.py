"""The skills of a data folder: which question sets a model has learned, and how well."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.common import files
from app.models.shelf import locate
from app.node.data.home import SKILL_FILE, SKILLS, SkillPlace, model_mark
from app.node.data.question_sets import stored_sets
from app.node.history import checkpoint
from app.node.history.measured import MeasuredAnswers, read_best
from app.node.record.errors import NodeError
from app.sapo.sets.question_set import QuestionSet
from app.skills.skill import Skill, slug
from engines import remedy

PUZZLES = "puzzles"
"""The name of what was learned from puzzles."""
COMPARED_ROWS = 20
"""Held-out rows with which the certainty of an answer is compared."""


class KnownSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that a model has learned here. `folder` is that of its training, `model` that of its base model,
    `measured` the answers of its best checkpoint to the held-out rows."""

    made: QuestionSet
    slug: str
    folder: Path
    model: Path
    model_name: str
    measured: MeasuredAnswers | None = None

    @property
    def skill(self) -> Skill:
        return Skill(self.made)

    @property
    def right(self) -> tuple[int, int]:
        """How many held-out rows were right, of how many."""
        answers = self.measured.answers if self.measured is not None else ()
        return sum(one.solved for one in answers), len(answers)


def known_skills(home: Path, model: Path | None = None) -> list[KnownSkill]:
    """Returns the skills that can be asked, by name; only those of the base model in folder `model`, if given.
    Of a set that several models learned, the latest comes first."""
    sets = [one.made for one in stored_sets(home)]
    found: list[tuple[float, KnownSkill]] = []
    mark = "" if model is None else f"-{model_mark(model)}"
    for made, name in zip(sets, slugs(sets), strict=True):
        for folder in home.glob(f"models/*{mark}/{SKILLS}/*-{made.mark}"):
            place = files.read_json(folder / SKILL_FILE, SkillPlace)
            points = checkpoint.newest_first(folder / "checkpoints")
            if place is None or not points:
                continue
            known = KnownSkill(
                made=made,
                slug=name,
                folder=folder,
                model=model or Path(place.model),
                model_name=place.name,
                measured=read_best(folder),
            )
            found.append((points[0].stat().st_mtime, known))
    return [one for _, one in sorted(found, key=lambda pair: (pair[1].made.name.casefold(), -pair[0]))]


def slugs(sets: Sequence[QuestionSet]) -> list[str]:
    """Returns a different slug for each set: one that another has too, or that means something else, gets the
    beginning of the set's mark."""
    plain = [slug(one.name) for one in sets]
    times = Counter([*plain, PUZZLES])
    return [
        name if times[name] == 1 else f"{name}-{one.mark[:4]}" for name, one in zip(plain, sets, strict=True)
    ]


def find_skill(home: Path, name: str, model: Path | None = None) -> KnownSkill:
    """Returns the skill with this name, slug or mark. Raises NodeError, and EngineError if its base model isn't
    here any more."""
    known = known_skills(home, model)
    for one in known:
        if name.casefold() in (one.made.name.casefold(), one.slug, one.made.mark):
            if one.model.is_dir():
                return one
            return msgspec.structs.replace(one, model=locate(one.model_name, home))  # the folder was moved
    said = f"There is no skill called {name[:60]!r}."
    if any(name.casefold() in (one.made.name.casefold(), slug(one.made.name)) for one in stored_sets(home)):
        learn = remedy.command(f'run --questions "{name[:60]}"')
        raise NodeError(f"{name[:60]} hasn't been learned yet: start {learn}.")
    names = [one.slug for one in known]
    if near := difflib.get_close_matches(slug(name), names, n=1):
        raise NodeError(f"{said} Did you mean {near[0]}?")
    if names:
        raise NodeError(f"{said} There are: {', '.join(names)}.")
    raise NodeError(f"{said} Add a table with {remedy.command('questions add FILE')}, and learn it.")


def right_when_as_sure(measured: MeasuredAnswers | None, sure: float) -> tuple[int, int]:
    """Returns how many of the COMPARED_ROWS held-out rows whose certainty was nearest to `sure` were right,
    and of how many.

    >>> from app.node.history.measured import AnsweredQuestion
    >>> one = AnsweredQuestion(question="", answer="", solved=True, content=0)
    >>> rows = [msgspec.structs.replace(one, sure=n / 30, solved=n > 5) for n in range(30)]
    >>> made = MeasuredAnswers(round=1, answers=tuple(rows))
    >>> right_when_as_sure(made, 0.99), right_when_as_sure(made, 0.0), right_when_as_sure(None, 0.5)
    ((20, 20), (14, 20), (0, 0))
    """
    rows = [one for one in (measured.answers if measured else ()) if one.sure is not None]
    rows.sort(key=lambda one: abs((one.sure or 0.0) - sure))
    return sum(one.solved for one in rows[:COMPARED_ROWS]), len(rows[:COMPARED_ROWS])


class LeftBlank(msgspec.Struct, frozen=True, kw_only=True):
    """What leaving the less sure answers blank costs and brings, on the held-out rows: how many `of` them stay
    `answered`, how many of those are `right`, and how many are right if none is left blank."""

    of: int
    answered: int
    right: int
    right_of_all: int

    @property
    def sentence(self) -> str:
        return (
            f"Of {self.of} rows kept aside, {self.answered} keep their answer, and {self.right} of those are "
            f"right. With every answer kept, {self.right_of_all} are right."
        )


def left_blank(measured: MeasuredAnswers | None, at_least: float) -> LeftBlank | None:
    """Returns what leaving blank every answer with a probability below `at_least` costs and brings; None if the
    skill hasn't been measured.

    >>> from app.node.history.measured import AnsweredQuestion
    >>> one = AnsweredQuestion(question="", answer="", solved=True, content=0)
    >>> rows = [msgspec.structs.replace(one, sure=n / 10, solved=n > 3) for n in range(10)]
    >>> left_blank(MeasuredAnswers(round=1, answers=tuple(rows)), 0.8)
    LeftBlank(of=10, answered=2, right=2, right_of_all=6)
    """
    rows = [one for one in (measured.answers if measured else ()) if one.sure is not None]
    kept = [one for one in rows if (one.sure or 0.0) >= at_least]
    if not rows:
        return None
    right, right_of_all = (sum(one.solved for one in some) for some in (kept, rows))
    return LeftBlank(of=len(rows), answered=len(kept), right=right, right_of_all=right_of_all)
