"""pytest-qt loads Qt as soon as it is there, and a system without Qt's libraries would then run no test at
all. So pyproject.toml keeps it from loading by itself, and it is loaded here where it can be."""

from __future__ import annotations

import os
import sys

from app.ui.libraries import missing

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

pytest_plugins = (
    [] if sys.platform == "linux" and missing({"QT_QPA_PLATFORM": "offscreen"}) else ["pytestqt.plugin"]
)
