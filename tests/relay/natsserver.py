"""Real nats-server processes for tests, on free ports of this computer's loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
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

    def __init__(
        self, folder: Path, port: int, name: str = "n1", routes: tuple[int, ...] = (), counted: int = 0
    ) -> None:
        """`routes` are the cluster ports of all servers, this one's first; none for a server alone. At the port
        `counted`, if any, it tells what it has carried."""
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self.counted = port, counted
        self.url = f"nats://127.0.0.1:{port}"
        self._folder = folder
        lines = [
            f'server_name: "{name}"',
            "host: 127.0.0.1",
            f"port: {port}",
            f'jetstream {{ store_dir: "{folder / "js"}", max_mem: 64MB, max_file: 4GB }}',
        ]
        if counted:
            lines.append(f"http: 127.0.0.1:{counted}")
        if routes:
            urls = ", ".join(f'"nats-route://127.0.0.1:{one}"' for one in routes[1:])
            lines.append(f'cluster {{ name: "c", host: 127.0.0.1, port: {routes[0]}, routes: [{urls}] }}')
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

    def told(self, what: str) -> dict[str, Any]:
        """What NATS's own page of that name says, such as `varz`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.counted}/{what}", timeout=PATIENCE) as page:
            return dict(json.load(page))

    def kill(self) -> None:
        """kill -9, at once."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


class Cluster:
    """Three servers that keep every stream three times."""

    def __init__(self, folder: Path) -> None:
        ports = free_ports(9)
        routes = ports[3:6]
        self.servers = [
            Server(
                folder / f"n{n}", ports[n], f"n{n}", (routes[n], *(routes[:n] + routes[n + 1 :])), ports[6 + n]
            )
            for n in range(3)
        ]
        self.url = "nats://" + ",".join(f"127.0.0.1:{port}" for port in ports[:3])

    def start(self) -> None:
        """Start all and wait until they have agreed on who leads, before which no stream can be made."""
        for one in self.servers:
            one.start()
        deadline = time.monotonic() + PATIENCE
        while not all(one.told("jsz").get("meta_cluster", {}).get("leader") for one in self.servers):
            assert time.monotonic() < deadline, "the three servers have not agreed on a leader"
            time.sleep(0.05)

    def kill(self) -> None:
        for one in self.servers:
            one.kill()
