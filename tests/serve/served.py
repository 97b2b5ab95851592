"""A real server with the real starter, as a program on this computer meets it."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.shoal import PATIENCE_S, ROOT, child, command

QUESTION = {"model": "starter", "messages": [{"role": "user", "content": "What is 12 + 7?"}]}


class Served:
    """`url` and `token` are those it told."""

    def __init__(self, process: subprocess.Popen[str], home: Path) -> None:
        self.process, self.home = process, home
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        self.url, self.token, self.models = first["url"], first["token"], first["models"]
        where = urlsplit(self.url)
        self.host, self.port = str(where.hostname), int(where.port or 0)

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Status and body. `body` is JSON unless it is bytes."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            usual = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            sent = usual | {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("POST" if content else "GET", f"/v1/{path}", content, sent)
            response = connection.getresponse()
            return response.status, response.read()

    def chat(self, **details: Any) -> dict[str, Any]:
        """The answer to a question, whole."""
        status, body = self.ask("chat/completions", QUESTION | details)
        assert status == 200, body
        found: dict[str, Any] = json.loads(body)
        return found

    def stream(self, **details: Any) -> list[dict[str, Any]]:
        """The events of a streamed answer."""
        status, body = self.ask("chat/completions", QUESTION | {"stream": True} | details)
        assert status == 200, body
        events = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line]
        assert events.pop() == b"[DONE]"
        return [json.loads(event) for event in events]

    def model(self) -> int:
        """The process with the model."""
        return child(self.process.pid, "--answers")


@contextlib.contextmanager
def served(home: Path, *options: str) -> Iterator[Served]:
    process = subprocess.Popen(
        command("serve", "--json", "--port", "0", "--home", home, *options),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        yield Served(process, home)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
