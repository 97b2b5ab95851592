"""The system's shared libraries, with a sentence where one is missing."""

from __future__ import annotations

import ctypes
from typing import Any

from app.desktop.facts.facts import SourceError


def shared(file: str) -> ctypes.CDLL:
    """Raises SourceError where it is missing."""
    try:
        return ctypes.CDLL(file)
    except OSError as error:
        raise SourceError(
            f"The system's library {file} is missing; install the package that holds it."
        ) from error


def windows(name: str) -> Any:
    """A library of Windows, called as Windows' own functions are. Raises SourceError anywhere else."""
    loader = getattr(ctypes, "WinDLL", None)
    if loader is None:
        raise SourceError(f"{name} is a library of Windows, and this is another system.")
    try:
        return loader(name)
    except OSError as error:
        raise SourceError(f"The system's library {name} can't be loaded.") from error
