"""The programs that make a pack's environment: an interpreter for it, and uv or pip to fill it. All of them run
without the network, without anybody's own settings, and without what a frozen app sets for itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app.launcher.pythons import advice
from app.packs.errors import PackError, disk
from app.packs.manifest import Manifest, Wheel
from app.packs.place import interpreter

_PROBE = """
import glob, importlib.util, os, struct, sys, sysconfig
venv, ensurepip = map(importlib.util.find_spec, ("venv", "ensurepip"))
folders = [sysconfig.get_config_var("WHEEL_PKG_DIR")]
folders += [os.path.join(os.path.dirname(ensurepip.origin), "_bundled")] if ensurepip else []
wheels = [path for folder in folders if folder for path in sorted(glob.glob(os.path.join(folder, "pip-*.whl")))]
print("%d.%d" % sys.version_info[:2], struct.calcsize("P") * 8)
print(getattr(sys, "_base_executable", None) or sys.executable)
print(wheels[-1] if venv and wheels else "")
"""
_PIP = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('pip', run_name='__main__')"
"""pip out of the file that the interpreter keeps for new environments: it is not unpacked into this one."""
_CHECK = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
_TOO_OLD = ("GLIBC_", "GLIBCXX_", "CXXABI_")
_KEPT_LINES = 200


class Interpreter(msgspec.Struct, frozen=True):
    """A Python outside any virtual environment; `version` as "3.11". `pip` is the wheel of pip that it makes
    environments with; empty where it cannot make any by itself."""

    path: Path
    version: str
    pip: str


def bundled_uv() -> Path | None:
    """uv, where the app brings it (packaging/frozen), or beside the interpreter that runs this."""
    name = "uv.exe" if os.name == "nt" else "uv"
    for folder in (_bundle(), Path(sys.executable).parent):
        if folder is not None and (folder / name).is_file():
            return folder / name
    return None


def find(manifest: Manifest, uv: Path | None) -> Interpreter:
    """The interpreter for a pack: the app's own where it brings one, else the system's python3, else the one
    that the manifest prefers. Raises PackError with what to install."""
    if "/AppTranslocation/" in sys.executable:
        raise PackError(
            "macOS runs Shoal from a passing place, because it was opened where it was downloaded: move Shoal "
            "into Applications, open it there, then try again."
        )
    seen: list[Interpreter] = []
    for path in _candidates(manifest.pythons):
        found = probe(path)
        if found is None:
            continue
        if found.version in manifest.pythons and (uv is not None or found.pip):
            return found
        seen.append(found)
    fitting = [one for one in seen if one.version in manifest.pythons]
    if fitting:
        raise PackError(
            f"{fitting[0].path} cannot make virtual environments: install what it needs for that, on Debian "
            "and "
            f"Ubuntu with `sudo apt-get install python{fitting[0].version}-venv`, then try again."
        )
    wanted = " or ".join(manifest.pythons)
    there = ", ".join(sorted({one.version for one in seen})) or "none that starts"
    raise PackError(
        f"{manifest.title} needs a 64-bit Python {wanted}, and this computer has {there}: {advice()}, then "
        "try again."
    )


def probe(path: Path | str) -> Interpreter | None:
    """None where it is no 64-bit Python that starts."""
    try:
        said = subprocess.check_output(
            [path, "-I", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
            env=surroundings(),
        )
        facts, base, pip = said.decode("utf-8", "surrogateescape").splitlines()[:3]
        version, bits = facts.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Interpreter(Path(base), version, pip) if bits == "64" else None


def make(python: Interpreter, uv: Path | None, environment: Path, work: Path, keep_open: int) -> None:
    """An empty virtual environment. Raises PackError."""
    if uv is not None:
        command: list[str | Path] = [
            uv,
            "venv",
            "--no-project",
            "--offline",
            "--no-python-downloads",
            "--python",
            python.path,
            environment,
        ]
    else:
        command = [python.path, "-I", "-m", "venv", "--without-pip", environment]
    said, code = run(command, work, keep_open)
    if code:
        raise _failed("The engine's environment could not be made", said, environment)


def fill(
    environment: Path,
    python: Interpreter,
    uv: Path | None,
    wheels: Sequence[Wheel],
    files: Path,
    work: Path,
    keep_open: int,
) -> None:
    """Installs exactly these files, checking their digests once more. Raises PackError."""
    wanted = work / "wanted.txt"
    lines = [f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in wheels]
    wanted.write_text("".join(lines), encoding="utf-8")
    offline: list[str | Path] = [
        "--no-index",
        "--no-deps",
        "--require-hashes",
        "--find-links",
        files,
        "-r",
        wanted,
    ]
    inside = interpreter(environment)
    if uv is not None:
        command: list[str | Path] = [uv, "pip", "install", "--offline", "--python", inside, *offline]
    else:
        options = [
            "--no-input",
            "--no-cache-dir",
            "--no-compile",
            "--no-warn-script-location",
            "--progress-bar",
            "off",
        ]
        pip: list[str | Path] = [inside, "-I", "-c", _PIP, python.pip]
        command = [*pip, "install", "--disable-pip-version-check", *options, *offline]
    said, code = run(command, work, keep_open)
    if code:
        raise _failed("The engine's packages could not be installed", said, environment)


def check(environment: Path, modules: Sequence[str], work: Path, keep_open: int) -> None:
    """Whether the environment's Python imports what the pack promises. Raises PackError."""
    said, code = run([interpreter(environment), "-I", "-c", _CHECK, *modules], work, keep_open)
    if code:
        if any(sign in line for line in said for sign in _TOO_OLD):
            raise PackError(
                f"This system is older than the engine needs ({said[-1][:200]}): update it, or use Shoal on "
                "a newer one."
            )
        raise PackError(
            f"The engine is in place but does not load ({said[-1][:300] if said else 'it ended'}): repair it "
            "with "
            "shoal pack repair, or install it anew."
        )


def run(command: Sequence[str | Path], work: Path, keep_open: int) -> tuple[list[str], int]:
    """What a program said last, and its exit code. It keeps `keep_open` (POSIX), so that whoever comes after a
    killed installation waits for it. Raises PackError where it does not start."""
    temporary = work / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    environment = surroundings(TMPDIR=str(temporary), TEMP=str(temporary), UV_CACHE_DIR=str(work / "cache"))
    try:
        child = subprocess.Popen(
            [str(word) for word in command],
            env=environment,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            pass_fds=() if os.name == "nt" else (keep_open,),
        )
    except OSError as error:
        raise PackError(
            f"{command[0]} does not start ({error.strerror or error}): repair the installation of Shoal."
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
    """The variables that such a program gets."""
    before = os.environ.get("LD_LIBRARY_PATH_ORIG")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON", "VIRTUAL_ENV", "QT_PLUGIN", "_PYI_"))
        and name not in ("LD_LIBRARY_PATH_ORIG", *(("LD_LIBRARY_PATH",) if _bundle() is not None else ()))
    }
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_USER": "0", "UV_NO_CONFIG": "1", "PYTHONUTF8": "1"}
    return {**kept, **({"LD_LIBRARY_PATH": before} if before else {}), **settings, **more}


class Beat:
    """Calls `tell` now and then while something else is waited for: looking takes a twentieth of the time."""

    def __init__(self, tell: Callable[[], None], every_s: float = 0.5) -> None:
        self._tell, self._every_s, self._end = tell, every_s, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        pause = self._every_s
        while not self._end.wait(pause):
            began = time.monotonic()
            self._tell()
            pause = max(self._every_s, 20 * (time.monotonic() - began))


def _candidates(versions: Sequence[str]) -> list[str]:
    """Interpreters that may be there, each once."""
    found: list[str | None] = []
    if (bundle := _bundle()) is not None:
        found += [str(bundle / "python" / "python.exe"), str(bundle / "python" / "bin" / "python3")]
    names = ["python3", *(f"python{version}" for version in versions)]
    if sys.platform != "win32":
        found += [f"/usr/bin/{name}" for name in names]
    found += [shutil.which(name) for name in [*names, "python"]]
    return [path for path in dict.fromkeys(found) if path and os.path.isfile(path)]


def _bundle() -> Path | None:
    """PyInstaller's folder, in an installed app."""
    folder = getattr(sys, "_MEIPASS", None)
    return Path(folder) if folder else None


def _failed(what: str, said: list[str], place: Path) -> PackError:
    text = "\n".join(said)
    if "No space left on device" in text or "not enough space on the disk" in text:
        return disk(OSError(28, "No space left on device"), place.parent)
    errors = [line for line in said if line.lower().startswith("error")]
    return PackError(
        f"{what} ({(errors or said or ['nothing said'])[-1][:300]}): try again; what has come is kept."
    )
