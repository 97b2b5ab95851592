"""The one file for other distributions, around a small stand-in for the app: it unpacks itself once, starts,
and says in a sentence why it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

PACKAGING = Path(__file__).parents[2] / "packaging"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs a C compiler on Linux"
)

SHOAL = """#!/bin/sh
echo "$SHOAL_ONEFILE" "$0" "$@"
cat "$(dirname "$0")/inside/text"
[ "$1" != wait ] || exec sleep 60
"""


@pytest.fixture(scope="module")
def onefile() -> Iterator[ModuleType]:
    sys.path.insert(0, str(PACKAGING))
    try:
        from frozen.bundle import BuildError
        from linux import package as onefile

        try:
            starter = onefile.starter()
        except BuildError as error:
            pytest.skip(str(error))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(onefile, "starter", lambda: starter)
            yield onefile
    finally:
        sys.path.remove(str(PACKAGING))


@pytest.fixture
def make(onefile: ModuleType, tmp_path: Path) -> Callable[..., Path]:
    def made(text: str = "one", version: str = "1.0", library: tuple[int, int] = (2, 17)) -> Path:
        folder = tmp_path / f"app-{version}"
        (folder / "inside").mkdir(parents=True)
        (folder / "inside" / "text").symlink_to("really")
        (folder / "inside" / "really").write_text(text)
        (folder / "inside" / "large").write_bytes(bytes(range(256)) * 20_000)
        (folder / "empty").touch()
        (folder / onefile.ONEFILE_MARKER_NAME).touch()
        (folder / "shoal").write_text(SHOAL)
        (folder / "shoal").chmod(0o755)
        to = tmp_path / f"Shoal {version}"
        onefile.write(folder, version, library, to)
        return to

    return made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "Åsa 鯨"
    folder.mkdir()
    return folder


def start(program: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.defpath, "HOME": str(home)}
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, timeout=120)


def unpacked(home: Path) -> list[Path]:
    return sorted(path for path in (home / ".cache/shoal/app").iterdir() if path.name != ".lock")


def test_it_unpacks_itself_once_and_starts(make: Callable[..., Path], home: Path) -> None:
    program = make("here\n")
    first = start(program, home, "a b", "ä")
    (folder,) = unpacked(home)
    assert first.stdout == f"{program} {folder}/shoal a b ä\nhere\n", first.stderr
    assert (folder / "inside" / "large").read_bytes() == bytes(range(256)) * 20_000
    assert (folder / "inside" / "text").is_symlink() and (folder / "empty").stat().st_size == 0
    before = (folder / "shoal").stat().st_ctime_ns
    assert start(program, home).returncode == 0
    assert (folder / "shoal").stat().st_ctime_ns == before, "the second start unpacks nothing"
    (folder / "shoal").unlink()
    assert start(program, home).returncode == 0, "what a cleaner took away comes back"


def test_another_version_removes_the_one_before_unless_it_runs(make: Callable[..., Path], home: Path) -> None:
    one, two, three = make("1\n", "1.0"), make("2\n", "2.0"), make("3\n", "3.0")
    environment = {"PATH": os.defpath, "HOME": str(home)}
    with subprocess.Popen([one, "wait"], stdout=subprocess.PIPE, env=environment) as running:
        assert running.stdout is not None
        running.stdout.readline()
        assert start(two, home).stdout.endswith("2\n")
        assert [folder.name[:3] for folder in unpacked(home)] == ["1.0", "2.0"]
        running.kill()
    assert start(three, home).stdout.endswith("3\n")
    assert [folder.name[:3] for folder in unpacked(home)] == ["3.0"]


def test_killed_while_it_unpacks_it_begins_again(make: Callable[..., Path], home: Path) -> None:
    program = make("whole\n")
    environment = {"PATH": os.defpath, "HOME": str(home)}
    for pause in (0.0, 0.002, 0.005, 0.01, 0.02):
        with subprocess.Popen([program], stdout=subprocess.DEVNULL, env=environment) as running:
            time.sleep(pause)
            running.kill()
    at_once = [subprocess.Popen([program], stdout=subprocess.PIPE, env=environment) for _ in range(4)]
    assert all((one.communicate()[0].endswith(b"whole\n"), one.returncode) == (True, 0) for one in at_once)
    assert len(unpacked(home)) == 1


@pytest.mark.parametrize("harm", ["cut", "flipped", "too new", "no home", "refused", "no programs"])
def test_what_is_wrong_is_a_sentence(make: Callable[..., Path], home: Path, tmp_path: Path, harm: str) -> None:
    program = make(library=(99, 7) if harm == "too new" else (2, 17))
    content = bytearray(program.read_bytes())
    place = home
    if harm == "cut":
        program.write_bytes(content[:-100])
    elif harm == "flipped":
        at = len(content) - 400
        program.write_bytes(content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :])
    elif harm == "no home":
        place = Path("nowhere")
    elif harm == "refused":
        place = Path("/proc/nobody")
    elif harm == "no programs":
        start(program, home)
        (unpacked(home)[0] / "shoal").write_text("#!/nowhere/to/be/found\n")
    done = start(program, place)
    said = {
        "cut": "not whole: download it again",
        "flipped": "damaged: download it again",
        "too new": "99.7 is the oldest",
        "no home": "name a folder with SHOAL_UNPACKED",
        "refused": "/proc/nobody cannot be made",
        "no programs": "does not start",
    }[harm]
    assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert harm != "flipped" or not [one for one in unpacked(home) if not one.name.startswith(".")]
