"""The second picture of a study: what each arm gains over being alone, and whether counting explains it."""

from __future__ import annotations

from matplotlib.axes import Axes

from app.lab.figure import GREY, TEXT, canvas, dress, png
from app.lab.plot import colours
from app.lab.results import ArmResult, Results


def draw(results: Results) -> bytes:
    """A PNG: left the differences of mean height to the baseline with both intervals, right informative groups
    a node and round as measured and as the counting model expects them."""
    height = 1.6 + 0.42 * len(results.arms)
    figure = canvas(13, max(3.4, height))
    left, right = figure.subplots(1, 2)
    paint = colours([(result.arm, result.arm.endswith("!shuffled")) for result in results.arms])
    _differences(left, results, paint)
    _counts(right, results.arms, paint)
    return png(figure)


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
    panel.axvline(0, color=GREY, linewidth=1)
    panel.set_yticks(range(len(arms)), [result.arm for result in reversed(arms)])
    panel.set_ylim(-0.7, len(arms) - 0.3)
    limits = [abs(100 * value) for a in arms if (d := a.area_difference) for value in (d.low, d.high)]
    reach = 1.6 * max(limits, default=1.0)
    panel.set_xlim(-reach, reach)
    dress(panel, "x", f"Mean height of the held-out curve,\ndifference to {results.baseline}")
    panel.set_xlabel("points of pass@1; thick: bootstrap over seeds and nodes, thin: t over seeds", color=TEXT)


def _counts(panel: Axes, arms: list[ArmResult], paint: dict[str, str]) -> None:
    for place, result in enumerate(reversed(arms)):
        counted = result.informative
        colour = paint[result.arm]
        panel.barh(place, counted.own, color=colour, height=0.55)
        panel.barh(place, counted.peer, left=counted.own, color=colour, alpha=0.4, height=0.55)
        expected = counted.own_predicted + counted.peer_predicted
        panel.plot([expected] * 2, [place - 0.4, place + 0.4], color=TEXT, linewidth=2)
    panel.set_yticks(range(len(arms)), [result.arm for result in reversed(arms)])
    panel.set_ylim(-0.7, len(arms) - 0.3)
    panel.set_xlim(left=0)
    dress(panel, "x", "Informative groups\nof a node and round")
    panel.set_xlabel("full: own, pale: of peers; line: what success rates alone predict", color=TEXT)
