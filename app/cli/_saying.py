"""What commands say to a person at a terminal, in the language that is set in the settings of the data folder
that they work on. Programs that read a command's output get English, from which the window translates too."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from engines import remedy

HOUSE = ("app", "engines")
"""Packages whose exceptions carry a sentence for the user; all other exceptions are bugs."""

folder: str | os.PathLike[str] | None = None
"""The value of --home of the command that runs."""


def spoken(text: str) -> str:
    """Returns a line with the sentences of it that are known in the set language; "shoal run: " stays."""
    who, colon, said = text.partition(": ")
    if colon and who.partition(" ")[0] == "shoal":
        return f"{who}: {_translate()(said)}"
    return _translate()(text)


@cache
def _translate() -> Callable[[str], str]:
    try:
        from app.common.files import read_json
        from app.common.home import HomeError, home
    except ImportError:  # before the set-up
        return str
    try:
        language = (read_json(home(folder) / "window.json", dict[str, Any]) or {}).get("language")
    except HomeError:
        language = None
    if language in (None, "en"):
        return str
    try:
        from PySide6.QtCore import QCoreApplication

        from app.ui.language.texts import load_language, translated
    except ImportError:  # a library of the system is missing
        return str
    load_language(QCoreApplication.instance() or QCoreApplication([]), str(language))
    return translated


def no_window(why: str, here: bool) -> str:
    """Returns why `./shoal` opens no window, and what it does instead; `here`: in this terminal."""
    if here:
        return f"No window can be shown, because {why}; the view in this terminal opens."
    return f"No window can be shown, because {why}; Shoal learns without one."


def sentence(error: Exception) -> str:
    """Returns an exception as one sentence for the user: what, why, what to do."""
    if type(error).__module__.split(".")[0] in HOUSE:
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        if not error.filename:
            return f"The system refused: {error.strerror}. {_remedy(error)}"
        return f"The system refused {error.filename}: {error.strerror}. {_remedy(error)}"
    if isinstance(error, MemoryError):
        return (
            "This computer's memory is used up; close other programs or take a smaller model, and start again."
        )
    if isinstance(error, ModuleNotFoundError):
        if remedy.installed() and (error.name or "").split(".")[0] not in HOUSE:
            return (
                f"This needs {error.name}, which is not part of an installed app's engine: start it in a copy "
                "of Shoal's source with ./shoal, which installs everything."
            )
        how = remedy.reinstall_phrase(", which repairs it")
        return f"A part of the installation is missing ({error.name}); {how}."
    frame = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" at {Path(frame[0].filename).name}:{frame[0].lineno}" if frame else ""
    return (
        f"This is a fault in Shoal{where}: {type(error).__name__}: {' '.join(str(error).split())[:300]}; "
        "nothing saved is lost, and the same command with SHOAL_DEBUG=1 shows what to report."
    )


def _remedy(error: OSError) -> str:
    return {
        errno.ENOSPC: "Free some space on that disk and start again.",
        errno.EDQUOT: "Free some of your quota and start again.",
        errno.EACCES: "Check that the file is yours to read and write.",
        errno.EPERM: "Check that the file is yours to read and write.",
        errno.EROFS: "Choose another place with --home.",
        errno.ENOENT: "Check the path.",
        errno.EMFILE: "Close other programs and start again.",
    }.get(error.errno or 0, "Mend that and start again.")
