"""The second picture of a study: what each arm gains over being alone, and whether counting explains it."""

from __future__ import annotations

import io

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from app.lab.plot import colours
from app.lab.results import ArmResult, Results

_TEXT, _GREY, _LIGHT = "#333333", "#8a8a8a", "#e6e6e6"


def draw(results: Results) -> bytes:
    """A PNG: left the differences of mean height to the baseline with both intervals, right informative groups
    a node and round as measured and as the counting model expects them."""
    height = 1.6 + 0.42 * len(results.arms)
    figure = Figure(figsize=(13, max(3.4, height)), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    paint = colours([(result.arm, result.arm.endswith("!shuffled")) for result in results.arms])
    _differences(left, results, paint)
    _counts(right, results.arms, paint)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", facecolor="white")
    return picture.getvalue()


def _differences(panel: Axes, results: Results, paint: dict[str, str]) -> None:
    arms = [result for result in results.arms if result.area_difference is not None]
    for place, result in enumerate(reversed(arms)):
        difference = result.area_difference
        assert difference is not None
        colour = paint[result.arm]
        if difference.t_low is not None and difference.t_high is not None:
            panel.plot(
                [100 * difference.t_low, 100 * difference.t_high], [place] * 2, color=colour, lw=1, alpha=0.5
            )
        panel.plot(
            [100 * difference.low, 100 * difference.high],
            [place] * 2,
            color=colour,
            linewidth=5,
            alpha=0.35,
            solid_capstyle="round",
        )
        panel.plot(100 * difference.mean, place, "o", color=colour, markersize=7)
    panel.axvline(0, color=_GREY, linewidth=1)
    panel.set_yticks(range(len(arms)), [result.arm for result in reversed(arms)])
    panel.set_ylim(-0.7, len(arms) - 0.3)
    limits = [abs(100 * value) for a in arms if (d := a.area_difference) for value in (d.low, d.high)]
    reach = 1.6 * max(limits, default=1.0)
    panel.set_xlim(-reach, reach)
    _dress(panel, f"Mean height of the held-out curve,\ndifference to {results.baseline}")
    panel.set_xlabel("points of pass@1; thick: bootstrap over seeds and nodes, thin: t over seeds", color=_TEXT)
    panel.grid(axis="x", color=_LIGHT, linewidth=0.8)


def _counts(panel: Axes, arms: list[ArmResult], paint: dict[str, str]) -> None:
    for place, result in enumerate(reversed(arms)):
        counted = result.informative
        colour = paint[result.arm]
        panel.barh(place, counted.own, color=colour, height=0.55)
        panel.barh(place, counted.peer, left=counted.own, color=colour, alpha=0.4, height=0.55)
        expected = counted.own_predicted + counted.peer_predicted
        panel.plot([expected] * 2, [place - 0.4, place + 0.4], color=_TEXT, linewidth=2)
    panel.set_yticks(range(len(arms)), [result.arm for result in reversed(arms)])
    panel.set_ylim(-0.7, len(arms) - 0.3)
    panel.set_xlim(left=0)
    _dress(panel, "Informative groups\nof a node and round")
    panel.set_xlabel("full: own, pale: of peers; line: what success rates alone predict", color=_TEXT)
    panel.grid(axis="x", color=_LIGHT, linewidth=0.8)


def _dress(panel: Axes, title: str) -> None:
    panel.set_title(title, loc="left", color=_TEXT, fontsize=12, fontweight="bold")
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color("#bbbbbb")
    panel.set_axisbelow(True)
    panel.tick_params(colors=_TEXT, length=0)
