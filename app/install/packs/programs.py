"""Finds an interpreter for a pack's environment, and runs the programs that make it, without the user's own
Python settings and those of a frozen app."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from app.common.files import read_json
from app.common.process.surroundings import outside_bundle
from app.install import InstallError, pack_disk_error
from app.install.launcher.pythons import advice
from app.install.packs import place
from app.install.packs.manifest import PackManifest
from app.install.packs.place import interpreter
from engines import remedy

_PROBE = """
import importlib.util, struct, sys
print("%d.%d" % sys.version_info[:2], struct.calcsize("P") * 8)
print(getattr(sys, "_base_executable", None) or sys.executable)
print("venv" if importlib.util.find_spec("venv") else "")
"""
_CHECK = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
_TOO_OLD = ("GLIBC_", "GLIBCXX_", "CXXABI_")
_KEPT_LINES = 200
_HIDDEN = getattr(subprocess, "CREATE_NO_WINDOW", 0)
"""Windows flag: a console program started by a window would otherwise open a console."""


class Interpreter(msgspec.Struct, frozen=True):
    """A Python outside any virtual environment; `version` as "3.11". Some cannot make environments."""

    path: Path
    version: str
    makes: bool = True


def find(manifest: PackManifest) -> Interpreter:
    """Returns an interpreter for a pack: the app's own, else the system's python3, else the manifest's
    preferred version. Raises InstallError with what to install."""
    if "/AppTranslocation/" in sys.executable:
        raise InstallError(
            "macOS runs Shoal from a passing place, because it was opened where it was downloaded: move Shoal "
            "into Applications, open it there, then try again."
        )
    seen: list[Interpreter] = []
    for path in _candidates(manifest.pythons):
        found = probe(path)
        if found is None:
            continue
        if found.version in manifest.pythons and found.makes:
            return found
        seen.append(found)
    fitting = [one for one in seen if one.version in manifest.pythons]
    if fitting:
        raise InstallError(
            f"{fitting[0].path} can't make virtual environments: install what it needs for that, on Debian "
            f"and Ubuntu with `sudo apt-get install python{fitting[0].version}-venv`, then try again."
        )
    wanted = " or ".join(manifest.pythons)
    there = ", ".join(sorted({one.version for one in seen})) or "none that starts"
    raise InstallError(
        f"{manifest.title} needs a 64-bit Python {wanted}, and this computer has {there}: {advice()}, then "
        "try again."
    )


def probe(path: Path | str) -> Interpreter | None:
    """Returns the interpreter at `path`; None unless it is a 64-bit Python that starts."""
    try:
        said = subprocess.check_output(
            [path, "-I", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            env=surroundings(),
            creationflags=_HIDDEN,
        )
        facts, base, makes = said.decode("utf-8", "surrogateescape").splitlines()[:3]
        version, bits = facts.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Interpreter(Path(base), version, bool(makes)) if bits == "64" else None


def make(python: Interpreter, environment: Path, work: Path, keep_open: int) -> None:
    """Creates an empty virtual environment. Raises InstallError."""
    command: list[str | Path] = [python.path, "-I", "-m", "venv", "--without-pip", environment]
    said, code = run(command, work, keep_open)
    if code:
        raise failed("The engine's environment could not be made", said, environment)


def check(environment: Path, modules: Sequence[str], work: Path, keep_open: int) -> None:
    """Imports the pack's modules in the environment's Python: the first one, which is the largest, in parallel
    with the others. This also compiles their source, so the engine's first start is quick. Raises
    InstallError."""
    python = interpreter(environment)

    def one(names: Sequence[str]) -> tuple[list[str], int]:
        return run([python, "-I", "-c", _CHECK, *names], work, keep_open)

    with ThreadPoolExecutor() as pool:
        found = list(pool.map(one, [part for part in (modules[:1], modules[1:]) if part]))
    for said, code in found:
        if not code:
            continue
        if any(sign in line for line in said for sign in _TOO_OLD):
            raise InstallError(
                f"This system is older than the engine needs ({said[-1][:200]}): update it, or use Shoal on "
                "a newer one."
            )
        raise InstallError(
            f"The engine is in place but doesn't load ({said[-1][:300] if said else 'it ended'}): repair it "
            f"with {remedy.command('pack repair')}, or install it again."
        )


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
    """Returns environment variables without the user's Python settings, and with `more`."""
    environment = os.environ if _bundle() is None else outside_bundle()
    own = ("PYTHON", "VIRTUAL_ENV", "QT_PLUGIN", "_PYI_")
    kept = {name: value for name, value in environment.items() if not name.startswith(own)}
    return {**kept, "PYTHONUTF8": "1", **more}


def _candidates(versions: Sequence[str]) -> list[str]:
    """Returns possible interpreters, each once."""
    found: list[str | None] = []
    if (bundle := _bundle()) is not None:
        found += [str(bundle / "python" / "python.exe"), str(bundle / "python" / "bin" / "python3")]
    names = ["python3", *(f"python{version}" for version in versions)]
    if sys.platform != "win32":
        found += [f"/usr/bin/{name}" for name in names]
    found += [shutil.which(name) for name in [*names, "python"]]
    return [path for path in dict.fromkeys(found) if path and os.path.isfile(path)]


def _bundle() -> Path | None:
    """Returns PyInstaller's folder in an installed app, else None."""
    folder = getattr(sys, "_MEIPASS", None)
    return Path(folder) if folder else None


def failed(what: str, said: list[str], place: Path) -> InstallError:
    text = "\n".join(said)
    if "No space left on device" in text or "not enough space on the disk" in text:
        return pack_disk_error(OSError(28, "No space left on device"), place.parent)
    errors = [line for line in said if line.lower().startswith("error")]
    last = (errors or said or ["nothing said"])[-1][:300]
    return InstallError(f"{what} ({last}). Nothing is lost: try again.")


# Whether an engine is as it was installed, and whether the one in use works: its Python starts, and what it
# promises can be imported. Writes nothing, so it can be asked at any time, also where packs cannot be written.


def engine_fault(root: Path) -> str:
    """Returns a sentence if the engine in use cannot compute; else empty. Takes some seconds."""
    used = place.current(root).current
    if not used or not place.interpreter(root / used).exists():
        return place.no_engine_sentence()
    made_of = read_json(root / f"{used}.json", PackManifest)
    if made_of is None:
        return "The engine is damaged: repair it, or install it again."
    with tempfile.TemporaryDirectory() as work, open(os.devnull, "rb") as nothing:
        try:
            check(root / used, made_of.imports, Path(work), nothing.fileno())
        except InstallError as error:
            return str(error)
    return ""


def damaged_file(environment: Path) -> str:
    """Returns "FILE is missing" or "FILE is damaged" for the first file of an environment's packages that
    differs from what was installed; empty if all are intact."""
    for record in sorted(environment.rglob("*.dist-info/RECORD")):
        with record.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                if len(row) != 3 or not row[1].startswith("sha256="):
                    continue
                path = record.parent.parent / row[0]
                try:
                    with path.open("rb") as content:
                        found = hashlib.file_digest(content, "sha256").digest()
                except OSError:
                    return f"{row[0]} is missing"
                if base64.urlsafe_b64encode(found).rstrip(b"=").decode() != row[1].removeprefix("sha256="):
                    return f"{row[0]} is damaged"
    return ""
