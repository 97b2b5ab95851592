"""The picture of solo runs: what `./shoal run --json` printed, drawn as held-out pass@1 and the habit behind
it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.common.remedy import command
from app.lab.report.plot import COLOURS, GREY, TEXT, PlotLine, PlotPanel, picture

_LEARNING, _CONTROL = "learning", "control: shuffled rewards"
_SMOOTH = 5
"""Rounds in the moving average of the share of worked answers."""


class CurveError(Exception):
    """A file that holds no run. The message says which, why, and what to do."""


class _EngineEvent(msgspec.Struct, frozen=True):
    name: str = ""


class _EventKeys(msgspec.Struct, frozen=True):
    """The keys of the events that the picture needs; all others are ignored."""

    event: str
    round: int = 0
    pass_at_1: float = 0.0
    stderr: float = 0.0
    worked_share: float = 0.0
    lesson: int = 0
    shuffled_rewards: bool = False
    engine: _EngineEvent = _EngineEvent()


class SoloRun(msgspec.Struct, frozen=True):
    """One run: `probes` are (round, pass@1, standard error), `worked` is (round, share of own answers with
    work)."""

    control: bool
    probes: list[tuple[int, float, float]]
    worked: list[tuple[int, float]]
    engine: str = ""


def read_run(path: Path) -> SoloRun:
    """A run from the lines that `./shoal run --json` printed. Raises CurveError."""
    try:
        lines = [
            msgspec.json.decode(line, type=_EventKeys)
            for line in path.read_bytes().splitlines()
            if line.strip()
        ]
    except (OSError, msgspec.MsgspecError) as error:
        raise CurveError(
            f"{path} is not the output of a run ({error}): make it with {command('run --json')}."
        ) from error
    probes = [(line.round, line.pass_at_1, line.stderr) for line in lines if line.event == "probe"]
    if not probes:
        raise CurveError(f"{path} holds no probe: let the run go on until it has measured itself once.")
    worked = [(line.round, line.worked_share) for line in lines if line.event == "round" and not line.lesson]
    engine = next((line.engine.name for line in lines if line.event == "start"), "")
    return SoloRun(any(line.shuffled_rewards for line in lines), probes, worked, engine)


def draw(runs: Sequence[SoloRun]) -> bytes:
    """A PNG with two panels; bands are one standard error of each probe. Runs of several engines have a colour
    each, controls with shuffled rewards are grey."""
    kinds = _kinds(runs)
    learning = dict.fromkeys(kind for kind in kinds if kind != _CONTROL)
    colours = {**dict(zip(learning, COLOURS, strict=False)), _CONTROL: GREY}
    solved, worked = [], []
    for run, kind in zip(runs, kinds, strict=True):
        count = kinds.count(kind)
        name, colour = f"{kind}, {count} seed{'s' * (count > 1)}", colours.get(kind, TEXT)
        rounds, means, errors = zip(*run.probes, strict=True)
        mean = [100 * value for value in means]
        low, high = ([m + sign * 100 * e for m, e in zip(mean, errors, strict=True)] for sign in (-1, 1))
        solved.append(PlotLine(name=name, colour=colour, x=rounds, y=mean, low=low, high=high))
        smooth = _smoothed([100 * share for _, share in run.worked])
        worked.append(PlotLine(name=name, colour=colour, x=[at for at, _ in run.worked], y=smooth))
    left = PlotPanel(lines=solved, label="rounds", title="Held-out questions solved")
    right = PlotPanel(lines=worked, label="rounds", title="Answers that show their work")
    return picture([[left, right]], 10, 4.2)


def _smoothed(values: Sequence[float]) -> list[float]:
    """Mean of each value and up to _SMOOTH - 1 before it."""
    windows = (values[max(0, at + 1 - _SMOOTH) : at + 1] for at in range(len(values)))
    return [sum(window) / len(window) for window in windows]


def _kinds(runs: Sequence[SoloRun]) -> list[str]:
    """What sets the runs of one picture apart: the engine where there are several, else nothing."""
    several = len({run.engine for run in runs if not run.control}) > 1
    return [_CONTROL if run.control else run.engine if several else _LEARNING for run in runs]
