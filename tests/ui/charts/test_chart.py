from __future__ import annotations

import csv
import io

import msgspec
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.node.record.records import Probe
from app.ui.charts.chart import Chart
from app.ui.charts.curve import TRAINING, Curve
from app.ui.theme import Theme
from app.ui.view.view import View
from tests.ui import views

POINTS = [(10.0 * at, 0.2 + 0.02 * at, 0.03) for at in range(11)]


@pytest.fixture
def chart(qtbot: QtBot, light: Theme) -> Chart:
    made = Chart(light)
    qtbot.addWidget(made)
    made.resize(700, 300)
    made.show_series(POINTS)
    made.show()
    return made


def wheel(chart: Chart, up: bool, held: bool = True) -> bool:
    """`held`: with Ctrl. Returns whether the chart took it."""
    place = QPointF(chart.width() / 2, 100)
    turn = QPoint(0, 120 if up else -120)
    event = QWheelEvent(
        place,
        place,
        QPoint(),
        turn,
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.ControlModifier if held else Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(chart, event)
    return event.isAccepted()


def test_a_wheel_without_ctrl_is_left_to_the_page(chart: Chart) -> None:
    before = chart.range()
    assert not wheel(chart, up=True, held=False) and chart.range() == before
    assert wheel(chart, up=True) and chart.zoomed
    zoomed = chart.range()
    assert not wheel(chart, up=False, held=False) and chart.range() == zoomed


def test_the_value_under_the_pointer_is_told(chart: Chart, qtbot: QtBot) -> None:
    with qtbot.waitSignal(chart.hovered, timeout=30_000) as told:
        place = QPointF(chart.width() - 15, 80)
        none, no_key = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
        QApplication.sendEvent(chart, QMouseEvent(QEvent.Type.MouseMove, place, place, none, none, no_key))
    assert told.args == [10]
    assert chart.reading(10) == ["Round 100", "40.0 % ± 3.0"]


def test_arrow_keys_read_points_aloud(chart: Chart, qtbot: QtBot) -> None:
    chart.setFocus()
    qtbot.keyClick(chart, Qt.Key.Key_Home)
    assert chart.accessibleDescription() == "Round 0, 20.0 % ± 3.0"
    qtbot.keyClick(chart, Qt.Key.Key_Right)
    assert chart.accessibleDescription() == "Round 10, 22.0 % ± 3.0"


def test_zoom_pan_and_back(chart: Chart, qtbot: QtBot) -> None:
    for _ in range(4):
        wheel(chart, up=True)
    left, right = chart.range()
    assert chart.zoomed and right - left < 50
    middle = QPoint(chart.width() // 2, 100)
    qtbot.mousePress(chart, Qt.MouseButton.LeftButton, pos=middle)
    qtbot.mouseMove(chart, middle - QPoint(100, 0))
    qtbot.mouseRelease(chart, Qt.MouseButton.LeftButton, pos=middle - QPoint(100, 0))
    assert chart.range()[0] > left
    for _ in range(99):
        wheel(chart, up=True)
    assert chart.range()[1] - chart.range()[0] >= 4
    qtbot.mouseDClick(chart, Qt.MouseButton.LeftButton)
    assert chart.range() == (0, 100)


def test_a_zoom_survives_new_points(chart: Chart) -> None:
    chart.show_range(20, 50)
    chart.show_series([*POINTS, (110.0, 0.5, 0.02)])
    assert chart.range() == (20, 50) and len(chart.series) == 12
    chart.show_series(POINTS[:3])
    assert len(chart.series) == 3


@pytest.mark.parametrize("smooth", [0, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 11])
def test_it_is_drawn_with_any_number_of_points(chart: Chart, smooth: int, count: int) -> None:
    chart.show_series(POINTS[:count])
    chart.set_smooth(smooth)
    assert not chart.grab().isNull()


def test_a_hundred_thousand_points_are_panned_and_smoothed(chart: Chart) -> None:
    """That it works; how fast it is tells tests/ui/measure.py."""
    chart.show_series([(float(at), (at * 7919 % 1000) / 1000, 0.03) for at in range(100_000)])
    chart.set_smooth(35)
    for at in range(5):
        chart.show_range(1000 * at, 1000 * at + 80_000)
        chart.repaint()
    assert not chart.grab().isNull()


def test_the_curve_is_told_in_words_and_exported_as_it_is(qtbot: QtBot, light: Theme) -> None:
    curve = Curve(light)
    qtbot.addWidget(curve)
    curve.show_view(views.learning())
    said = curve.chart.accessibleName()
    assert said.startswith("New puzzles solved: 5") and "at round 160" in said and "17 points" in said
    curve._slider.setValue(5)
    rows = list(csv.DictReader(io.StringIO(curve.csv())))
    assert len(rows) == 17 and float(rows[-1]["pass_at_1"]) == views.learning().curve[-1].share
    curve._choose(TRAINING)
    rows = list(csv.DictReader(io.StringIO(curve.csv())))
    assert len(rows) == 160 and {"round", "at", "train_solved", "solved", "answered"} <= set(rows[0])
    assert "Practice answers right" in curve.chart.accessibleName()


def test_what_counting_letters_gets_is_a_line_beside_a_skills_curve(qtbot: QtBot, light: Theme) -> None:
    curve = Curve(light)
    qtbot.addWidget(curve)
    curve.resize(700, 400)
    point = Probe(round=0, share=0.4, stderr=0.05, letters=0.72)
    curve.show_view(View(skill="own-1", curve=(point,)))
    curve.show()
    assert curve._letters.isVisible() and "72" in curve._letters.text()
    bare, line = curve.chart.grab().toImage(), curve.chart._line(curve.chart._plot())
    assert line[1] >= 0.72, "the axis reaches it"
    curve.chart.show_beside(None)
    assert curve.chart.grab().toImage() != bare
    curve.show_view(View(curve=(msgspec.structs.replace(point, letters=None),)))
    assert not curve._letters.isVisible()
