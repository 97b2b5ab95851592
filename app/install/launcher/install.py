"""Running pip: what it prints becomes progress, and what goes wrong becomes one sentence."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from app.install.launcher.progress import ProgressLine
from app.install.launcher.pythons import SetupError

COLLECTING = re.compile(r"^Collecting (?P<name>[\w.-]+)(\[[^\]]*\])?(==(?P<version>[^\s,]+))?")
FROM_FILE = re.compile(r"^Processing \S*?(?P<name>[\w.]+)-(?P<version>[\w.+]+)-[^/\\]+\.whl")
PRESENT = re.compile(r"^Requirement already satisfied: (?P<name>[\w.-]+)")
DOWNLOADING = re.compile(r"^\s+Downloading (?P<file>\S+\.whl|\S+\.tar\.gz) \((?P<size>[^)]+)\)")
PLACING = re.compile(r"^Installing collected packages: (?P<names>.+)")
UNAVAILABLE = re.compile(
    r"^ERROR: (No matching distribution found for|Could not find a version .*requirement) (\S+)"
)

UNREACHABLE = re.compile(
    r"Retrying \(Retry|Max retries exceeded|Failed to establish a new connection|Temporary failure in name|"
    r"Name or service not known|getaddrinfo failed|nodename nor servname|Network is unreachable|"
    r"Connection refused|Connection reset|Read timed out|ReadTimeoutError|IncompleteRead|ProxyError"
)


def pins(file: Path) -> int:
    """How many packages a requirement file names for this system."""
    lines = [
        line for line in file.read_text(encoding="utf-8").splitlines() if line.strip() and line[0] not in "# "
    ]
    return sum(holds(line.partition(";")[2].rstrip("\\ ")) for line in lines)


def holds(marker: str) -> bool:
    """Whether a requirement's marker is true here: comparisons with a quoted text, joined by `and`, of
    which one may be several in brackets joined by `or`. No marker is true.

    >>> holds(""), holds(f' sys_platform == "{sys.platform}"'), holds(' python_version < "3.9"')
    (True, True, False)
    >>> holds("(platform_machine == 'z' or sys_platform != 'z') and python_full_version >= '3.9'")
    True
    """
    if not marker.strip():
        return True
    return all(any(_compares(one) for one in part.strip(" ()").split(" or ")) for part in marker.split(" and "))


def _compares(marker: str) -> bool:
    """One comparison."""
    found = re.fullmatch(r"""\s*(\w+)\s*(==|!=|<|>=)\s*["']([^"']*)["']\s*""", marker)
    if found is None:
        return False
    name, sign, wanted = found.groups()
    if name in ("python_version", "python_full_version"):
        here: object = tuple(sys.version_info[:2])
        there: object = tuple(map(int, wanted.split(".")))
    else:
        here, there = {"sys_platform": sys.platform, "platform_machine": platform.machine()}[name], wanted
    return {
        "==": here == there,
        "!=": here != there,
        "<": here < there,  # type: ignore[operator]
        ">=": here >= there,  # type: ignore[operator]
    }[sign]


def has_pip(python: str) -> bool:
    """Whether this interpreter can run pip."""
    done = subprocess.run(
        [python, "-I", "-c", "import pip"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return done.returncode == 0


def pip_of(python: Path, outer: str) -> list[str]:
    """The command that installs into the environment of `python`: its own pip, or that of the `outer`
    interpreter, from which the environment was made. Raises SetupError when neither has one."""
    if has_pip(str(python)):
        return [str(python), "-m", "pip"]
    if has_pip(outer):
        return [outer, "-m", "pip", "--python", str(python)]
    raise SetupError(
        f"The Python environment {python.parent.parent} has no pip, and neither has {outer}; delete that "
        "folder, install pip with the system's package manager and start Shoal again."
    )


def install(
    pip: list[str], arguments: list[str], progress: ProgressLine, log: Path, keep_open: int | None = None
) -> None:
    """Runs `pip install arguments`; see `run`. Raises SetupError when pip fails or cannot be started."""
    said, code = run(pip, ["install", *arguments], lambda line: show(line, progress), log, keep_open)
    if code:
        raise SetupError(explain(said, log))


def run(
    pip: list[str],
    arguments: list[str],
    tell: Callable[[str], None],
    log: Path,
    keep_open: int | None = None,
    variables: Mapping[str, str] | None = None,
) -> tuple[list[str], int]:
    """Runs a command of pip that installs or builds, and returns what it said and its exit code. Everything is
    kept in `log` too. Settings of pip (PIP_*, pip.conf) hold, except that packages never go into the user's own
    folder. `keep_open` is a descriptor the child keeps (see lock).

    Raises SetupError when pip cannot be started.
    """
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")
    }
    environment.update(PYTHONUNBUFFERED="1", PYTHONUTF8="1", PIP_USER="0", **(variables or {}))
    command = [
        *pip,
        arguments[0],
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
        *arguments[1:],
    ]
    try:
        with log.open("a", encoding="utf-8") as kept:
            kept.write(" ".join(command) + "\n")
            child = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                pass_fds=() if keep_open is None or os.name == "nt" else (keep_open,),
            )
            said = []
            with child:
                for line in child.stdout or ():
                    kept.write(line)
                    said.append(line.rstrip())
                    tell(said[-1])
    except OSError as error:
        raise SetupError(
            f"Shoal could not install its packages ({error.strerror or error}); free some space or make "
            f"{log.parent} writable, then start it again: it continues from here."
        ) from error
    return said, child.returncode


def show(line: str, progress: ProgressLine) -> None:
    if found := COLLECTING.match(line) or FROM_FILE.match(line):
        progress.package(f"{found['name']} {found['version'] or ''}".rstrip())
    elif found := PRESENT.match(line):
        progress.package(found["name"], present=True)
    elif (found := DOWNLOADING.match(line)) and "kB" not in found["size"]:
        progress.step(f"downloading {found['file'].split('-')[0]} ({found['size']})")
    elif found := PLACING.match(line):
        progress.step(f"putting {found['names'].count(',') + 1} packages in place")


def explain(said: list[str], log: Path) -> str:
    """pip's output as one sentence for the owner: what failed, why, what to do."""
    text = "\n".join(said)
    package = next((found[2] for line in said if (found := UNAVAILABLE.match(line))), "")
    wanted = package.rstrip(",").replace("==", " ") or "its packages"
    again = "start Shoal again: it continues from here"
    if "No space left on device" in text or "not enough space on the disk" in text:
        return (
            f"Shoal could not install {wanted} because the disk, or the folder for temporary files, is full; "
            f"free some space (up to 8 GB are needed) and {again}."
        )
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return (
            f"Shoal could not download {wanted} because the package server's certificate was not accepted; "
            f"behind a company's proxy set PIP_CERT to its certificate file, and {again}."
        )
    if UNREACHABLE.search(text):
        return (
            f"Shoal could not download {wanted} because the package server could not be reached; check the "
            f"network connection and {again}."
        )
    if package:
        here = (
            f"{platform.system()} {platform.machine()} with Python {sys.version_info[0]}.{sys.version_info[1]}"
        )
        return (
            f"Shoal found no ready-made build of {wanted} for {here}; use 64-bit Linux, Windows or a Mac with "
            f"Apple Silicon, check the network and pip's settings (PIP_*), and {again}."
        )
    errors = [line for line in said if line.lower().startswith("error:")]
    reason = (errors or said or ["nothing said"])[-1][:200]
    return f"Shoal could not install its packages, for pip stopped ({reason}); look into {log}, and {again}."
