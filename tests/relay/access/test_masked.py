"""The way before aiohttp's reader: every message once and in order, whichever way it goes."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from aiohttp import WSMsgType
from aiohttp._websocket.reader import WebSocketDataQueue, WebSocketReader
from aiohttp.base_protocol import BaseProtocol
from hypothesis import given
from hypothesis import strategies as st

from app.relay.server import masked
from app.relay.server.masked import FrameGuard, unmask

MASK = b"\x01\x80\x7f\x00"


def frame(payload: bytes, first: int = 0x81) -> bytes:
    size = len(payload)
    head = bytes((first, 0x80 + size)) if size < 126 else bytes((first, 0xFE)) + size.to_bytes(2, "big")
    return head + MASK + bytes(byte ^ MASK[place % 4] for place, byte in enumerate(payload))


def fragments(text: bytes) -> bytes:
    return frame(text[:2], 0x01) + frame(b"", 0x89) + frame(text[2:], 0x80)


class Wire(asyncio.Transport):
    """Where a good-bye would go."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed = True


class Line:
    """A connection with aiohttp's own reader behind; `came` are its texts in the order they were dealt with."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.queue = WebSocketDataQueue(BaseProtocol(loop), 2**16, loop=loop)
        self.wire = Wire()
        self.masked = FrameGuard(
            WebSocketReader(self.queue, 2**16, compress=False, decode_text=False), self.wire
        )
        self.masked.take = self.take
        self.came: list[bytes] = []
        self.straight = 0

    def take(self, text: bytes) -> bool:
        self.straight += 1
        self.came.append(text)
        return True

    async def catch_up(self) -> None:
        """The slow way's turn: everything that was passed on."""
        while self.queue._buffer:
            message = await self.queue.read()
            if message.type is WSMsgType.TEXT:
                self.came.append(bytes(message.data))
                self.masked.done()


TEXTS = st.lists(st.tuples(st.binary(min_size=3, max_size=300), st.booleans()), min_size=1, max_size=6)


@given(TEXTS, st.sets(st.integers(1, 2000)), st.sets(st.integers(0, 20)))
def test_every_message_comes_once_and_in_order(
    texts: list[tuple[bytes, bool]], cuts: set[int], turns: set[int]
) -> None:
    async def feed() -> None:
        line = Line(asyncio.get_running_loop())
        data = b"".join(fragments(text) if split else frame(text) for text, split in texts)
        places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
        for turn, (start, end) in enumerate(pairwise(places)):
            line.masked.feed_data(data[start:end])
            if turn in turns:
                await line.catch_up()
        await line.catch_up()
        assert line.came == [text for text, _ in texts]
        assert not line.wire.written and not line.masked.under_way

    asyncio.run(feed())


def test_what_comes_whole_goes_straight_until_something_waits() -> None:
    async def feed() -> None:
        line = Line(asyncio.get_running_loop())
        line.masked.feed_data(frame(b"one"))
        line.masked.feed_data(frame(b"two") + frame(b"three"))
        line.masked.feed_data(frame(b"four"))
        assert line.came == [b"one"] and line.masked.under_way == 3
        await line.catch_up()
        line.masked.feed_data(frame(b"five"))
        assert line.came == [b"one", b"two", b"three", b"four", b"five"] and line.straight == 2
        line.masked.feed_data(frame(b"", 0x88))
        line.masked.feed_data(frame(b"after the good-bye"))
        assert line.straight == 2

    asyncio.run(feed())


def test_a_frame_without_a_mask_ends_it() -> None:
    async def feed() -> None:
        line = Line(asyncio.get_running_loop())
        line.masked.feed_data(b"\x81\x03one")
        line.masked.feed_data(frame(b"two"))
        assert line.wire.closed and line.wire.written == [b"\x88\x02\x03\xea"] and not line.came

    asyncio.run(feed())


def test_a_connection_has_so_many_frames_of_any_kind() -> None:
    """30 connections of one address, with 3.7 MB/s of the smallest frames, held a relay for 10 s at a time."""

    async def feed() -> None:
        for kind in (0x81, 0x89, 0x8A):
            line = Line(asyncio.get_running_loop())
            line.masked._clock = lambda: 100.0
            one = frame(b"x", kind)
            line.masked.feed_data(one * 600)
            line.masked.feed_data(one[:3])
            line.masked.feed_data(one[3:] + one * 399)
            await line.catch_up()
            assert not line.masked.over and not line.wire.closed
            line.masked.feed_data(one)
            assert line.masked.over == "frames" and line.wire.closed
            assert line.wire.written == [b"\x88\x02\x03\xf0"]
            assert len(line.came) == (1000 if kind == 0x81 else 0)
            waiting = Line(asyncio.get_running_loop())
            moments = iter([0.0, 3600.0])
            waiting.masked._clock = lambda moments=moments: next(moments)  # type: ignore[misc]
            waiting.masked.feed_data(one * 1000)
            waiting.masked.feed_data(one * 1000)
            assert not waiting.masked.over

    asyncio.run(feed())


@pytest.mark.parametrize("fragments", [False, True])
def test_a_message_that_drips_ends_it(fragments: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte in two seconds held a line for minutes, under the pings that keep it alive."""

    async def feed() -> None:
        monkeypatch.setattr(masked, "MAX_MESSAGE_S", 3600.0)
        line = Line(asyncio.get_running_loop())
        line.masked.feed_data(frame(b"one") + frame(b"two")[:4])
        first = line.masked._timer
        line.masked.feed_data(frame(b"two")[4:])
        assert first is not None and first.cancelled() and line.masked._timer is None
        await line.catch_up()
        monkeypatch.setattr(masked, "MAX_MESSAGE_S", 0.0)
        line.masked.feed_data(frame(b"begun", 0x01) if fragments else frame(b"begun")[:7])
        while not line.wire.closed:
            if fragments:
                line.masked.feed_data(frame(b"", 0x89))
            await asyncio.sleep(0)
        assert line.masked.over == "dripping" and line.came == [b"one", b"two"]
        line.masked.feed_data(frame(b"late"))
        assert line.came == [b"one", b"two"] and len(line.wire.written) == 1

    asyncio.run(feed())


@given(st.binary(max_size=70_000))
def test_a_whole_text_is_read_as_it_was_sent(text: bytes) -> None:
    if len(text) < 1 << 16:
        assert unmask(frame(text)) == text
        assert unmask(frame(text)[:-1]) is None and unmask(frame(text) + b"\x81") is None
    assert unmask(frame(text[:99], 0x01)) is None and unmask(frame(text[:99], 0x82)) is None
