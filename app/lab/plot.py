"""The picture of a study: held-out pass@1 against rounds, against completions generated, and against seconds.

The three answer different questions: what an update brings, what generation brings, what waiting brings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, MaxNLocator

from app.lab.arms import Arm
from app.lab.figure import COLOURS, TEXT, canvas, dress, per_cent, png
from app.lab.plan import Round
from app.lab.results import Runs, baseline_first, probes
from app.lab.statistics import estimate

_FIRST = "#222222"
_COLOURS = (*COLOURS, "#E69F00", "#56B4E9", "#8C6D31")
"""The rest of that palette without its yellow, and one to spare."""
_CONTROL = "#999999"
_LINES = 5
"""Of one panel: more cannot be told apart."""


@dataclass(frozen=True)
class _Curve:
    """One arm at its probes: three ways to count progress, and held-out pass@1 in per cent with its band."""

    name: str
    """The arm's, with the number of its seeds where another arm has more."""
    colour: str
    dashed: bool
    rounds: list[float]
    generated: list[float]
    seconds: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def draw(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> bytes:
    """A PNG of all arms with finished runs. Bands are 95 % bootstrap intervals over seeds and nodes. Many arms
    stand in several rows, the baseline in each of them. Names stand in the first panel of a row."""
    curves = _curves(baseline_first(arms, runs), runs)
    parts = _parts(curves)
    figure = canvas(15, 5 if len(parts) < 2 else 3.6 * len(parts))
    axes = figure.subplots(len(parts), 3, sharex="col", sharey=True, squeeze=False)
    panels: list[tuple[str, Callable[[_Curve], list[float]]]] = [
        ("rounds", lambda curve: curve.rounds),
        ("completions generated, all nodes", lambda curve: curve.generated),
        ("processor seconds, all nodes", lambda curve: curve.seconds),
    ]
    for number, (row, part) in enumerate(zip(axes, parts, strict=True), 1):
        for panel, (label, along) in zip(row, panels, strict=True):
            for curve in part:
                _line(panel, curve, along(curve))
            _limit(panel, curves, along)
            _dress(panel, label if number == len(parts) else "")
        _label_ends(row[0], part, panels[0][1])
    axes[0][0].set_title("Held-out pass@1", loc="left", color=TEXT, fontsize=13, fontweight="bold")
    return png(figure)


def _parts(curves: Sequence[_Curve]) -> list[list[_Curve]]:
    """The curves of each row: the first one, and about equally many of the others in their order."""
    if len(curves) <= _LINES:
        return [list(curves)]
    first, others = curves[0], curves[1:]
    rows = -(-len(others) // (_LINES - 1))
    ends = [round(len(others) * k / rows) for k in range(rows + 1)]
    return [[first, *others[ends[k] : ends[k + 1]]] for k in range(rows)]


def colours(arms: Sequence[tuple[str, bool]]) -> dict[str, str]:
    """A colour for each arm by name, the same in every picture of a study; black for the first, grey for
    controls."""
    left = iter([_FIRST, *_COLOURS * (1 + len(arms) // len(_COLOURS))])
    return {name: _CONTROL if control else next(left) for name, control in arms}


def _curves(arms: Sequence[Arm], runs: Mapping[str, Runs]) -> list[_Curve]:
    curves = []
    paint = colours([(arm.name, arm.shuffled) for arm in arms])
    most = max((len(found) for found in runs.values()), default=0)
    for arm in arms:
        every = [run for _, run in sorted(runs[arm.key].items())]
        bands = [
            estimate([probe.pass_at_1_N for _, probe in measured])
            for measured in zip(*map(probes, every), strict=True)
        ]
        curves.append(
            _Curve(
                name=arm.name + (f", {len(every)} of {most} seeds" if len(every) < most else ""),
                colour=paint[arm.name],
                dashed=arm.dynamic or arm.shuffled,
                rounds=[float(number) for number, _ in probes(every[0])],
                generated=_progress(every, lambda record: record.generated),
                seconds=_progress(every, lambda record: record.cpu_seconds or record.seconds),
                mean=[100 * band.mean for band in bands],
                low=[100 * band.low for band in bands],
                high=[100 * band.high for band in bands],
            )
        )
    return curves


def _progress(every: Sequence[Sequence[Round]], value: Callable[[Round], float]) -> list[float]:
    """What had been spent at each probe, mean over seeds."""
    spent = []
    for run in every:
        sums = accumulate(value(record) for record in run)
        spent.append([total for total, record in zip(sums, run, strict=True) if record.probe is not None])
    return [sum(column) / len(column) for column in zip(*spent, strict=True)]


def _line(panel: Axes, curve: _Curve, x: list[float]) -> None:
    panel.fill_between(x, curve.low, curve.high, color=curve.colour, alpha=0.13, linewidth=0)
    style = (0, (4, 2)) if curve.dashed else "solid"
    panel.plot(x, curve.mean, color=curve.colour, linewidth=2, linestyle=style, solid_capstyle="round")
    panel.plot(x[-1], curve.mean[-1], "o", color=curve.colour, markersize=4.5)


def _limit(panel: Axes, curves: Sequence[_Curve], along: Callable[[_Curve], list[float]]) -> None:
    """Room for all curves of the study, so that rows can be compared."""
    right = max((along(curve)[-1] for curve in curves), default=1)
    top = max((max(curve.high) for curve in curves), default=0)
    panel.set_xlim(0, (right or 1) * 1.03)
    panel.set_ylim(0, max(top * 1.12, 1))


def _label_ends(panel: Axes, curves: Sequence[_Curve], along: Callable[[_Curve], list[float]]) -> None:
    """Names at the ends of the lines, pushed apart where they would cover each other."""
    right, gap = panel.get_xlim()[1], panel.get_ylim()[1] * 0.07
    placed: list[tuple[float, float]] = []
    for curve in sorted(curves, key=lambda curve: curve.mean[-1]):
        x, y = along(curve)[-1], curve.mean[-1]
        near = [other for at, other in placed if abs(at - x) < right * 0.3]
        if near:
            y = max(y, max(near) + gap)
        placed.append((x, y))
        panel.annotate(
            curve.name,
            (x, y),
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            color=curve.colour,
            fontsize=10.5,
            fontweight="bold",
            annotation_clip=False,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )


def _dress(panel: Axes, label: str) -> None:
    panel.set_xlabel(label, color=TEXT, fontsize=11)
    dress(panel, "y")
    panel.tick_params(labelsize=10, labelleft=True)
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    panel.xaxis.set_major_formatter(FuncFormatter(_thousands))
    per_cent(panel)


def _thousands(value: float, _: int) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1_000 else f"{value:g}"
