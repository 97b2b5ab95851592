"""What other people of this computer see of a window that learns in a private swarm: no secret and no file."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from app.bench.runs.window import prepare
from app.swarm.invite.invite import Invite, parse
from app.swarm.invite.private import PrivateSwarm, private_invite
from tests.e2e.shoal import PATIENCE_S, ROOT, command

if sys.platform != "linux":
    pytest.skip("reads /proc", allow_module_level=True)

PRIVATE = PrivateSwarm(bytes(range(200, 232)))


@pytest.fixture
def invite(tmp_path: Path) -> Iterator[Invite]:
    """To a private relay, with its access key."""
    relay = subprocess.Popen(
        command("relay", "--port", "0", "--private", "--state", tmp_path / "relay"),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert relay.stdin is not None and relay.stdout is not None
    relay.stdin.write(PRIVATE.token.encode() + b"\n")
    relay.stdin.flush()
    said = msgspec.json.decode(relay.stdout.readline(), type=dict[str, str])
    yield private_invite(PRIVATE, parse(said["invite"]))
    relay.terminate()
    relay.communicate()


def seen() -> Iterator[tuple[str, str]]:
    """Every process's command line, and the environment of ours: what anybody sees, and what only we do."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            yield "cmdline", " ".join(process.cmdline())
            yield "environ", str(process.environ())


def open_to_others(home: Path) -> list[Path]:
    found = [home, *home.rglob("*")]
    return [one for one in found if not one.is_symlink() and stat.S_IMODE(one.stat().st_mode) & 0o077]


@pytest.mark.draws
def test_an_invite_that_was_opened_is_in_no_list_and_no_file_is_open(invite: Invite, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    prepare(home)
    (home / "logs").mkdir(mode=0o755)
    (home / "logs" / "node.log").write_text("from an older Shoal\n")
    assert open_to_others(home)
    before = os.umask(0o022)
    try:
        window = subprocess.Popen(
            command("window", "--home", home, "--join", invite.link()),
            cwd=ROOT,
            env={
                **os.environ,
                "QT_QPA_PLATFORM": "offscreen",
                "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            },
        )
    finally:
        os.umask(before)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not (home / "relays.json").exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        assert (home / "relays.json").exists(), "it joined"
        names = [" ".join(one.cmdline()) for one in psutil.Process(window.pid).children(recursive=True)]
        assert any("--snapshots" in name for name in names)
        assert not [where for where, text in seen() if PRIVATE.key.hex() in text]
        assert open_to_others(home) == []
    finally:
        for one in psutil.Process(window.pid).children(recursive=True):
            one.kill()
        window.kill()
        window.wait()
