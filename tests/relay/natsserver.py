"""Real nats-server processes for tests, on free ports of this computer's loopback."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from unittest import SkipTest

PATIENCE = 240.0


def find_nats_server() -> str | None:
    """The path of nats-server: named by NATS_SERVER, beside this Python, or on PATH."""
    beside = Path(sys.executable).parent
    named = os.environ.get("NATS_SERVER")
    return named or shutil.which("nats-server", path=beside) or shutil.which("nats-server")


def program() -> str:
    found = find_nats_server()
    if found is None:
        raise SkipTest("no nats-server: ./shoal setup --nats installs one")  # pytest's own is not always there
    return found


def free_ports(n: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Server:
    """One nats-server with JetStream and its files in a folder. It can be killed and started again."""

    def __init__(self, folder: Path, port: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port
        self.url = f"nats://127.0.0.1:{port}"
        self._folder = folder
        lines = [
            'server_name: "n1"',
            "host: 127.0.0.1",
            f"port: {port}",
            f'jetstream {{ store_dir: "{folder / "js"}", max_mem: 64MB, max_file: 4GB }}',
        ]
        self._config = folder / "server.conf"
        self._config.write_text("\n".join(lines))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [program(), "-c", str(self._config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, (self._folder / "log").read_text()
                time.sleep(0.05)

    def kill(self) -> None:
        """kill -9, at once."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None
