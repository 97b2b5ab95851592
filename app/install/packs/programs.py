"""The programs that make an engine and check it: uv, and the engine's own Python. They run without the user's
Python settings and those of a frozen app."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from app.common import files
from app.common.process.surroundings import environment_outside_app
from app.install import InstallError, disk_error
from app.install.launcher.pythons import advice
from app.install.packs import place
from app.install.packs.manifest import PackManifest, Wheel
from engines import remedy

_CHECK = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
_TOO_OLD = ("GLIBC_", "GLIBCXX_", "CXXABI_")
_KEPT_LINES = 200
_HIDDEN = getattr(subprocess, "CREATE_NO_WINDOW", 0)
"""Windows flag: a console program started by a window would otherwise open a console."""


def unpack_uv(wheel: Path, to: Path) -> Path:
    """Writes uv out of its verified wheel into the folder `to`; returns its path. Raises OSError, and
    InstallError if the wheel is another one."""
    name = "uv.exe" if os.name == "nt" else "uv"
    with zipfile.ZipFile(wheel) as archive:
        inside = next((one for one in archive.namelist() if one.endswith(f".data/scripts/{name}")), None)
        if inside is None:
            raise InstallError(f"{wheel.name} holds no uv for this computer: take the pack for this one.")
        with archive.open(inside) as program, (to / name).open("wb") as out:
            shutil.copyfileobj(program, out)
    (to / name).chmod(0o755)
    return to / name


class Uv(NamedTuple):
    """uv with a folder for its cache and temporary files. Its processes inherit `keep_open` (see `run`)."""

    path: Path
    work: Path
    keep_open: int

    def make(self, manifest: PackManifest, environment: Path) -> str:
        """Makes an empty environment with the app's own Python, else with the system's python3, else with any
        that the manifest names. Returns its version, as "3.11". Raises InstallError with what to install."""
        if "/AppTranslocation/" in sys.executable:
            raise InstallError(
                "macOS runs Shoal from a passing place, because it was opened where it was downloaded: move "
                "Shoal into Applications, open it there, then try again."
            )
        said: list[str] = []
        for python in (*_pythons(), *manifest.pythons):
            said, code = self._run(
                ["venv", "--clear", "--no-project", "--python", str(python), str(environment)]
            )
            version = _version(environment) if not code else ""
            if version in manifest.pythons:
                return version
        if _disk_full(said):
            raise disk_error(OSError(28, "No space left on device"), environment.parent)
        raise InstallError(
            f"{manifest.title} needs a 64-bit Python {' or '.join(manifest.pythons)}; this computer has none: "
            f"{advice()}, then try again."
        )

    def sync(self, environment: Path, wheels: Path, packages: Sequence[Wheel]) -> None:
        """Installs these packages, and no others, from files in the folder `wheels` whose digests uv checks
        once more. Raises InstallError."""
        listed, python = self.work / "packages.txt", place.interpreter(environment)
        rows = [(one.name, (wheels / one.file).absolute().as_uri(), one.sha256) for one in packages]
        lines = (f"{name} @ {address} --hash=sha256:{digest}\n" for name, address, digest in rows)
        listed.write_text("".join(lines), encoding="utf-8")
        said, code = self._run(
            ["pip", "sync", "--require-hashes", "--no-index", "--no-build", "--python", python, listed]
        )
        if code:
            if _disk_full(said):
                raise disk_error(OSError(28, "No space left on device"), environment.parent)
            last = next((line for line in said if line.startswith("error")), [*said, "nothing said"][-1])
            raise InstallError(f"The engine could not be set up ({last[:300]}). Nothing is lost: try again.")

    def _run(self, arguments: list[str | Path]) -> tuple[list[str], int]:
        settings = ("--offline", "--no-config", "--no-progress", "--no-python-downloads", "--no-managed-python")
        cache = ("--cache-dir", str(self.work / "cache"))
        return run([self.path, *arguments, *settings, *cache], self.work, self.keep_open)


def _pythons() -> list[Path]:
    bundle = _bundle()
    own = [] if bundle is None else [bundle / "python" / "python.exe", bundle / "python" / "bin" / "python3"]
    return [path for path in (*own, Path("/usr/bin/python3")) if path.is_file()]


def _version(environment: Path) -> str:
    """Returns the version of Python that an environment was made with, as "3.11"; empty if unknown."""
    found = re.search(
        r"(?m)^version_info = (\d+\.\d+)", (environment / "pyvenv.cfg").read_text(encoding="utf-8")
    )
    return found[1] if found else ""


def _disk_full(said: list[str]) -> bool:
    return any("No space left on device" in line or "not enough space on the disk" in line for line in said)


def check(environment: Path, modules: Sequence[str], work: Path, keep_open: int) -> None:
    """Imports the pack's modules in the environment's Python. This also compiles their source, so the engine's
    first start is quick. Raises InstallError."""
    said, code = run([place.interpreter(environment), "-I", "-c", _CHECK, *modules], work, keep_open)
    if not code:
        return
    if any(sign in line for line in said for sign in _TOO_OLD):
        raise InstallError(
            f"This system is older than the engine needs ({said[-1][:200]}): update it, or use Shoal on "
            "a newer one."
        )
    raise InstallError(
        f"The engine is in place but doesn't load ({said[-1][:300] if said else 'it ended'}): repair it with "
        f"{remedy.command('pack repair')}, or install it again."
    )


def engine_fault(root: Path) -> str:
    """Returns a sentence if the engine in use cannot compute; else empty. Takes some seconds and writes
    nothing, so it can be asked at any time, also where packs cannot be written."""
    used = place.current(root).current
    if not used or not place.interpreter(root / used).exists():
        return place.no_engine_sentence()
    made_of = files.read_json(root / used / place.MARK, PackManifest)
    if made_of is None:
        return "The engine is damaged: repair it, or install it again."
    with tempfile.TemporaryDirectory() as work, open(os.devnull, "rb") as nothing:
        try:
            check(root / used, made_of.imports, Path(work), nothing.fileno())
        except InstallError as error:
            return str(error)
    return ""


def run(command: Sequence[str | Path], work: Path, keep_open: int) -> tuple[list[str], int]:
    """Runs a program; returns its last output lines and its exit code. It inherits `keep_open` (POSIX), so that
    the next installation waits for it even if this one is killed. Raises InstallError if it does not start."""
    temporary = work / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    try:
        child = subprocess.Popen(
            [str(word) for word in command],
            env=surroundings(TMPDIR=str(temporary), TEMP=str(temporary)),
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            pass_fds=() if os.name == "nt" else (keep_open,),
            creationflags=_HIDDEN,
        )
    except OSError as error:
        raise InstallError(
            f"{command[0]} doesn't start ({error.strerror or error}): repair the installation of Shoal."
        ) from error
    said: list[str] = []
    with child:
        try:
            for line in child.stdout or ():
                if line.strip():
                    said = [*said[-_KEPT_LINES:], line.rstrip()]
        except BaseException:
            child.kill()
            raise
    return said, child.returncode


def surroundings(**more: str) -> dict[str, str]:
    """Returns environment variables without the user's settings of Python and uv, and with `more`."""
    environment = os.environ if _bundle() is None else environment_outside_app()
    own = ("PYTHON", "VIRTUAL_ENV", "QT_PLUGIN", "_PYI_", "UV_", "PIP_")
    kept = {name: value for name, value in environment.items() if not name.startswith(own)}
    return {**kept, "PYTHONUTF8": "1", **more}


def _bundle() -> Path | None:
    """Returns PyInstaller's folder in an installed app, else None."""
    folder = getattr(sys, "_MEIPASS", None)
    return Path(folder) if folder else None
