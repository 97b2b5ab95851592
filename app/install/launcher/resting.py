"""The building of llama.cpp beside Shoal: it ends with it, and on few cores it rests while a trainer works."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

FEW_CORES = 4
"""On a computer with no more, the building rests while a trainer works."""
LOOK_S = 2.0


def watch(owner: int, trainers: str) -> None:
    """Ends this process and all that it runs when `owner` has ended, 0 for nobody. On few cores
    what it runs rests while a trainer works that is run by the Python of that path."""
    while True:
        if owner and os.getppid() != owner:
            os.killpg(0, signal.SIGKILL)
        if trainers and (os.cpu_count() or 1) <= FEW_CORES:
            resting = _trainer_works(trainers)
            for pid in _group():  # again each time: the one that was about to start has started by now
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP if resting else signal.SIGCONT)
        time.sleep(LOOK_S)


def _trainer_works(python: str) -> bool:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_bytes().split(b"\0")
            if words[0] == os.fsencode(python) and b"app.node.trainer.process" in words:
                return True
    return False


def _group() -> list[int]:
    """The other processes of this one's group, on Linux."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            group = int(file.read_text(errors="replace").rpartition(")")[2].split()[2])
            if group == os.getpgrp() and file.parent.name != str(os.getpid()):
                found.append(int(file.parent.name))
    return found
