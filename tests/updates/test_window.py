"""Checks for updates by the window: real ./shoal update processes against a real host."""

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
from app.ui.process import updates as module
from app.ui.process.updates import UpdateControl
from app.ui.view.settings import Choices
from app.ui.view.view import UpdateStage, UpdateView
from tests.packs.wheels import Host
from tests.updates.releases import LIST, PUBLIC, release, trust

PATIENCE_MS = 240_000


def today(**changed: object) -> dict[str, bytes]:
    now = datetime.now(UTC)
    return release(made=now, expires=now + timedelta(days=30), **changed)


@pytest.fixture
def updating(host: Host, tmp_path: Path, qtbot: QtBot) -> Iterator[UpdateControl]:
    host.files.update(today())
    where = f"{host.url}/{LIST}"
    home = tmp_path / "home"
    made = UpdateControl(home, Choices(home), ["--feed", where, "--key", PUBLIC], trust(where))
    yield made
    made.close()


def idle(qtbot: QtBot, one: UpdateControl) -> UpdateView:
    qtbot.waitUntil(lambda: one.state.stage is UpdateStage.IDLE and not one._doer.running, timeout=PATIENCE_MS)
    return one.state


def test_a_check_is_remembered_until_the_new_version_runs(
    updating: UpdateControl, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    updating.check()
    found = idle(qtbot, updating)
    assert found.offer is not None and found.offer.version == "0.2.0" and found.answered and not found.sentence
    later = UpdateControl(updating._home, updating._choices, [], trust("https://example.org/x"))
    assert later.state.offer == found.offer
    monkeypatch.setattr(installed, "version", lambda: "0.2.0")
    later = UpdateControl(updating._home, updating._choices, [], trust("https://example.org/x"))
    assert later.state.offer is None


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


def test_a_checkout_only_says_so(tmp_path: Path) -> None:
    one = UpdateControl(tmp_path, Choices(tmp_path))
    one.open()
    one.check()
    assert one.state.stage is UpdateStage.CHECKOUT and not one._doer.running and not one._clock.isActive()


def test_odd_lines_of_the_process_change_nothing(updating: UpdateControl) -> None:
    for line in (b"", b"{", b"[]", b'{"event": "progress"', b'{"event": 3}', b'{"event": "other"}'):
        updating._heard(line)
    assert updating.state.offer is None


def test_the_command_says_it_in_lines_and_in_words(updating: UpdateControl, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "update", "--home", str(tmp_path / "h"), *updating._options]
    done = subprocess.run([*command, "--json"], capture_output=True, timeout=PATIENCE_MS / 1000)
    (line,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and not done.stderr
    assert line["event"] == "checked" and line["version"] == installed.version()
    assert line["offer"]["version"] == "0.2.0" and line["offer"]["page"] == "https://example.org/shoal"
    said = subprocess.check_output(command, timeout=PATIENCE_MS / 1000).decode()
    assert "Learns faster." in said and "https://example.org/shoal" in said
