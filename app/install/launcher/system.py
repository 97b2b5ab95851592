"""Libraries that come with the system and not with pip: found by loading them, installed by the system's
package manager if it needs no password, otherwise named in the exact command to run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from app.install.launcher.install import say
from app.install.launcher.pythons import SetupError, by_root


class SystemLibrary(NamedTuple):
    """A shared library of a Linux system: the loader's name, what needs it, and its package."""

    file: str
    needed_by: str
    packages: Mapping[str, str]


LIBRARIES: tuple[SystemLibrary, ...] = (
    SystemLibrary(
        "libstdc++.so.6",
        "PyTorch",
        {
            "apt-get": "libstdc++6",
            "dnf": "libstdc++",
            "yum": "libstdc++",
            "zypper": "libstdc++6",
            "pacman": "gcc-libs",
        },
    ),
)
"""Libraries that the wheels expect of every Linux and do not contain (they contain OpenMP, BLAS and image
codecs)."""


def _for_window(file: str, apt: str, dnf: str, pacman: str, zypper: str = "") -> SystemLibrary:
    packages = {"apt-get": apt, "dnf": dnf, "yum": dnf, "pacman": pacman, "zypper": zypper or apt}
    return SystemLibrary(file, "the window", packages)


QT = (
    _for_window("libEGL.so.1", "libegl1", "libglvnd-egl", "libglvnd", "libEGL1"),
    _for_window("libGL.so.1", "libgl1", "libglvnd-glx", "libglvnd", "libGL1"),
    _for_window("libxkbcommon.so.0", "libxkbcommon0", "libxkbcommon", "libxkbcommon", "libxkbcommon0"),
    _for_window("libfontconfig.so.1", "libfontconfig1", "fontconfig", "fontconfig", "fontconfig"),
    _for_window("libdbus-1.so.3", "libdbus-1-3", "dbus-libs", "dbus", "libdbus-1-3"),
    _for_window("libglib-2.0.so.0", "libglib2.0-0", "glib2", "glib2", "libglib-2_0-0"),
)
"""Libraries that Qt's wheel expects of a Linux system. Only the window needs them: a node, a relay and the
benchmarks load no Qt."""
X11 = (
    _for_window("libxcb-cursor.so.0", "libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    _for_window("libxcb-icccm.so.4", "libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    _for_window("libxcb-keysyms.so.1", "libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    _for_window("libxcb-shape.so.0", "libxcb-shape0", "libxcb", "libxcb"),
    _for_window("libxcb-xkb.so.1", "libxcb-xkb1", "libxcb", "libxcb"),
    _for_window("libxkbcommon-x11.so.0", "libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
)
WAYLAND = (
    _for_window("libwayland-client.so.0", "libwayland-client0", "libwayland-client", "wayland"),
    _for_window("libwayland-cursor.so.0", "libwayland-cursor0", "libwayland-cursor", "wayland"),
)


def window_libraries(environment: Mapping[str, str]) -> tuple[SystemLibrary, ...]:
    """Returns the system libraries that the window needs in a session with these environment variables."""
    if environment.get("QT_QPA_PLATFORM", "").startswith(("offscreen", "minimal")):
        return QT
    if environment.get("WAYLAND_DISPLAY") and not environment.get("DISPLAY"):
        return (*QT, *WAYLAND)
    return (*QT, *X11)


SCREEN_SAVER = SystemLibrary(
    "libXss.so.1",
    "telling when you're away from the computer",
    {
        "apt-get": "libxss1",
        "dnf": "libXScrnSaver",
        "yum": "libXScrnSaver",
        "zypper": "libXss1",
        "pacman": "libxss",
    },
)
"""Needed to read the idle time of an X11 session; without it the time is unknown, which counts as in use."""

MANAGERS: dict[str, list[str]] = {
    "apt-get": ["apt-get", "install", "--yes", "--no-install-recommends"],
    "dnf": ["dnf", "install", "--assumeyes"],
    "yum": ["yum", "install", "--assumeyes"],
    "zypper": ["zypper", "--non-interactive", "install"],
    "pacman": ["pacman", "--sync", "--needed", "--noconfirm"],
}


def has_nvidia_card() -> bool:
    """Whether NVIDIA's driver is active, also in Windows' Linux."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/usr/lib/wsl/lib/libcuda.so.1")


def loads(file: str) -> bool:
    """Whether the system's loader finds this library."""
    try:
        ctypes.CDLL(file)
    except OSError:
        return False
    return True


def provide_libraries(
    libraries: Sequence[SystemLibrary] = LIBRARIES,
    present: Callable[[str], bool] = loads,
    platform: str = sys.platform,
) -> None:
    """Installs missing `libraries` on Linux. Raises SetupError with the command to run if some stay missing."""
    missing = [library for library in libraries if not present(library.file)] if platform == "linux" else []
    if not missing:
        return
    files, users = (
        ", ".join(sorted({(one.file, one.needed_by)[place] for one in missing})) for place in (0, 1)
    )
    what = f"{files} (needed by {users})"
    tool = manager()
    packages = sorted({one.packages[tool] for one in missing if tool in one.packages})
    if not tool or not packages:
        raise SetupError(
            f"This system lacks {what}, and Shoal does not know its package manager; install the package that "
            "holds it and start Shoal again."
        )
    install(packages, what)
    still = [library.file for library in missing if not present(library.file)]
    if still:
        raise SetupError(
            f"This system lacks {', '.join(still)} even after installing {', '.join(packages)}; install the "
            "package that holds it and start Shoal again."
        )


def lacking_for_window(
    environment: Mapping[str, str], present: Callable[[str], bool] = loads, platform: str = sys.platform
) -> tuple[SystemLibrary, ...]:
    """Returns the libraries that the window needs in a session with these variables and this system lacks."""
    needed = window_libraries(environment) if platform == "linux" else ()
    return tuple(library for library in needed if not present(library.file))


def provide_window(
    environment: Mapping[str, str], present: Callable[[str], bool] = loads, platform: str = sys.platform
) -> tuple[SystemLibrary, ...]:
    """Installs what the window needs of a Linux system and, on an X display, what tells when its owner is away,
    if that needs no password. Returns what the window still lacks: Shoal learns without it too."""
    wanted = list(lacking_for_window(environment, present, platform))
    if platform == "linux" and environment.get("DISPLAY") and not present(SCREEN_SAVER.file):
        wanted.append(SCREEN_SAVER)
    if wanted and privilege() is not None:
        with contextlib.suppress(SetupError):
            provide_libraries(wanted, present, platform)
    return lacking_for_window(environment, present, platform)


def installing(libraries: Sequence[SystemLibrary]) -> str:
    """Returns the command that installs these libraries here; their names if the package manager is unknown."""
    tool = manager()
    if not tool:
        return ", ".join(sorted({library.file for library in libraries}))
    packages = sorted({library.packages[tool] for library in libraries})
    return by_root(" ".join([*MANAGERS[tool], *packages]))


def without_window(lacking: Sequence[SystemLibrary]) -> str:
    """Returns the sentence for a computer that lacks these libraries of the window, "" for none.

    >>> without_window([])
    ''
    """
    return (
        f"The window needs {installing(lacking)}; without it Shoal learns in this terminal." if lacking else ""
    )


def manager() -> str:
    """Returns the name of the system's package manager, empty for an unknown one."""
    return next((name for name in MANAGERS if shutil.which(name)), "")


def privilege() -> list[str] | None:
    """Returns the prefix for a command that needs root: empty as root, sudo if it asks for no password, else
    None."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and _run(["sudo", "-n", "true"]) == 0:
        return ["sudo", "-n"]
    return None


def install(packages: Sequence[str], what: str) -> None:
    """Installs system packages and prints which. Raises SetupError, with the command to run by hand, without
    administrator rights or if the installation fails."""
    tool = manager()
    command = [*MANAGERS[tool], *packages]
    rights = privilege()
    by_hand = by_root(" ".join(command))
    if rights is None:
        raise SetupError(
            f"This system lacks {what}, and installing it needs its administrator; run {by_hand} and start "
            "Shoal again."
        )
    say(f"Installing {' '.join(packages)} with {tool}: this system lacks {what}.")
    silent = [*rights, "env", "DEBIAN_FRONTEND=noninteractive"]
    if _run([*silent, *command]) != 0:
        # A fresh Debian or Ubuntu has no package lists yet.
        if tool == "apt-get" and _run([*silent, "apt-get", "update"]) == 0 and _run([*silent, *command]) == 0:
            return
        raise SetupError(f"Installing {what} failed; run {by_hand}, see what it says, and start Shoal again.")


def _run(command: Sequence[str]) -> int:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


def no_compiler() -> str:
    """Returns a sentence on what to install if there is no C++ compiler; else empty."""
    if sys.platform == "win32":
        where = Path(os.environ.get("PROGRAMFILES(X86)", "C:/Program Files (x86)"))
        there = (where / "Microsoft Visual Studio" / "Installer" / "vswhere.exe").exists()
        how = "`winget install Microsoft.VisualStudio.2022.BuildTools`"
    elif sys.platform == "darwin":  # its c++ is a shim that opens a dialogue where there is none
        there = subprocess.run(["/usr/bin/xcode-select", "-p"], capture_output=True).returncode == 0
        how = "`xcode-select --install`"
    else:
        there = any(shutil.which(name) for name in (os.environ.get("CXX") or "c++", "g++", "clang++"))
        command = {
            "apt-get": "apt-get install build-essential",
            "dnf": "dnf install gcc-c++",
            "yum": "yum install gcc-c++",
            "zypper": "zypper install gcc-c++",
            "pacman": "pacman -S base-devel",
        }.get(manager())
        how = by_root(command) if command else "your system's package manager"
    if there:
        return ""
    return (
        "llama.cpp is not built, because this computer has no C++ compiler: install one with "
        f"{how} and run ./shoal setup --engine llamacpp."
    )
