"""You as a peer: an answer of your own that may teach, shown word for word before you say yes; and your tally
beside your model's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from app.chat.scorebook import DuelScore
from app.common.text import safe
from app.sapo.families import FAMILIES
from app.ui.language.texts import counted, tr
from app.ui.theme import Theme
from app.ui.theme.palette import BODY
from app.ui.theme.theme import mono
from app.ui.widgets.pieces import Label, boxed, button, card, column, row

_BAR, _GAP, _NAME, _FIGURES = 7, 3, 190, 190
_HIGH = 2 * _BAR + _GAP + 14

Give = Callable[[bool, bool], None]
"""(teach the model here, share with the swarm)"""


class ExampleOffer(QFrame):
    """The very text that would teach, and what may become of it. Nothing does unless a button is pressed."""

    def __init__(self, text: str, together: bool, give: Give) -> None:
        super().__init__()
        self.setProperty("look", "quiet")
        self._give = give
        words = Label(safe(text), wrap=True)
        words.setStyleSheet(f'font-family: "{mono(BODY).family()}"; font-size: {BODY}px;')
        words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        words.setAccessibleName(tr("The text that would teach: {text}", text=safe(text)))
        self._about = Label(
            tr("Word for word, nothing else. In the swarm it's marked as a person's answer.")
            if together
            else tr("Word for word, nothing else. It stays on this computer."),
            "faint",
            wrap=True,
        )
        asked = [button(tr("Teach my model"), lambda: self._say_yes(True, False))]
        if together:
            asked.insert(0, button(tr("Teach and share"), lambda: self._say_yes(True, True), "primary"))
        self._buttons = boxed(row(*asked, button(tr("Keep it to myself"), self._no), 1, gap=8))
        heading = Label(tr("Right! May your answer teach?"), "strong")
        self.setLayout(column(heading, words, self._about, self._buttons, gap=9, margins=(14, 12, 14, 12)))

    def _say_yes(self, teach: bool, share: bool) -> None:
        self._buttons.hide()
        self._about.say(tr("Saving it …"))
        self._give(teach, share)

    def _no(self) -> None:
        self._buttons.hide()
        self._about.say(tr("It stays with you."))

    def given(self) -> None:
        self._about.say(
            tr("Thank you. Your model looks at it in its next round; it learns if it failed that puzzle.")
        )

    def failed(self, sentence: str) -> None:
        self._buttons.show()
        self._about.say(sentence)


class Against(QFrame):
    """You against your model, family by family, on the puzzles that both answered."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._total = Label("", "soft")
        self._rows = column(gap=2)
        heading = row(Label(tr("You against your model"), "heading"), 1, self._total, gap=12)
        legend = row(_Key(theme, True), _Key(theme, False), 1, gap=16)
        inside = card(column(heading, legend, self._rows, gap=10))
        self.setLayout(column(inside))

    def show_tally(self, against: Mapping[str, DuelScore]) -> None:
        self.setVisible(bool(against))
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        most = max((duel.puzzles for duel in against.values()), default=1)
        known = {name: duel for name, duel in against.items() if name in FAMILIES}
        for name, duel in sorted(known.items(), key=lambda one: -one[1].puzzles):
            self._rows.addWidget(Bars(self._theme, tr(FAMILIES[name].title), duel, most))
        you, model = (sum(getattr(duel, who) for duel in known.values()) for who in ("you", "model"))
        puzzles = sum(duel.puzzles for duel in known.values())
        self._total.say(
            counted(
                "{n} puzzle: you {you}, your model {model}",
                "{n} puzzles: you {you}, your model {model}",
                puzzles,
                you=you,
                model=model,
            )
        )


class Bars(QWidget):
    """Two bars of one family, with their figures in words."""

    def __init__(self, theme: Theme, title: str, duel: DuelScore, most: int) -> None:
        super().__init__()
        self._theme, self._title, self._duel, self._most = theme, title, duel, most
        self._figures = tr("you {you}, model {model} of {n}", you=duel.you, model=duel.model, n=duel.puzzles)
        self.setAccessibleName(f"{title}: {self._figures}")
        self.setFixedHeight(_HIGH)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, painter = self._theme.palette, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setPen(QColor(palette.text))
        painter.drawText(QRectF(0, 0, _NAME, _HIGH), int(middle), self._title)
        painter.setPen(QColor(palette.text_soft))
        right = QRectF(self.width() - _FIGURES, 0, _FIGURES, _HIGH)
        painter.drawText(right, int(middle | Qt.AlignmentFlag.AlignRight), self._figures)
        wide = max(20.0, self.width() - _NAME - _FIGURES - 16)
        for place, (solved, colour) in enumerate(
            ((self._duel.you, palette.peer), (self._duel.model, palette.own))
        ):
            top = (_HIGH - 2 * _BAR - _GAP) / 2 + place * (_BAR + _GAP)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(palette.sunken))
            whole = wide * self._duel.puzzles / self._most
            painter.drawRoundedRect(QRectF(_NAME, top, whole, _BAR), _BAR / 2, _BAR / 2)
            painter.setBrush(QColor(colour))
            if solved:
                painter.drawRoundedRect(
                    QRectF(_NAME, top, max(_BAR, wide * solved / self._most), _BAR), _BAR / 2, _BAR / 2
                )


class _Key(QWidget):
    """What a bar's colour stands for."""

    def __init__(self, theme: Theme, you: bool) -> None:
        super().__init__()
        self._theme, self._you = theme, you
        self._words = Label(tr("you, the upper bar") if you else tr("your model, the lower bar"), "faint")
        self.setLayout(row(self._words, margins=(18, 0, 0, 0)))
        theme.changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, painter = self._theme.palette, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(palette.peer if self._you else palette.own))
        painter.drawRoundedRect(QRectF(0, (self.height() - _BAR) / 2, 12, _BAR), _BAR / 2, _BAR / 2)
