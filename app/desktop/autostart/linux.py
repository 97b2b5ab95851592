"""Starting at login on Linux: a desktop entry in the autostart folder (XDG autostart and desktop entry
specifications)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.desktop.autostart.autostart import COMMENT, NAME, AutostartError, InFile

FILE = "shoal.desktop"
_DELAY_S = 10
"""After the login, so that a tray is there (GNOME honours it)."""
_RESERVED = re.compile(r"[\s\"'\\><~|&;$*?#()`]")
_ESCAPES = {"s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def folder(environment: Mapping[str, str], user: Path) -> Path:
    """Where a person's autostart entries are. A relative XDG_CONFIG_HOME is ignored, as the standard says."""
    config = environment.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else user / ".config") / "autostart"


class LinuxAutostart(InFile):
    def __init__(self, place: Path | None = None) -> None:
        super().__init__(
            (place or folder(os.environ, Path.home())) / FILE,
            lambda content: read_entry(content.decode("utf-8", "replace")),
            lambda command: entry(command).encode(),
        )


def entry(command: Sequence[str]) -> str:
    """The desktop entry that starts `command`, which desktops leave out once its program is gone (TryExec).
    Raises AutostartError for one that an entry cannot hold."""
    return "\n".join(
        [
            "[Desktop Entry]",
            "Type=Application",
            f"Name={NAME}",
            f"Comment={COMMENT}",
            f"Exec={exec_line(command)}",
            f"TryExec={_string(command[0])}",
            "Terminal=false",
            "StartupNotify=false",
            "X-GNOME-Autostart-enabled=true",
            f"X-GNOME-Autostart-Delay={_DELAY_S}",
            "",
        ]
    )


def read_entry(text: str) -> list[str] | None:
    """The command of an entry, None where it is switched off (by GNOME's or KDE's settings)."""
    keys: dict[str, str] = {}
    group = ""
    for line in text.splitlines():
        if line.startswith("["):
            group = line.strip()
        elif group == "[Desktop Entry]" and "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            keys[key.strip()] = value.strip()
    if keys.get("Hidden") == "true" or keys.get("X-GNOME-Autostart-enabled") == "false":
        return None
    return read_exec(keys.get("Exec", "")) or None


def exec_line(command: Sequence[str]) -> str:
    """The value of Exec: every word quoted where it must be, "%" doubled, and then escaped as every string is.

    >>> print(exec_line(["/opt/my shoal/shoal", "--share", "50%", "a$b"]))
    "/opt/my shoal/shoal" --share 50%% "a\\\\$b"
    """
    if not command or not command[0].startswith("/") or "=" in command[0]:
        raise AutostartError("Starting at login needs the full path of the program, without an equals sign.")
    if any(character < " " for word in command for character in word):
        raise AutostartError("A command that starts at login can't contain control characters.")
    words = []
    for word in command:
        quoted = re.sub(r'(["`$\\])', r"\\\1", word)
        words.append(f'"{quoted}"' if not word or _RESERVED.search(word) else word)
    return " ".join(words).replace("%", "%%").replace("\\", "\\\\")


def _string(value: str) -> str:
    """A value that is no command line: only backslashes are escaped."""
    return value.replace("\\", "\\\\")


def read_exec(value: str) -> list[str]:
    """The words of an Exec value. Field codes, which stand for files to open, are left out.

    >>> read_exec(exec_line(["/opt/my shoal/shoal", "--share", "50%", "a$b", ""]))
    ['/opt/my shoal/shoal', '--share', '50%', 'a$b', '']
    """
    text = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), value)
    words = []
    for found in re.finditer(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)', text):
        if found[1] is not None:
            words.append(re.sub(r"\\(.)", r"\1", found[1]).replace("%%", "%"))
        elif not re.fullmatch(r"%[a-zA-Z]", found[2]):
            words.append(found[2].replace("%%", "%"))
    return words
