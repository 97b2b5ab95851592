"""A window that is watched by the kernel while it may look for new versions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hosting import wait_until
from tests.packs.wheels import Host
from tests.updates.releases import LIST
from tests.updates.test_window import today

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]


@pytest.fixture
def released(host: Host, tmp_path: Path) -> Path:
    """A copy of the tree that has a release to ask for, and no patience."""
    tree = tmp_path / "tree"
    for name in ("app", "engines", "resources"):
        unwanted = shutil.ignore_patterns("__pycache__", "studies", "screenshots", "pictures")
        shutil.copytree(ROOT / name, tree / name, ignore=unwanted)
    shutil.copy(ROOT / "pyproject.toml", tree)
    from tests.updates.releases import trust

    host.files.update(today())
    (tree / "resources" / "release.json").write_bytes(trust(f"{host.url}/{LIST}").encode())
    source = tree / "app" / "ui" / "process" / "updates.py"
    text = source.read_text(encoding="utf-8")
    assert "FIRST_MS, HOUR_MS = 120_000, 3_600_000" in text
    source.write_text(text.replace("120_000, 3_600_000", "500, 500"), encoding="utf-8")
    return tree


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
@pytest.mark.parametrize("company", ["alone", "others"])
def test_a_window_that_learns_alone_opens_no_socket_for_updates(
    company: str, released: Path, host: Host, tmp_path: Path
) -> None:
    """The kernel's own word, for the window and everything that it starts, with the setting on."""
    home, trace = tmp_path / "home", tmp_path / "trace"
    home.mkdir()
    (home / "window.json").write_text(json.dumps({"company": company, "updates": True}))
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(released)}
    watched = [sys.executable, "-P", "-m", "app.cli", "window", "--home", str(home)]
    running = subprocess.Popen(
        ["strace", "-f", "-qq", "-e", "trace=socket", "-o", str(trace), *watched],
        cwd=released,
        env=environment,
        start_new_session=True,
    )
    try:
        if company == "others":
            wait_until(lambda: len(host.asked) == 2)
        else:
            wait_until((home / "window.lock").exists)
            time.sleep(15)
    finally:
        os.killpg(running.pid, 15)
        running.wait(60)
    said = trace.read_text(errors="replace")
    assert "AF_UNIX" in said, "it did watch"
    if company == "alone":
        assert not host.asked and "AF_INET" not in said and "AF_INET6" not in said
    else:
        assert [name for name, _ in host.asked] == [f"{LIST}.sig", LIST] and "AF_INET" in said
