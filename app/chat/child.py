"""Entry point of the chat process: JSON requests on standard input, JSON replies on standard output, one per
line.

A chat started by a window ends as soon as its input closes, even in the middle of an answer, so it never
outlives the window. A chat that reads from a file or a pipe first answers all requests."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import BinaryIO, NoReturn

from app.chat import messages
from app.chat.messages import Side
from app.chat.talking import Chat
from app.node.trainer.messages import own_standard_streams, send
from engines.contract import EngineError

_OFTEN_S = 0.04
"""Minimum seconds between two reports of a growing answer."""


def serve(open_chat: Callable[[], Chat], attached: bool) -> NoReturn:
    """Answers requests until the input closes, then ends the process, with exit code 1 if the model cannot be
    opened. `attached`: started by a window, so it ends at once when the input closes."""
    code = _serve(open_chat, attached)
    sys.stderr.flush()
    os._exit(code)  # not sys.exit, which would wait for the thread that reads standard input


def _serve(open_chat: Callable[[], Chat], attached: bool) -> int:
    if attached:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the window decides
    source, channel = own_standard_streams()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    stopped: set[int] = set()
    threading.Thread(target=_listen, args=(source, lines, stopped, attached), daemon=True).start()
    try:
        chat = open_chat()
    except EngineError as error:
        _send(channel, messages.ChatFailed(number=0, sentence=str(error), final=True))
        return 1
    except Exception as error:
        traceback.print_exc()
        _send(channel, messages.ChatFailed(number=0, sentence=_fault(error), final=True))
        return 1
    try:
        _send(channel, chat.opened())
        while line := lines.get():
            _work(chat, line, stopped, channel)
    except BrokenPipeError:
        pass  # the parent has gone
    finally:
        chat.close()
    return 0


def _work(chat: Chat, line: bytes, stopped: set[int], channel: BinaryIO) -> None:
    try:
        request = messages.read_request(line)
    except messages.ChatMessageError as error:
        _send(channel, messages.ChatFailed(number=0, sentence=str(error)))
        return
    told_at = 0.0

    def tell(side: Side, text: str) -> bool:
        nonlocal told_at
        if (now := time.monotonic()) - told_at > _OFTEN_S:
            told_at = now
            _send(channel, messages.Growing(number=request.number, side=side, text=text))
        return request.number not in stopped

    try:
        for reply in chat.handle(request, tell):
            _send(channel, reply)
    except BrokenPipeError:
        raise
    except Exception as error:
        traceback.print_exc()
        _send(channel, messages.ChatFailed(number=request.number, sentence=_fault(error)))


def _fault(error: Exception) -> str:
    said = " ".join(str(error).split())[:200]
    return f"This is a fault in Shoal ({type(error).__name__}: {said}): ask again, or report it."


def _listen(source: BinaryIO, lines: queue.SimpleQueue[bytes], stopped: set[int], attached: bool) -> None:
    """Reads requests from standard input into `lines`, then b"" at the end. Lines over MAX_LINE bytes are cut.
    Requests to stop go into `stopped` immediately, because the other thread is busy answering."""
    while line := source.readline(messages.MAX_LINE + 1):
        whole = line.endswith(b"\n") or len(line) <= messages.MAX_LINE
        while not whole and (more := source.readline(messages.MAX_LINE)) and not more.endswith(b"\n"):
            pass
        if (stop := _stop(line)) is not None:
            stopped.add(stop)
        elif line.strip():
            lines.put(line)
    if attached:
        os._exit(0)
    lines.put(b"")


def _stop(line: bytes) -> int | None:
    """Returns the number of the request to stop, None for any other line."""
    try:
        request = messages.read_request(line)
    except messages.ChatMessageError:
        return None  # answered when its turn comes
    return request.number if isinstance(request, messages.StopRequest) else None


def _send(channel: BinaryIO, message: messages.Reply) -> None:
    send(channel, messages.to_line(message))
