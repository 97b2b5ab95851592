"""Manages the model process for the server: starts it at the first request, ends it when idle, and passes
requests and replies."""

from __future__ import annotations

import asyncio
import contextlib
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import count
from pathlib import Path

import msgspec

from app.common.files import prepare_log
from app.common.process import surroundings as secrets
from app.common.process.control import detached_popen_kwargs
from app.common.process.surroundings import child_environment, working_folder
from app.node.rules.orders import mark_serving
from app.node.trainer import solo
from app.serve import messages
from app.serve.messages import Began, Ended, ModelReady, Piece, Refused, Reply, Start
from engines.facts import engine_variables

UNLOAD_AFTER_S = 600.0
"""Idle seconds after which the model is unloaded."""
MAX_REQUESTS = 64
"""Maximum requests in progress or waiting; further ones are refused with BusyError."""
_HEARTBEAT_S = 0.5
_DIED = (
    "The model stopped, most likely because memory ran short. Nothing that was learned is lost: close other "
    "programs and ask again."
)


class BusyError(Exception):
    """MAX_REQUESTS requests are already waiting."""


class ModelError(Exception):
    """The request failed; the message is one sentence that says why. `code` is OpenAI's error code; `fault`:
    the error is the server's, not the request's."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.sentence)
        self.code, self.fault = refused.code, refused.fault or refused.final


class ModelProcess:
    """Starts and stops the process of app.serve.child with `command`, and sends it requests. `told` is called
    with a sentence when the model is loaded or unloaded. While a request is in progress, a node of the data
    folder `home` pauses."""

    def __init__(
        self, command: Sequence[str], home: Path, told: Callable[[str], None], quiet_s: float = UNLOAD_AFTER_S
    ) -> None:
        self._command, self._home, self._told, self._quiet_s = command, home, told, quiet_s
        self._process: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._numbers = count(1)
        self._open: dict[int, asyncio.Queue[Reply]] = {}
        self._asked_at = self._shown_at = 0.0
        self._lock = asyncio.Lock()
        self.ready: ModelReady | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def ask(self, start: Start) -> AsyncGenerator[Began | Piece | Ended]:
        """Sends a request and yields the messages about it until its last answer has ended. Raises BusyError
        and ModelError; closing the iterator cancels the answers."""
        if len(self._open) >= MAX_REQUESTS:
            raise BusyError
        number, replies = next(self._numbers), asyncio.Queue[Reply]()
        self._open[number] = replies
        left = len(start.prompts) * start.n
        self._show()
        try:
            await self._write(msgspec.structs.replace(start, number=number), starting=True)
            while left:
                reply = await replies.get()
                if isinstance(reply, Refused):
                    left = 0
                    raise ModelError(reply)
                assert isinstance(reply, Began | Piece | Ended)
                left -= isinstance(reply, Ended)
                yield reply
        finally:
            del self._open[number]
            self._asked_at = time.monotonic()
            if left:
                with contextlib.suppress(OSError):
                    await self._write(messages.Drop(number=number))

    async def run(self) -> None:
        """Keeps the node paused while requests are in progress, and unloads an idle model. Runs until
        cancelled, then ends the process."""
        try:
            while True:
                if self._open:
                    self._show()
                elif self._process is not None and time.monotonic() - self._asked_at > self._quiet_s:
                    await self.end()
                    self._told("The model left the memory; the next request loads it again.")
                await asyncio.sleep(_HEARTBEAT_S)
        finally:
            await self.end()

    def _show(self) -> None:
        """Renews the mark in the data folder that makes the node pause."""
        now = time.monotonic()
        if now - self._shown_at > _HEARTBEAT_S / 2:
            self._shown_at = now
            mark_serving(self._home)

    async def end(self) -> None:
        """Kills the model process, if it runs, and waits for its end."""
        process, self._process = self._process, None
        if self._reading is not None:
            self._reading.cancel()
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()  # it writes nothing, so nothing is lost
            await process.wait()

    async def _write(self, request: messages.Request, starting: bool = False) -> None:
        async with self._lock:
            if self._process is None and starting:
                await self._begin()
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(ConnectionError):  # all waiting requests learn that it ended
                self._process.stdin.write(messages.to_line(request))
                await self._process.stdin.drain()

    async def _begin(self) -> None:
        environment = {
            **child_environment(secrets.without_secrets()),
            **solo.OFFLINE_ENVIRONMENT,
            **engine_variables(),
        }
        environment["TOKENIZERS_PARALLELISM"] = "false"
        with prepare_log(self._home / "logs" / "serve.log").open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                env=environment,
                cwd=working_folder(),
                limit=messages.MAX_LINE,
                **detached_popen_kwargs(),
            )
        self._reading = asyncio.create_task(self._read(self._process))

    async def _read(self, process: Process) -> None:
        """Passes the process's replies to their requests, and refuses all open requests when it ends."""
        assert process.stdout is not None
        last = Refused(number=0, sentence=_DIED, fault=True, final=True)
        try:
            while line := await process.stdout.readline():
                reply = messages.read_reply(line)
                if isinstance(reply, ModelReady):
                    self.ready = reply
                    learned = "as it came" if reply.learned is None else f"after round {reply.learned}"
                    self._told(f"The model is loaded, {learned}.")
                elif isinstance(reply, Refused) and reply.final:
                    last = reply
                elif reply.number in self._open:
                    self._open[reply.number].put_nowait(reply)
        except (ValueError, msgspec.MsgspecError):
            process.kill()  # a line that is too long, or not written by our child process
        self.ready = None
        if process is self._process:
            self._process = None
            for replies in self._open.values():
                replies.put_nowait(last)
            self._told(last.sentence)
        await process.wait()
