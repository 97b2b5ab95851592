"""Removes everything, and shows that it is at work meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

from PySide6.QtCore import QEventLoop, QObject, Qt, Signal
from PySide6.QtWidgets import QMessageBox, QProgressDialog, QWidget

from app.node.data import removal
from app.node.record.errors import NodeError
from app.ui.language.texts import tr, translated


class _Removing(QObject):
    done = Signal(object)


def remove_everything(parent: QWidget, home: Path) -> None:
    """Removes everything, and reports what could not be removed."""
    dialog = _dialog(parent, tr("Deleting everything …"))
    link, loop = _Removing(), QEventLoop()
    found: list[removal.Removed] = []

    def run() -> None:
        try:
            link.done.emit(removal.remove(home))
        except (NodeError, OSError) as error:
            link.done.emit(removal.Removed(failed=(translated(str(error)),)))

    link.done.connect(found.append, Qt.ConnectionType.QueuedConnection)
    link.done.connect(loop.quit, Qt.ConnectionType.QueuedConnection)
    threading.Thread(target=run, daemon=True).start()
    loop.exec()
    dialog.close()
    (done,) = found
    if not done.failed and not done.stays:
        return
    stays = (tr("Left there, not created by Shoal: {path}", path=path) for path in done.stays)
    QMessageBox.information(parent, tr("Some of it is left"), "\n".join([*done.failed, *stays]))


def _dialog(parent: QWidget, text: str) -> QProgressDialog:
    dialog = QProgressDialog(text, "", 0, 0, parent)
    dialog.setWindowTitle("Shoal")
    dialog.setWindowModality(Qt.WindowModality.WindowModal)
    dialog.setMinimumDuration(0)
    dialog.setMinimumWidth(460)
    dialog.setCancelButton(None)
    dialog.show()
    return dialog
