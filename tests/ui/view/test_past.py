"""Starting over from the window, while a real node learns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.models.catalogue import STARTER
from app.node.rules.preferences import Preferences
from app.ui.shell.desktop import Desktop
from app.ui.view.view import NodeStatus

PATIENCE_MS = 240_000


@pytest.fixture
def desktop(qapp: QApplication, tmp_path: Path) -> Iterator[Desktop]:
    Preferences(tmp_path).change({"contribute_when_idle": False, "cpu_limit": 100})
    made = Desktop(qapp, tmp_path, "light")
    yield made
    made.window.close_down()
    made._close_all()
    made.window.deleteLater()


@pytest.mark.long
def test_it_starts_over_by_itself_and_what_is_refused_changes_nothing(
    desktop: Desktop, tmp_path: Path, qtbot: QtBot
) -> None:
    def soon(holds: Callable[[], bool]) -> None:
        qtbot.waitUntil(holds, timeout=PATIENCE_MS)

    def now() -> tuple[NodeStatus, int]:
        return desktop.control.view.state, desktop.control.view.safe_round

    control, fetching = desktop.control, desktop.models
    control.learn("alone")
    soon(lambda: now()[1] >= 2)
    fetching.start_over(STARTER)
    soon(lambda: now() == (NodeStatus.LEARNING, 1))
    assert fetching.state.failed == {}
    fetching.back(STARTER)
    soon(lambda: "no best round yet" in fetching.state.failed.get(STARTER, ""))
    before = now()[1]
    soon(lambda: now()[1] > before)  # it learns on
