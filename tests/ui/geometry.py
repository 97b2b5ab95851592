"""What is wrong with a window as it stands: controls that are not seen, reached or named, and cut texts.

One walk over all widgets in sight; it knows nothing of pages."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QSlider,
    QTextEdit,
    QWidget,
)

from app.ui.charts.table import Table
from app.ui.privacy.message import MessageRow
from app.ui.widgets.pieces import Elided

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QSlider,
    QTextEdit,
)
_CELL = 24
"""Pixels beside a cell's text."""
_NO_ROLES = (QAccessible.Role.NoRole, QAccessible.Role.Client, QAccessible.Role.Window)


def faults(window: QWidget) -> list[str]:
    """One line for each, none where all is well."""
    found = []
    reached = set(_focus_chain(window))
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or inner(widget):
            continue
        if isinstance(widget, CONTROLS):
            if (where := _outside(widget, window)) is not None:
                found.append(f"{_told(widget)} is cut off by {where}")
            if widget.isEnabled() and widget not in reached and not _by_arrows(widget, reached):
                found.append(f"{_told(widget)} is not reached by Tab")
            found += [f"{_told(widget)} {fault}" for fault in unheard(widget)]
        if isinstance(widget, Table):
            header = widget.horizontalHeader()
            found += [
                f"{_told(widget)} cuts its title {column.title!r}"
                for at, column in enumerate(widget.rows.columns)
                if header.sectionSize(at) < header.sectionSizeHint(at)
            ]
            found += [f"{_told(widget)} cuts {text!r}" for text in _cut_cells(widget)]
        if (need := _missing(widget)) is not None:
            found.append(f"{_told(widget)} is cut: {need}")
    return found


def unheard(widget: QWidget) -> list[str]:
    """What a screen reader lacks about a control."""
    seen = QAccessible.queryAccessibleInterface(widget)
    if seen is None or not seen.text(QAccessible.Text.Name):
        return ["has no name"]
    return ["has no role"] if seen.role() in _NO_ROLES else []


def inner(widget: QWidget) -> bool:
    """A part that belongs to another control: the line of a spin box, the list of a drop-down."""
    parent = widget.parentWidget()
    ours = widget.objectName().startswith("qt_") or isinstance(widget, QHeaderView)
    while parent is not None and not ours:
        ours = isinstance(parent, QComboBox | QAbstractSpinBox | QLineEdit | QAbstractItemView)
        parent = parent.parentWidget()
    return ours


def _outside(widget: QWidget, window: QWidget) -> str | None:
    """What cuts a widget off, if something does. What lies below a scroll area's edge can be scrolled to, what
    lies beside it cannot."""
    at: QWidget = widget
    area = QRect(QPoint(0, 0), widget.size())
    while at is not window:
        parent = at.parentWidget()
        area.translate(at.pos())
        scrolled = isinstance(parent.parentWidget(), QScrollArea) and parent is parent.parentWidget().viewport()
        room = parent.rect()
        beside = area.left() < room.left() or area.right() > room.right()
        below = area.top() < room.top() or area.bottom() > room.bottom()
        if beside or (below and not scrolled):
            return f"{type(parent).__name__} ({area.getCoords()} in {room.getCoords()})"
        if scrolled:
            area.moveTop(0)
            area.setHeight(1)
        at = parent
    return None


def _focus_chain(window: QWidget) -> Iterator[QWidget]:
    """Who is in it: every widget of a window that takes the focus by Tab, or whoever stands for it. Asking each
    for its next one would be shorter, but PySide takes the one for the other's part, and it goes with it."""
    for at in window.findChildren(QWidget):
        if at.focusPolicy() & Qt.FocusPolicy.TabFocus:
            yield at
        if (proxy := at.focusProxy()) is not None:
            yield proxy


def _by_arrows(widget: QWidget, reached: set[QWidget]) -> bool:
    """Of several of which one is chosen, Tab reaches one and arrows the others."""
    group = widget.group() if isinstance(widget, QAbstractButton) else None
    return group is not None and group.exclusive() and not reached.isdisjoint(group.buttons())


def _missing(widget: QWidget) -> str | None:
    """What a text needs more than it has."""
    if isinstance(widget, Elided) and not widget.wordWrap():
        wide, given = widget.fontMetrics().horizontalAdvance(widget.text()), widget.width()
        theirs = widget.text().startswith("/") or isinstance(widget.parentWidget(), MessageRow)
        return None if theirs or wide <= given else f"{wide} in {given}"
    if isinstance(widget, QLabel) and widget.text():
        if widget.wordWrap():
            longest = max(widget.text().replace("\u200b", " ").split(), key=len, default="")
            wide, high = widget.fontMetrics().horizontalAdvance(longest), widget.heightForWidth(widget.width())
        else:
            wide, high = widget.sizeHint().width(), widget.minimumSizeHint().height()
        if wide > widget.width() or high > widget.height() + 1:
            return f"{wide}x{high} in {widget.width()}x{widget.height()}"
    elif isinstance(widget, QAbstractButton | QComboBox) and widget.sizeHint().width() > widget.width():
        return f"{widget.sizeHint().width()} in {widget.width()}"
    return None


def _cut_cells(table: Table) -> set[str]:
    """Texts in sight that are wider than their column. Of a wide column they may be: it holds sentences and
    names, and its tool tip has them whole."""
    rows, metrics = table.rows, table.fontMetrics()
    first = max(0, table.rowAt(0))
    return {
        text
        for at, column in enumerate(rows.columns)
        if not column.wide
        for row in range(first, min(rows.rowCount(), first + 12))
        if metrics.horizontalAdvance(text := str(rows.index(row, at).data())) + _CELL > table.columnWidth(at)
    }


def _told(widget: QWidget) -> str:
    text = getattr(widget, "text", lambda: "")() or widget.accessibleName()
    return f"{type(widget).__name__} {text[:40]!r}"
