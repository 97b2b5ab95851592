"""A port of a relay whose line can be cut, in both directions."""

from __future__ import annotations

import socket
import threading


class Proxy:
    """A proxy to a relay's port. While it is `cut`, bytes of both directions are kept back and connections stay
    open: no one is told."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._flowing = threading.Event()
        self._flowing.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._listener.getsockname()[1]}/v1/ws"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._flowing.clear()

    def heal(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        self._listener.close()
        self.heal()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(here,), daemon=True).start()

    def _join(self, here: socket.socket) -> None:
        self._flowing.wait()
        try:
            there = socket.create_connection(("127.0.0.1", self._to))
        except OSError:  # no one is there now
            here.close()
            return
        for one, other in ((here, there), (there, here)):
            threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while content := one.recv(65536):
                self._flowing.wait()
                other.sendall(content)
        except OSError:
            pass
        for end in (one, other):
            end.close()
