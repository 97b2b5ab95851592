"""The servers under load, each in its own process.

    python -m app.bench.relay.served relay|raw|least

`relay` is the relay's own server and state with every quota lifted, because the load comes from one address and
sends an hour's amount per minute. `raw` is aiohttp's websocket alone: it reads a frame and answers with
prepared bytes, the lower bound for a server; `least` also checks hash and signature of published groups, the
lower bound for a relay.

The first line of output is JSON with the URL. A line `know N` on standard input gives the keys 0 to N - 1
standing, as if they had passed probation, and is answered `known`; the end of the input ends the process."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
import psutil
from aiohttp import WSMsgType, web

from app.bench.harness import BenchError
from app.bench.relay.joining import SWARM, key_of, publish_frames
from app.common.rate import Rate
from app.common.signing import verifies
from app.relay.access import Rules
from app.relay.limits import QuotaBuckets
from app.relay.server import masked
from app.relay.server.connection import open_socket
from app.relay.server.serving import serve
from app.relay.session.shared import RelayState
from app.relay.standing import MIN_PROBATION_S, PROBATION_GROUPS, Standing
from app.swarm.wire.body import body_id
from app.swarm.wire.protocol import SOCKET_PATH, Pub

_WIDE = Rate(10_000_000, 10_000_000)
_BYTES = Rate(10e12, 10e12)
_KINDS = ("publish", "sample", "connect", "new-key", "report", "stats")


class StartedServer:
    """One of the servers, running while the context is open."""

    def __init__(self, kind: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "app.bench.relay.served", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None and self._process.stdin is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        line = self._out.readline()
        if not line:
            self._process.kill()
            self._process.wait()
            raise BenchError(f"The server of the bench ({kind}) did not start; its words are above.")
        self.url: str = json.loads(line)["url"]
        self.pid = self._process.pid
        self._ps = psutil.Process(self.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._in.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._out.close()

    def give_standing(self, keys: int) -> None:
        self._in.write(f"know {keys}\n")
        self._in.flush()
        if self._out.readline() != "known\n":
            raise BenchError("The server of the bench has ended; its words are above.")

    def cpu_s(self) -> float:
        """Processor time so far, user and system, of the process without its children: in nanoseconds where the
        system counts them, otherwise in its ticks of 10 ms."""
        try:
            tasks = Path("/proc", str(self.pid), "task").glob("*/schedstat")
            return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9 or self._ticks_s()
        except (OSError, ValueError, IndexError):
            return self._ticks_s()

    def _ticks_s(self) -> float:
        used = self._ps.cpu_times()
        return float(used.user + used.system)

    def helpers_cpu_s(self) -> float:
        """Processor time so far of its child processes, such as the one that re-scores groups."""
        used = [child.cpu_times() for child in self._ps.children(recursive=True)]
        return float(sum(one.user + one.system for one in used))

    def rss(self) -> int:
        """Resident memory in bytes."""
        return int(self._ps.memory_info().rss)


async def _relay() -> None:
    states: list[RelayState] = []
    masked.MAX_FRAME_RATE = _WIDE

    def open_state() -> RelayState:
        kinds = dict.fromkeys(_KINDS, _WIDE) | {"bytes": _BYTES}
        quotas = QuotaBuckets(asyncio.get_running_loop().time, kinds, kinds)
        states.append(RelayState(bytes(32), SWARM, "bench", quotas=quotas))
        return states[0]

    def know(keys: int) -> None:
        for number in range(keys):
            key = key_of(number)
            states[0].standings.put(key, Standing(error=0.0, honest=PROBATION_GROUPS, latest=MIN_PROBATION_S))

    def opened(url: str, state: RelayState) -> None:
        _obey(url, know)

    await serve("127.0.0.1", 0, open_state, opened, Rules(unlimited_here=True))


async def _raw(check: bool = False) -> None:
    """Answers a long frame with `ok` and a short one with a batch of eight, both prepared."""
    pub_decoder = msgspec.json.Decoder(Pub)
    pubs = [json.loads(frame) for frame in publish_frames(8, 8, 1)]
    items = [json.dumps({k: v for k, v in pub.items() if k != "t"}, separators=(",", ":")) for pub in pubs]
    figures = '{"t":"batch","rid":1,"window":2000,"eligible":1990,"sources":199,"age_p50_s":1.5,"items":['
    batch = (figures + ",".join(items) + "]}").encode()
    ok = b'{"t":"ok","id":"%s","code":"accepted","msg":"","retry_after_ms":null,"time_ms":1800000000000}' % (
        b"0" * 64
    )

    async def answer(request: web.Request) -> web.StreamResponse:
        ws = open_socket()
        await ws.prepare(request)
        while True:
            message = await ws.receive()
            if message.type is not WSMsgType.TEXT:
                return ws
            published = len(message.data) > 1024
            if check and published:
                _check(pub_decoder.decode(message.data))
            await ws.send_frame(ok if published else batch, WSMsgType.TEXT)
            del message

    application = web.Application()
    application.add_routes([web.get(SOCKET_PATH, answer)])
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    try:
        await web.SockSite(runner, listener, backlog=4096).start()
        gc.collect()
        _obey(f"ws://127.0.0.1:{listener.getsockname()[1]}{SOCKET_PATH}", lambda keys: None)
        await stop.wait()
    finally:
        await runner.cleanup()


def _check(pub: Pub) -> None:
    key = bytes.fromhex(pub.pk)
    digest = body_id(SWARM, key, pub.body.encode())
    if digest.hex() != pub.id or not verifies(key, digest, bytes.fromhex(pub.sig)):
        raise BenchError("The bench has signed wrongly.")


def _obey(url: str, know: Callable[[int], None]) -> None:
    """Prints the URL and from then on carries out the lines of standard input."""
    loop = asyncio.get_running_loop()

    def told(keys: int) -> None:
        know(keys)
        print("known", flush=True)

    def listen() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(told, int(line.split()[1]))
        os.kill(os.getpid(), signal.SIGTERM)

    print(json.dumps({"url": url}), flush=True)
    threading.Thread(target=listen, daemon=True).start()


if __name__ == "__main__":
    kinds: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
        "relay": _relay,
        "raw": _raw,
        "least": partial(_raw, check=True),
    }
    asyncio.run(kinds[sys.argv[1]]())
