"""Finds the data folder of this computer's node: --home or SHOAL_HOME first, then the folder the user moved it
to, then the platform's default.

The new location after a move is recorded in a small file in the platform's settings folder, because the data
folder itself can be on a removable disk."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from app.common import files

POINTER_FILE = "data-folder.json"
UMASK = 0o077
"""Umask of every process that writes into the data folder: other users can read nothing in it."""


class HomeError(Exception):
    """The data folder was moved to a place that does not exist now. The message says what to do."""


class MovedHome(NamedTuple):
    """The location the data folder was moved to. `leaving` is the old folder while it still has to be
    emptied."""

    to: Path
    leaving: Path | None = None


def home(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Returns the absolute path of the data folder; `chosen` is the value of --home. Creates nothing. Raises
    HomeError if it was moved to a disk that is missing."""
    if chosen or os.environ.get("SHOAL_HOME"):
        return resolve(chosen, sys.platform, os.environ, Path.home()).absolute()
    return default_home()


def default_home() -> Path:
    """Returns the data folder without --home and SHOAL_HOME: where it was moved, else the platform's default.
    Raises HomeError if it was moved to a disk that is missing."""
    found = moved()
    if found is None:
        return platform_place()
    if not found.to.is_dir():
        raise HomeError(
            f"The data folder was moved to {found.to}, which is not there now: connect its disk, or name "
            f"another folder with --home. To begin anew in the usual place, delete {move_record()}."
        )
    return found.to


def platform_place() -> Path:
    """Returns the platform's default data folder, ignoring SHOAL_HOME and any move."""
    return resolve(None, sys.platform, {**os.environ, "SHOAL_HOME": ""}, Path.home()).absolute()


def moved() -> MovedHome | None:
    """Reads where the data folder was moved to. None if it was not, or if the record is invalid."""
    try:
        said = json.loads(move_record().read_text(encoding="utf-8"))
        to, leaving = Path(said["home"]), said.get("leaving")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not to.is_absolute():
        return None
    return MovedHome(to, Path(leaving) if isinstance(leaving, str) and Path(leaving).is_absolute() else None)


def remember_folder(where: MovedHome | None) -> None:
    """Writes the record of a move in one step; None deletes it. Raises OSError."""
    path = move_record()
    if where is None:
        path.unlink(missing_ok=True)
        return
    content = {"home": str(where.to), **({"leaving": str(where.leaving)} if where.leaving else {})}
    files.write_json(path, content)


def move_record() -> Path:
    """Returns the path of the file that records a move."""
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
