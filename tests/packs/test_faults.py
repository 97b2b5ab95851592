"""What goes wrong on real computers: disks that fill up, hosts that are not what they seem, two at once."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.common.job import JobEvent, Progress
from app.common.rate import RetryLimit
from app.install.packs import offered, place
from app.install.packs.installing import PackInstaller
from tests.packs.test_install import refused
from tests.packs.wheels import KEYS, Host, plain, signed, wheel, write_out

ROOT = Path(__file__).parents[2]
QUICK = RetryLimit(attempts=2, first_s=0.01, longest_s=0.05, silent_s=10.0)
MB = 2**20


def installer(root: Path, tell: Callable[[JobEvent], None] = lambda _: None) -> PackInstaller:
    return PackInstaller(root, tell, QUICK, wait_s=120.0)


def test_a_login_page_is_not_taken_for_a_pack(host: Host, tmp_path: Path) -> None:
    pack = signed(host.files, f"{host.url}/cpu.json")
    address = host.offer(plain(host.files))
    host.portal = True
    for doing in (
        lambda: offered.load_manifest(address, KEYS, QUICK),
        lambda: installer(tmp_path / "packs").install(pack),
    ):
        assert "web page" in refused(doing) or "log in" in refused(doing)
    assert not list((tmp_path / "packs").rglob("*.whl"))
    host.portal = False
    assert installer(tmp_path / "packs").install(pack) == "cpu-1.0"


def test_an_old_system_is_told_before_anything_is_fetched(host: Host, tmp_path: Path) -> None:
    pack = signed(host.files, f"{host.url}/cpu.json", least="99.0")
    if not (sys.platform == "darwin" or (sys.platform == "linux" and os.confstr("CS_GNU_LIBC_VERSION"))):
        pytest.skip("only glibc and macOS have versions that wheels ask for")
    said = refused(lambda: installer(tmp_path / "packs").install(pack))
    assert "99.0 or newer" in said and "update the system" in said
    assert not host.asked and not (tmp_path / "packs").exists()


def test_two_installations_at_once_are_one(host: Host, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(KEYS[0])
    host.slow_s = 0.02
    address = host.offer(plain(host.files))
    command = [sys.executable, "-m", "app.cli", "pack", "install", "--manifest", address, "--key", str(key)]
    environment = {**os.environ, "SHOAL_PACKS": str(tmp_path / "packs")}
    both = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for one in both:
        _, said = one.communicate(timeout=300)
        assert one.returncode == 0 and "is in use" in said, said
    assert place.packs(tmp_path / "packs") == ["cpu-1.0"]
    wheels = [name for name, _ in host.asked if name.endswith(".whl")]
    assert sorted(wheels) == sorted(set(wheels))


def test_a_pack_is_replaced_under_a_running_program(tmp_path: Path) -> None:
    root = tmp_path / "packs"
    files = dict([wheel("shoal_small", fill=100), wheel("shoal_large")])
    folder = write_out(files, tmp_path / "stick")
    installer(root).install(signed(files), folder)
    code = "import shoal_small, sys; print('here', flush=True); sys.stdin.read(); print(shoal_small.VERSION)"
    python = place.interpreter(root / "cpu-1.0")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([python, "-I", "-c", code], **pipes) as running:  # type: ignore[call-overload]
        assert running.stdout.readline() == "here\n"
        assert installer(root).install(signed(files), folder, again=True) == "cpu-1.0-r1"
        said, _ = running.communicate("")
    assert said == "1.0\n" and running.returncode == 0
    assert place.current(root).current == "cpu-1.0-r1"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 300 MB of its own."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk, on Linux")
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "none", place], capture_output=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.decode()[:200]}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> Path:
    """Somebody else takes all the room."""
    path = disk / "somebody else's"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(MB))
    return path


@pytest.mark.long
def test_a_full_disk_is_noticed_before_and_in_the_middle(host: Host, small_disk: Path) -> None:
    big = dict([wheel("shoal_small"), wheel("shoal_large", fill=20 * MB)])
    host.files.update(big)
    root = small_disk / "packs"
    pack = signed(big, f"{host.url}/cpu.json", disk=60 * MB)
    said = refused(lambda: installer(root).install(signed(big, f"{host.url}/cpu.json", disk=200 * MB)))
    assert "free up some space" in said and not host.asked

    for stage in ("fetch", "make"):
        theirs: list[Path] = []

        def heard(event: JobEvent, stage: str = stage, theirs: list[Path] = theirs) -> None:
            if isinstance(event, Progress) and event.stage == stage and not theirs:
                theirs.append(fill(small_disk))

        said = refused(lambda heard=heard: installer(root, heard).install(pack))
        assert "is full: free up some space" in said, stage
        assert theirs and place.current(root).current == ""
        theirs[0].unlink()
    asked = len(host.asked)
    assert installer(root).install(pack) == "cpu-1.0"
    assert len(host.asked) == asked  # what had come was kept
