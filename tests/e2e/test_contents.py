"""What every command leaves in a data folder is Shoal's own, and goes when everything is removed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.node.data.contents import foreign_entries
from app.swarm.invite.private import new_words
from tests.e2e.shoal import PATIENCE_S, ROOT, Running, command, shoal
from tests.e2e.swarm.test_swarm import LIGHT

pytestmark = pytest.mark.long

if sys.platform == "win32":
    pytest.skip("ends processes as POSIX does", allow_module_level=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual data folder of somebody without a keyring."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.delenv("SHOAL_HOME", raising=False)
    return tmp_path / "data" / "shoal"


def show_a_window(home: Path) -> None:
    window = subprocess.Popen(command("window"), cwd=ROOT)
    deadline = time.monotonic() + PATIENCE_S
    while not (home / "window.lock").exists():
        assert window.poll() is None and time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(2.0)  # its first frame, after which its parts begin their work
    window.terminate()
    assert window.wait(PATIENCE_S) == 0


def test_a_home_that_everything_was_done_in_holds_nothing_strange(
    model: Path, home: Path, tmp_path: Path
) -> None:
    done = [shoal("run", "--solo", "--rounds", "2", "--model", model, "--json")]
    together = Running("--private", "--model", model, *LIGHT, alone=False, SHOAL_PRIVATE=new_words())
    together.wait_for_kind("round")
    together.wait_for(lambda event: event["event"] == "link" and event["state"] == "connected")
    assert together.stop() == 0
    done += [
        shoal("trial", "--model", model),
        shoal("doctor", "--model", model),
        shoal("export", "--format", "peft", "--model", model, tmp_path / "out"),
        shoal("chat", "--model", model, input="2+2\n"),
        shoal("puzzle", "--count", "1", input="4\n"),
        shoal("models"),
        shoal("identity"),
        shoal("identity", "new", "--yes"),
        shoal("swarm", "--nodes", "2", "--rounds", "1", "--models", model),
    ]
    assert [(one.args[3], one.stderr) for one in done if one.returncode] == []
    show_a_window(home)

    names = {entry.name for entry in home.iterdir()}
    assert names > {"models", "relay", "swarm", "logs", "outbox.sqlite", "relays.json", "trials.json"}
    assert names > {"identity", "identity.json", "format.json", "lock", "window-state.json", "cache"}
    assert len(list(home.glob("key-*.secret"))) == 2
    assert foreign_entries(home) == []

    gone = shoal("remove", "--everything", "--yes")
    assert gone.returncode == 0, gone.stderr
    assert not home.exists()
