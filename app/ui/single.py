"""One window for one data folder: a second start raises the first one's window and ends."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_PATIENCE_MS = 1500
_RAISE = b"raise\n"


class Single(QObject):
    """`taken` is True in the first process; in a second one `raise_other` shows the first. A lock left behind
    by a killed process is taken over: Qt looks whether its owner still lives."""

    asked = Signal()

    def __init__(self, home: Path) -> None:
        super().__init__()
        home.mkdir(parents=True, exist_ok=True)
        self._name = "shoal-" + sha256(str(home.resolve()).encode()).hexdigest()[:16]
        self._lock = QLockFile(str(home / "window.lock"))
        self._lock.setStaleLockTime(0)
        self.taken = self._lock.tryLock(100)
        self._server: QLocalServer | None = None
        if self.taken:
            QLocalServer.removeServer(self._name)
            self._server = QLocalServer(self)
            self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
            self._server.newConnection.connect(self._called)
            self._server.listen(self._name)

    def raise_other(self) -> bool:
        """Whether the other window heard it."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(_PATIENCE_MS):
            return False
        socket.write(_RAISE)
        return socket.waitForBytesWritten(_PATIENCE_MS)

    def release(self) -> None:
        if self._server is not None:
            self._server.close()
        if self.taken:
            self._lock.unlock()

    def _called(self) -> None:
        assert self._server is not None
        while (caller := self._server.nextPendingConnection()) is not None:
            caller.readyRead.connect(self.asked)
            caller.disconnected.connect(caller.deleteLater)
