"""What others' answers brought today, and how sure that is.

A family counts as better when its own answers are right more often after the first round of today that taught
it others' answers than until then, at one level, with the certainty that everything else is concluded with
(`app.learning.evidence.SURE`). Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from app.learning.evidence import SURE, Evidence, odds_lower
from app.node.record.records import Round


class LearnedToday(msgspec.Struct, frozen=True, kw_only=True):
    """`answers`: of others, taught today. `authors`: their names, the most frequent first. `better`: family,
    and the share of its own answers that were right before and after."""

    answers: int = 0
    authors: tuple[str, ...] = ()
    better: tuple[tuple[str, float, float], ...] = ()


def learned_today(rounds: Sequence[Round]) -> LearnedToday:
    """`rounds`: today's, oldest first.

    >>> rounds = [
    ...     Round(
    ...         round=n,
    ...         seconds=1.0,
    ...         informative_own=4,
    ...         train_solved=0.5,
    ...         imitated=30,
    ...         lesson_from=("Ann", "Ben"),
    ...         lesson_families=("gcd", "lcm") if n > 4 else (),
    ...         families={"gcd": (0, 2 + 4 * (n > 5), 8), "lcm": (0, n % 3, 8)},
    ...     )
    ...     for n in range(12)
    ... ]
    >>> found = learned_today(rounds)
    >>> found.answers, found.authors, found.better
    (360, ('Ann', 'Ben'), (('gcd', 0.25, 0.75),))
    >>> learned_today(rounds[:4]).better
    ()
    """
    authors = Counter(name for one in rounds for name in one.lesson_from)
    taught = dict.fromkeys(family for one in rounds for family in one.lesson_families)
    better = []
    for family in taught:
        first = next(at for at, one in enumerate(rounds) if family in one.lesson_families)
        level = next((one.families[family][0] for one in reversed(rounds) if family in one.families), 0)
        before, now = (
            Evidence.of(_shares(part, family, level)) for part in (rounds[: first + 1], rounds[first + 1 :])
        )
        if odds_lower([(before, now)]) >= SURE:
            better.append((family, before.mean, now.mean))
    return LearnedToday(
        answers=sum(one.imitated for one in rounds),
        authors=tuple(name for name, _ in authors.most_common()),
        better=tuple(sorted(better, key=lambda one: one[1] - one[2])),
    )


def _shares(rounds: Sequence[Round], family: str, level: int) -> list[float]:
    told = [one.families[family] for one in rounds if family in one.families]
    return [solved / answered for at, solved, answered in told if answered and at == level]
