"""A row that becomes a column if there is no room for it, and figures in such a row."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import QHBoxLayout, QLayout, QLayoutItem, QSizePolicy

from app.ui.widgets.pieces import Card, Elided, Item, Label, column, filled, row


class Bend(QHBoxLayout):
    """A row that becomes a column below `least` pixels, and always before its items would be cut. In the column
    items are as wide as possible, and stretches are left out."""

    def __init__(self, *items: Item, gap: int = 8, least: int = 0) -> None:
        super().__init__()
        self._least, self._bends = least, False
        filled(self, items, gap)

    def bent(self, width: int) -> bool:
        """Whether the layout is a column at this width."""
        return width < max(self._least, self.straight())

    def straight(self) -> int:
        """The least width of the row in pixels with every Bend in it a row too: the outermost bends first."""
        wide = [
            inner.straight() if isinstance(inner := item.layout(), Bend) else item.minimumSize().width()
            for item in self._shown()
        ]
        return max(super().minimumSize().width(), sum(wide) + self.spacing() * max(0, len(wide) - 1))

    def minimumSize(self) -> QSize:
        wide = max((item.minimumSize().width() for item in self._shown()), default=0)
        return QSize(wide, super().minimumSize().height())

    def hasHeightForWidth(self) -> bool:
        """True only for a column: a height-for-width layout never gets less than its preferred height."""
        return self._bends or bool(super().hasHeightForWidth())

    def heightForWidth(self, width: int) -> int:
        if not self.bent(width):
            tall = super().heightForWidth(width) if super().hasHeightForWidth() else -1
            return tall if tall >= 0 else super().sizeHint().height()
        shown = self._shown()
        return sum(_tall(item, width) for item in shown) + self.spacing() * max(0, len(shown) - 1)

    def minimumHeightForWidth(self, width: int) -> int:
        return self.heightForWidth(width)

    def setGeometry(self, area: QRect) -> None:
        if self.bent(area.width()) != self._bends:
            self._bends = not self._bends
            self.invalidate()
        if not self._bends:
            super().setGeometry(area)
            return
        QLayout.setGeometry(self, area)
        top = area.top()
        for item in self._shown():
            tall = _tall(item, area.width())
            wide = min(area.width(), item.maximumSize().width())
            item.setGeometry(QRect(area.left(), top, wide, tall))
            top += tall + self.spacing()

    def _shown(self) -> list[QLayoutItem]:
        items = (self.itemAt(at) for at in range(self.count()))
        return [item for item in items if item is not None and not item.isEmpty()]


def _tall(item: QLayoutItem, width: int) -> int:
    tall = item.heightForWidth(min(width, item.maximumSize().width())) if item.hasHeightForWidth() else -1
    return tall if tall >= 0 else item.sizeHint().height()


GAP, NARROW = 16, 700


class Stat(Card):
    """A figure with its name above and what it means below, cut to one line or, if it `wraps`, on several."""

    def __init__(self, wraps: bool = False) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(150)
        self._name, self._figure, self._meaning = (
            Label("", "caption", wrap=True),
            Elided("", "figure"),
            Label("", "faint", wrap=True) if wraps else Elided("", "faint"),
        )
        self._figure.setMinimumHeight(32)
        self._meaning.setMinimumHeight(17)
        self.setLayout(column(self._name, self._figure, self._meaning, 1, gap=3, margins=(18, 14, 18, 14)))

    def say(self, name: str, figure: str, meaning: str) -> None:
        self._name.say(name)
        self._figure.say(figure)
        self._meaning.say(meaning)
        self.setAccessibleName(f"{name}: {figure}, {meaning}")


def stats_row(*stats: Stat) -> Bend:
    """Lays out four figures in a row, or two by two if there is less room."""
    half = len(stats) // 2
    return Bend(row(*stats[:half], gap=GAP), row(*stats[half:], gap=GAP), gap=GAP, least=NARROW)
