"""One window per data folder: a second start raises the first one's window, passes on its link, and ends. An
installer asks the window to quit in the same way."""

from __future__ import annotations

import os
import re
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

import psutil
from PySide6.QtCore import QLockFile, QObject, QSysInfo, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from app.common import files
from engines.files import user_temp_folder

_PATIENCE_MS = 1500
_LONGEST = 4096
"""Maximum line length in bytes; longer links are refused."""
_LONGEST_PATH = 100
"""Maximum bytes of a socket's path: macOS allows 103."""
QUIT = "\x04"
"""Sent in place of a link; no link begins with it."""
SOCKET, LOCK = "window.socket", "window.lock"


class Single(QObject):
    """Makes sure that a data folder has one window. `taken` is True in the first process; in a second one
    `raise_other` shows the first. The lock of a killed process is taken over: Qt checks whether its owner still
    lives, which it can't for a folder that came from another computer. `listens` is False in a first process
    that others cannot reach."""

    asked = Signal(str)
    """Emitted when another start passes on its link, or "" to raise the window alone."""
    asked_to_end = Signal()

    def __init__(self, home: Path) -> None:
        super().__init__()
        home.mkdir(parents=True, exist_ok=True)
        self._home = home
        self._lock = QLockFile(str(home / LOCK))
        self._lock.setStaleLockTime(0)
        self.taken = self._lock.tryLock(100) or self._take_over()
        self._server: QLocalServer | None = None
        self._callers: list[QLocalSocket] = []
        self.listens = self.taken and any(map(self._listen_at, _names(home, listening=True)))

    def _take_over(self) -> bool:
        """Takes the lock of a process that isn't one of this computer, if nobody answers for it."""
        pid, host, _ = self._lock.getLockInfo()
        here = host == QSysInfo.machineHostName() and psutil.pid_exists(int(pid))
        if here or _say(self._home, b""):
            return False
        with suppress(OSError):
            (self._home / LOCK).unlink()
        return self._lock.tryLock(100)

    def raise_other(self, link: str = "") -> bool:
        """Asks the other window to show itself and passes on the link; returns whether the request was sent."""
        line = " ".join(link.split()).encode("utf-8", "replace").replace(QUIT.encode(), b"")
        return _say(self._home, line if len(line) < _LONGEST else b"")

    def release(self) -> None:
        if self._server is not None:
            self._server.close()
        if self.taken:
            self._lock.unlock()

    def _listen_at(self, name: str) -> bool:
        QLocalServer.removeServer(name)
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._called)
        return self._server.listen(name)

    def _called(self) -> None:
        assert self._server is not None
        while (caller := self._server.nextPendingConnection()) is not None:
            if not _same_user(caller):
                caller.abort()
                caller.deleteLater()
                continue
            self._callers.append(caller)
            caller.readyRead.connect(self._listen)
            caller.disconnected.connect(self._listen)
        self._listen()  # one may have spoken, and left, before anybody listened

    def _listen(self) -> None:
        """Reads one line from each connection."""
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
    """Asks the window of this data folder to save and quit. Returns whether the request was sent; False if
    there is no window."""
    return _say(home, QUIT.encode())


def _names(home: Path, listening: bool = False) -> Iterator[str]:
    """Yields socket names to listen at: in the data folder or, if the disk or the path's length forbids that,
    in this user's temporary folder. In a folder that others can write to, somebody else could listen first."""
    if os.name == "nt":
        if name := _pipe(home / SOCKET, listening):
            yield name
        return
    digest = sha256(str(home.resolve()).encode()).hexdigest()[:16]
    path = home.resolve() / SOCKET
    if len(os.fsencode(path)) <= _LONGEST_PATH and _own(path.parent):
        yield str(path)
    with suppress(OSError):
        if _own(corner := user_temp_folder()):
            yield str(corner / f"window-{digest}")


def _pipe(file: Path, listening: bool) -> str:
    """Returns the name of the window's pipe on Windows; empty if no window has one. Any program may listen at a
    name it knows, so each window draws a random one and keeps it in a private file in the data folder."""
    with suppress(OSError):
        if listening:
            name = f"shoal-{token_hex(16)}"
            files.write(file, name.encode(), private=True)
            return name
        with file.open("rb") as opened:
            said = opened.read(100).decode("ascii", "replace")
        return said if re.fullmatch("shoal-[0-9a-f]{32}", said) else ""
    return ""


def _own(folder: Path) -> bool:
    """Whether only this user can put a file there."""
    with suppress(OSError):
        found = folder.stat()
        return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return False


def _same_user(peer: QLocalSocket, listens: bool = False) -> bool:
    """Whether the process at the other end, which listened or called, runs as this user. Linux reports its user
    and Windows its number; on macOS the permissions of the folder ensure it."""
    if sys.platform == "win32":
        from app.desktop.windows import is_pipe_of_this_user

        return is_pipe_of_this_user(int(peer.socketDescriptor()), listens)
    if sys.platform != "linux":
        return True
    with suppress(OSError), socket.socket(fileno=os.dup(int(peer.socketDescriptor()))) as same:
        _, user, _ = struct.unpack("3i", same.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return bool(user == os.getuid())
    return False


def _say(home: Path, line: bytes) -> bool:
    for name in _names(home):
        peer = QLocalSocket()
        peer.connectToServer(name)
        if peer.waitForConnected(_PATIENCE_MS) and _same_user(peer, listens=True):
            peer.write(line + b"\n")
            return peer.waitForBytesWritten(_PATIENCE_MS)
    return False
