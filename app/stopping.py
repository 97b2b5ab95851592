"""Being asked to stop: the signals that mean it, on every system."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


def when_asked_to_stop(stop: Callable[[], None]) -> None:
    """Calls `stop` in the running event loop at every such signal. Raises RuntimeError outside of a loop."""
    loop = asyncio.get_running_loop()
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows has no such call in its loop
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
