"""The second language is complete, says the same things, and is what the window loads."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QTranslator

from app.ui.language import translating
from app.ui.language.texts import CONTEXT, counted, tr
from app.ui.language.translating import SourceText

FILES = translating.files()
collect = cache(translating.collect)


def places(text: str) -> set[str]:
    return set(re.findall(r"\{\w+\}", text))


def names(path: Path) -> str:
    return path.stem


@pytest.fixture(params=FILES, ids=names)
def language(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_there_is_a_second_language() -> None:
    assert FILES


def test_every_text_is_translated_with_its_places(language: Path) -> None:
    done = translating.read(language)
    texts = collect()
    assert [text.source for text in texts if text.source not in done] == []
    assert set(done) == {text.source for text in texts}, "nobody shows these any more"
    wrong = [
        (text.source, form)
        for text in texts
        for form in done[text.source]
        if places(form) != places(text.source)
    ]
    assert wrong == []


def test_the_compiled_file_says_what_the_translators_wrote(language: Path) -> None:
    translator = QTranslator()
    assert translator.load(str(language.with_suffix(".qm")))
    done = translating.read(language)
    for text in collect():
        found = translator.translate(CONTEXT, text.source, None, 1 if text.counted else -1)
        assert found == done[text.source][0], text.source


def test_texts_come_out_in_the_language(qapp: QCoreApplication) -> None:
    translator = QTranslator()
    assert translator.load(str(translating.FOLDER / "shoal_de.qm"))
    assert qapp.installTranslator(translator)
    try:
        assert tr("Start learning") == "Lernen starten"
        assert counted("{n} row", "{n} rows", 1) == "1 Zeile"
        assert counted("{n} row", "{n} rows", 3) == "3 Zeilen"
    finally:
        qapp.removeTranslator(translator)
    assert tr("Start learning") == "Start learning"


def test_what_is_new_is_added_and_what_is_gone_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translating, "FOLDER", tmp_path)
    path = translating.begin("fr")
    assert (
        translating.update(path, [SourceText("Stay"), SourceText("Go"), SourceText("{n} fish", counted=True)])
        == 3
    )
    path.write_text(
        path.read_text(encoding="utf-8").replace(
            '<source>Stay</source>\n   <translation type="unfinished" />',
            "<source>Stay</source>\n   <translation>Rester &amp; lire</translation>",
        ),
        encoding="utf-8",
    )
    assert translating.update(path, [SourceText("Stay"), SourceText("New")]) == 1
    assert translating.read(path) == {"Stay": ["Rester & lire"]}
    assert "Go" not in path.read_text(encoding="utf-8")
    assert translating.begin("fr").read_text(encoding="utf-8") == path.read_text(encoding="utf-8")
