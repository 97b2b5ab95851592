"""Facts that another program writes down, in the place of what this computer says about itself.

For tests, and for whoever knows better than the system when a machine is free: `run --rules --facts FILE`,
with one JSON object in FILE whose keys are the fields of app.desktop.facts.Facts, as {"idle_s": 600, "absent":
["on_battery"]}. What is missing in it is unknown, and so is everything while the file cannot be read; unknown
counts as in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.desktop.facts import Facts

_LONGEST = 65_536


class FactsFile:
    """Read anew every time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def start(self) -> None:
        pass

    def watch_apps(self, names: Iterable[str]) -> None:
        """Whoever writes the file knows what it is to be about."""

    def gather(self) -> Facts:
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(_LONGEST), type=Facts)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return Facts()

    def close(self) -> None:
        pass
