"""Builds the installer for Windows with NSIS: on Windows, or from a stand-in folder on any system."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from frozen.bundle import WORK, BuildError, Bundle
from windows.sign import VARIABLE, SignError, sign

HERE = Path(__file__).resolve().parent
PICTURES = HERE / "pictures"
"""shoal.ico (16 to 256 pixels), side-*.bmp beside the first and last page, header-*.bmp on the others, for
screens at 100, 150 and 200 %; drawn from shoal.svg and Inter."""
PROGRAMS = ("shoal.exe", "shoal-cli.exe")
"""The window's program, which has no console, and the one for terminals. Both are signed if a command is
configured."""
SPARE_KB = 20 * 1024
TARGETS = {"amd64": "lzma_solid-amd64-unicode", "x86": "lzma_solid-x86-unicode"}
"""Installer kinds by the stub that NSIS needs: Debian's has both, NSIS' own package for Windows only the
second, whose installers run on every Windows too."""
_STANDARD = ("/usr/share/nsis", "C:/Program Files (x86)/NSIS", "C:/Program Files/NSIS")


def refusal(payload: Path | None, platform: str = sys.platform) -> str:
    """Returns why the installer cannot be built here; "" if it can: NSIS is installed, and this is Windows or
    `payload` is a stand-in for the app."""
    if platform != "win32" and payload is None:
        return (
            "The app for Windows is built on Windows, since PyInstaller makes them for its own system: "
            "run this there, or pack a stand-in here with --payload DIR."
        )
    try:
        find_makensis()
    except BuildError as error:
        return str(error)
    return ""


def package(made: Bundle, out: Path, target: str | None = None, needed_kb: int | None = None) -> list[Path]:
    """Builds the installer and returns its path. `target`: its kind (default: the first that NSIS can make).
    `needed_kb`: the disk space it requires (default: from the files' size). Raises BuildError."""
    makensis, stubs = find_makensis()
    chosen = target or next((name for name, stub in TARGETS.items() if (stubs / stub).exists()), "x86")
    for name in PROGRAMS:
        if not (made.folder / name).is_file():
            raise BuildError(f"{made.folder} holds no {name}: it is no bundle for Windows.")
    signs = bool(os.environ.get(VARIABLE))
    if signs:
        for name in PROGRAMS:
            try:
                sign(made.folder / name, os.environ[VARIABLE])
            except SignError as error:
                raise BuildError(str(error)) from error
    else:
        print(
            f"packaging/build: Nothing is signed, since {VARIABLE} names no command; Windows warns of such "
            "programs.",
            file=sys.stderr,
        )
    out.mkdir(parents=True, exist_ok=True)
    to = (out / f"shoal-{made.version}-setup.exe").resolve()
    to.unlink(missing_ok=True)
    defined = {
        "VERSION": made.version,
        "VERSION4": four(made.version),
        "FILES": str(made.folder.resolve() / "*"),
        "NEEDED_KB": str(needed_kb or kilobytes(made.folder) + SPARE_KB),
        "PICTURES": str(PICTURES),
        "OUT": str(to),
        "TARGET": chosen,
        **({"FINISH": f'"{sys.executable}" "{HERE / "sign.py"}"'} if signs else {}),
    }
    slash = "/" if os.name == "nt" else "-"
    options = [f"{slash}D{name}={value}" for name, value in defined.items()]
    _run(
        [
            makensis,
            f"{slash}V2",
            f"{slash}WX",
            f"{slash}INPUTCHARSET",
            "UTF8",
            *options,
            str(HERE / "shoal.nsi"),
        ]
    )
    return [to]


def dress(version: str) -> None:
    """Writes the version resource, shown in a program's properties, which PyInstaller adds together with the
    icon."""
    name = "The Shoal authors"
    said = {
        "CompanyName": name,
        "FileDescription": "Shoal",
        "FileVersion": version,
        "InternalName": "shoal",
        "LegalCopyright": f"{name}, Apache License 2.0",
        "OriginalFilename": "shoal.exe",
        "ProductName": "Shoal",
        "ProductVersion": version,
    }
    numbers = tuple(map(int, four(version).split(".")))
    table = ", ".join(f"StringStruct({key!r}, {value!r})" for key, value in said.items())
    (WORK / "windows").mkdir(parents=True, exist_ok=True)
    (WORK / "windows" / "version.txt").write_text(
        f"VSVersionInfo(ffi=FixedFileInfo(filevers={numbers}, prodvers={numbers}), kids=["
        f"StringFileInfo([StringTable('040904B0', [{table}])]), "
        "VarFileInfo([VarStruct('Translation', [1033, 1200])])])\n",
        encoding="utf-8",
    )


def find_makensis() -> tuple[str, Path]:
    """Returns the path of makensis, and the folder with its installer stubs. Raises BuildError."""
    homes = [Path(place) for place in (os.environ.get("NSISDIR", ""), *_STANDARD) if place]
    beside = [str(home / "makensis.exe") for home in homes if (home / "makensis.exe").is_file()]
    found = shutil.which("makensis") or next(iter(beside), None)
    if found is None:
        raise BuildError("makensis is not installed: install NSIS 3.08 or newer, then build again.")
    stubs = [home / "Stubs" for home in (Path(found).parent, Path(found).parent.parent, *homes)]
    return found, next((place for place in stubs if place.is_dir()), homes[-1] / "Stubs")


def four(version: str) -> str:
    """Returns a version as the four numbers that Windows stores in a program.

    >>> four("0.2.0"), four("1.2rc1"), four("1.2.3.4")
    ('0.2.0.0', '1.2.0.0', '1.2.3.4')
    """
    numbers = re.match(r"\d+(\.\d+)*", version)
    assert numbers is not None, version
    return ".".join([*numbers[0].split("."), "0", "0", "0"][:4])


def kilobytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 1024


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise BuildError(
            f"{command[0]} cannot be run ({error.strerror}): install it, then build again."
        ) from error
    if done.returncode:
        lines = (done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines() or ["nothing said"]
        told = [line for line in lines if "rror" in line or "arning" in line or "sign.py" in line] or lines
        raise BuildError(f"{Path(command[0]).name} failed ({' '.join(told[:3])[:600]}).")
