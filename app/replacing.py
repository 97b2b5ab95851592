"""One way of giving a new file an old one's name. Used by every room that replaces small files as a whole."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

PATIENCE_S = 1.0
_PAUSE_S = 0.02


def replace(fresh: Path, path: Path, platform: str = sys.platform) -> None:
    """In one step. Windows refuses it while another process reads the old file, which takes an instant: so it
    is tried again for a moment there. Raises OSError."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            os.replace(fresh, path)
            return
        except PermissionError:
            if platform != "win32" or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_S)
