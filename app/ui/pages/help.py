"""The page Help: the pages of resources/help with a search over all, and one about Shoal itself."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QLocale, QSignalBlocker, Qt, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QFont,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
)
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QTextBrowser, QTextEdit

from app.ui.frame.frame import Actions, Page
from app.ui.language.texts import number, tr
from app.ui.pages import manual
from app.ui.pages.manual import Topic, about
from app.ui.theme import Theme
from app.ui.theme.theme import BODY, HEADING, LEAD, TITLE, font, mono
from app.ui.view.view import View
from app.ui.widgets.pieces import Empty, boxed, column, row, search, stack

_LIST = 236
_HEADINGS, _ABOVE = {1: TITLE, 2: HEADING, 3: LEAD}, {2: 16, 3: 12}
"""Font sizes of headings and the space above them in pixels, by level."""
_PLAIN = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML


class MarkdownReader(QTextBrowser):
    """Shows Markdown. Loads nothing from the network, neither pictures nor pages."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setOpenLinks(False)
        self.setAccessibleName(tr("Help page"))
        self.setMinimumHeight(220)

    def loadResource(self, kind: int, name: QUrl | str) -> object:
        return None

    def write(self, text: str, words: str) -> None:
        """Shows another page, scrolled to the top or to the first occurrence of the words."""
        made = QTextDocument(self)  # shaped before it is shown: else every change lays it out again
        made.setDocumentMargin(14)
        made.setDefaultFont(font(BODY))
        made.setMarkdown(text, _PLAIN)
        self._shape(made)
        self.setDocument(made)  # which ends the one before
        self.moveCursor(QTextCursor.MoveOperation.Start)
        self.mark(words)

    def mark(self, words: str) -> None:
        """Highlights every occurrence of the words, and scrolls to the first."""
        marks: list[QTextEdit.ExtraSelection] = []
        look = QTextCharFormat()
        look.setBackground(self._theme.colour("accent_soft"))
        look.setForeground(self._theme.colour("accent"))
        for word in words.split():
            at = self.document().find(word)
            while not at.isNull():
                one = QTextEdit.ExtraSelection()
                one.cursor, one.format = QTextCursor(at), look
                marks.append(one)
                at = self.document().find(word, at)
        self.setExtraSelections(marks)
        if marks:
            first = min(marks, key=lambda one: one.cursor.position()).cursor
            first.clearSelection()
            self.setTextCursor(first)

    def _shape(self, made: QTextDocument) -> None:
        """Sets line spacing, and the theme's colours of tables."""
        line = self._theme.colour("line")
        for table in made.rootFrame().childFrames():
            if isinstance(table, QTextTable):
                frame = table.format()
                frame.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
                frame.setBorder(1)
                frame.setBorderBrush(line)
                frame.setBorderCollapse(True)
                frame.setCellPadding(6)
                frame.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
                table.setFormat(frame)
        block = made.begin()
        while block.isValid():
            cursor, look = QTextCursor(block), block.blockFormat()
            level = look.headingLevel()
            look.setLineHeight(100 if level else 135, 1)  # in per cent of the line
            plain = not (level or block.textList() or cursor.currentTable())
            look.setTopMargin(_ABOVE.get(level, 6 if plain else 0))
            look.setBottomMargin(6 if plain or level else 0)
            cursor.setBlockFormat(look)
            pieces = block.begin()
            while not pieces.atEnd():
                self._colour(QTextCursor(made), pieces.fragment(), level)
                pieces += 1
            block = block.next()

    def _colour(self, cursor: QTextCursor, piece: Any, level: int) -> None:
        known, look = piece.charFormat(), QTextCharFormat()
        if level:
            look.setFont(font(_HEADINGS.get(level, BODY), QFont.Weight.DemiBold))
        elif known.fontWeight() > QFont.Weight.DemiBold:
            look.setFontWeight(QFont.Weight.DemiBold)
        if known.isAnchor():
            look.setForeground(self._theme.colour("accent"))
        if known.fontFixedPitch():
            look.setFontFamilies(mono(BODY).families())
        cursor.setPosition(piece.position())
        cursor.setPosition(piece.position() + piece.length(), QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(look)


class Help(Page):
    lasting = False

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__(theme, actions, tr("Help"))
        self._topics = manual.topics(QLocale().name().partition("_")[0])
        self._home = ""
        self._find = search(tr("Search help"), lambda _: self._search())
        self._list = QListWidget()
        self._list.setAccessibleName(tr("Help pages"))
        self._list.setFixedWidth(_LIST)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.currentItemChanged.connect(lambda *_: self._show())
        self._reader = MarkdownReader(theme)
        self._reader.anchorClicked.connect(self.follow)
        nothing = Empty(theme, "search", tr("Nothing found"), tr("Try another word."))
        self._stack = stack(boxed(row(self._list, self._reader, gap=14, fill=1)), nothing)
        self.add(column(self._find, self._stack, gap=14, fill=1), 1)
        theme.changed.connect(self._show)
        self.show_view(View())

    def show_view(self, view: View) -> None:
        if not self._list.count() or view.home != self._home:
            self._home = view.home
            self._search()

    def show_topic(self, key: str) -> None:
        """Shows a page of the help, even if a search has hidden it."""
        if self._row(key) is None:
            self._find.clear()
        if (found := self._row(key)) is not None:
            self._list.setCurrentItem(found)

    def follow(self, link: QUrl) -> None:
        """Opens a link: a help page here, anything else in the browser after asking."""
        target = link.toString()
        if key := manual.page_of_link(target):
            self.show_topic(key)
        elif manual.is_web_link(target):
            QDesktopServices.openUrl(link)

    def _search(self) -> None:
        words, before = self._find.text(), self._key()
        found = manual.matching([*self._topics, about(self._home)], words)
        self._stack.setCurrentIndex(0 if found else 1)
        with QSignalBlocker(self._list):
            self._list.clear()
            for topic, hits in found:
                item = QListWidgetItem(f"{topic.title}  ·  {number(hits)}" if words.strip() else topic.title)
                item.setData(Qt.ItemDataRole.UserRole, topic)
                self._list.addItem(item)
        if found:
            self._list.setCurrentItem(self._row(before) or self._list.item(0))

    def _row(self, key: str) -> QListWidgetItem | None:
        rows = (self._list.item(at) for at in range(self._list.count()))
        return next((item for item in rows if _topic(item).key == key), None)

    def _key(self) -> str:
        return _topic(self._list.currentItem()).key if self._list.currentItem() is not None else ""

    def _show(self) -> None:
        if (item := self._list.currentItem()) is not None:
            self._reader.write(_topic(item).text, self._find.text())


def _topic(item: QListWidgetItem) -> Topic:
    found = item.data(Qt.ItemDataRole.UserRole)
    assert isinstance(found, Topic)
    return found
