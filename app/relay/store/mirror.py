"""A JetStream stream copied into this process: all its messages from the beginning, then each new one.

An ordered consumer delivers the messages. It lives in the memory of one server and can disappear while the
connection stays up; then nothing arrives and no error is reported (nats.py issue 510). So once a second the
mirror asks for the stream's last position, and subscribes again if messages are missing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

import nats.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

CHECK_S = 1.0  # a tenth of SILENT_S
SILENT_S = 10.0
"""Seconds without an answer after which JetStream counts as down, even if the connection is open."""
_PENDING_BYTES = 512 << 20
_PENDING_MESSAGES = 2_000_000

_log = logging.getLogger(__name__)

OnMessage = Callable[[int, Msg], None]
"""Called with a message and its position in the stream."""


class Mirror:
    """Receives every message of a stream. `last`: position of the latest message received; `end`: last position
    that the stream reported; `resets`: how often the stream had gone silent or been replaced."""

    def __init__(
        self,
        js: JetStreamContext,
        stream: str,
        subject: str,
        on_message: OnMessage,
        make: Callable[[], Awaitable[None]],
    ) -> None:
        """`make` creates the stream if it does not exist."""
        self._js = js
        self._stream = stream
        self._subject = subject
        self._on_message = on_message
        self._make = make
        self._subscription: JetStreamContext.PushSubscription | None = None
        self._task: asyncio.Task[None] | None = None
        self._heard = float("-inf")
        self._behind: tuple[int, float] | None = None
        """`last` and the time (monotonic seconds) when the stream was first seen to have more messages than
        arrived."""
        self._closing = False
        self.caught_up = asyncio.Event()
        self.last = self.end = 0
        self.resets = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"mirror of {self._stream}")

    @property
    def alive(self) -> bool:
        """True if all messages have arrived and the stream has answered recently."""
        return self.caught_up.is_set() and time.monotonic() - self._heard < SILENT_S

    @property
    def lag(self) -> int:
        """Number of messages that the stream had at the last check and that have not arrived."""
        return max(0, self.end - self.last)

    async def close(self) -> None:
        self._closing = True  # in Python 3.11 a wait_for that has just ended swallows the cancelling
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._unsubscribe()

    async def _run(self) -> None:
        while not self._closing:
            try:
                if self._subscription is None:
                    await self._subscribe()
                await self._check()
            except NotFoundError:
                await self._unsubscribe()
            except (nats.errors.Error, OSError) as error:
                _log.info("The stream %s does not answer: %r", self._stream, error)
            await asyncio.sleep(CHECK_S if self.caught_up.is_set() else CHECK_S / 10)

    async def _subscribe(self) -> None:
        await self._make()
        self._behind = None
        self._subscription = await self._js.subscribe(
            self._subject,
            stream=self._stream,
            cb=self._receive,
            ordered_consumer=True,
            idle_heartbeat=CHECK_S,
            config=ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self.last + 1,
                inactive_threshold=60,
            ),
            pending_msgs_limit=_PENDING_MESSAGES,
            pending_bytes_limit=_PENDING_BYTES,
        )

    async def _unsubscribe(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            with contextlib.suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    async def _receive(self, message: Msg) -> None:
        place = message.metadata.sequence.stream
        if place > self.last:
            self.last = place
            self._on_message(place, message)

    async def _check(self) -> None:
        """Compares the stream's last position with the mirror's, and unsubscribes if messages do not arrive or
        the stream was replaced. Raises nats.errors.Error."""
        seen = self.last
        state = (await self._js.stream_info(self._stream)).state
        self._heard = now = time.monotonic()
        self.end = state.last_seq
        if state.last_seq < seen:
            _log.warning("The stream %s has begun anew.", self._stream)
            self.resets += 1
            self.last = 0
            await self._unsubscribe()
            return
        if state.last_seq > self.last and await self._gone(state.messages):
            self.last = state.last_seq
        if state.last_seq <= self.last:
            self._behind = None
            self.caught_up.set()
        elif self._behind is None or self._behind[0] != self.last:
            self._behind = self.last, now
        elif now - self._behind[1] >= CHECK_S:
            _log.warning("The stream %s went silent; subscribing anew.", self._stream)
            self.resets += 1
            await self._unsubscribe()

    async def _gone(self, messages: int) -> bool:
        """True if the missing messages have meanwhile been removed from the stream."""
        if not messages:
            return True
        try:
            there = await self._js.get_last_msg(self._stream, self._subject)
        except NotFoundError:
            return True
        return (there.seq or 0) <= self.last
