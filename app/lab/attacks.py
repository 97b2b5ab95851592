"""What a study with attackers found: how far their mark got into the nodes, and what was kept out beside it.

Pure functions over the records of `+foes`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.lab.archive import Study
from app.lab.arms import Arm
from app.lab.plan import Round
from app.lab.results import probes
from app.lab.statistics import Estimate, estimate
from app.lab.wording import percent, share, table

LATE = 25
"""Last rounds over which the nodes' own samples are counted."""


class Attacked(msgspec.Struct, frozen=True, kw_only=True):
    """One arm. Shares in [0, 1]; means over seeds."""

    arm: str
    marked: Estimate
    """Held-out answers of the last round that carry a mark."""
    marked_own: float
    """Own samples of the last LATE rounds that do."""
    length: float
    """Tokens of such a sample, on average."""
    finished: float
    chosen: float | None
    """Attackers' part of the groups that were chosen, None without attackers."""
    kept_out_honest: float | None
    """Right answers of honest peers that the defences kept out, None without any."""
    kept_out_foe: float | None
    held_out: Estimate
    """Of the last round."""


def attacked(study: Study, arm: Arm) -> Attacked:
    """What became of the nodes of one arm."""
    runs = [run for _, run in sorted(study.runs[arm.key].items())]
    late = [record for run in runs for record in run[1:][-LATE:]]
    every = [record for run in runs for record in run[1:]]
    tokens, answers = sum(r.generated_tokens for r in late), sum(r.generated for r in late)
    peers = sum(r.taken * (r.active or study.plan.nodes) for r in every)
    return Attacked(
        arm=arm.name,
        marked=estimate([_marked(run, study.plan.nodes) for run in runs]),
        marked_own=_extra(late, "marked") / len(late),
        length=tokens / max(1, answers),
        finished=sum(record.finished for record in late) / len(late),
        chosen=_extra(every, "foe_chosen") / peers if peers and _has(every, "foe_chosen") else None,
        kept_out_honest=_share(every, "honest"),
        kept_out_foe=_share(every, "foe"),
        held_out=estimate([probes(run)[-1][1].pass_at_1_N for run in runs]),
    )


def lines(study: Study) -> list[str]:
    """A Markdown table of a study whose records tell of attackers or defences; empty for another one."""
    every = [record for runs in study.runs.values() for run in runs.values() for record in run]
    if not (_has(every, "honest_taken") or any("foes" in dict(arm.extras) for arm in study.arms)):
        return []
    head = (
        "| arm | answers with the mark, held out, last round | own samples with it, last "
        f"{LATE} rounds | tokens an answer | finished | attackers' part of groups chosen "
        "| right answers kept out: honest peers' | attackers' |"
    )
    rows = [
        (
            one.arm,
            share(one.marked),
            percent(one.marked_own),
            f"{one.length:.1f}",
            percent(one.finished),
            percent(one.chosen),
            percent(one.kept_out_honest),
            percent(one.kept_out_foe),
        )
        for one in (attacked(study, arm) for arm in study.arms)
    ]
    return [*table(head, rows), ""]


def _marked(run: Sequence[Round], nodes: int) -> tuple[float, ...]:
    return probes(run)[-1][1].marked_N or (0.0,) * nodes


def _has(records: Sequence[Round], name: str) -> bool:
    return any(name in (record.extra or {}) for record in records)


def _extra(records: Sequence[Round], name: str) -> float:
    return sum((record.extra or {}).get(name, 0.0) for record in records)


def _share(records: Sequence[Round], who: str) -> float | None:
    taken, kept_out = _extra(records, f"{who}_taken"), _extra(records, f"{who}_kept_out")
    return kept_out / (taken + kept_out) if taken + kept_out else None
