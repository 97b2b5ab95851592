"""Builds the folder that every installer contains: PyInstaller's bundle with Shoal's own files beside it."""

from __future__ import annotations

import datetime
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple


class BuildError(Exception):
    """The build cannot continue; one sentence says what is missing and what to do."""


# The Python that engine packs are made with on Windows and macOS, whose own systems bring none.

PYTHON_BUILDS_FILE = Path(__file__).resolve().parents[1] / "release" / "python.json"
_LIBRARY = ("lib/python3.*", "Lib")
NOT_NEEDED = (
    *("include", "share", "tcl", "libs", "lib/pkgconfig", "DLLs/_tkinter*", "DLLs/tcl*", "DLLs/tk*"),
    *("lib/tcl*", "lib/tk*", "lib/thread*", "lib/itcl*", "lib/libtcl*", "lib/libtk*"),
    *(
        f"{place}/{name}"
        for place in _LIBRARY
        for name in ("test", "idlelib", "tkinter", "turtledemo", "config-*")
    ),
    *(f"{place}/{name}" for place in _LIBRARY for name in ("lib-dynload/_tkinter*", "site-packages/pip*")),
)
"""Parts of the Python archive that are left out: headers, manual pages, its own tests, Tk, and pip."""


def carry_python(archive: Path, to: Path) -> None:
    """Unpacks an archive of python-build-standalone after checking its digest. Raises BuildError."""
    known = {
        one["file"]: one["sha256"]
        for one in json.loads(PYTHON_BUILDS_FILE.read_text(encoding="utf-8"))["files"].values()
    }
    try:
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BuildError(f"{archive} cannot be read ({error.strerror}): fetch it again.") from error
    if known.get(archive.name) != digest:
        raise BuildError(
            f"{archive.name} is not the file that packaging/release/python.json names: fetch it with "
            "packaging/release/python."
        )
    unpack(archive, to)


def unpack(archive: Path, to: Path) -> None:
    """Unpacks the archive's folder python/ to `to`, without NOT_NEEDED. Raises BuildError."""
    fresh = to.with_name(f".{to.name}-new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(to, ignore_errors=True)
    try:
        with tarfile.open(archive) as tar:
            tar.extractall(fresh, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        (fresh / "python").rename(to)
    except (OSError, tarfile.TarError) as error:
        raise BuildError(f"{archive.name} cannot be unpacked ({error}): fetch it again.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    for path in sorted(to.rglob("*")):
        if any(fnmatch.fnmatchcase(path.relative_to(to).as_posix(), one) for one in NOT_NEEDED):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build"
NEEDED = "frozen/packages.lock"
"""Lock file for packages.txt beside it and build.txt (written by packaging/requirements/lock)."""
BUNDLED = ("app", "engines", "resources", "packaging/requirements")
LEFT_OUT = ("app/lab/studies", "app/bench/results", "resources/screenshots", "resources/pictures")
"""Parts of the tree that are only for readers of the repository."""
RELEASE_FILE = "resources/release.json"
"""Written by a release before it builds: the public keys the app trusts, and the URLs of packs and updates."""


_COMPILE = """
import compileall, py_compile, sys
checked = py_compile.PycInvalidationMode.UNCHECKED_HASH  # no dates in the files
sys.exit(not compileall.compile_dir(sys.argv[1], quiet=1, ddir="source", invalidation_mode=checked))
"""


class Bundle(NamedTuple):
    """A built bundle. `folder` holds the program and everything it needs; `python` is the Python of the build;
    `date` is the day of the last commit."""

    folder: Path
    version: str
    python: Path
    date: datetime.date


class Packs(NamedTuple):
    """The engine packs known to the app: a `file` written by packaging/packs/make trust, or the values to make
    one from. `carried` is a folder with an offline pack to include in the app."""

    file: Path | None = None
    keys: Sequence[str] = ()
    manifests: Sequence[str] = ()
    described: Sequence[Path] = ()
    carried: Path | None = None


def bundle(
    python: str,
    version: str | None = None,
    packs: Packs | None = None,
    payload: Path | None = None,
    engine_python: Path | None = None,
    dress: Callable[[str], None] | None = None,
) -> Bundle:
    """Builds the bundle. `payload` is a folder to use instead of PyInstaller's; `engine_python` is the archive
    of the Python that engine packs need, on systems without their own; `dress` writes the system's resources
    for a version before PyInstaller reads them. Raises BuildError."""
    chosen = (
        version or tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    )
    if not re.fullmatch(r"\d+(\.\d+)*([a-z]+\d+)?", chosen):
        raise BuildError(f"{chosen!r} is no version: give one such as 0.2.0.")
    own = _environment(python) if payload is None else Path(sys.executable)
    folder = _frozen(own, chosen, dress) if payload is None else _standing_in(payload)
    inside = folder / "_internal"
    carry(inside / "source", own)
    _carry_packs(packs or Packs(), inside, own)
    if engine_python is not None:
        carry_python(engine_python, inside / "python")
    (inside / "source" / "VERSION").write_text(chosen + "\n", encoding="utf-8")
    return Bundle(folder, chosen, own, datetime.datetime.fromtimestamp(_epoch(), datetime.UTC).date())


def _frozen(own: Path, version: str, dress: Callable[[str], None] | None) -> Path:
    """Runs PyInstaller and returns its folder."""
    made = WORK / "bundle"
    if dress is not None:
        dress(version)
    environment = {**os.environ, "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": str(_epoch())}
    run(
        [
            own,
            "-m",
            "PyInstaller",
            "--noconfirm",
            "--clean",
            "--log-level",
            "WARN",
            "--distpath",
            made,
            "--workpath",
            WORK / "work",
            ROOT / "packaging" / "frozen" / "shoal.spec",
        ],
        environment,
    )
    return made / "shoal"


def _standing_in(payload: Path) -> Path:
    if not (payload / "_internal").is_dir():
        raise BuildError(f"{payload} is no bundle: it needs a folder _internal beside the program.")
    folder = WORK / "payload"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(payload, folder, symlinks=True)
    return folder


def carry(to: Path, python: Path) -> None:
    """Copies the files tracked by git, without LEFT_OUT, to `to` and compiles them with the bundle's Python."""
    listed = run(["git", "-C", ROOT, "ls-files", "-z", "--", *BUNDLED]).split("\0")
    for name in dict.fromkeys([*filter(None, listed), RELEASE_FILE]):
        if not name.startswith(LEFT_OUT) and (ROOT / name).is_file():
            place = to / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place)
    run([python, "-c", _COMPILE, to])


def _carry_packs(packs: Packs, inside: Path, python: Path) -> None:
    """Writes the list of engine packs into the bundle, checked with the app's own code; without one, the app
    cannot get an engine."""
    to = inside / "source" / RELEASE_FILE
    if packs.file is not None:
        shutil.copyfile(packs.file, to)
    elif packs.keys:
        described = [word for path in packs.described for word in ("--pack", path)]
        named = [word for one in packs.manifests for word in ("--manifest", one)]
        run(
            [
                python,
                ROOT / "packaging" / "packs" / "make",
                "trust",
                *packs.keys,
                *named,
                *described,
                "--out",
                to,
            ]
        )
    else:
        return
    check = (
        "import sys, pathlib; from app.install.packs.manifest import trust; trust(pathlib.Path(sys.argv[1]))"
    )
    run([python, "-c", check, to], {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"})
    if packs.carried is not None:
        shutil.copytree(packs.carried, inside / "packs")


def _environment(python: str) -> Path:
    """Returns the Python of a virtual environment with PyInstaller and the bundled packages, kept between
    builds."""
    folder = WORK / "python"
    own = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not own.exists():
        run([python, "-m", "venv", folder])
    fixed = ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
    run(
        [
            own,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *fixed,
            "-r",
            ROOT / "packaging" / NEEDED,
        ]
    )
    return own


def _epoch() -> int:
    """Returns the time of the last commit in seconds since 1970, so that the same tree gives the same files."""
    return int(
        os.environ.get("SOURCE_DATE_EPOCH") or run(["git", "-C", ROOT, "log", "-1", "--format=%ct"]).strip()
    )


def run(command: Sequence[object], environment: dict[str, str] | None = None) -> str:
    """Runs `command` and returns its stdout. Raises BuildError with the last line of stderr (or stdout) if it
    fails."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise BuildError(
            f"{words[0]} cannot be run ({error.strerror}): install it, then build again."
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing said"]
        raise BuildError(f"{' '.join(words[:4])} failed ({said[-1][:300]}).")
    return done.stdout
