"""Where Qt does not load, no file here is imported: tests/conftest.py skips them all."""

from tests.without_qt import NO_QT

if not NO_QT:
    from tests.ui.drawing import *  # noqa: F403
