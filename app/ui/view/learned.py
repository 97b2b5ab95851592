"""What others' answers brought today, and how sure that is.

A family counts as better when its own answers of today's later rounds are right more often than those of the
earlier ones, at one level, with the certainty that everything else is concluded with
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
    ...         lesson_families=("gcd", "lcm"),
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
        told = [one.families[family] for one in rounds if family in one.families]
        shares = [solved / answered for level, solved, answered in told if answered and level == told[-1][0]]
        before, now = (Evidence.of(part) for part in (shares[: len(shares) // 2], shares[len(shares) // 2 :]))
        if odds_lower([(before, now)]) >= SURE:
            better.append((family, before.mean, now.mean))
    return LearnedToday(
        answers=sum(one.imitated for one in rounds),
        authors=tuple(name for name, _ in authors.most_common()),
        better=tuple(sorted(better, key=lambda one: one[1] - one[2])),
    )
