"""A command in the test's own process: what it prints, refuses and returns, without the second that starting
a process takes. Signals, terminals, imports and other processes need a real one."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import keyring.core
import pytest
from keyring.backends import null

from app.cli import __main__ as cli
from app.common.process.control import stop_signals
from app.node.trainer import solo


@contextmanager
def unchanged() -> Iterator[None]:
    """What a command changes for its whole process is as before afterwards."""
    variables, handlers = dict(os.environ), {one: signal.getsignal(one) for one in stop_signals()}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def shoal(*arguments: str | Path, said: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """`./shoal ARGUMENTS` with `said` on its standard input, no terminal and nobody's keyring."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    words = list(map(str, arguments))
    with unchanged(), pytest.MonkeyPatch.context() as changed, redirect_stdout(out), redirect_stderr(err):
        changed.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said.encode()), "utf-8", "replace"))
        changed.setattr(keyring.core, "_keyring_backend", null.Keyring())
        changed.setattr(solo, "refuse_network", lambda: None)  # it would last for all tests that follow
        os.environ.update(variables)
        try:
            code = cli.main(words)
        except SystemExit as end:  # argparse's
            code = end.code if isinstance(end.code, int) else 0
    told, complained = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code, told, complained)
