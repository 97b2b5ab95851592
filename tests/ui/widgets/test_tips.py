"""Tool tips show what peers and relays say, and load nothing."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app.ui.widgets.pieces import Label, PlainTips


def test_a_tip_with_markup_is_shown_as_it_was_written(qtbot: QtBot) -> None:
    label = Label("relay")
    qtbot.addWidget(label)
    label.setToolTip("<img src='/etc/hostname'> & more")
    label.show()
    at = QPoint(1, 1)
    hover = QHelpEvent(QEvent.Type.ToolTip, at, label.mapToGlobal(at))
    tips = PlainTips()
    QApplication.instance().installEventFilter(tips)
    try:
        QApplication.sendEvent(label, hover)
        assert "&lt;img" in QToolTip.text() and "<img" not in QToolTip.text()
        label.setToolTip("64 answers")
        QApplication.sendEvent(label, hover)
        assert QToolTip.text() == "64 answers"
    finally:
        QApplication.instance().removeEventFilter(tips)
