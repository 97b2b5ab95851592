"""What all pictures of the lab have in common: their size on the page, their colours, and how a panel looks."""

from __future__ import annotations

import io
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

TEXT, GREY, LIGHT = "#333333", "#8a8a8a", "#e6e6e6"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""Of Okabe and Ito, who chose them so that everybody can tell them apart."""


def canvas(width: float, height: float) -> Figure:
    """An empty picture; sizes in inches."""
    figure = Figure(figsize=(width, height), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", facecolor="white")
    return picture.getvalue()


def dress(panel: Axes, grid: Literal["x", "y"], title: str = "") -> None:
    """A quiet panel: one line below, and a grid along one axis."""
    if title:
        panel.set_title(title, loc="left", color=TEXT, fontsize=12, fontweight="bold")
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color("#bbbbbb")
    panel.grid(axis=grid, color=LIGHT, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(colors=TEXT, length=0)


def per_cent(panel: Axes) -> None:
    """The upright axis is told in per cent."""
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
