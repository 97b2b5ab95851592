"""Help: its pages say what the window says, lead somewhere, and show nothing but themselves."""

from __future__ import annotations

import ast
import re
import xml.etree.ElementTree as tree
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QTextDocument
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.install.updates import installed
from app.ui.pages import manual
from app.ui.pages.help import Help
from app.ui.pages.manual import FOLDER, PAGES, Topic, about, licence, packages
from app.ui.shell.window import MainWindow
from app.ui.theme import Theme

ROOT = Path(__file__).parents[3]
FOR_PEOPLE = PAGES[: PAGES.index("commands")]
FILES = [ROOT / "README.md", *sorted(FOLDER.rglob("*.md"))]


@pytest.fixture
def help_page(window: MainWindow) -> Help:
    window.go("help")
    page = window._pages["help"]
    assert isinstance(page, Help)
    page._find.clear()
    page.show_topic("start")
    return page


def test_every_page_is_named_and_people_read_theirs_in_german_too() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == set(PAGES)
    assert {path.stem for path in (FOLDER / "de").glob("*.md")} == set(FOR_PEOPLE)
    english, german = manual.topics("en"), manual.topics("de")
    assert [one.key for one in english] == [one.key for one in german] == list(PAGES)
    assert english[-1] == german[-1] and english[0].title != german[0].title
    assert manual.topics("tlh") == english


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (path.parent / target).is_file(), target


@pytest.mark.parametrize("language", ["en", "de"])
def test_what_is_bold_for_people_is_what_the_window_calls_it(language: str) -> None:
    known = set()
    for message in tree.parse(ROOT / "resources/translations/shoal_de.ts").iter("message"):
        known.add(message.findtext("source" if language == "en" else "translation"))
    said = [
        (one.key, name) for one in manual.topics(language) for name in re.findall(r"\*\*(.+?)\*\*", one.text)
    ]
    assert len([one for one in said if one[0] in FOR_PEOPLE]) > 20
    assert [one for one in said if one[0] in FOR_PEOPLE and one[1] not in known] == []


def test_the_readme_is_short_and_names_every_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    assert [path for path in FILES[1:] if str(path.relative_to(ROOT)) not in text] == []
    assert "\n./shoal " in text and "\n./shoal test " in text
    assert text.index("pictures/real.png") < text.index("pictures/solo.png")


def test_f1_opens_it(qtbot: QtBot, window: MainWindow) -> None:
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_F1)
    assert window.page == "help"
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert isinstance(window.focusWidget(), QLineEdit)


def test_words_are_looked_for_on_all_pages(help_page: Help) -> None:
    help_page._find.setText("RELAY nats")
    keys = [_shown(help_page, at) for at in range(help_page._list.count())]
    assert "relay" in keys and "start" not in keys and len(keys) < len(PAGES)
    help_page.show_topic("relay")
    marked = {one.cursor.selectedText().casefold() for one in help_page._reader.extraSelections()}
    assert marked == {"relay", "nats"}
    help_page._find.setText("no such words anywhere")
    assert help_page._list.count() == 0 and help_page._stack.currentIndex() == 1
    help_page._find.clear()
    assert help_page._list.count() == len(PAGES) + 1
    help_page._find.setText("nats")
    help_page.show_topic("start")  # a link leads there although the search does not
    assert help_page._key() == "start"


def test_links_lead_inside_or_to_the_browser_and_nowhere_else(
    help_page: Help, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: asked.append(url.toString()))
    help_page._reader.anchorClicked.emit(QUrl("when.md"))
    assert help_page._key() == "when" and "When it runs" in help_page._reader.toPlainText()
    for link in ("file:///etc/passwd", "http://a.example/", "shoal://join/x", "../../etc.md", "/etc/start.md"):
        help_page._reader.anchorClicked.emit(QUrl(link))
    assert asked == [] and help_page._key() == "when"
    help_page._reader.anchorClicked.emit(QUrl("https://a.example/"))
    assert asked == ["https://a.example/"]


def test_text_is_never_markup_of_another_kind(help_page: Help) -> None:
    help_page._reader.write(
        "# Title\n\n<b>bold</b> <img src='file:///etc/hostname'> ![x](https://a.example/x.png)", ""
    )
    assert "<b>bold</b> <img src=" in help_page._reader.toPlainText()
    kind = QTextDocument.ResourceType.ImageResource.value
    assert help_page._reader.loadResource(kind, QUrl("file:///etc/hostname")) is None
    home = "/tmp/<img src=x>|`](https://a.example)"
    help_page._reader.write(about(home).text, "")
    assert "/tmp/<img src=x>/'](https://a.example)" in help_page._reader.toPlainText()


def test_about_says_version_licences_and_where_the_data_is() -> None:
    text = about("/home/ada/shoal").text
    assert installed.version() in text and "Apache" in text and "`/home/ada/shoal`" in text
    known = {name: said for name, _, said in packages()}
    assert "GPL" in known["PySide6_Essentials"] and known["psutil"].startswith("BSD")
    assert len(known) == len({name.casefold() for name in known})


def test_a_licence_that_is_a_whole_text_is_told_by_its_name() -> None:
    from email.message import Message

    long = Message()
    long["License"] = "Permission is hereby granted " * 20
    long["Classifier"] = "License :: OSI Approved :: MIT License"
    assert licence(long) == "MIT License"
    assert licence(Message()) == "–"


def test_pages_follow_the_theme(help_page: Help, light: Theme) -> None:
    before = help_page._reader.toHtml()
    light.choose("dark")
    try:
        assert help_page._reader.toHtml() != before
    finally:
        light.choose("light")


def test_a_word_counts_only_where_all_do() -> None:
    topic = Topic("a", "A", "# A\n\nwith **two** [words](start.md)")
    assert topic.hits("two words") == 2 and topic.hits("two three") == 0 and topic.hits("start.md") == 0


def _shown(page: Help, at: int) -> str:
    found = page._list.item(at).data(Qt.ItemDataRole.UserRole)
    assert isinstance(found, Topic)
    return found.key


def test_installers_carry_the_pages() -> None:
    source = ast.parse((ROOT / "packaging/frozen/bundle.py").read_text(encoding="utf-8"))
    known = {
        one.targets[0].id: ast.literal_eval(one.value)
        for one in source.body
        if isinstance(one, ast.Assign)
        and isinstance(one.targets[0], ast.Name)
        and one.targets[0].id in ("BUNDLED", "LEFT_OUT")
    }
    for path in FILES[1:]:
        name = path.relative_to(ROOT).as_posix()
        assert name.startswith(known["BUNDLED"]) and not name.startswith(known["LEFT_OUT"])
