"""One window for one data folder: a second start raises the first one's window, hands it its link, and ends. An
installer asks it in the same way to end."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

_PATIENCE_MS = 1500
_LONGEST = 4096
"""Of a line, in bytes; a longer link is none."""
QUIT = "\x04"
"""In place of a link; none begins like this."""


class Single(QObject):
    """`taken` is True in the first process; in a second one `raise_other` shows the first. A lock left behind
    by a killed process is taken over: Qt looks whether its owner still lives."""

    asked = Signal(str)
    """By another start, with the link that it was given, or "" for the window alone."""
    asked_to_end = Signal()

    def __init__(self, home: Path) -> None:
        super().__init__()
        home.mkdir(parents=True, exist_ok=True)
        self._name = _name(home)
        self._lock = QLockFile(str(home / "window.lock"))
        self._lock.setStaleLockTime(0)
        self.taken = self._lock.tryLock(100)
        self._server: QLocalServer | None = None
        self._callers: list[QLocalSocket] = []
        if self.taken:
            QLocalServer.removeServer(self._name)
            self._server = QLocalServer(self)
            self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
            self._server.newConnection.connect(self._called)
            self._server.listen(self._name)

    def raise_other(self, link: str = "") -> bool:
        """Whether the other window heard it."""
        line = " ".join(link.split()).encode("utf-8", "replace").replace(QUIT.encode(), b"")
        return _say(self._name, line if len(line) < _LONGEST else b"")

    def release(self) -> None:
        if self._server is not None:
            self._server.close()
        if self.taken:
            self._lock.unlock()

    def _called(self) -> None:
        assert self._server is not None
        while (caller := self._server.nextPendingConnection()) is not None:
            self._callers.append(caller)
            caller.readyRead.connect(self._listen)
            caller.disconnected.connect(self._listen)
        self._listen()  # one may have spoken, and left, before anybody listened

    def _listen(self) -> None:
        """Hears every caller out; each says one line."""
        for caller in list(self._callers):
            spoken = caller.canReadLine()
            if spoken:
                line = bytes(caller.readLine(_LONGEST + 1).data())
            gone = caller.state() is not QLocalSocket.LocalSocketState.ConnectedState
            if spoken or gone or caller.bytesAvailable() > _LONGEST:
                self._callers.remove(caller)
                caller.readyRead.disconnect(self._listen)
                caller.disconnected.disconnect(self._listen)
                caller.close()
                caller.deleteLater()
            if spoken:
                said = line.decode("utf-8", "replace").strip()
                self.asked_to_end.emit() if said == QUIT else self.asked.emit(said)


def end_other(home: Path) -> bool:
    """Asks the window of this data folder to save and end. Whether it heard it; False where there is none."""
    return _say(_name(home), QUIT.encode())


def _name(home: Path) -> str:
    return "shoal-" + sha256(str(home.resolve()).encode()).hexdigest()[:16]


def _say(name: str, line: bytes) -> bool:
    socket = QLocalSocket()
    socket.connectToServer(name)
    if not socket.waitForConnected(_PATIENCE_MS):
        return False
    socket.write(line + b"\n")
    return socket.waitForBytesWritten(_PATIENCE_MS)
