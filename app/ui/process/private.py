"""The six words of a private swarm, as the window keeps them: in a file that only its owner may read."""

from __future__ import annotations

import contextlib
from pathlib import Path

from app.common import files

FILE = "private-swarm.secret"
_LONGEST = 200


class PrivateWords:
    """`text` is empty where there are none."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self.text = ""
        with contextlib.suppress(OSError, UnicodeDecodeError), self._path.open(encoding="ascii") as file:
            self.text = file.read(_LONGEST).strip()

    def put(self, words: str) -> None:
        """Keeps these instead; "" forgets them. Raises OSError."""
        if words:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            files.write(self._path, words.encode() + b"\n", private=True)
        else:
            self._path.unlink(missing_ok=True)
        self.text = words
