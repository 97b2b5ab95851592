"""A Debian package of the bundle, and the same as one file for other distributions."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from pathlib import Path

from frozen.bundle import ROOT, WORK, BuildError, Bundle

HERE = Path(__file__).resolve().parent
DEPENDS = (
    "python3 (>= 3.11)",
    "python3-venv",
    "libc6 (>= 2.35)",
    "libstdc++6",
    "libegl1",
    "libgl1",
    "libxkbcommon0",
    "libfontconfig1",
    "libdbus-1-3",
    "libglib2.0-0 | libglib2.0-0t64",
    "libxcb-cursor0",
    "libxcb-icccm4",
    "libxcb-keysyms1",
    "libxcb-shape0",
    "libxcb-xkb1",
    "libxkbcommon-x11-0",
    "libxss1",
)
"""Python and its venv are for the engine pack; the libraries are Qt's."""
RECOMMENDS = ("libwayland-client0", "libwayland-cursor0", "libgomp1")
DESCRIPTION = """Train a small reasoning model on your own computer
 Shoal trains a small model with reinforcement learning while you are away. The
 model practises puzzles, checks its own answers and learns from them, alone or
 together with other people's models. Only answers to generated puzzles travel,
 as text: no account, no telemetry."""


_LICENCES = """
import importlib.metadata
for one in importlib.metadata.distributions():
    for file in one.files or ():
        if file.name.upper().startswith(("LICEN", "COPYING", "NOTICE")):
            print(one.metadata["Name"], file.locate(), sep="\\t")
"""


def package(made: Bundle, out: Path) -> list[Path]:
    """The files for people. Raises BuildError."""
    out.mkdir(parents=True, exist_ok=True)
    return [deb(made, out)]


def deb(made: Bundle, out: Path) -> Path:
    tree = WORK / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    share = tree / "usr" / "share"
    library = tree / "usr" / "lib" / "shoal"
    shutil.copytree(made.folder, library, symlinks=True)
    _strip(library)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / "shoal").symlink_to("../lib/shoal/shoal")
    _put(HERE / "shoal.desktop", share / "applications" / "shoal.desktop", made)
    _put(HERE / "metainfo.xml", share / "metainfo" / "io.github.shoal.Shoal.metainfo.xml", made)
    _put(HERE / "lintian-overrides", share / "lintian" / "overrides" / "shoal", made)
    _put(HERE / "copyright", share / "doc" / "shoal" / "copyright", made)
    _squeeze((HERE / "shoal.1").read_text(encoding="utf-8"), share / "man" / "man1" / "shoal.1.gz", made)
    _squeeze(_changelog(made), share / "doc" / "shoal" / "changelog.gz", made)
    _icons(made, share / "icons" / "hicolor")
    _licences(made, share / "doc" / "shoal" / "licences")
    for path in tree.rglob("*"):
        if not path.is_symlink():
            program = path.stat().st_mode & 0o100 and ".so" not in path.name
            path.chmod(0o755 if path.is_dir() or program else 0o644)
    installed = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    control = tree / "DEBIAN" / "control"
    control.parent.mkdir()
    control.parent.chmod(0o755)
    control.write_text(
        "\n".join(
            [
                "Package: shoal",
                f"Version: {made.version}",
                "Section: science",
                "Priority: optional",
                f"Architecture: {_output('dpkg', '--print-architecture')}",
                f"Installed-Size: {installed // 1024}",
                "Maintainer: The Shoal authors <shoal@example.org>",
                f"Depends: {', '.join(DEPENDS)}",
                f"Recommends: {', '.join(RECOMMENDS)}",
                f"Description: {DESCRIPTION}",
                "",
            ]
        ),
        encoding="utf-8",
    )
    to = out / f"shoal_{made.version}_{_output('dpkg', '--print-architecture')}.deb"
    _output("dpkg-deb", "--root-owner-group", "-Zxz", "-b", str(tree), str(to))
    return to


def _put(source: Path, to: Path, made: Bundle) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(_filled(source.read_text(encoding="utf-8"), made), encoding="utf-8")


def _squeeze(text: str, to: Path, made: Bundle) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(gzip.compress(_filled(text, made).encode(), 9, mtime=0))


def _filled(text: str, made: Bundle) -> str:
    return text.replace("@VERSION@", made.version).replace("@DATE@", made.date.isoformat())


def _changelog(made: Bundle) -> str:
    signed = f" -- The Shoal authors <shoal@example.org>  {made.date:%a, %d %b %Y} 00:00:00 +0000"
    return f"shoal ({made.version}) stable; urgency=low\n\n  * Release {made.version}.\n\n{signed}\n"


def _icons(made: Bundle, to: Path) -> None:
    source = ROOT / "resources" / "icons" / "shoal.svg"
    scalable = to / "scalable" / "apps"
    scalable.mkdir(parents=True)
    shutil.copyfile(source, scalable / "shoal.svg")
    for size in (48, 128, 256):
        folder = to / f"{size}x{size}" / "apps"
        folder.mkdir(parents=True)
        draw = (
            "import sys; from PySide6.QtGui import QGuiApplication, QIcon; a = QGuiApplication([]);"
            "QIcon(sys.argv[1]).pixmap(int(sys.argv[3])).save(sys.argv[2])"
        )
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
        _output(
            str(made.python),
            "-c",
            draw,
            str(source),
            str(folder / "shoal.png"),
            str(size),
            environment=environment,
        )


def _licences(made: Bundle, to: Path) -> None:
    """Each bundled package's own licence files."""
    to.mkdir(parents=True)
    for line in _output(str(made.python), "-c", _LICENCES).splitlines():
        name, _, path = line.partition("\t")
        if name not in ("pip", "setuptools", "pyinstaller", "uv") and Path(path).is_file():
            shutil.copyfile(path, to / f"{name}-{Path(path).name}")


def _strip(folder: Path) -> None:
    """Libraries need no tables of names. The program itself has Python's archive behind its end."""
    for path in folder.rglob("*.so*"):
        if path.is_file() and not path.is_symlink():
            subprocess.run(["strip", "--strip-unneeded", path], stderr=subprocess.DEVNULL)


def _output(*command: str, environment: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    except OSError as error:
        raise BuildError(
            f"{command[0]} cannot be run ({error.strerror}): install it, then build again."
        ) from error
    if done.returncode:
        raise BuildError(f"{command[0]} failed ({(done.stderr or done.stdout).strip()[-300:]}).")
    return done.stdout.strip()
