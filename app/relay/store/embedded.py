"""A nats-server that one relay starts for itself, in a folder of its `--state`, so that JetStream needs no
operator.

It listens on a free port of the loopback address, with a token drawn at every start, so that only its relay can
use it. It is restarted if it ends. It inherits a lock on its files: a server that survived a killed relay is
detected by this lock and ended before another one opens the files."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from app.common.files import LockHeldError, exclusive_lock, prepare_log, write
from app.common.process.control import detached_popen_kwargs
from app.relay.store.backing import StoreError
from engines import remedy

VARIABLE = "NATS_SERVER"
STARTING_S, ENDING_S, AGAIN_S = 20.0, 10.0, 1.0
_LOCK, _HELD, _PID, _CONFIG, _LOG = "relay.lock", "server.lock", "server.pid", "server.conf", "log"

_log = logging.getLogger(__name__)


def find_nats_server() -> str | None:
    """The path of nats-server: named by NATS_SERVER, beside this Python, or on PATH."""
    beside = Path(sys.executable).parent
    return os.environ.get(VARIABLE) or shutil.which("nats-server", path=beside) or shutil.which("nats-server")


class Embedded:
    """Runs the server between `start` and `close`. `store`: maximum bytes that its streams take on disk."""

    def __init__(self, folder: Path, store: int) -> None:
        """Raises StoreError if nats-server is not installed or another relay uses the folder."""
        found = find_nats_server()
        if found is None:
            raise StoreError(
                f"There is no nats-server here: {remedy.command('setup --nats')} installs one, or name yours "
                f"in {VARIABLE}."
            )
        if sys.platform == "win32":
            raise StoreError("On Windows start nats-server yourself and give --backplane nats://HOST.")
        self._program = found
        self._folder = folder
        self._store = store
        self._holding = contextlib.ExitStack()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._holding.enter_context(exclusive_lock(folder / _LOCK))
        except LockHeldError as error:
            raise StoreError(f"{folder} is in use by another relay: end that one first.") from error
        except OSError as error:
            raise StoreError(f"{folder} cannot be made: {error.strerror}. Choose another --state.") from error
        with socket.create_server(("127.0.0.1", 0)) as one:
            self._port: int = one.getsockname()[1]
        self._token = secrets.token_hex(16)
        self.url = f"nats://{self._token}@127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._watching: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Starts the server and waits until it listens. Raises StoreError."""
        await asyncio.to_thread(self._end_the_last)
        write(self._folder / _CONFIG, self._config().encode())
        self._launch()
        try:
            async with asyncio.timeout(STARTING_S):
                while not await self._listens():
                    if self._process is not None and self._process.poll() is not None:
                        raise StoreError(f"nats-server does not start: {self._last_words()}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise StoreError(f"nats-server does not answer: {self._last_words()}") from None
        self._watching = asyncio.create_task(self._watch(), name="watching nats-server")

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._process is not None:
            self._process.terminate()
            try:
                await asyncio.to_thread(self._process.wait, ENDING_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._holding.close()

    def _config(self) -> str:
        store = f"store_dir: {json.dumps(str(self._folder))}, max_mem: 64MB, max_file: {self._store}"
        return "\n".join(
            (
                'server_name: "shoal"',
                "host: 127.0.0.1",
                f"port: {self._port}",
                f"pid_file: {json.dumps(str(self._folder / _PID))}",
                "max_payload: 256KB",
                f'authorization {{ token: "{self._token}" }}',
                f"jetstream {{ {store} }}",
            )
        )

    def _end_the_last(self) -> None:
        """Ends the server of an earlier relay: a lock shows whether one runs, a file contains its process id.
        Raises StoreError."""
        for sent in (signal.SIGTERM, signal.SIGKILL, None):
            try:
                self._held = self._holding.enter_context(
                    exclusive_lock(self._folder / _HELD, 0.0 if sent is signal.SIGTERM else ENDING_S)
                )
                (self._folder / _PID).unlink(missing_ok=True)
                return
            except LockHeldError:
                if sent is not None:
                    with contextlib.suppress(OSError, ValueError):
                        os.kill(int((self._folder / _PID).read_text()), sent)
        raise StoreError(f"{self._folder} is in use by another nats-server: end that one first.")

    def _launch(self) -> None:
        with prepare_log(self._folder / _LOG).open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    [self._program, "-c", str(self._folder / _CONFIG)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(self._held,),
                    **detached_popen_kwargs(),
                )
            except OSError as error:
                raise StoreError(f"{self._program} does not start: {error.strerror}.") from error

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        writer.close()
        return True

    async def _watch(self) -> None:
        """Restarts the server at the same port if it ends."""
        while True:
            await asyncio.sleep(AGAIN_S)
            if self._process is not None and self._process.poll() is not None:
                _log.warning("nats-server ended (%s); it is started again.", self._process.returncode)
                try:
                    self._launch()
                except StoreError as error:
                    _log.error("%s", error)

    def _last_words(self) -> str:
        lines = (self._folder / _LOG).read_text(errors="replace").strip().splitlines()
        return (lines[-1] if lines else "it said nothing")[-200:]
