"""A real relay process that can be killed and comes back where it was, and a way there that can be cut."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import threading
from pathlib import Path

from app.swarm.connection import connect
from app.swarm.outbox import Counts, Outbox
from app.swarm.protocol import AskStats, Stats
from tests.e2e.shoal import PATIENCE_S, ROOT, command


class Relay:
    """`./shoal relay --state`, always at one port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = 0
        self.open()

    def open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "relay.log").open("ab") as log:
            self.process = subprocess.Popen(
                command("relay", "--port", str(self.port), "--state", self._folder / "state"),
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (self._folder / "relay.log").read_text()
        self.url = json.loads(line)["url"]
        self.port = int(self.url.rsplit(":", 1)[1].partition("/")[0])

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stats(self) -> Stats:
        async def ask() -> Stats:
            async with asyncio.timeout(PATIENCE_S):
                connection = await connect(self.url)
                try:
                    await connection.receive()
                    await connection.send(AskStats())
                    while not isinstance(message := await connection.receive(), Stats):
                        pass
                    return message
                finally:
                    await connection.close()

        return asyncio.run(ask())


def counts(home: Path) -> Counts:
    """What became of all groups that a home ever made; its node must have ended."""
    outbox = Outbox(home / "outbox.sqlite")
    try:
        return outbox.counts()
    finally:
        outbox.close()


class Way:
    """A TCP proxy to a relay. While it is `cut`, bytes of both directions are kept back and connections stay
    open: nobody is told. `carried` counts all bytes that went through, the websocket's own included."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.carried = 0
        self._counting = threading.Lock()
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
        there = socket.create_connection(("127.0.0.1", self._to))
        for one, other in ((here, there), (there, here)):
            threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while content := one.recv(65536):
                self._flowing.wait()
                other.sendall(content)
                with self._counting:
                    self.carried += len(content)
        except OSError:
            pass
        for end in (one, other):
            end.close()
