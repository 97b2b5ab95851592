"""What became of the experts: the part of the report on `./shoal lab experts`, from the files it left.

Every way of answering is compared with the generalist, one node that trained on all families for as many rounds
as the experts had together. Its vote spends as many answers a question as the experts' vote does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import msgspec

from app.lab.archive import Kept, about_of, command_of
from app.lab.experts import FILE, WAYS, Trained
from app.lab.journal import JournalError
from app.lab.plan import Plan, named
from app.lab.statistics import Estimate, estimate, paired
from app.lab.wording import NOTHING, percent, points, share, table

CSV = "experts.csv"
_SINGLE, _ELECTED = WAYS[:2]


@dataclass(frozen=True, kw_only=True)
class Ensemble(Kept):
    """Everything that lies in the folder of `./shoal lab experts`."""

    made: list[Trained]

    @property
    def allocations(self) -> list[str]:
        return list(dict.fromkeys(one.allocation for one in self.made))


def is_ensemble(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_ensemble(folder: Path) -> Ensemble:
    """Raises JournalError for a folder whose files cannot be read, or that holds no result yet."""
    try:
        plan = msgspec.json.decode((folder / FILE).read_bytes(), type=Plan)
        kept = [
            msgspec.json.decode(file.read_bytes(), type=Trained) for file in sorted(folder.glob("*.seed*.json"))
        ]
    except (OSError, msgspec.MsgspecError) as error:
        raise JournalError(f"The experts in {folder} cannot be read ({error}): make them anew.") from error
    if not kept:
        raise JournalError(f"{folder} holds no finished experts yet: the command that began them goes on.")
    return Ensemble(
        folder=folder,
        plan=plan,
        made=sorted(kept, key=lambda one: (one.allocation, one.seed)),
        command=command_of(folder),
        about=about_of(folder),
    )


def section(ensemble: Ensemble) -> str:
    """Markdown: settings, every way with its interval, who got what, and the families."""
    plan = ensemble.plan
    levels = ", ".join(f"{family} {level}" for family, level in plan.levels.items())
    lines = [
        f"## Study `{ensemble.name}`",
        "",
        ensemble.about or "*No remarks.*",
        "",
        f"{plan.rounds} rounds in all, 8 questions each, {plan.group} answers a question, learning rate "
        f"{plan.learning_rate:g}; {named(plan)} at {levels}; {plan.probe_items} held-out questions of all "
        "families. Intervals are over seeds; with few they are too narrow.",
        "",
        *_ways(ensemble),
        "",
        *_shares(ensemble),
        "",
        *_families(ensemble),
        "",
    ]
    return "\n".join(lines)


def as_csv(ensemble: Ensemble) -> str:
    """A row for each allocation, seed, way and family, and one called `all` for the mixed questions."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("allocation", "seed", "way", "family", "held_out_pass_at_1", "rounds", "rank"))
    for one in ensemble.made:
        for way in WAYS:
            writer.writerow((one.allocation, one.seed, way, "all", f"{one.solved[way]:.6g}", "", ""))
            for family, solved in one.families[way].items():
                share = one.shares[family]
                writer.writerow(
                    (one.allocation, one.seed, way, family, f"{solved:.6g}", share.rounds, share.rank)
                )
    return out.getvalue()


def _ways(ensemble: Ensemble) -> list[str]:
    head = (
        "| who answers | seeds | mixed held-out pass@1 | against the generalist, points | against its vote, "
        "points | prompts sent to their family's expert |"
    )
    rows = [
        (
            way if single else f"{allocation} experts, {way}",
            str(len(made)),
            share(_over(made, way)),
            NOTHING if way == _SINGLE else points(_against(made, way, _SINGLE)),
            NOTHING if single else points(_against(made, way, _ELECTED)),
            percent(mean(one.routed for one in made), 0) if way == "by prompt" else NOTHING,
        )
        for allocation, made, way, single in _answering(ensemble)
    ]
    return table(head, rows)


def _answering(ensemble: Ensemble) -> Iterator[tuple[str, list[Trained], str, bool]]:
    """Every allocation with its results and each way of answering, and whether that is the generalist's: the
    same one stands beside all allocations, and is told once."""
    for allocation, made in _by_allocation(ensemble):
        for way in WAYS:
            single = way.startswith(_SINGLE)
            if not single or allocation == ensemble.allocations[0]:
                yield allocation, made, way, single


def _shares(ensemble: Ensemble) -> list[str]:
    lines = ["Rounds and rank of each expert, first seed:", ""]
    for allocation, made in _by_allocation(ensemble):
        told = ", ".join(
            f"{family} {share.rounds} at rank {share.rank}" for family, share in made[0].shares.items()
        )
        lines.append(f"- {allocation}: {told}")
    return lines


def _families(ensemble: Ensemble) -> list[str]:
    names = sorted(ensemble.plan.levels)
    rows = [
        [
            way if single else f"{allocation}, {way}",
            *(f"{100 * mean(one.families[way][name] for one in made):.1f}" for name in names),
        ]
        for allocation, made, way, single in _answering(ensemble)
    ]
    return table(f"| held out, by family | {' | '.join(names)} |", rows)


def _by_allocation(ensemble: Ensemble) -> list[tuple[str, list[Trained]]]:
    return [
        (allocation, [one for one in ensemble.made if one.allocation == allocation])
        for allocation in ensemble.allocations
    ]


def _over(made: Sequence[Trained], way: str) -> Estimate:
    return estimate([[one.solved[way]] for one in made])


def _against(made: Sequence[Trained], way: str, other: str) -> Estimate:
    return paired([[one.solved[way]] for one in made], [[one.solved[other]] for one in made])
