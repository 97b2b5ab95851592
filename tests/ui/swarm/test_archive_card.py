"""A file of answers comes in and goes out by the real command, and broken ones are told in a sentence."""

from __future__ import annotations

import time
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.swarm.intake import archive
from app.swarm.intake.archive import ArchivedGroup
from app.ui.swarm.page import ArchiveCard
from tests.swarm.cases import SWARM, honest, signed
from tests.ui.test_pages import texts


def test_a_file_is_checked_and_kept_and_a_broken_one_is_not(qtbot: QtBot, tmp_path: Path) -> None:
    body = honest() | {"created_ms": time.time_ns() // 10**6}
    lie = honest(1) | {"created_ms": time.time_ns() // 10**6, "rewards": [0, 1, 0]}
    archive.write(tmp_path / "a.jsonl", [ArchivedGroup(swarm=SWARM, group=signed(one)) for one in (body, lie)])
    (tmp_path / "b.jsonl").write_text("no archive")
    card = ArchiveCard()
    qtbot.addWidget(card)
    card.show_home(str(tmp_path / "home"), alone=True)
    for what, path, said in (
        ("import", "a.jsonl", "1 answered puzzle passed the checks. 1 was turned away."),
        ("import", "b.jsonl", "b.jsonl has no groups in it"),
        ("export", "c.jsonl", "There are no answers here yet"),
    ):
        with qtbot.waitSignal(card._job.ended, timeout=600_000):
            card.run(what, str(tmp_path / path))
        qtbot.waitUntil(lambda said=said: said in texts(card), timeout=5000)
        assert card._bring.isEnabled() and card._give.isEnabled()
    assert len(archive.read(tmp_path / "home" / archive.FILE)[0]) == 1 and not (tmp_path / "c.jsonl").exists()
