"""Finds a Python that can run Shoal, and replaces this process by another.

Parses with Python 3.7 (see ./shoal). Every start of Shoal imports this, so imports needed only by a search are
local."""

from __future__ import annotations

import os
import sys

OLDEST, NEWEST = (3, 11), (3, 14)
"""The pinned packages have ready-made builds for these versions and those between."""

PREFERRED = ((3, 13), (3, 12), (3, 11), (3, 14))

PROBE = (
    "import struct, sys; print(sys.version_info[0], sys.version_info[1], struct.calcsize('P') * 8);"
    "print(getattr(sys, '_base_executable', None) or sys.executable)"
)


class SetupError(Exception):
    """Set-up cannot continue. The message is for the user: what, why, what to do."""


def suits(version: tuple[int, ...], bits: int) -> bool:
    """Whether Shoal runs on a Python of this (major, minor) version and pointer size."""
    return OLDEST <= tuple(version) <= NEWEST and bits == 64


def suits_here() -> bool:
    return suits(sys.version_info[:2], 64 if sys.maxsize > 2**32 else 32)


def no_wheels(system: str = "", machine: str = "", c_library: str = "") -> str:
    """Returns why no ready-made packages run on this computer, as a sentence; "" if they do. Known before
    anything is downloaded. The arguments stand for this computer's own values.

    >>> no_wheels("linux", "x86_64", "glibc 2.36"), no_wheels("darwin", "arm64", "")
    ('', '')
    """
    import platform

    system, machine = system or sys.platform, (machine or platform.machine()).lower()
    if machine not in ("x86_64", "amd64", "aarch64", "arm64"):
        return (
            f"Shoal's packages have no ready-made builds for this processor ({machine}); use a computer with "
            "64-bit Intel, AMD or Arm."
        )
    if system == "darwin" and machine != "arm64":
        return "PyTorch has no ready-made build for Macs with Intel processors; use one with Apple Silicon."
    known = processor().split() if machine in ("x86_64", "amd64") else []
    if known and not set(V2) <= set(known):
        lacking = ", ".join(name for name in V2 if name not in known)
        return (
            "This processor is too old for Shoal's packages: they need x86-64-v2, which Intel has made since "
            f"2009 and AMD since 2011, and it lacks {lacking}; use a newer computer."
        )
    if system != "linux":
        return ""
    name, _, version = (c_library or c_library_here()).partition(" ")
    if name != "glibc":
        return (
            "Shoal's packages have no ready-made builds for a Linux whose C library isn't glibc (Alpine has "
            "musl); use Debian, Ubuntu, Fedora or another system with glibc."
        )
    oldest = OLDEST_GLIBC["x86_64" if machine in ("x86_64", "amd64") else "aarch64"]
    if tuple(int(part) for part in version.split(".")[:2]) < oldest:
        return (
            f"Shoal's packages need glibc {oldest[0]}.{oldest[1]} or newer here, and this Linux has {version}; "
            "use a newer release of it."
        )
    return ""


OLDEST_GLIBC = {"x86_64": (2, 34), "aarch64": (2, 39)}
"""The oldest C library that the pinned wheels run with, by processor: Qt's ask for the newest one."""


def c_library_here() -> str:
    """Returns the C library and its version in the system's words, as "glibc 2.36"; "" for another library."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        return ""


V2 = ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3")
"""What x86-64-v2 adds, as Linux names it: NumPy's ready-made builds end with SIGILL without it."""


def processor(cpuinfo: str = "/proc/cpuinfo") -> str:
    """Returns this processor's features as Linux names them, with blanks between; empty on other systems."""
    import re

    try:
        with open(cpuinfo, errors="replace") as file:
            found = re.search(r"^(?:flags|Features)\s*:(.*)$", file.read(), re.MULTILINE)
    except OSError:
        return ""
    return found.group(1).strip() if found else ""


def base_python() -> str:
    """Returns the running interpreter or, in a virtual environment, the one that it was made from: an
    environment that may have to be replaced cannot build itself."""
    if sys.prefix != sys.base_prefix:
        return getattr(sys, "_base_executable", None) or sys.executable
    return sys.executable


def candidates() -> list[list[str]]:
    """Returns commands that may start a suitable Python, preferred ones first."""
    import shutil

    named = [f"python{major}.{minor}" for major, minor in PREFERRED] + ["python3", "python"]
    found = [[path] for path in map(shutil.which, named) if path]
    if sys.platform == "win32" and shutil.which("py"):
        found = [["py", f"-{major}.{minor}"] for major, minor in PREFERRED] + found
    return found


def probe(command: list[str]) -> tuple[tuple[int, int], int, str] | None:
    """Returns (version, bits, path) of a Python; None if the command starts none (pyenv's and the Windows
    store's placeholders exist and fail)."""
    import subprocess

    try:
        output = subprocess.check_output(
            [*command, "-I", "-c", PROBE], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30
        )
        numbers, path = output.decode().splitlines()
        major, minor, bits = map(int, numbers.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return (major, minor), bits, path


def find(commands: list[list[str]] | None = None) -> str:
    """Returns the path of the first suitable Python. Raises SetupError, which says what to install."""
    seen = set()
    for command in candidates() if commands is None else commands:
        answer = probe(command)
        if answer and suits(answer[0], answer[1]):
            return answer[2]
        if answer:
            seen.add("%d.%d" % answer[0] + ("" if answer[1] == 64 else " (32-bit)"))
    raise SetupError(
        f"Shoal needs a 64-bit Python between {OLDEST[0]}.{OLDEST[1]} and {NEWEST[0]}.{NEWEST[1]}, and this "
        f"computer has {', '.join(sorted(seen)) or 'none that starts'}; {advice()}, then start Shoal again."
    )


def advice() -> str:
    """Returns half a sentence on how to get a suitable Python here."""
    import shutil

    if sys.platform == "win32":
        return "install it with `winget install Python.Python.3.13`"
    if sys.platform == "darwin":
        return "install it with `brew install python@3.13`"
    for manager, command in (
        ("apt-get", "apt-get install python3 python3-venv"),
        ("dnf", "dnf install python3.12"),
        ("zypper", "zypper install python312"),
        ("pacman", "pacman -S python"),
    ):
        if shutil.which(manager):
            return f"install it with {by_root(command)}"
    return "install one"


def by_root(command: str) -> str:
    """Returns a command for its reader to run as root, in backquotes: by sudo where this computer has it."""
    import shutil

    if shutil.which("sudo"):
        return f"`sudo {command}`"
    return f"`{command}`" if os.geteuid() == 0 else f"`su -c '{command}'`"


def hand_over(arguments: list[str], python: str, environment: dict[str, str] | None = None) -> int:
    """Runs `python arguments` in place of this process. On Windows, which cannot replace a process, it waits
    and returns the exit code."""
    environment = dict(os.environ) if environment is None else environment
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(python, [python, *arguments], environment)
    import subprocess

    child = subprocess.Popen([python, *arguments], env=environment)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the child got it too, and decides
            continue
