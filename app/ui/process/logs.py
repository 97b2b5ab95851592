"""The log files: names, last lines, and the window's own. They are for people looking for a fault; no program
reads state from them."""

from __future__ import annotations

import logging
import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

LOGS = ("node.log", "trainer.log", "window.log", "relay.log")
WINDOW = "window.log"
PACK = "pack.log"
"""Log of downloading and building an installed app's engine; shown in the diagnostics alone."""
MAX_BYTES = 2**20
_HARMLESS = ("This plugin does not support propagateSizeHints()",)


def tail(path: Path, most: int) -> str:
    """Returns the last `most` bytes of a log, from the start of a line; empty if the log is missing."""
    try:
        with path.open("rb") as file:
            start = max(0, os.fstat(file.fileno()).st_size - most)
            file.seek(start)
            raw = file.read()
    except OSError:
        return ""
    if start:
        raw = raw.partition(b"\n")[2]
    return raw.decode("utf-8", "replace")


def keep_window_log(home: Path) -> None:
    """Writes Qt's messages and this process's errors to HOME/logs/window.log from now on; exceptions also go to
    standard error. If the disk refuses, only the log is lost."""
    try:
        (home / "logs").mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(
            home / "logs" / WINDOW, maxBytes=MAX_BYTES, backupCount=1, encoding="utf-8", delay=True
        )
    except OSError:
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.raiseExceptions = False
    log = logging.getLogger("shoal.window")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.handlers[:] = [handler]
    log.info("window opened, process %d", os.getpid())
    levels = {QtMsgType.QtInfoMsg: logging.INFO, QtMsgType.QtDebugMsg: logging.DEBUG}

    def from_qt(kind: QtMsgType, context: QMessageLogContext, said: str | None) -> None:
        if said and not any(words in said for words in _HARMLESS):
            log.log(levels.get(kind, logging.WARNING), "Qt: %s", said)

    qInstallMessageHandler(from_qt)
    before = sys.excepthook

    def went_wrong(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        log.error("unexpected", exc_info=(kind, error, trace))
        before(kind, error, trace)

    sys.excepthook = went_wrong


def close_window_log() -> None:
    """Closes the log, so that its folder can be moved."""
    for handler in logging.getLogger("shoal.window").handlers:
        handler.close()
    logging.getLogger("shoal.window").handlers.clear()
