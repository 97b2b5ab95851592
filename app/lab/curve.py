"""The picture of solo runs: what `./shoal run --json` printed, drawn as held-out pass@1 and the habit behind
it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from matplotlib.axes import Axes

from app.lab.figure import COLOURS, GREY, TEXT, canvas, dress, per_cent, png
from app.remedy import command

_LEARNING, _CONTROL = "learning", "control: shuffled rewards"
_SMOOTH = 5
"""Rounds in the moving average of the share of worked answers."""


class CurveError(Exception):
    """A file that holds no run. The message says which, why, and what to do."""


class _Engine(msgspec.Struct, frozen=True):
    name: str = ""


class _Line(msgspec.Struct, frozen=True):
    """The keys of the events that the picture needs; all others are ignored."""

    event: str
    round: int = 0
    pass_at_1: float = 0.0
    stderr: float = 0.0
    worked_share: float = 0.0
    lesson: int = 0
    shuffled_rewards: bool = False
    engine: _Engine = _Engine()


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
            msgspec.json.decode(line, type=_Line) for line in path.read_bytes().splitlines() if line.strip()
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
    figure = canvas(10, 4.2)
    left, right = figure.subplots(1, 2)
    kinds = _kinds(runs)
    learning = dict.fromkeys(kind for kind in kinds if kind != _CONTROL)
    colours = {**dict(zip(learning, COLOURS, strict=False)), _CONTROL: GREY}
    for run, kind in zip(runs, kinds, strict=True):
        colour = colours.get(kind, TEXT)
        rounds = [at for at, _, _ in run.probes]
        mean = [100 * p for _, p, _ in run.probes]
        error = [100 * e for _, _, e in run.probes]
        low, high = ([m + sign * e for m, e in zip(mean, error, strict=True)] for sign in (-1, 1))
        left.fill_between(rounds, low, high, color=colour, alpha=0.12, linewidth=0)
        left.plot(rounds, mean, color=colour, linewidth=2, solid_capstyle="round")
        right.plot(
            [at for at, _ in run.worked], _smoothed([100 * w for _, w in run.worked]), color=colour, linewidth=2
        )
    _dress(left, "Held-out questions solved")
    _dress(right, "Answers that show their work")
    _name(left, kinds, colours)
    return png(figure)


def _smoothed(values: Sequence[float]) -> list[float]:
    """Mean of each value and up to _SMOOTH - 1 before it."""
    windows = (values[max(0, at + 1 - _SMOOTH) : at + 1] for at in range(len(values)))
    return [sum(window) / len(window) for window in windows]


def _kinds(runs: Sequence[SoloRun]) -> list[str]:
    """What sets the runs of one picture apart: the engine where there are several, else nothing."""
    several = len({run.engine for run in runs if not run.control}) > 1
    return [_CONTROL if run.control else run.engine if several else _LEARNING for run in runs]


def _name(panel: Axes, kinds: Sequence[str], colours: Mapping[str, str]) -> None:
    """One label for each kind of run, in the corner that curves leave empty."""
    for place, kind in enumerate(reversed(dict.fromkeys(kinds))):
        count = kinds.count(kind)
        panel.annotate(
            f"{kind}, {count} seed{'s' * (count > 1)}",
            (0.98, 0.06 + 0.08 * place),
            xycoords="axes fraction",
            ha="right",
            color=colours.get(kind, TEXT),
            fontweight="bold",
        )


def _dress(panel: Axes, title: str) -> None:
    dress(panel, "y", title)
    panel.set_xlabel("rounds", color=TEXT)
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    per_cent(panel)
