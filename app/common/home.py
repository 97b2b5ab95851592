"""Finds the data folder of this computer's node: --home or SHOAL_HOME first, then the one the user chose, then
the platform's default.

The user's choice is recorded in a small file in the platform's settings folder, because the data folder itself
can be on a removable disk."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from app.common import files

POINTER_FILE = "data-folder.json"
UMASK = 0o077
"""Umask of every process that writes into the data folder: other users can read nothing in it."""


class HomeError(Exception):
    """The chosen data folder does not exist now. The message says what to do."""


def home(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Returns the absolute path of the data folder; `chosen` is the value of --home. Creates nothing. Raises
    HomeError if it is on a disk that is missing."""
    if chosen or os.environ.get("SHOAL_HOME"):
        return resolve(chosen, sys.platform, os.environ, Path.home()).absolute()
    return default_home()


def default_home() -> Path:
    """Returns the data folder without --home and SHOAL_HOME: the chosen one, else the platform's default.
    Raises HomeError if it is on a disk that is missing."""
    found = chosen_folder()
    if found is None:
        return platform_place()
    if not found.is_dir():
        raise HomeError(
            f"The data folder is {found}, which isn't there now: connect its disk, or name another folder with "
            f"--home. To begin anew in the usual place, delete {choice_file()}."
        )
    return found


def platform_place() -> Path:
    """Returns the platform's default data folder, ignoring SHOAL_HOME and any choice."""
    return resolve(None, sys.platform, {**os.environ, "SHOAL_HOME": ""}, Path.home()).absolute()


def chosen_folder() -> Path | None:
    """Reads which data folder the user chose. None if there is no choice, or if its record is invalid."""
    try:
        chosen = Path(json.loads(choice_file().read_text(encoding="utf-8"))["home"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return chosen if chosen.is_absolute() else None


def remember_folder(chosen: Path | None) -> None:
    """Records the user's choice in one step; None deletes it. Raises OSError."""
    if chosen is None:
        choice_file().unlink(missing_ok=True)
    else:
        files.write_json(choice_file(), {"home": str(chosen)})


def choice_file() -> Path:
    """Returns the path of the file that records the user's choice."""
    return settings_place(sys.platform, os.environ, Path.home()) / POINTER_FILE


def settings_place(platform: str, environment: Mapping[str, str], user: Path) -> Path:
    """Returns the platform's settings folder for Shoal; `user` is the user's home folder."""
    if platform in ("win32", "darwin"):
        return resolve(None, platform, {**environment, "SHOAL_HOME": ""}, user)
    configuration = environment.get("XDG_CONFIG_HOME", "")
    return (Path(configuration) if configuration.startswith("/") else user / ".config") / "shoal"


def resolve(
    chosen: str | os.PathLike[str] | None, platform: str, environment: Mapping[str, str], user: Path
) -> Path:
    """Returns `chosen` if given, else SHOAL_HOME, else the platform's default below the home folder `user`.
    Empty variables count as unset, and a relative XDG_DATA_HOME is ignored (XDG base directory
    specification)."""
    named = os.fspath(chosen) if chosen else environment.get("SHOAL_HOME", "")
    if named:
        return user / named[2:] if named.startswith("~/") else Path(named)
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or user / "AppData" / "Local") / "Shoal"
    if platform == "darwin":
        return user / "Library" / "Application Support" / "Shoal"
    data = environment.get("XDG_DATA_HOME", "")
    return (Path(data) if data.startswith("/") else user / ".local" / "share") / "shoal"
