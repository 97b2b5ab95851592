"""The installer for Windows: compiled, and run under Wine with a small program in Shoal's place. What is
installed, what is written into the registry, what an upgrade keeps, what is refused, and that nothing stays."""

from __future__ import annotations

import datetime
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.packaging import under_wine
from tests.packaging.under_wine import Wine, built, until

ROOT = Path(__file__).parents[2]
UNINSTALL = r"Software\Microsoft\Windows\CurrentVersion\Uninstall\Shoal"
RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
SCHEME = r"Software\Classes\shoal"
ODD = r"C:\Größe & Länge\Mein Shoal"


@pytest.fixture(scope="module")
def rooms() -> Iterator[SimpleNamespace]:
    """The packaging rooms, as packaging/build imports them."""
    pytest.importorskip("PySide6.QtGui", exc_type=ImportError)
    sys.path.insert(0, str(ROOT / "packaging"))
    from frozen.bundle import BuildError, Bundle
    from windows import package, sign

    yield SimpleNamespace(Bundle=Bundle, BuildError=BuildError, package=package, sign=sign)
    sys.path.remove(str(ROOT / "packaging"))


@pytest.fixture
def make(rooms: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes an installer of a folder."""
    monkeypatch.delenv(rooms.sign.VARIABLE, raising=False)

    def made(folder: Path, version: str, **more: object) -> Path:
        bundle = rooms.Bundle(folder, version, Path(sys.executable), datetime.date(2026, 11, 21))
        (installer,) = rooms.package.package(bundle, tmp_path / "out", **more)
        return Path(installer)

    return made


def lay_out(folder: Path, program: bytes, old: bool = False) -> Path:
    """As PyInstaller leaves it on Windows, small."""
    inside = {
        "shoal.exe": program,
        "shoal-cli.exe": program,
        "_internal/python311.dll": b"x" * 5000,
        "_internal/python/python.exe": program,
        "_internal/source/app/ä.py": b"",
        ("_internal/of the old" if old else "_internal/of the new"): b"1",
    }
    for name, content in inside.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.skipif(shutil.which("makensis") is None, reason="makensis is not installed")
def test_the_script_compiles_without_a_warning(
    make: Callable[..., Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Warnings are errors. This is the kind that NSIS' own package for Windows can make; the other one is tried
    under Wine."""
    content = make(lay_out(tmp_path / "app", b"MZ"), "0.2.0", target="x86").read_bytes()
    at = struct.unpack_from("<I", content, 0x3C)[0]
    assert content[at : at + 4] == b"PE\0\0" and struct.unpack_from("<H", content, at + 4)[0] == 0x14C
    assert "The Shoal authors".encode("utf-16-le") in content and "0.2.0".encode("utf-16-le") in content
    assert "SHOAL_SIGN" in capfd.readouterr().err


def test_a_folder_that_is_no_bundle_is_refused(
    rooms: SimpleNamespace, make: Callable[..., Path], tmp_path: Path
) -> None:
    if shutil.which("makensis") is None:
        pytest.skip("makensis is not installed")
    with pytest.raises(rooms.BuildError, match=r"holds no shoal\.exe"):
        make(tmp_path, "0.2.0")


def test_elsewhere_only_a_stand_in_is_packed(tmp_path: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("here the app itself is built")
    words = [sys.executable, ROOT / "packaging" / "build", "windows", "--out", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and "--payload" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are those of a POSIX shell")
def test_a_signing_command_may_write_in_place_or_beside(rooms: SimpleNamespace, tmp_path: Path) -> None:
    program = tmp_path / "my shoal.exe"
    program.write_bytes(b"MZ")
    rooms.sign.sign(program, "sh -c 'printf signed >> \"$0\"' {file}")
    assert program.read_bytes() == b"MZsigned"
    rooms.sign.sign(program, 'sh -c \'cat "$0" "$0" > "$1"\' {file} {signed}')
    assert program.read_bytes() == b"MZsigned" * 2 and list(tmp_path.iterdir()) == [program]
    for wrong in ("false {file}", "no-such-tool {file}", "true", "sh -c 'exit 3' {file} {oops}"):
        with pytest.raises(rooms.sign.SignError, match=r"\.$"):
            rooms.sign.sign(program, wrong)
    assert program.read_bytes() == b"MZsigned" * 2
    words = rooms.sign.split(r'"C:\Kits 10\signtool.exe" sign /n "The authors" {file}', True)
    assert words == [r"C:\Kits 10\signtool.exe", "sign", "/n", "The authors", "{file}"]


pytestmark_wine = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(under_wine.missing()), reason=under_wine.missing() or "-"),
]


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    made = Wine(tmp_path_factory.mktemp("wine"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    to = built("stand_in.c", tmp_path_factory.mktemp("stand-in") / "shoal.exe", "-mwindows")
    return to.read_bytes()


@pytest.fixture
def clean(wine: Wine) -> Iterator[Wine]:
    """Without anything of a test before."""
    yield wine
    found = wine.values(UNINSTALL).get("InstallLocation")
    if found:
        wine.run(wine.unix(found) / "uninstall.exe", "/S")
        wine.settle()
    shutil.rmtree(wine.local / "Shoal", ignore_errors=True)
    wine.run("reg", "delete", f"HKCU\\{RUN}", "/v", "Shoal", "/f")


@pytest.fixture(scope="module")
def offered(
    rooms: SimpleNamespace, program: bytes, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Path]]:
    """An installer of a version, made once; beside it, in app/, what it installs."""
    made: dict[str, Path] = {}

    def offer(version: str, **more: object) -> Path:
        name = f"{version} {more}"
        if name not in made:
            folder = tmp_path_factory.mktemp("installer")
            app = lay_out(folder / "app", program, old=version == "0.1.0")
            bundle = rooms.Bundle(app, version, Path(sys.executable), datetime.date(2026, 11, 21))
            (made[name],) = rooms.package.package(bundle, folder, **more)
        return made[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(rooms.sign.VARIABLE, raising=False)
        yield offer


def into(folder: str) -> list[str]:
    """NSIS takes the rest of the command line for the folder, and wants no quotes: Wine sets them around
    words with spaces, so none may have one."""
    return f"/D={folder}".split(" ")


def tree(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


class TestUnderWine:
    pytestmark = pytestmark_wine

    @pytest.mark.parametrize("where", [None, ODD])
    def test_it_installs_and_leaves_nothing(
        self, clean: Wine, offered: Callable[..., Path], tmp_path: Path, where: str | None
    ) -> None:
        installer = offered("0.2.0")
        done = clean.run(installer, "/S", *(into(where) if where else []))
        assert done.returncode == 0, done
        values = clean.values(UNINSTALL)
        place = values["InstallLocation"]
        assert place.endswith(r"\AppData\Local\Programs\Shoal") if where is None else place == where
        folder = clean.unix(place)
        assert tree(folder) == tree(installer.parent / "app") | {"uninstall.exe"}
        assert (folder / "_internal/source/app/ä.py").exists()
        assert values["DisplayName"] == "Shoal" and values["DisplayVersion"] == "0.2.0"
        assert values["Publisher"] == "The Shoal authors" and values["DisplayIcon"] == rf"{place}\shoal.exe"
        assert values["UninstallString"] == rf'"{place}\uninstall.exe"'
        assert values["QuietUninstallString"] == rf'"{place}\uninstall.exe" /S'
        kilobytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1024
        assert abs(int(values["EstimatedSize"], 16) - kilobytes) <= 8
        link = clean.local.parent / "Roaming/Microsoft/Windows/Start Menu/Programs/Shoal.lnk"
        assert rf"{place}\shoal.exe".encode("utf-16-le")[4:] in link.read_bytes()
        assert clean.values(SCHEME)["URL Protocol"] == ""
        assert clean.values(rf"{SCHEME}\shell\open\command")["@"] == rf'"{place}\shoal.exe" window -- "%1"'
        (folder / "mine.txt").write_text("somebody else's")
        clean.set(RUN, "Shoal", rf'"{place}\shoal.exe" window --background')

        assert clean.run(folder / "uninstall.exe", "/S").returncode == 0
        clean.settle()
        assert tree(folder) == {"mine.txt"}
        (folder / "mine.txt").unlink()
        folder.rmdir()
        assert not link.exists()
        assert clean.values(UNINSTALL) == {} and clean.values(SCHEME) == {}
        assert "Shoal" not in clean.values(RUN)

    def test_what_was_learned_stays_unless_it_is_to_go(
        self, clean: Wine, offered: Callable[..., Path], tmp_path: Path
    ) -> None:
        home, log = clean.local / "Shoal", tmp_path / "log"
        deep = home / "packs" / "cpu-1.0" / Path(*["long name of a folder in an engine"] * 9)
        installer = offered("0.2.0")

        def installed() -> Path:
            assert clean.run(installer, "/S").returncode == 0
            (home / "models").mkdir(parents=True, exist_ok=True)
            (home / "models" / "curve").write_text("up")
            deep.mkdir(parents=True)
            (deep / "file").write_text("")
            return clean.unix(clean.values(UNINSTALL)["InstallLocation"])

        place = installed()
        clean.run(place / "uninstall.exe", "/S", STAND_IN_LOG=str(log))
        clean.settle()
        assert not place.exists() and not (home / "packs").exists()
        assert tree(home) == {"models/curve"}
        assert "pack remove --yes" in log.read_text() and "--everything" not in log.read_text()

        place = installed()
        clean.run(place / "uninstall.exe", "/S", "/DATA", STAND_IN_LOG=str(log))
        clean.settle()
        assert "remove --everything --yes" in log.read_text()
        assert not place.exists() and not home.exists()

        place = installed()
        inside = f"_?={clean.values(UNINSTALL)['InstallLocation']}"
        done = clean.run(place / "uninstall.exe", "/S", "/DATA", inside, STAND_IN_FAILS="1")
        assert done.returncode == 7 and (home / "models" / "curve").exists()
        shutil.rmtree(place)

    def test_an_upgrade_asks_the_running_one_to_end_and_keeps_what_was_learned(
        self, clean: Wine, offered: Callable[..., Path], tmp_path: Path
    ) -> None:
        old = offered("0.1.0")
        new = offered("0.10.0")
        assert clean.run(old, "/S", *into(ODD)).returncode == 0
        (clean.local / "Shoal").mkdir()
        (clean.local / "Shoal" / "history").write_text("1")
        log = tmp_path / "log"
        runs = clean.start(clean.unix(ODD) / "shoal.exe", STAND_IN_LOG=str(log))
        until(log.exists)
        assert clean.run(new, "/S", STAND_IN_LOG=str(log)).returncode == 0
        assert runs.wait(120) == 0
        assert "window --quit" in log.read_text()
        values = clean.values(UNINSTALL)
        assert values["DisplayVersion"] == "0.10.0" and values["InstallLocation"] == ODD
        assert tree(clean.unix(ODD)) == tree(new.parent / "app") | {"uninstall.exe"}
        assert (clean.local / "Shoal" / "history").read_text() == "1"

        assert clean.run(old, "/S").returncode == 4  # and not back again, unless somebody says so
        assert clean.values(UNINSTALL)["DisplayVersion"] == "0.10.0"
        assert clean.run(new, "/S", "/RUN", STAND_IN_LOG=str(log)).returncode == 0  # over the same, and started
        until(lambda: log.read_text().rstrip().endswith('shoal.exe"'))
        clean.run(clean.unix(ODD) / "shoal.exe", "window", "--quit")

    def test_one_that_does_not_end_is_not_ended(
        self, clean: Wine, offered: Callable[..., Path], tmp_path: Path
    ) -> None:
        old = offered("0.1.0")
        new = offered("0.2.0")
        assert clean.run(old, "/S").returncode == 0
        folder = clean.unix(clean.values(UNINSTALL)["InstallLocation"])
        before, log = tree(folder), tmp_path / "log"
        runs = clean.start(folder / "shoal.exe", STAND_IN_LOG=str(log))
        until(log.exists)
        assert clean.run(new, "/S", STAND_IN_STUBBORN="1").returncode == 5
        assert runs.poll() is None and tree(folder) == before
        assert clean.values(UNINSTALL)["DisplayVersion"] == "0.1.0"
        clean.run(folder / "shoal.exe", "window", "--quit")
        assert runs.wait(120) == 0

    def test_what_cannot_be_written_leaves_what_was_there(
        self, clean: Wine, offered: Callable[..., Path], tmp_path: Path
    ) -> None:
        other = clean.prefix / "drive_c" / "other program" / "_internal"
        other.mkdir(parents=True)
        (other / "python311.dll").write_text("theirs")
        assert clean.run(offered("0.2.0"), "/S", *into(r"C:\other program")).returncode == 2
        assert tree(other.parent) == {"_internal/python311.dll"}
        blocked = clean.prefix / "drive_c" / "blocked"
        (blocked / "uninstall.exe").mkdir(parents=True)
        assert clean.run(offered("0.2.0"), "/S", r"/D=C:\blocked").returncode == 2
        assert tree(blocked) == set() and clean.values(UNINSTALL) == {}

        assert clean.run(offered("0.1.0"), "/S").returncode == 0
        folder = clean.unix(clean.values(UNINSTALL)["InstallLocation"])
        (folder / "uninstall.exe").rename(folder / "kept")
        (folder / "uninstall.exe").mkdir()
        (folder / "uninstall.exe" / "file").write_text("so it cannot be replaced")
        before = tree(folder)
        assert clean.run(offered("0.2.0"), "/S").returncode == 2
        assert tree(folder) == before and "_internal/of the old" in before
        assert clean.values(UNINSTALL)["DisplayVersion"] == "0.1.0"
        shutil.rmtree(folder / "uninstall.exe")
        (folder / "kept").rename(folder / "uninstall.exe")
