"""The libraries that Qt expects of a Linux system and its wheel does not bring: looked for before Qt is
loaded, because Qt itself ends the process when they are missing. No Qt is imported here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.install.launcher import system
from app.install.launcher.pythons import SetupError

_QT = "the window"


def _library(file: str, apt: str, dnf: str, pacman: str, zypper: str = "") -> system.SystemLibrary:
    packages = {"apt-get": apt, "dnf": dnf, "yum": dnf, "pacman": pacman, "zypper": zypper or apt}
    return system.SystemLibrary(file, _QT, packages)


EVERYWHERE = (
    _library("libEGL.so.1", "libegl1", "libglvnd-egl", "libglvnd", "libEGL1"),
    _library("libGL.so.1", "libgl1", "libglvnd-glx", "libglvnd", "libGL1"),
    _library("libxkbcommon.so.0", "libxkbcommon0", "libxkbcommon", "libxkbcommon", "libxkbcommon0"),
    _library("libfontconfig.so.1", "libfontconfig1", "fontconfig", "fontconfig", "fontconfig"),
    _library("libdbus-1.so.3", "libdbus-1-3", "dbus-libs", "dbus", "libdbus-1-3"),
    _library("libglib-2.0.so.0", "libglib2.0-0", "glib2", "glib2", "glib2"),
)
X11 = (
    _library("libxcb-cursor.so.0", "libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    _library("libxcb-icccm.so.4", "libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    _library("libxcb-keysyms.so.1", "libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    _library("libxcb-shape.so.0", "libxcb-shape0", "libxcb", "libxcb"),
    _library("libxcb-xkb.so.1", "libxcb-xkb1", "libxcb", "libxcb"),
    _library("libxkbcommon-x11.so.0", "libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
)
WAYLAND = (
    _library("libwayland-client.so.0", "libwayland-client0", "libwayland-client", "wayland"),
    _library("libwayland-cursor.so.0", "libwayland-cursor0", "libwayland-cursor", "wayland"),
)


def wanted(environment: Mapping[str, str]) -> tuple[system.SystemLibrary, ...]:
    """What this session needs."""
    if environment.get("QT_QPA_PLATFORM", "").startswith(("offscreen", "minimal")):
        return EVERYWHERE
    if environment.get("WAYLAND_DISPLAY") and not environment.get("DISPLAY"):
        return (*EVERYWHERE, *WAYLAND)
    return (*EVERYWHERE, *X11)


def missing(
    environment: Mapping[str, str], present: Callable[[str], bool] = system.loads
) -> tuple[system.SystemLibrary, ...]:
    """Those that are not there."""
    return tuple(library for library in wanted(environment) if not present(library.file))


def provide(
    environment: Mapping[str, str], platform: str, present: Callable[[str], bool] = system.loads
) -> str:
    """Installs what is missing where that needs no password. Returns a sentence when something that the window
    cannot do without still is, else ""."""
    lacking = missing(environment, present) if platform == "linux" else ()
    if not lacking:
        return ""
    useful = [] if present(system.SCREEN_SAVER.file) else [system.SCREEN_SAVER]
    try:
        system.provide_libraries([*lacking, *useful], present, platform)
    except SetupError as error:
        return str(error) if missing(environment, present) else ""
    return ""
