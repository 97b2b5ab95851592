"""Where a node keeps its data: the platform's folder for it, moved as a whole by SHOAL_HOME or --home."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def home(chosen: str | os.PathLike[str] | None = None) -> Path:
    """The data folder of this computer's node, absolute; `chosen` is what --home said. Nothing is created."""
    return resolve(chosen, sys.platform, os.environ, Path.home()).absolute()


def resolve(
    chosen: str | os.PathLike[str] | None, platform: str, environment: Mapping[str, str], user: Path
) -> Path:
    """The choice first, then SHOAL_HOME, then the platform's own place below the person's folder `user`.

    Empty variables count as unset, and a relative XDG_DATA_HOME is ignored (XDG base directory specification).
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
