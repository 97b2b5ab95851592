"""Ctrl-C and hang-ups for processes that tests start, also behind a script's `&` or nohup."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_HEARD = [getattr(signal, name) for name in ("SIGINT", "SIGHUP") if hasattr(signal, name)]


@contextmanager
def interruptible() -> Iterator[None]:
    """Processes started in this block hear SIGINT and SIGHUP. Without it they ignore them wherever the tests
    themselves do, because a process inherits what its parent ignores. For the main thread alone."""
    before = {number: signal.getsignal(number) for number in _HEARD}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
