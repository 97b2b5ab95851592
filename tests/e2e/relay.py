"""A real relay process that can be killed and comes back where it was, and a way there that can be cut."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

from app.swarm.client.connection import connect
from app.swarm.client.outbox import Outbox, OutboxCounts
from app.swarm.wire.protocol import AskStats, Stats
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
        opened = json.loads(line)
        self.url, self.relay = opened["url"], opened["relay"]
        self.port = int(self.url.rsplit(":", 1)[1].partition("/")[0])

    def kill(self) -> None:
        """Also one that was killed before."""
        self.process.kill()
        if self.process.stdout is not None and not self.process.stdout.closed:
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


def counts(home: Path) -> OutboxCounts:
    """What became of all groups that a home ever made; its node must have ended."""
    outbox = Outbox(home / "outbox.sqlite")
    try:
        return outbox.counts()
    finally:
        outbox.close()
