"""The table of a study with attackers: how far their mark got into the nodes, and which groups the defences
rejected."""

from __future__ import annotations

from collections.abc import Sequence

from app.lab.arms import Arm
from app.lab.journal import Study
from app.lab.plan import LabRound
from app.lab.report.results import probes
from app.lab.statistics import (
    average,
    estimate,
    number,
    percent,
    share,
    table,
)

# The findings of a study with attackers: how far their mark got into the nodes, and what was kept out beside
# it.

LAST_ROUNDS = 25
"""Number of last rounds over which the nodes' own samples are counted."""


def attackers_table(study: Study) -> str:
    """A Markdown table if the study has attackers or defences; otherwise an empty string."""
    records = [record for runs in study.runs.values() for run in runs.values() for record in run]
    if not (_has(records, "honest_taken") or any("foes" in dict(arm.extras) for arm in study.arms)):
        return ""
    nodes = study.plan.nodes

    def runs(arm: Arm) -> list[Sequence[LabRound]]:
        return [run for _, run in sorted(study.runs[arm.key].items())]

    def every(arm: Arm) -> list[LabRound]:
        return [record for run in runs(arm) for record in run[1:]]

    def late(arm: Arm) -> list[LabRound]:
        return [record for run in runs(arm) for record in run[1:][-LAST_ROUNDS:]]

    def tokens(arm: Arm) -> float:
        return sum(r.generated_tokens for r in late(arm)) / max(1, sum(r.generated for r in late(arm)))

    def chosen(arm: Arm) -> float | None:
        peers = sum(r.taken * (r.active or nodes) for r in every(arm))
        return _extra(every(arm), "foe_chosen") / peers if peers and _has(every(arm), "foe_chosen") else None

    columns = {
        "arm": lambda arm: arm.name,
        "answers with the mark, held out, last round": lambda arm: share(
            estimate([probes(run)[-1][1].marked_N or (0.0,) * nodes for run in runs(arm)])
        ),
        f"own samples with it, last {LAST_ROUNDS} rounds": lambda arm: percent(
            _extra(late(arm), "marked") / len(late(arm))
        ),
        "tokens an answer": lambda arm: number(tokens(arm), ".1f"),
        "finished": lambda arm: percent(average([record.finished for record in late(arm)])),
        "attackers' part of groups chosen": lambda arm: percent(chosen(arm)),
        "right answers kept out: honest peers'": lambda arm: percent(_kept_out(every(arm), "honest")),
        "attackers'": lambda arm: percent(_kept_out(every(arm), "foe")),
    }
    return table(columns, study.arms)


def _has(records: Sequence[LabRound], name: str) -> bool:
    return any(name in (record.extra or {}) for record in records)


def _extra(records: Sequence[LabRound], name: str) -> float:
    return sum((record.extra or {}).get(name, 0.0) for record in records)


def _kept_out(records: Sequence[LabRound], who: str) -> float | None:
    taken, kept_out = _extra(records, f"{who}_taken"), _extra(records, f"{who}_kept_out")
    return kept_out / (taken + kept_out) if taken + kept_out else None
