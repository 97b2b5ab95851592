"""A table of any length: only the visible rows are ever asked for. Sorted by its headers, searched by text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView, QWidget

from app.ui.widgets.pieces import plain

_Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class Column(msgspec.Struct, frozen=True):
    """A column of a table: `text` returns the cell's text, `key` the value to sort by (None: the text)."""

    title: str
    text: Callable[[Any], str]
    key: Callable[[Any], Any] | None = None
    right: bool = False
    wide: bool = False
    tip: str = ""
    """What the title means, for those who rest on it and for screen readers."""


class TableRows(QAbstractTableModel):
    """The rows of a table. Filters and sorts them in one pass."""

    def __init__(self, columns: Sequence[Column], sort: int = 0, descending: bool = True) -> None:
        super().__init__()
        self.columns = list(columns)
        self._all: Sequence[Any] = ()
        self._rows: list[Any] = []
        self._words = ""
        self._sort, self._descending = sort, descending

    def show_rows(self, rows: Sequence[Any]) -> bool:
        """Replaces the rows; False if they are unchanged."""
        if rows is self._all or rows == self._all:
            return False
        self._all = rows
        self._arrange()
        return True

    def search(self, words: str) -> None:
        """Keeps the rows in which every word occurs in some column."""
        if words != self._words:
            self._words = words
            self._arrange()

    @property
    def shown(self) -> list[Any]:
        return self._rows

    def _arrange(self) -> None:
        self.beginResetModel()
        words = self._words.casefold().split()
        rows = list(self._all)
        if words:
            rows = [row for row in rows if self._has(row, words)]
        column = self.columns[self._sort]
        rows.sort(key=column.key or column.text, reverse=self._descending)
        self._rows = rows
        self.endResetModel()

    def _has(self, row: Any, words: Sequence[str]) -> bool:
        text = " ".join(column.text(row) for column in self.columns).casefold()
        return all(word in text for word in words)

    def rowCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        column = self.columns[index.column()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return column.text(self._rows[index.row()])
        if role == Qt.ItemDataRole.ToolTipRole:
            text = column.text(self._rows[index.row()])
            return plain(text) if len(text) > 40 else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.right else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is Qt.Orientation.Vertical:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.columns[section].title
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole):
            return self.columns[section].tip or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if self.columns[section].right else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        return None

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sort, self._descending = column, order is Qt.SortOrder.DescendingOrder
        self._arrange()


class Table(QTableView):
    """A table with hairlines between rows, without grid and row numbers."""

    opened = Signal(object)
    """Emits a row's value when it is clicked, or Enter is pressed on it."""

    def __init__(self, rows: TableRows, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = rows
        self._widths: Sequence[int] = ()
        self.setModel(rows)
        self.setAccessibleName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(38)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(False)
        header.setMinimumSectionSize(64)
        for at, column in enumerate(rows.columns):
            mode = QHeaderView.ResizeMode.Stretch if column.wide else QHeaderView.ResizeMode.Interactive
            header.setSectionResizeMode(at, mode)
        self.setMinimumHeight(160)
        header.sectionClicked.connect(self._sort_by)
        self.clicked.connect(self._open)
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        at = self.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and at.isValid():
            self._open(at)
        elif event.text() == "s" and at.isValid():
            self._sort_by(at.column())
            self.setCurrentIndex(self.rows.index(0, at.column()))
        else:
            super().keyPressEvent(event)

    def show_row(self, wanted: Callable[[Any], bool]) -> None:
        """Selects the first row that matches and scrolls to it."""
        at = next((at for at, row in enumerate(self.rows.shown) if wanted(row)), None)
        if at is not None:
            self.selectRow(at)
            self.scrollTo(self.rows.index(at, 0), QAbstractItemView.ScrollHint.PositionAtCenter)

    def _open(self, at: QModelIndex) -> None:
        self.opened.emit(self.rows.shown[at.row()])

    def set_widths(self, *widths: int) -> None:
        """Sets the widths of columns in pixels; 0 keeps a column's own. Titles can make a column wider, a
        narrow window narrower."""
        self._widths = widths
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit()  # the theme's font of the titles is known only now

    def resizeEvent(self, event: QResizeEvent) -> None:
        if event.size().width() != event.oldSize().width():
            self._fit()
        super().resizeEvent(event)

    def _fit(self) -> None:
        header = self.horizontalHeader()
        titles = [header.sectionSizeHint(at) for at in range(header.count())]
        room = self.viewport().width() - sum(titles)
        wide = [at for at, column in enumerate(self.rows.columns) if column.wide]
        room -= sum(max(titles[other] for other in wide) - titles[at] for at in wide)  # they share evenly
        modes = QHeaderView.ResizeMode
        for at in wide:  # what does not fit is scrolled to
            header.setSectionResizeMode(at, modes.Interactive if room < 0 else modes.Stretch)
            self.setColumnWidth(at, titles[at])
        for at, width in enumerate(self._widths):
            if width:
                more = max(0, min(width - titles[at], room))
                room -= more
                self.setColumnWidth(at, titles[at] + more)

    def show_rows(self, rows: Sequence[Any]) -> None:
        """Replaces the rows and keeps the scroll position."""
        place = self.verticalScrollBar().value()
        if self.rows.show_rows(rows):
            self.verticalScrollBar().setValue(place)

    def _sort_by(self, column: int) -> None:
        same = self.rows._sort == column
        down = not self.rows._descending if same else self.rows.columns[column].key is not None
        self.rows.sort(column, Qt.SortOrder.DescendingOrder if down else Qt.SortOrder.AscendingOrder)
