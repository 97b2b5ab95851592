"""What is saved for whoever looks for a fault holds no secret and no name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.node.record.records import LogEntry, Round
from app.swarm.identity.identity import Identity
from app.swarm.invite.private import PrivateSwarm
from app.ui.settings.bundle_dialog import BundleDialog
from app.ui.settings.diagnostics import HIDDEN, ROUNDS, cleaned, report, sampler
from app.ui.theme import Theme
from app.ui.view.view import NodeStatus, View
from tests.ui import views

KEY = Identity(bytes(range(32)))
PRIVATE = PrivateSwarm(bytes(range(32, 64)))
SECRETS = {
    "a seed": KEY.seed().hex(),
    "recovery words": KEY.words(),
    "recovery words on lines": KEY.words().replace(" ", ", "),
    "an access key": PRIVATE.token,
    "an invite": f"shoal://join/example.org/reef?relay=reef-1&token={PRIVATE.token}",
    "a password in an address": "wss://ada:hunter22hunter@relay.example.org/v1",
    "a question mark's": "https://hub.example/api?sig=Zm9vYmFyYmF6",
    "a hub token": "hf_AbCdEfGhIjKlMnOpQrStUv",
    "a header": "Authorization: Bearer abc.def.ghi",
    "a passphrase": "SHOAL_PASSPHRASE=correct-horse",
    "json": '"password": "opensesame"',
    "six words": "zebra-abandon-ability-able-about-above",
    "an address": "192.168.17.23",
    "an address of six": "2001:db8:0:1:aaaa:bbbb:cccc:dddd",
}
TELLING = {
    "a seed": KEY.seed().hex(),
    "recovery words": KEY.words()[:40],
    "recovery words on lines": KEY.words().replace(" ", ", ")[:40],
    "an access key": PRIVATE.token[:20],
    "an invite": "reef-1",
    "a password in an address": "hunter22hunter",
    "a question mark's": "Zm9vYmFyYmF6",
    "a hub token": "AbCdEfGh",
    "a header": "abc.def",
    "a passphrase": "correct-horse",
    "json": "opensesame",
    "six words": "abandon-ability",
    "an address": "192.168",
    "an address of six": "2001:db8",
}
"""What no part of is left of each."""


@pytest.mark.parametrize("what", list(SECRETS))
def test_a_secret_goes_and_what_is_beside_it_stays(what: str) -> None:
    said = cleaned(f"before it. {SECRETS[what]} After it.")
    assert TELLING[what] not in said and said.startswith("before it. ") and "After it." in said


def test_names_of_people_and_computers_go() -> None:
    text = '/home/ada/x "C:\\\\Users\\\\ada\\\\y" /mnt/disk/ada/z on ada-laptop by adagio /tmp'
    said = cleaned(text, Path("/home/ada"), "ada", "ada-laptop")
    assert said == '~/x "C:\\\\Users\\\\~\\\\y" /mnt/disk/~/z on (this computer) by adagio /tmp'


def test_what_a_node_says_every_day_stays() -> None:
    for text in (
        "shoal: Another node (process 4711) is using it: stop it, or give this one its own --home.",
        "The relay listens at ws://127.0.0.1:8777/v1 and answers.",
        "2026-11-21 05:37:23 round 81 note: held-out 0.4123, adapter_model.safetensors 6,700,000 bytes",
        "The trainer is started again, and round 81 is done anew because memory ran short before the end.",
        '{"temperature_limit_c": 90, "engine": "torch", "version": "0.1.0"}',
    ):
        assert cleaned(text, Path("/home/ada"), "ada", "ada-laptop") == text


@pytest.fixture
def planted(tmp_path: Path) -> View:
    """A data folder with a secret in every place where one could be."""
    everything = "\n".join(SECRETS.values())
    (tmp_path / "logs").mkdir()
    for name in ("node.log", "trainer.log", "window.log", "relay.log"):
        (tmp_path / "logs" / name).write_text(f"{name} begins\n{everything}\n{Path.home()}/x\n")
    (tmp_path / "settings.json").write_text(json.dumps({"idle_s": 61}))
    (tmp_path / "window.json").write_text(json.dumps({"serve_allows": ["app://diary-of-ada"]}))
    (tmp_path / "identity").write_bytes(KEY.seed())
    (tmp_path / "identity.json").write_text('{"secret": "opensesame"}')
    (tmp_path / "relays.json").write_text(json.dumps(SECRETS["an invite"]))
    swarm = views.swarm(3, invite=SECRETS["an invite"], relay=SECRETS["a password in an address"])
    return views.learning(
        home=str(tmp_path),
        swarm=swarm,
        solo=False,
        groups=views.groups(160, peers=True),
        reason=everything,
        state=NodeStatus.FAILED,
        happenings=tuple(
            LogEntry(at=views.NOW, round=1, kind="note", sentence=f"Invite others with {secret}")
            for secret in SECRETS.values()
        ),
    )


def test_the_report_holds_no_planted_secret(planted: View) -> None:
    doctor = json.dumps({"engine": "torch-cpu", "home": str(Path.home()), "token": "opensesame"})
    text = report(planted, doctor)
    sections = {line[5:] for line in text.splitlines() if line.startswith("==== ")}
    logs = {"node.log", "trainer.log", "window.log", "relay.log"}
    assert sections >= {"about", "doctor", "settings", "events", "data", *logs}
    for what, secret in TELLING.items():
        assert secret not in text, what
    assert str(Path.home()) + "/" not in text and "diary" not in text
    assert not any(said in text for texts in views.QUESTIONS.values() for said in texts), "no answers"
    assert '"idle_s": 61' in text and "torch-cpu" in text and "node.log begins" in text
    assert text.count(HIDDEN) > 50


def test_all_is_shown_before_it_is_saved_and_saved_as_shown(
    qtbot: QtBot, light: Theme, planted: View, tmp_path: Path
) -> None:
    dialog = BundleDialog(None, planted, ["-c", 'print(\'{"engine": "torch-cpu"}\')'])
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitUntil(lambda: "torch-cpu" in dialog.text, timeout=60_000)
    dialog.save(tmp_path / "nowhere" / "x.txt")
    assert "can't be written" in dialog._said.text()
    dialog.save(tmp_path / "x.txt")
    assert "Saved as" in dialog._said.text() and (tmp_path / "x.txt").read_text() == dialog.text
    dialog.reject()


def test_the_last_rounds_of_another_sampler() -> None:
    before = Round(round=1, seconds=1.0, informative_own=0, train_solved=0.0)
    assert sampler(View()) == sampler(View(rounds=(before,))) == ""
    others = (
        Round(round=at, seconds=1.0, informative_own=1, train_solved=0.5, mismatch=0.0123, capped=0.004)
        for at in range(2, 60)
    )
    lines = sampler(View(rounds=(before, *others))).splitlines()
    assert len(lines) == ROUNDS
    assert lines[0] == "round 59: mismatch 1.23e-02 nats, 0.40 % of the tokens at the cap"
