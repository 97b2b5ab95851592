"""The guard of solo mode, in processes of its own: an audit hook can never be taken out again."""

from __future__ import annotations

import subprocess
import sys

import pytest

ATTEMPTS = [
    "socket.socket()",
    "socket.socket(socket.AF_INET6)",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "socket.create_connection(('127.0.0.1', 9))",
    "socket.create_server(('127.0.0.1', 0))",
    "socket.getaddrinfo('localhost', 80)",
    "socket.gethostbyname('localhost')",
    "urllib.request.urlopen('http://127.0.0.1:9')",
    "before.connect(('127.0.0.1', 9))",
    "before.bind(('127.0.0.1', 0))",
    "asyncio.run(asyncio.open_connection('127.0.0.1', 9))",
]


def run(statement: str) -> subprocess.CompletedProcess[str]:
    script = (
        "import asyncio, socket, urllib.request; from app.node.trainer.solo import refuse_network\n"
        "before = socket.socket()\n"
        "refuse_network()\n"
        f"{statement}\nprint('done')"
    )
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nothing_reaches_the_network(attempt: str) -> None:
    done = run(attempt)
    assert done.returncode == 1 and "SoloError" in done.stderr, done.stderr


@pytest.mark.skipif(
    sys.platform == "win32", reason="the event loop's own pair is made of loopback sockets there"
)
def test_the_event_loop_still_works() -> None:
    done = run("asyncio.run(asyncio.create_subprocess_exec('true')); socket.socketpair()")
    assert done.stdout == "done\n", done.stderr


def test_the_hubs_client_is_told() -> None:
    assert run("import os; assert os.environ['HF_HUB_OFFLINE'] == '1'").stdout == "done\n"
