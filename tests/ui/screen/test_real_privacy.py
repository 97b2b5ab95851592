"""The privacy page against a real relay, with this window's own node."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.bench.runs.window import prepare
from app.ui.privacy.message import MessageRow
from app.ui.privacy.page import Privacy
from app.ui.shell.desktop import Desktop
from tests.ui.screen.real import ROOT

pytestmark = pytest.mark.long
PATIENCE_MS = 180_000


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[str]:
    running = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "relay", "--port", "0", "--state", str(tmp_path / "relay")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert running.stdout is not None
    yield json.loads(running.stdout.readline())["url"]
    running.terminate()
    running.wait()


def said(page: Privacy) -> str:
    return "\n".join(label.text() for label in page.findChildren(QLabel) if label.isVisibleTo(page))


def test_what_leaves_is_shown_as_it_leaves_and_stops_at_once(
    qapp: QApplication, qtbot: QtBot, relay: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    prepare(tmp_path)
    desktop = Desktop(qapp, tmp_path, "light")
    desktop.window.resize(1100, 900)
    desktop.window.show()
    desktop.window.go("privacy")
    page = desktop.window._pages["privacy"]
    assert isinstance(page, Privacy)
    try:
        assert "Nothing" in said(page)
        desktop.control.join(relay)
        qtbot.waitUntil(lambda: (desktop.control.view.swarm or _NONE).given > 0, timeout=PATIENCE_MS)
        qtbot.waitUntil(lambda: "Puzzle answers, " in said(page), timeout=PATIENCE_MS)
        swarm = desktop.control.view.swarm
        assert (
            swarm is not None and swarm.bytes_per_hour and swarm.received_per_hour and swarm.name in said(page)
        )
        page._which.choose("sent")
        page._show_messages()

        def sent() -> list[str]:
            rows = [row for row in page.findChildren(MessageRow) if row.isVisibleTo(page)]
            assert all(row.message is not None and row.message.outgoing for row in rows)
            return [row.message.kind for row in rows if row.message is not None]

        qtbot.waitUntil(lambda: "pub" in sent(), timeout=PATIENCE_MS)
        print(f"\n{page._answer.text()}; {swarm.given} puzzles given, {len(swarm.messages)} messages shown.")
        desktop.window.grab().save(str(tmp_path / "privacy.png"))
        first = swarm.bytes_per_hour
        qtbot.waitUntil(
            lambda: ((desktop.control.view.swarm or _NONE).bytes_per_hour or 0) > first, timeout=PATIENCE_MS
        )

        before = desktop.node_pid
        page._switch.click()
        qtbot.waitUntil(
            lambda: desktop.node_pid not in (0, before) and not psutil.pid_exists(before), timeout=PATIENCE_MS
        )
        qtbot.waitUntil(lambda: "can't open a network" in said(page), timeout=PATIENCE_MS)
        own = psutil.Process(desktop.node_pid)
        assert "--solo" in own.cmdline() and not own.net_connections("inet")
        rounds = desktop.control.view.last_round or len(desktop.control.view.rounds)
        qtbot.waitUntil(lambda: len(desktop.control.view.rounds) > rounds, timeout=PATIENCE_MS)
        assert "Nothing" in said(page) and not own.net_connections("inet")
    finally:
        desktop.control.close()
        desktop.window.hide()
        desktop.window.deleteLater()


class _None:
    given = 0
    bytes_per_hour = 0.0


_NONE = _None()
