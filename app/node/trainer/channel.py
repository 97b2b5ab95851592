"""Standard output of a process that others read message by message."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO


def own_standard_output() -> BinaryIO:
    """Standard output for messages alone: file descriptor 1, and what any library prints, becomes standard
    error."""
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return channel


def send(channel: BinaryIO, line: bytes) -> None:
    left = memoryview(line)
    while left:
        left = left[channel.write(left) :]
