"""Moves the data folder or removes everything: stops learning, shows the progress, and ends the window, which
opens again after a move."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEventLoop, QObject, Qt, Signal
from PySide6.QtWidgets import QMessageBox, QProgressDialog, QWidget

from app.node.data import moving, removal
from app.node.record.errors import NodeError
from app.ui.language.texts import tr

_PARTS = 1000


class MoveCancelledError(NodeError):
    """The person cancelled the move; nothing has changed."""


class _FolderWork(QObject):
    told = Signal(int)
    done = Signal(object)


def _aside(work: Callable[[Callable[[int, int], None]], object], dialog: QProgressDialog) -> object:
    """Runs `work` in a thread while showing the progress. Returns its result, or the exception it raised."""
    link, loop = _FolderWork(), QEventLoop()
    found: list[object] = []
    stop = threading.Event()
    last = -1

    def tell(done: int, total: int) -> None:
        nonlocal last
        if stop.is_set():
            raise MoveCancelledError("Stopped: everything is where it was.")
        part = _PARTS * done // max(1, total)
        if part != last:
            last = part
            link.told.emit(part)

    def run() -> None:
        try:
            link.done.emit(work(tell))
        except (NodeError, OSError) as error:
            link.done.emit(error)

    link.told.connect(dialog.setValue, Qt.ConnectionType.QueuedConnection)
    link.done.connect(found.append, Qt.ConnectionType.QueuedConnection)
    link.done.connect(loop.quit, Qt.ConnectionType.QueuedConnection)
    dialog.canceled.connect(stop.set)
    threading.Thread(target=run, daemon=True).start()
    loop.exec()
    return found[0]


def move(parent: QWidget, home: Path, to: Path) -> bool:
    """Moves the data folder; no node may run. Returns False if that failed, after showing why, or was
    cancelled."""
    dialog = _dialog(parent, tr("Copying to {folder} and checking …", folder=to))
    dialog.setCancelButtonText(tr("Stop"))
    result = _aside(lambda tell: moving.move(to, tell, current=home), dialog)
    dialog.close()
    if isinstance(result, Exception):
        if not isinstance(result, MoveCancelledError):
            QMessageBox.warning(parent, tr("The data folder wasn't moved"), str(result))
        return False
    return True


def remove_everything(parent: QWidget, home: Path) -> None:
    """Removes everything, and reports what could not be removed."""
    dialog = _dialog(parent, tr("Deleting everything …"))
    dialog.setCancelButton(None)
    dialog.setRange(0, 0)
    result = _aside(lambda _: removal.remove(home), dialog)
    dialog.close()
    done = result if isinstance(result, removal.Removed) else None
    failed, stays = (done.failed, done.stays) if done is not None else ((str(result),), ())
    if not failed and not stays:
        return
    said = "\n".join([*failed, *(tr("Left there, not created by Shoal: {path}", path=path) for path in stays)])
    QMessageBox.information(parent, tr("Some of it is left"), said)


def _dialog(parent: QWidget, text: str) -> QProgressDialog:
    dialog = QProgressDialog(text, "", 0, _PARTS, parent)
    dialog.setWindowTitle("Shoal")
    dialog.setWindowModality(Qt.WindowModality.WindowModal)
    dialog.setMinimumDuration(0)
    dialog.setMinimumWidth(460)
    dialog.setAutoClose(False)
    dialog.setAutoReset(False)
    dialog.show()
    return dialog
