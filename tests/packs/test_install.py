"""Packs installed for real: small wheels, a real interpreter, real environments."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.common.job import JobEvent, Progress, Waiting
from app.common.rate import RetryLimit
from app.install import InstallError
from app.install.packs import installing, place, programs
from app.install.packs.installing import PackInstaller
from app.install.packs.place import PackDone
from tests.packs.wheels import Host, signed, wheel, write_out

QUICK = RetryLimit(attempts=3, first_s=0.01, longest_s=0.05, silent_s=10.0)


class Packs:
    """A folder of packs and what was told."""

    def __init__(self, root: Path) -> None:
        self.root, self.events = root, []  # type: ignore[var-annotated]

    def installer(self, **options: Any) -> PackInstaller:
        return PackInstaller(self.root, self.heard, QUICK, wait_s=60.0, **options)

    def heard(self, event: JobEvent) -> None:
        self.events.append(event)

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def version(self, package: str = "shoal_small") -> str:
        """What the pack in use imports."""
        python = place.python()
        assert python is not None
        code = f"import {package}; print({package}.VERSION)"
        return subprocess.check_output([python, "-I", "-c", code], text=True).strip()


@pytest.fixture
def packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packs:
    root = tmp_path / "ein Ordner, größer" / "packs"
    monkeypatch.setenv("SHOAL_PACKS", str(root))
    return Packs(root)


@pytest.fixture
def installed(packs: Packs, files: dict[str, bytes], tmp_path: Path) -> Packs:
    """With version 1.0 in use, from files that stay in `stick`."""
    packs.installer().install(signed(files), write_out(files, tmp_path / "stick"))
    packs.events.clear()
    return packs


def refused(doing: Callable[[], object]) -> str:
    with pytest.raises(InstallError) as caught:
        doing()
    said = str(caught.value)
    assert said.endswith(".") and "\n" not in said
    return said


def test_a_pack_is_fetched_through_a_cut_connection_and_imports(packs: Packs, host: Host) -> None:
    large = "shoal_large-1.0-py3-none-any.whl"
    host.cut[large] = [100_000]
    assert place.python() is None
    name = packs.installer().install(signed(host.files, f"{host.url}/cpu.json"))
    assert name == "cpu-1.0" and packs.version() == "1.0" == packs.version("shoal_large")
    assert [wanted for file, wanted in host.asked if file == large][1].startswith("bytes=")
    progress = packs.told(Progress)
    assert [event.percent for event in progress] == sorted(event.percent for event in progress)
    seen = list(dict.fromkeys(event.stage for event in progress))
    assert seen == ["fetch", "make", "check"]
    total = sum(len(content) for content in host.files.values())
    assert max(event.have for event in progress if event.stage == "fetch") == total
    assert all(event.sentence.endswith(".") for event in packs.events)
    assert isinstance(packs.events[-1], PackDone) and packs.told(Waiting)
    assert sorted(path.name for path in packs.root.iterdir()) == [".lock", "cpu-1.0", "current.json"]
    row = packs.installer().installed_packs()[0]
    assert row.whole and row.use == "current" and row.bytes > 300_000 and row.title == "The engine for tests"

    asked = len(host.asked)
    assert packs.installer().install(signed(host.files, f"{host.url}/cpu.json")) == name
    assert len(host.asked) == asked and isinstance(packs.events[-1], PackDone)


def test_a_newer_pack_replaces_the_one_before(installed: Packs, tmp_path: Path) -> None:
    leftover = installed.root / "cpu-0.9"
    leftover.mkdir()
    newer = dict([wheel("shoal_small", "2.0", fill=100)])
    installed.installer().install(signed(newer, version="2.0"), write_out(newer, tmp_path / "2.0"))
    assert installed.version() == "2.0" and place.packs(installed.root) == ["cpu-2.0"]
    with pytest.raises(InstallError, match="no engine 'cpu-9'"):
        installed.installer().remove("cpu-9")
    assert installed.installer().remove("cpu-2.0") > 0 and place.python() is None
    assert [path.name for path in installed.root.iterdir()] == [".lock"]


def test_repair_makes_the_pack_anew_in_another_folder(
    installed: Packs, files: dict[str, bytes], tmp_path: Path
) -> None:
    next((installed.root / "cpu-1.0").rglob("shoal_small/__init__.py")).write_text("VERSION = 'broken'")
    assert "isn't in" in refused(
        lambda: installed.installer().install(signed(files), tmp_path / "nothing", again=True)
    )
    assert installed.version() == "broken", "what is in use stays until another one is whole"
    assert installed.installer().install(signed(files), tmp_path / "stick", again=True) == "cpu-1.0-r1"
    assert installed.version() == "1.0" and place.packs(installed.root) == ["cpu-1.0-r1"]


def test_too_little_disk_is_said_before_the_first_byte(packs: Packs, host: Host) -> None:
    pack = signed(host.files, f"{host.url}/cpu.json")
    asked = []

    def free(place: Path) -> int:
        asked.append(place)
        return installing.SPARE + 49_000_000

    said = refused(lambda: packs.installer(free=free).install(pack))
    assert "needs 259.7 MB" in said and "free up some space" in said
    assert not host.asked and asked == [packs.root] and not (packs.root / ".work").exists()


def test_an_engine_that_does_not_load_is_never_taken_into_use(installed: Packs, tmp_path: Path) -> None:
    for code, expected in (
        ("import nowhere_to_be_found\n", "doesn't load (ModuleNotFoundError"),
        (
            "raise ImportError('libm.so.6: version `GLIBC_2.99 not found')\n",
            "system is older than the engine needs",
        ),
    ):
        broken = dict([wheel("shoal_small", "2.0", fill=100, code=code)])
        folder = write_out(broken, tmp_path / "broken")
        pack = signed(broken, version="2.0")
        assert expected in refused(lambda pack=pack, folder=folder: installed.installer().install(pack, folder))
    assert installed.version() == "1.0" and place.current(installed.root).current == "cpu-1.0"


def test_the_packages_are_checked_once_more_while_they_are_installed(
    packs: Packs, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody changes a file between the check and the installation: uv sees it."""
    sync = programs.Uv.sync

    def meanwhile(uv: programs.Uv, environment: Path, wheels: Path, packages: Any) -> None:
        name, content = wheel("shoal_small", code="VERSION = 'evil'\n")
        (wheels / name).write_bytes(content)
        sync(uv, environment, wheels, packages)

    monkeypatch.setattr(programs.Uv, "sync", meanwhile)
    stick = write_out(files, tmp_path / "stick")
    assert "could not be set up" in refused(lambda: packs.installer().install(signed(files), stick))
    assert place.python() is None and place.current(packs.root).current == ""


def test_a_damaged_or_foreign_file_in_an_offline_folder_is_refused(
    packs: Packs, files: dict[str, bytes], tmp_path: Path
) -> None:
    stick = write_out(files, tmp_path / "stick")
    (stick / "shoal_small-1.0-py3-none-any.whl").write_bytes(b"?")
    assert "is damaged" in refused(lambda: packs.installer().install(signed(files), stick))
    assert place.current(packs.root).current == ""


def test_without_a_fitting_python_it_says_what_to_install(
    packs: Packs, files: dict[str, bytes], tmp_path: Path
) -> None:
    pack, stick = signed(files, pythons=["3.99"]), write_out(files, tmp_path / "stick")
    said = refused(lambda: packs.installer().install(pack, stick))
    assert "needs a 64-bit Python 3.99" in said and "install it with" in said


def test_the_users_own_settings_do_not_leak_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "UV_INDEX", "PIP_TARGET"):
        monkeypatch.setenv(name, "theirs")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/app")
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/theirs")
    monkeypatch.setattr(sys, "_MEIPASS", "/app", raising=False)
    found = programs.surroundings()
    assert "theirs" not in found.values() and found["LD_LIBRARY_PATH"] == "/theirs"
    monkeypatch.delenv("LD_LIBRARY_PATH_ORIG")
    assert "LD_LIBRARY_PATH" not in programs.surroundings()


def test_a_file_in_the_place_of_the_folder_says_so(
    packs: Packs, files: dict[str, bytes], tmp_path: Path
) -> None:
    packs.root.parent.mkdir(parents=True)
    packs.root.write_text("in the way")
    assert "can't be written" in refused(lambda: packs.installer().install(signed(files), tmp_path))


def test_another_installation_is_waited_for(
    packs: Packs, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that outlives a killed installation keeps the lock."""
    code = "import sys, time, pathlib\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)"
    end, work = tmp_path / "end", tmp_path / "work"
    with place.alone(packs.root, lambda: None, 1.0) as lock:
        started = threading.Event()
        popen = subprocess.Popen

        def noted(*arguments: Any, **options: Any) -> Any:
            child = popen(*arguments, **options)
            started.set()
            return child

        monkeypatch.setattr(subprocess, "Popen", noted)
        child = threading.Thread(
            target=programs.run, args=([sys.executable, "-c", code, end], work, lock), daemon=True
        )
        child.start()
        assert started.wait(60)
    installer = PackInstaller(packs.root, packs.heard, QUICK, wait_s=0.5)
    assert "by another process" in refused(lambda: installer.install(signed(files), tmp_path))
    assert "still coming to its end" in packs.told(Waiting)[0].sentence
    end.touch()
    child.join(60)
    packs.installer().install(signed(files), write_out(files, tmp_path / "stick"))
    assert packs.version() == "1.0"
