"""Reads whether the user asked the system for reduced motion."""

from __future__ import annotations

import subprocess
import sys

from app.desktop.facts import SourceError
from app.desktop.linux import Bus, Service

_PORTAL = Service(
    "org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop", "org.freedesktop.portal.Settings"
)
_STILL = (
    ("org.freedesktop.appearance", "reduced-motion", "1"),
    ("org.gnome.desktop.interface", "enable-animations", "False"),
    ("org.kde.kdeglobals.KDE", "AnimationDurationFactor", "0"),
)
"""(namespace, key, value that asks for reduced motion): the portal's own setting, GNOME's and KDE's."""
_CLIENT_AREA_ANIMATION = 0x1042
"""SPI_GETCLIENTAREAANIMATION of Windows: "Show animations"."""
_ANSWER_S = 2.0


def reduced_motion() -> bool:
    """Returns whether the user asked for reduced motion. False if the system cannot be asked. Blocks for a few
    seconds at most."""
    try:
        if sys.platform == "win32":
            return _windows()
        return _macos() if sys.platform == "darwin" else linux(Bus("SESSION"))
    except (OSError, subprocess.SubprocessError):
        return False


def linux(bus: Bus) -> bool:
    """Reads the setting through the desktop portal."""
    try:
        return any(_says(bus, namespace, key) == still for namespace, key, still in _STILL)
    finally:
        bus.close()


def _says(bus: Bus, namespace: str, key: str) -> str:
    """Returns the value of a setting, "" if the desktop does not have it."""
    try:
        answer = bus.ask(_PORTAL, "ReadOne", "ss", namespace, key)
    except SourceError:
        return ""
    value = answer[1] if isinstance(answer, tuple) and len(answer) == 2 else ""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _macos() -> bool:
    command = ["/usr/bin/defaults", "read", "com.apple.universalaccess", "reduceMotion"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S, check=False)
    return found.stdout.strip() == "1"


def _windows() -> bool:
    import ctypes

    shows = ctypes.c_int(1)
    asked = ctypes.windll.user32.SystemParametersInfoW(  # type: ignore[attr-defined,unused-ignore]
        _CLIENT_AREA_ANIMATION, 0, ctypes.byref(shows), 0
    )
    return bool(asked) and shows.value == 0
