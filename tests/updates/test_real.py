"""The real thing: a Debian package through apt-get, and a window that is watched by the kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.install import InstallError
from app.install.updates import handing
from app.install.updates.feed import ReleaseFile, entry
from app.install.updates.handing import NextStep, SystemInstaller
from tests.packs.wheels import Host, wait_until
from tests.updates.releases import LIST
from tests.updates.test_window import today

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
NAME = "shoal-update-test"
INSTALLED = Path("/usr/lib") / NAME / "version"


@pytest.fixture
def debian(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not (
        hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("dpkg-deb") and shutil.which("apt-get")
    ):
        pytest.skip("needs root, apt-get and dpkg-deb: it installs a small package")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    yield
    subprocess.run(["dpkg", "--purge", NAME], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert not INSTALLED.exists()


def package(folder: Path, version: str, prerm: str = "") -> tuple[Path, ReleaseFile]:
    tree = folder / f"tree-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN").chmod(0o755)
    (tree / "DEBIAN" / "control").write_text(
        f"Package: {NAME}\nVersion: {version}\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\n"
        "Description: Stands in for Shoal in a test\n"
    )
    if prerm:
        (tree / "DEBIAN" / "prerm").write_text(f"#!/bin/sh\n{prerm}\n")
        (tree / "DEBIAN" / "prerm").chmod(0o755)
    place = tree / INSTALLED.relative_to("/")
    place.parent.mkdir(parents=True)
    place.write_text(version)
    path = folder / f"{NAME}_{version}_all.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-b", str(tree), str(path)], check=True, stdout=subprocess.DEVNULL
    )
    return path, entry(path, "deb", "linux", "x86_64")


def polkit(folder: Path) -> SystemInstaller:
    """An agent whose owner always says yes."""
    agent = folder / "pkexec"
    agent.write_text('#!/bin/sh\nexec "$@"\n')
    agent.chmod(0o755)
    return SystemInstaller(pkexec=str(agent))


def test_a_package_is_installed_updated_and_refused_by_apt(debian: None, tmp_path: Path) -> None:
    said: list[str] = []
    one, two = package(tmp_path, "0.1.0"), package(tmp_path, "0.2.0")
    for path, file in (one, two):
        handed = handing.hand_over_update(path, file, Path("/nowhere"), said.append, polkit(tmp_path))
        assert handed.then is NextStep.RESTART and INSTALLED.read_text() in path.name
    assert INSTALLED.read_text() == "0.2.0" and len(said) == 2
    with pytest.raises(InstallError, match="package manager refused"):  # apt-get takes no older one by itself
        handing.hand_over_update(*one, Path("/nowhere"), said.append, polkit(tmp_path))
    broken = tmp_path / "broken.deb"
    broken.write_bytes(b"no package at all")
    row = entry(broken, "deb", "linux", "x86_64")
    with pytest.raises(InstallError, match="try sudo apt install"):
        handing.hand_over_update(broken, row, Path("/nowhere"), said.append, polkit(tmp_path))
    assert INSTALLED.read_text() == "0.2.0"


def test_the_update_outlives_the_shoal_that_the_package_ends(debian: None, tmp_path: Path) -> None:
    """As the real package does: its prerm ends every running Shoal, here the process that asked."""
    asker = tmp_path / "asker"
    old = package(tmp_path, "0.1.0", prerm=f'kill -9 "$(cat {asker})"')
    new = package(tmp_path, "0.2.0")
    handing.hand_over_update(*old, Path("/nowhere"), lambda _: None, polkit(tmp_path))
    opened = tmp_path / "opened"
    program = tmp_path / "shoal"
    program.write_text(
        f'#!/bin/sh\ncat {INSTALLED} > {opened}.new; echo " $*" >> {opened}.new; mv {opened}.new {opened}\n'
    )
    program.chmod(0o755)
    system = msgspec.structs.replace(polkit(tmp_path), reopen=str(program), home=str(tmp_path / "home"))
    code = (
        "import os, sys; from pathlib import Path; import msgspec\n"
        "os.geteuid = lambda: 1000; Path(sys.argv[4]).write_text(str(os.getpid()))\n"
        "from app.install.updates import handing; from app.install.updates.feed import ReleaseFile\n"
        "file, system = map(msgspec.json.decode, sys.argv[2:4])\n"
        "handing.hand_over_update(Path(sys.argv[1]), msgspec.convert(file, ReleaseFile), Path('x'), print,"
        " msgspec.convert(system, handing.SystemInstaller))\n"
    )
    words = [
        str(new[0]),
        msgspec.json.encode(new[1]).decode(),
        msgspec.json.encode(system).decode(),
        str(asker),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code, *words], env=environment, timeout=300)
    assert done.returncode == -9
    wait_until(opened.exists)
    assert opened.read_text() == f"0.2.0 window --home {tmp_path / 'home'}\n"


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
    source = tree / "app" / "ui" / "install" / "update_control.py"
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
