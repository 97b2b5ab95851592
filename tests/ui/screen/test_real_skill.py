"""A second Shoal in a real window: it joins a relay on which others learned before, learns a kind of puzzle
that it does not practise, and says from whom; they hear of it when they come back."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.bench.runs.window import prepare
from app.node.history.milestones import MilestoneKind
from app.sapo.families import FAMILIES
from app.sapo.groups import Group
from app.sapo.questions import draw
from app.swarm.client.receipts import Thanked
from app.swarm.identity.identity import Identity
from app.ui.shell.desktop import Desktop
from tests.swarm import relays
from tests.ui.screen.real import ROOT
from tests.ui.screen.test_real_privacy import relay as relay
from tests.ui.test_pages import texts

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]
PATIENCE_MS = 3_600_000
PRACTISED = {"chain_sum": 1, "gcd": 1, "spell_backward": 1}
TAUGHT = {"lcm": 1, "fraction_simplification": 1, "simple_equations": 1, "count_bits": 1}
"""The pupil is the starter, whose maker left these families to others."""
AUTHORS = [Identity(bytes([number]) * 32) for number in (7, 8, 9)]
OF_AUTHOR = 14
"""Groups of one family by one author: a relay takes sixty in a minute."""


def groups(author: int) -> list[Group]:
    """Right answers with their work, each beside a wrong one, as models that have learned these families give
    them."""
    found = []
    for family, level in TAUGHT.items():
        for number in range(OF_AUTHOR):
            question = draw(family, level, 2**44 + (number * len(AUTHORS) + author) * 2**21)
            if not question.held_out:
                right = FAMILIES[family].worked(question.entry)
                found.append(
                    Group(
                        coordinates=question.coordinates,
                        completions_G=(right, "#"),
                        finished_G=(True, True),
                        model="starter",
                    )
                )
    return found


async def publish(url: str, folder: Path) -> None:
    """Each author comes, gives away what it has, and leaves."""
    for number, author in enumerate(AUTHORS):
        thanked, given = Thanked(folder / str(number)), groups(number)
        want = len(given)
        async with relays.running(folder / str(number), [url], author, thanked=thanked) as (client, _):
            await relays.until(lambda client=client: client.status.connected)
            for group in given:
                assert client.publish(group, (1, 0))
            await relays.until(lambda client=client, n=want: client.status.acknowledged == n)
        thanked.save()


def pupil(folder: Path) -> Path:
    """The starter, practising a third of its families."""
    model = shutil.copytree(ROOT / "resources" / "starter", folder / "pupil")
    known = json.loads((model / "shoal.json").read_text())
    (model / "shoal.json").write_text(json.dumps(known | {"families": PRACTISED, "others": TAUGHT}))
    return model


async def come_back(url: str, folder: Path) -> dict[str, int]:
    """What the first author is told."""
    thanked = Thanked(folder / "0")
    async with relays.running(folder / "0", [url], AUTHORS[0], thanked=thanked):
        await relays.until(lambda: thanked.taught)
    return thanked.taught


def test_a_second_shoal_learns_from_those_who_left_and_says_from_whom(
    qapp: QApplication, qtbot: QtBot, relay: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    asyncio.run(publish(relay, tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    prepare(home)
    (home / "window.json").write_text(json.dumps({"model": str(pupil(tmp_path)), "probe_every": 10}))
    desktop = Desktop(qapp, home, "light")
    desktop.window.resize(1280, 720)
    desktop.window.show()
    names = {author.name for author in AUTHORS}
    try:
        desktop.control.join(relay)
        learned = MilestoneKind.LEARNED
        qtbot.waitUntil(
            lambda: any(one.kind is learned for one in desktop.control.view.milestones), timeout=PATIENCE_MS
        )
        view = desktop.control.view
        (first, *_) = [one for one in view.milestones if one.kind is learned]
        title = FAMILIES[first.family].title
        assert first.family in TAUGHT and first.peer in names
        (said,) = [
            one.sentence for one in view.happenings if one.kind == "skill" and title.lower() in one.sentence
        ]
        assert said.startswith(f"Learned {title.lower()} from ") and "It began with “" in said
        (family,) = [one for one in view.families if one.name == first.family]
        assert set(family.learned_from) <= names
        shown = [one for one in view.groups if one.peer in names and one.round == first.round]
        assert any(one.family == first.family for one in shown), "the answers that began it"
        for theme in ("light", "dark"):
            desktop.theme.choose(theme)
            for page in ("overview", "live", "skills", "swarm", "history"):
                desktop.window.go(page)
                qtbot.wait(500)
                words = texts(desktop.window._pages[page])
                if page == "skills":
                    assert f"Learned from {family.learned_from[0]}" in words and "from other models" in words
                if folder := os.environ.get("SHOAL_PICTURES"):
                    desktop.window.grab().save(str(Path(folder) / f"skill-{page}-{theme}.png"))
    finally:
        desktop.control.close()
        desktop.window.hide()
        desktop.window.deleteLater()
    assert first.family in asyncio.run(come_back(relay, tmp_path)), "an author who was away hears of it"
