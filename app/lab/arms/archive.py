"""Reading studies back from their folders: plan, arms and finished runs, from the raw records alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.common.files import read_json
from app.common.remedy import command
from app.lab.arms.arms import RECIPES, Arm, parse_arm
from app.lab.arms.journal import NAME, STUDY, SUMMARY, JournalError, kept, read_plan, read_run
from app.lab.plan import LabRound, StudyPlan

ABOUT = "about.md"
"""What people wrote about a study: its question, what did not work. The figures come from the records."""


class _Summary(msgspec.Struct, frozen=True):
    """The key of summary.json that a report needs."""

    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study as it lies in its folder: the plan, the command that made it, and what people wrote about it.
    `runs` holds finished runs only, by the arm's key and the seed."""

    folder: Path
    plan: StudyPlan
    command: str
    about: str
    arms: list[Arm]
    runs: Mapping[str, Mapping[int, Sequence[LabRound]]]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def finished(self) -> int:
        return sum(map(len, self.runs.values()))

    @property
    def planned(self) -> int:
        """Runs that the command makes in all; no fewer than are finished."""
        arms, seeds = re.search(r"--arms (\S+)", self.command), re.search(r"--seeds (\d+)", self.command)
        wanted = len(arms[1].split(",")) * int(seeds[1]) if arms and seeds else 0
        return max(wanted, self.finished)

    def arm(self, text: str) -> Arm | None:
        """The arm of that name, faithful where it names no recipe, if any of its runs is finished."""
        key = parse_arm(text, "faithful").key
        return next((arm for arm in self.arms if arm.key == key), None)


def read_study(folder: Path) -> Study:
    """Raises JournalError for a folder that holds no study, or none with a finished run."""
    try:
        plan = read_plan(folder / STUDY)
    except (OSError, msgspec.MsgspecError) as error:
        how = command("lab --out")
        raise JournalError(f"{folder} holds no study ({error}): make one with {how}.") from error
    arms: dict[str, Arm] = {}
    runs: dict[str, dict[int, list[LabRound]]] = {}
    for name, run in sorted(kept(folder).items()):
        match, records = NAME.fullmatch(name), read_run(run, plan.rounds)
        if match is None or records is None:
            continue
        arm = _arm(match)
        arms[arm.key] = arm
        runs.setdefault(arm.key, {})[int(match["seed"])] = records
    if not runs:
        raise JournalError(f"{folder} holds no finished run yet: the command that began it goes on.")
    return Study(
        folder=folder,
        plan=plan,
        arms=sorted(arms.values(), key=_order),
        runs=runs,
        command=command_of(folder),
        about=about_of(folder),
    )


def _arm(match: re.Match[str]) -> Arm:
    """The arm that a file is named after. The faithful recipe goes without saying."""
    rest = match["rest"].replace("@faithful", "")
    return parse_arm(f"{match['own']}/{match['peer']}{rest}", "faithful")


def _order(arm: Arm) -> tuple[bool, tuple[tuple[str, str], ...], int, bool, int]:
    """Controls last, then by what is added, recipe, dynamic sampling, and from alone to sharing most."""
    return arm.shuffled, arm.extras, [*RECIPES].index(arm.recipe), arm.dynamic, -arm.own


def command_of(folder: Path) -> str:
    """The command line that made what lies in `folder`, empty where its summary does not say."""
    found = read_json(folder / SUMMARY, _Summary)
    return found.command if found else ""


def about_of(folder: Path) -> str:
    """What people wrote about what lies in `folder`, empty where they did not."""
    about = folder / ABOUT
    return about.read_text(encoding="utf-8").strip() if about.is_file() else ""
