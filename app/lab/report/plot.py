"""Plots of the lab: curves with confidence bands; for a study, held-out pass@1 against rounds, against
completions generated, and against processor seconds.

The three x-axes answer different questions: the effect of an update, of a generated completion, and of
computing time."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from app.lab.arms import Arm
from app.lab.plan import LabRound
from app.lab.report.results import Runs, baseline_first, cumulative_costs, probes
from app.lab.statistics import average, estimate
from engines.remedy import command

TEXT, GREY = "#333333", "#8a8a8a"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31")
"""The palette of Okabe and Ito, which colour-blind people can tell apart, without its yellow, and one more
colour."""
_FIRST, _CONTROL = "#222222", "#999999"


@dataclass(frozen=True, kw_only=True)
class PlotLine:
    """One curve in per cent, with its band. Lines of equal name appear once in the legend."""

    name: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class PlotPanel:
    """Curves over one x-axis. The first panel has the legend."""

    lines: Sequence[PlotLine]
    label: str
    title: str = ""


def picture(panels: Sequence[PlotPanel], width: float, height: float) -> bytes:
    """Renders panels side by side as a PNG; sizes in inches."""
    figure = Figure(figsize=(width, height), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, len(panels), sharey=len(panels) > 2, squeeze=False)[0]
    for axis, panel in zip(axes, panels, strict=True):
        for line in panel.lines:
            style = (0, (4, 2)) if line.dashed else "solid"
            axis.plot(line.x, line.y, color=line.colour, linewidth=2, linestyle=style, label=line.name)
            if line.low:
                axis.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.13, linewidth=0)
        axis.set_title(panel.title, loc="left", color=TEXT, fontsize=12, fontweight="bold")
        axis.set_xlabel(panel.label, color=TEXT)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        axis.tick_params(colors=TEXT, length=0, labelleft=True)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
    if panels[0].lines:
        handles = dict(zip(*axes[0].get_legend_handles_labels()[::-1], strict=True))
        axes[0].legend(handles.values(), handles.keys(), frameon=False, labelcolor="linecolor")
    png = io.BytesIO()
    figure.savefig(png, format="png", facecolor="white")
    return png.getvalue()


def draw(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> bytes:
    """Plots all arms with finished runs as a PNG. Bands are 95 % bootstrap intervals over seeds and nodes."""
    ways: dict[str, Callable[[LabRound], float]] = {
        "rounds": lambda record: float(record.round > 0),
        "completions generated, all nodes": lambda record: record.generated,
        "processor seconds, all nodes": lambda record: record.cpu_seconds or record.seconds,
    }
    present = baseline_first(arms, runs)
    left = iter([_FIRST, *COLOURS * (1 + len(present) // len(COLOURS))])
    most = max((len(found) for found in runs.values()), default=0)
    curves = []
    for arm in present:
        every = [run for _, run in sorted(runs[arm.key].items())]
        measured = zip(*map(probes, every), strict=True)
        bands = [estimate([probe.pass_at_1_N for _, probe in column]) for column in measured]
        line = PlotLine(
            name=arm.name + (f", {len(every)} of {most} seeds" if len(every) < most else ""),
            colour=_CONTROL if arm.shuffled else next(left),
            dashed=arm.dynamic or arm.shuffled,
            x=(),
            y=[100 * band.mean for band in bands],
            low=[100 * band.low for band in bands],
            high=[100 * band.high for band in bands],
        )
        sums = [zip(*(cumulative_costs(run, way) for run in every), strict=True) for way in ways.values()]
        curves.append([replace(line, x=[average(column) for column in along]) for along in sums])
    panels = [
        PlotPanel(lines=[lines[k] for lines in curves], label=label, title="Held-out pass@1" * (k == 0))
        for k, label in enumerate(ways)
    ]
    return picture(panels, 15, 5)


_LEARNING, _SHUFFLED = "learning", "control: shuffled rewards"
_SMOOTH = 5
"""Rounds in the moving average of the share of answers that show work."""


class CurveError(Exception):
    """A file contains no run. The message says which, why, and what to do."""


class _EngineEvent(msgspec.Struct, frozen=True):
    name: str = ""


class _EventKeys(msgspec.Struct, frozen=True):
    """The keys of the events that the plot needs; others are ignored."""

    event: str
    round: int = 0
    pass_at_1: float = 0.0
    stderr: float = 0.0
    worked_share: float = 0.0
    lesson: int = 0
    shuffled_rewards: bool = False
    engine: _EngineEvent = _EngineEvent()


class SoloRun(msgspec.Struct, frozen=True):
    """One run of a node alone. `probes`: (round, pass@1, standard error); `worked`: (round, share of own
    answers that show work)."""

    control: bool
    probes: list[tuple[int, float, float]]
    worked: list[tuple[int, float]]
    engine: str = ""


def read_run(path: Path) -> SoloRun:
    """Reads a run from the output of `./shoal run --json`. Raises CurveError."""
    try:
        lines = [
            msgspec.json.decode(line, type=_EventKeys)
            for line in path.read_bytes().splitlines()
            if line.strip()
        ]
    except OSError as error:
        raise CurveError(f"{path} can't be read: {error.strerror or error}.") from error
    except msgspec.MsgspecError as error:
        raise CurveError(
            f"{path} is not the output of a run ({error}): make it with {command('run --json')}."
        ) from error
    probes = [(line.round, line.pass_at_1, line.stderr) for line in lines if line.event == "probe"]
    if not probes:
        raise CurveError(f"{path} holds no probe: let the run go on until it has measured itself once.")
    worked = [(line.round, line.worked_share) for line in lines if line.event == "round" and not line.lesson]
    engine = next((line.engine.name for line in lines if line.event == "start"), "")
    return SoloRun(any(line.shuffled_rewards for line in lines), probes, worked, engine)


def draw_curve(runs: Sequence[SoloRun]) -> bytes:
    """Plots runs as a PNG with two panels; bands are one standard error of each probe. One colour per engine;
    controls with shuffled rewards are grey."""
    kinds = _kinds(runs)
    learning = dict.fromkeys(kind for kind in kinds if kind != _SHUFFLED)
    colours = {**dict(zip(learning, COLOURS, strict=False)), _SHUFFLED: GREY}
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
    return picture([left, right], 10, 4.2)


def _smoothed(values: Sequence[float]) -> list[float]:
    """Moving average: the mean of each value and up to _SMOOTH - 1 before it."""
    windows = (values[max(0, at + 1 - _SMOOTH) : at + 1] for at in range(len(values)))
    return [sum(window) / len(window) for window in windows]


def _kinds(runs: Sequence[SoloRun]) -> list[str]:
    """The legend label of each run: the engine's name if there are several engines, or that it is a control."""
    several = len({run.engine for run in runs if not run.control}) > 1
    return [_SHUFFLED if run.control else run.engine if several else _LEARNING for run in runs]
