"Updates in the window: real ./shoal update processes against a real host, and every state of the\npages."

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", reason="Qt's system libraries are missing here", exc_type=ImportError)


from pytestqt.qtbot import QtBot

from app.install.updates import asking, installed
from app.ui.install import update_control as module
from app.ui.install.update_control import UpdateControl
from app.ui.view.settings import Choices
from app.ui.view.view import UpdateStage, UpdateView
from tests.packs.wheels import Host
from tests.updates.releases import FILES, LIST, PUBLIC, release, trust
from tests.updates.scenes import OFFER

PATIENCE_MS = 240_000
NEW = b"#!/bin/sh\necho new\n" + bytes(200_000)
if sys.platform == "win32":
    pytest.skip("a shell script stands in for a one-file Shoal", allow_module_level=True)


def today(body: bytes = NEW, **changed: object) -> dict[str, bytes]:
    now = datetime.now(UTC)
    return release(body, made=now, expires=now + timedelta(days=30), **changed)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "Shoal"
    path.write_bytes(b"#!/bin/sh\necho old\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def updating(host: Host, tmp_path: Path, program: Path, qtbot: QtBot) -> Iterator[UpdateControl]:
    host.files.update(today())
    where = f"{host.url}/{LIST}"
    home = tmp_path / "home"
    made = UpdateControl(
        home, Choices(home), ["--feed", where, "--key", PUBLIC, "--program", str(program)], trust(where)
    )
    yield made
    made.close()


def idle(qtbot: QtBot, one: UpdateControl) -> UpdateView:
    qtbot.waitUntil(lambda: one.state.stage is UpdateStage.IDLE and not one._doer.running, timeout=PATIENCE_MS)
    return one.state


def test_looked_for_fetched_and_installed(
    updating: UpdateControl, host: Host, program: Path, qtbot: QtBot
) -> None:
    heard: list[object] = []
    updating.resting.connect(lambda: heard.append("rest"))
    updating.awake.connect(lambda: heard.append("awake"))
    updating.handed.connect(heard.append)
    seen: list[UpdateView] = []
    updating.changed.connect(seen.append)
    updating.check()
    found = idle(qtbot, updating)
    assert found.offer is not None and found.offer.version == "0.2.0" and not found.fetched and found.answered
    host.cut[FILES["elf"]] = [70_000]
    updating.fetch()
    found = idle(qtbot, updating)
    assert found.fetched and not found.sentence and not heard
    assert any(one.stage is UpdateStage.FETCHING and "broke off" in one.note for one in seen)
    updating.install()
    found = idle(qtbot, updating)
    assert heard == ["rest", "restart"] and found.said.startswith("It is installed")
    assert program.read_bytes() == NEW and b"old" in program.with_name("Shoal.previous").read_bytes()


@pytest.mark.long
def test_what_was_changed_on_the_disk_is_not_installed(
    updating: UpdateControl, program: Path, qtbot: QtBot
) -> None:
    heard: list[object] = []
    updating.resting.connect(lambda: heard.append("rest"))
    updating.awake.connect(lambda: heard.append("awake"))
    updating.fetch()
    assert idle(qtbot, updating).fetched
    (updating.folder() / FILES["elf"]).write_bytes(NEW[:-1] + b"?")
    updating.install()
    found = idle(qtbot, updating)
    assert heard == ["rest", "awake"] and "or is damaged" in found.sentence
    assert b"old" in program.read_bytes(), "what was changed on the disk is not installed"
    heard.clear()
    updating.fetch()
    assert idle(qtbot, updating).fetched and not heard


def test_it_asks_by_itself_only_if_it_may(updating: UpdateControl, host: Host, qtbot: QtBot) -> None:
    choices = updating._choices
    updating.look_if_due()
    assert not updating._doer.running, "nobody agreed to it"
    choices.put("updates", True)
    updating.look_if_due()
    assert not updating._doer.running, "it learns alone"
    choices.put("company", "others")
    updating.look_if_due()
    assert updating._doer.running
    assert idle(qtbot, updating).offer is not None
    updating.look_if_due()
    assert not updating._doer.running, "it asked today"
    assert [name for name, _ in host.asked] == [f"{LIST}.sig", LIST]


def test_what_nobody_asked_for_fails_quietly_and_ends_with_the_swarm(
    updating: UpdateControl, host: Host, qtbot: QtBot
) -> None:
    host.files.update(today(serial=2))
    host.files[f"{LIST}.sig"] = b"0" * 128
    updating._choices.put("company", "others")
    updating.decide(True)
    assert updating._doer.running and not updating.state.undecided
    found = idle(qtbot, updating)
    assert found.sentence == "" and "isn't signed" in asking.read_known(updating._home).sentence
    updating.check()
    assert "isn't signed" in idle(qtbot, updating).sentence, "who pressed a button is told"
    state = updating._home / asking.KNOWN_FILE
    state.unlink()
    updating.look_if_due()
    assert updating._doer.running
    updating.cancel_automatic_check()
    assert updating.state.stage is UpdateStage.IDLE and not updating._doer.running
    updating.check()
    updating.cancel_automatic_check()
    assert updating.state.stage is UpdateStage.ASKING, "what somebody pressed goes on"


def test_a_window_alone_asks_nobody(
    updating: UpdateControl, host: Host, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything in its favour but company, and its clock ticking."""
    monkeypatch.setattr(module, "FIRST_MS", 5)
    updating._clock.setInterval(5)
    updating._choices.put("updates", True)
    ticks: list[int] = []
    updating._clock.timeout.connect(lambda: ticks.append(1))
    updating.open()
    qtbot.waitUntil(lambda: len(ticks) > 20, timeout=PATIENCE_MS)
    assert not host.asked and not updating._doer.running
    updating._choices.put("company", "others")
    qtbot.waitUntil(lambda: bool(host.asked), timeout=PATIENCE_MS)


@pytest.mark.long
def test_a_download_is_cancelled_and_continued_by_the_next_window(
    updating: UpdateControl, host: Host, qtbot: QtBot
) -> None:
    host.files.update(today(NEW + bytes(3_000_000), serial=9))
    host.slow_s = 0.02
    updating.check()
    idle(qtbot, updating)
    updating.fetch()
    qtbot.waitUntil(lambda: updating.state.have > 100_000, timeout=PATIENCE_MS)
    updating.cancel()
    assert updating.state.stage is UpdateStage.IDLE and updating.state.offer is not None
    qtbot.waitUntil(lambda: any(updating.folder().glob("*.part")), timeout=PATIENCE_MS)
    host.slow_s, before = 0.0, len(host.asked)
    later = UpdateControl(updating._home, updating._choices, updating._options, trust(f"{host.url}/{LIST}"))
    assert later.state.offer is not None and not later.state.fetched, "it is remembered"
    later.fetch()
    assert idle(qtbot, later).fetched
    asked = [wanted for name, wanted in host.asked[before:] if name == FILES["elf"]]
    assert asked and asked[0].startswith("bytes=")
    later.close()


def test_what_was_fetched_goes_once_it_is_installed(
    updating: UpdateControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, folder = updating._home, updating.folder()
    asking.write_known(home, asking.Known(serial=5, offer=OFFER))
    folder.mkdir()
    for name in (OFFER.file, "feed.json"):
        (folder / name).write_bytes(b"x")
    UpdateControl(home, updating._choices, [], trust("https://example.org/x")).open()
    assert (folder / OFFER.file).exists()
    monkeypatch.setattr(installed, "version", lambda: OFFER.version)
    later = UpdateControl(home, updating._choices, [], trust("https://example.org/x"))
    later.open()
    assert later.state.offer is None and [one.name for one in folder.iterdir()] == ["feed.json"]


def test_a_checkout_only_says_so(tmp_path: Path) -> None:
    one = UpdateControl(tmp_path, Choices(tmp_path))
    one.open()
    one.check()
    assert one.state.stage is UpdateStage.CHECKOUT and not one._doer.running and not one._clock.isActive()


def test_odd_lines_of_the_process_change_nothing(updating: UpdateControl) -> None:
    for line in (b"", b"{", b"[]", b'{"event": "progress"', b'{"event": 3}', b'{"event": "other"}'):
        updating._heard(line)
    assert updating.state.offer is None


def test_the_command_speaks_lines(updating: UpdateControl, host: Host, tmp_path: Path) -> None:
    """`./shoal update --json` as others may call it."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "app.cli",
            "update",
            "--json",
            "--fetch",
            "--home",
            str(tmp_path / "h"),
            *updating._options,
        ],
        capture_output=True,
        timeout=PATIENCE_MS / 1000,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and not done.stderr
    assert [line["event"] for line in lines if line["event"] != "progress"] == ["checked", "ready"]
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "update", "--home", str(tmp_path / "h"), *updating._options],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_MS / 1000,
    )
    said = done.stderr.decode()
    assert done.returncode == 1 and "No one can answer here: add --yes." in said and "Learns faster." in said
