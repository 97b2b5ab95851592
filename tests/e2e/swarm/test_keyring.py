"""A real node whose keyring waits for a person, is locked, and opens: rounds go on, and the name stays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.relay import Relay
from tests.e2e.shoal import ROOT, Event, Running
from tests.e2e.swarm.test_swarm import LIGHT, connected

KEYRING = '''
import json, pathlib, sys, time
FOLDER = pathlib.Path(__file__).parent
if "app.cli" in sys.orig_argv:
    import keyring, keyring.backend, keyring.errors

    class Keyring(keyring.backend.KeyringBackend):
        """As FOLDER/mode says: "open", "locked", or "silent" until it says something else."""
        priority = 1

        def _kept(self):
            while (mode := (FOLDER / "mode").read_text()) == "silent":
                time.sleep(0.05)
            if mode == "locked":
                raise keyring.errors.KeyringLocked("locked")
            file = FOLDER / "kept.json"
            return json.loads(file.read_text()) if file.exists() else {}

        def get_password(self, service, username):
            return self._kept().get(f"{service} {username}")

        def set_password(self, service, username, password):
            kept = {**self._kept(), f"{service} {username}": password}
            (FOLDER / "kept.json").write_text(json.dumps(kept))

        def delete_password(self, service, username):
            pass

    Keyring.__module__ = "keyring.backends.libsecret"
    keyring.set_keyring(Keyring())
'''


class Owner:
    """Starts nodes in one home, beside a keyring that does as it is told."""

    def __init__(self, folder: Path, url: str, model: Path) -> None:
        self._site, self._home = folder / "site", folder / "home"
        self._site.mkdir()
        (self._site / "sitecustomize.py").write_text(KEYRING)
        self._options = ("--relay", url, "--home", self._home, "--model", model, *LIGHT)
        self.nodes: list[Running] = []

    def keyring_is(self, mode: str) -> None:
        (self._site / "mode").write_text(mode)

    def starts(self) -> Running:
        self.nodes.append(Running(*self._options, alone=False, PYTHONPATH=f"{self._site}{os.pathsep}{ROOT}"))
        return self.nodes[-1]


@pytest.fixture
def owner(model: Path, tmp_path: Path) -> Iterator[Owner]:
    relay = Relay(tmp_path / "relay")
    owner = Owner(tmp_path, relay.url, model)
    yield owner
    for node in owner.nodes:
        if node.process.poll() is None:
            node.kill()
    relay.kill()


def says(words: str) -> Callable[[Event], bool]:
    return lambda event: event["event"] == "note" and words in event["sentence"]


def named(node: Running) -> list[str]:
    return [event["name"] for event in node.events if event["event"] == "identity"]


@pytest.mark.long
def test_rounds_need_no_key_and_no_session_gets_another_name(owner: Owner) -> None:
    owner.keyring_is("silent")
    node = owner.starts()
    node.wait_for(says("answer its prompt"))
    node.wait_for_kind("round")
    assert not named(node), "nobody has answered yet"
    owner.keyring_is("open")
    node.wait_for(connected)
    (name,) = named(node)
    assert node.stop() == 0

    owner.keyring_is("locked")
    node = owner.starts()
    node.wait_for(says("unlock it"))
    node.wait_for_kind("round")
    owner.keyring_is("open")
    node.wait_for(connected)
    assert named(node) == [name] and node.stop() == 0
