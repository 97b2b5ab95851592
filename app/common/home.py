"""Where a node stores its data: the platform's folder for it, another one that its owner moved it to, or,
before both, SHOAL_HOME or --home.

Where it was moved to is recorded in a small file in the platform's place for settings, because the data folder
itself can be on a removable disk.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from app.common import files

POINTER = "data-folder.json"
UMASK = 0o077
"""The umask of every process that writes into the data folder: nobody else can read what is in it."""


class HomeError(Exception):
    """The data folder is not where it was moved to. The message says what to do."""


class MovedHome(NamedTuple):
    """`leaving` is the folder it came from, while that still has to be emptied."""

    to: Path
    leaving: Path | None = None


def home(chosen: str | os.PathLike[str] | None = None) -> Path:
    """The data folder of this computer's node, absolute; `chosen` is the value of --home. Creates nothing.
    Raises HomeError if it was moved to a disk that is missing."""
    if chosen or os.environ.get("SHOAL_HOME"):
        return resolve(chosen, sys.platform, os.environ, Path.home()).absolute()
    return usual()


def usual() -> Path:
    """Where it is without --home and SHOAL_HOME. Raises HomeError."""
    found = moved()
    if found is None:
        return platform_place()
    if not found.to.is_dir():
        raise HomeError(
            f"The data folder was moved to {found.to}, which is not there now: connect its disk, or name "
            f"another folder with --home. To begin anew in the usual place, delete {pointer()}."
        )
    return found.to


def platform_place() -> Path:
    """The platform's own, wherever it may have been moved to."""
    return resolve(None, sys.platform, {**os.environ, "SHOAL_HOME": ""}, Path.home()).absolute()


def moved() -> MovedHome | None:
    """Where it was moved to. None for an invalid file."""
    try:
        said = json.loads(pointer().read_text(encoding="utf-8"))
        to, leaving = Path(said["home"]), said.get("leaving")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not to.is_absolute():
        return None
    return MovedHome(to, Path(leaving) if isinstance(leaving, str) and Path(leaving).is_absolute() else None)


def remember(where: MovedHome | None) -> None:
    """Records it, as a whole or not at all; None deletes the record. Raises OSError."""
    path = pointer()
    if where is None:
        path.unlink(missing_ok=True)
        return
    content = {"home": str(where.to), **({"leaving": str(where.leaving)} if where.leaving else {})}
    files.write_json(path, content)


def pointer() -> Path:
    """The file with the record."""
    return settings_place(sys.platform, os.environ, Path.home()) / POINTER


def settings_place(platform: str, environment: Mapping[str, str], user: Path) -> Path:
    """The platform's place for settings, below the person's folder `user`."""
    if platform in ("win32", "darwin"):
        return resolve(None, platform, {**environment, "SHOAL_HOME": ""}, user)
    configuration = environment.get("XDG_CONFIG_HOME", "")
    return (Path(configuration) if configuration.startswith("/") else user / ".config") / "shoal"


def resolve(
    chosen: str | os.PathLike[str] | None, platform: str, environment: Mapping[str, str], user: Path
) -> Path:
    """`chosen` first, then SHOAL_HOME, then the platform's own place below the user's folder `user`. Empty
    variables count as unset, and a relative XDG_DATA_HOME is ignored (XDG base directory specification).
    """
    named = os.fspath(chosen) if chosen else environment.get("SHOAL_HOME", "")
    if named:
        return user / named[2:] if named.startswith("~/") else Path(named)
    if platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or user / "AppData" / "Local") / "Shoal"
    if platform == "darwin":
        return user / "Library" / "Application Support" / "Shoal"
    data = environment.get("XDG_DATA_HOME", "")
    return (Path(data) if data.startswith("/") else user / ".local" / "share") / "shoal"
