"""The app for macOS, as far as it can be judged without a Mac: how it is laid out, what it tells the system,
its icon, the order in which it is signed, and what its disk image is made of."""

from __future__ import annotations

import datetime
import io
import plistlib
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
MACHO = bytes.fromhex("cffaedfe0c000001") + bytes(64)
FAT = bytes.fromhex("cafebabe00000002") + bytes(64)
JAVA = bytes.fromhex("cafebabe00000041") + bytes(64)


@pytest.fixture(scope="module")
def rooms() -> Iterator[SimpleNamespace]:
    """The packaging rooms, as packaging/build imports them."""
    sys.path.insert(0, str(ROOT / "packaging"))
    from frozen import bundle
    from macos import layout, package, signing

    yield SimpleNamespace(
        bundle=bundle, BuildError=bundle.BuildError, layout=layout, package=package, signing=signing
    )
    sys.path.remove(str(ROOT / "packaging"))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """As PyInstaller leaves it on a Mac, with files that begin like code and hold nothing."""
    folder = tmp_path / "bündle with a space"
    files = {
        "shoal": MACHO,
        "_internal/uv": MACHO,
        "_internal/Python": FAT,
        "_internal/base_library.zip": b"PK",
        "_internal/msgspec/_core.so": MACHO,
        "_internal/msgspec/py.typed": b"",
        "_internal/msgspec-0.22.0.dist-info/METADATA": b"Name: msgspec",
        "_internal/python3.13/lib-dynload/_ssl.so": MACHO,
        "_internal/PySide6/QtCore.abi3.so": FAT,
        "_internal/PySide6/Qt/lib/QtCore.framework/Versions/A/QtCore": FAT,
        "_internal/PySide6/Qt/lib/QtCore.framework/Versions/A/Resources/Info.plist": b"",
        "_internal/PySide6/Qt/plugins/platforms/libqcocoa.dylib": FAT,
        "_internal/PySide6/Qt/translations/qtbase_de.qm": b"",
        "_internal/source/app/x.py": b"print()",
        "_internal/source/resources/Odd.class": JAVA,
        "_internal/python/bin/python3.13": MACHO,
        "_internal/python/lib/libpython3.13.dylib": MACHO,
        "_internal/python/lib/python3.13/os.py": b"",
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    inside = folder / "_internal"
    (inside / "python" / "bin" / "python3").symlink_to("python3.13")
    framework = inside / "PySide6" / "Qt" / "lib" / "QtCore.framework"
    (framework / "Versions" / "Current").symlink_to("A")
    (framework / "QtCore").symlink_to("Versions/Current/QtCore")
    (inside / "QtCore").symlink_to("PySide6/Qt/lib/QtCore.framework/Versions/A/QtCore")
    return folder


@pytest.fixture
def app(rooms: SimpleNamespace, bundle: Path, tmp_path: Path) -> Path:
    made = tmp_path / "Shoal.app"
    rooms.layout.lay_out(bundle, made / "Contents")
    return made


def test_code_and_data_lie_where_the_signature_wants_them(
    rooms: SimpleNamespace, bundle: Path, app: Path
) -> None:
    contents = app / "Contents"
    expected = contents / "Frameworks"
    real = [path for path in expected.rglob("*") if path.is_file() and not path.is_symlink()]
    apart = [path for path in real if not any(part.endswith(".framework") for part in path.parts)]
    assert apart and all(rooms.layout.is_code(path) for path in apart)
    folders = [path for path in expected.rglob("*") if path.is_dir() and not path.is_symlink()]
    inside = [path for path in folders if ".framework" not in str(path.relative_to(expected))]
    assert not [path.name for path in inside if "." in path.name]
    assert [path.name for path in (contents / "MacOS").iterdir()] == ["shoal"]
    assert not [
        path
        for path in (contents / "Resources").rglob("*")
        if rooms.layout.is_code(path) and "python" not in path.parts
    ]


def test_the_program_finds_every_file_where_it_was(bundle: Path, app: Path) -> None:
    """PyInstaller's program takes Contents/Frameworks for _internal."""
    inside = bundle / "_internal"
    for path in inside.rglob("*"):
        if path.is_file():
            assert (
                app / "Contents" / "Frameworks" / path.relative_to(inside)
            ).read_bytes() == path.read_bytes()
    assert (app / "Contents" / "Frameworks" / "QtCore").is_symlink()
    assert (app / "Contents" / "Frameworks" / "python" / "bin" / "python3").resolve().name == "python3.13"
    whole = [path for path in (app / "Contents").rglob("*") if path.is_symlink()]
    assert all(path.exists() and not path.readlink().is_absolute() for path in whole)


def test_a_bundle_that_is_not_whole_is_refused(rooms: SimpleNamespace, bundle: Path, tmp_path: Path) -> None:
    (bundle / "_internal" / "lost").symlink_to("nowhere/at/all")
    with pytest.raises(rooms.BuildError, match="lost leads nowhere"):
        rooms.layout.lay_out(bundle, tmp_path / "a")
    (bundle / "shoal").unlink()
    with pytest.raises(rooms.BuildError, match="no program"):
        rooms.layout.lay_out(bundle, tmp_path / "b")


def test_what_the_system_is_told(rooms: SimpleNamespace, tmp_path: Path) -> None:
    from app.swarm.invite import discovery, invite

    (tmp_path / "Resources").mkdir()
    rooms.package.write_information(tmp_path, "0.2.0rc1", datetime.date(2026, 11, 21))
    told = plistlib.loads((tmp_path / "Info.plist").read_bytes())
    assert told == rooms.package.information("0.2.0rc1", datetime.date(2026, 11, 21))
    assert told["CFBundleShortVersionString"] == "0.2.0rc1" and told["CFBundleVersion"] == "0.2.0"
    (urls,) = told["CFBundleURLTypes"]
    assert invite.PREFIX.startswith(f"{urls['CFBundleURLSchemes'][0]}://")
    assert f"{told['NSBonjourServices'][0]}.local." == discovery.SERVICE
    assert told["CFBundleExecutable"] == rooms.layout.PROGRAM and "LSUIElement" not in told
    languages = {path.stem.split("_", 1)[1] for path in (ROOT / "resources" / "translations").glob("*.qm")}
    for language in {"en", *languages}:
        words = plistlib.loads(
            (tmp_path / "Resources" / f"{language}.lproj" / "InfoPlist.strings").read_bytes()
        )
        assert words.keys() <= told.keys() and all(words.values())


def test_the_engines_python_gets_the_one_right_that_it_needs(rooms: SimpleNamespace) -> None:
    rights = plistlib.loads(rooms.signing.ENTITLEMENTS.read_bytes())
    assert rights == {"com.apple.security.cs.disable-library-validation": True}


def test_it_is_signed_from_the_inside_out(rooms: SimpleNamespace, app: Path) -> None:
    commands = rooms.signing.sign_app(app, "Developer ID Application: A (B)")
    order = [word for command in commands for word in command if word.startswith(f"{app}")]
    assert order[-1] == str(app) and len(set(order)) == len(order)
    names = [Path(word).name for word in order]
    assert {"uv", "_core.so", "_ssl.so", "libqcocoa.dylib", "libpython3.13.dylib", "python3.13"} <= set(names)
    assert names.index("libpython3.13.dylib") < names.index("python3.13") < names.index("QtCore.framework")
    assert "QtCore" not in names and "shoal" not in names, "signed with what holds them"
    for command in commands:
        assert command[:4] == ["codesign", "--force", "--sign", "Developer ID Application: A (B)"]
        assert command[command.index("--options") + 1] == "runtime" and "--timestamp" in command
        assert ("--entitlements" in command) == ("python3.13" in command[-1])


def test_without_an_identity_it_is_signed_for_this_mac_alone(rooms: SimpleNamespace, app: Path) -> None:
    """Without a team the hardened runtime would refuse the app's own libraries."""
    for command in rooms.signing.sign_app(app, ""):
        assert command[3:5] == ["-", "--timestamp=none"] and "--options" not in command


def test_the_engines_python_is_the_known_one_less_what_nobody_needs(
    rooms: SimpleNamespace, tmp_path: Path
) -> None:
    archive = tmp_path / "python.tar.gz"
    kept = [
        "bin/python3.13",
        "lib/python3.13/os.py",
        "lib/python3.13/threading.py",
        "Lib/threading.py",
        "python.exe",
    ]
    dropped = ["include/Python.h", "lib/python3.13/test/a.py", "Lib/site-packages/pip/a.py", "lib/tk8.6/a.tcl"]
    with tarfile.open(archive, "w:gz") as tar:
        for name in kept + dropped:
            tar.addfile(tarfile.TarInfo(f"python/{name}"), io.BytesIO())
    with pytest.raises(rooms.BuildError, match=r"python\.json"):
        rooms.bundle.carry_python(archive, tmp_path / "to")
    assert not (tmp_path / "to").exists()
    rooms.bundle.unpack(archive, tmp_path / "to")
    left = {
        path.relative_to(tmp_path / "to").as_posix() for path in (tmp_path / "to").rglob("*") if path.is_file()
    }
    assert left == set(kept)
    archive.write_bytes(b"no archive")
    with pytest.raises(rooms.BuildError, match="cannot be unpacked"):
        rooms.bundle.unpack(archive, tmp_path / "to")


@pytest.mark.skipif(sys.platform == "darwin", reason="here it would build")
def test_elsewhere_one_sentence_says_where_to_build_it() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "packaging" / "build", "macos"], capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "on a Mac" in done.stderr and "--payload" in done.stderr


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "darwin", reason="needs no Mac")
def test_the_command_lays_an_app_out_of_a_stand_in(bundle: Path, tmp_path: Path) -> None:
    pytest.importorskip("PySide6.QtGui", exc_type=ImportError)
    command = [
        sys.executable,
        ROOT / "packaging" / "build",
        "macos",
        "--payload",
        bundle,
        "--out",
        tmp_path / "out",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    contents = tmp_path / "out" / "Shoal.app" / "Contents"
    told = plistlib.loads((contents / "Info.plist").read_bytes())
    assert (contents / "Resources" / told["CFBundleIconFile"]).read_bytes()[:4] == b"icns"
    assert (contents / "Frameworks" / "source" / "VERSION").read_text().strip() == told[
        "CFBundleShortVersionString"
    ]
    assert (contents / "Frameworks" / "source" / "app" / "ui" / "shell" / "start.py").is_file()


def test_an_app_that_was_not_moved_is_told_so_before_an_engine_depends_on_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """macOS runs it from a folder that is another one next time."""
    from app.install import InstallError
    from app.install.packs import programs

    monkeypatch.setattr(
        sys, "executable", "/private/var/folders/x/T/AppTranslocation/1F/d/Shoal.app/Contents/MacOS/shoal"
    )
    with pytest.raises(InstallError, match="into Applications"):
        programs.Uv(Path(), Path(), 0).make(None, Path())  # type: ignore[arg-type]
