"""A computer on which Qt does not load, and the tests that can't run there."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from app.install.launcher import system

QT = ("PySide6", "shiboken6", "pytestqt")


class Refused(importlib.abc.MetaPathFinder):
    """Fails every import of Qt as the loader does where a library of the system is missing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in QT:
            raise ImportError("libglib-2.0.so.0: cannot open shared object file: No such file or directory")
        return None


LACKING = system.lacking_for_window({"QT_QPA_PLATFORM": "offscreen"})
"""Libraries of the system without which Qt does not load here. SHOAL_TEST_NO_QT makes a computer that has them
test as one that does not; `.ci/run` does so once."""
if os.environ.get("SHOAL_TEST_NO_QT"):
    LACKING = system.QT
    sys.meta_path.insert(0, Refused())

NO_QT = system.without_window(LACKING)
"""Why nothing can be drawn here, "" where it can."""


def draws(file: Path, tests: Path) -> bool:
    """Whether this file of tests needs Qt to be imported at all: all of `tests/ui`, and every file that imports
    it, or a page of the window, before its first test."""
    if (tests / "ui") in file.parents:
        return True
    return bool(re.search(IMPORTS, file.read_text(encoding="utf-8"), re.MULTILINE))


IMPORTS = r"^(?:from|import) (?:PySide6|pytestqt|app\.ui\.(?!shell\.display|shell import display))"
"""A module-level import that loads Qt."""
