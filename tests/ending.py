"""The process that deals the tests out: it ends, with a status of its own, where a worker crashed or no test
ends any more. A child that a crashed worker leaves behind can hold its pipe open, and pytest-xdist then waits
for ever; where it replaces the worker, it deals the same crash out again, or ends in an error of its own.

A crash leaves tests unrun, so running the failed ones once more is not enough: .ci/run looks at the status."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading

import pytest

INCOMPLETE = 3
"""Exit status: not every test was run."""
QUIET_S = float(os.environ.get("SHOAL_TEST_QUIET_S", "900"))
"""Seconds without a result after which nothing more is waited for: longer than collecting and any one test."""


class Ending:
    def __init__(self) -> None:
        self.crashed = False
        self.wait()

    def wait(self) -> None:
        self.timer = threading.Timer(QUIET_S, give_up)
        self.timer.daemon = True
        self.timer.start()

    def pytest_runtest_logfinish(self) -> None:
        self.timer.cancel()
        self.wait()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, error: object) -> None:
        self.crashed |= bool(error)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.timer.cancel()
        if self.crashed:
            session.exitstatus = INCOMPLETE


def give_up() -> None:
    faulthandler.dump_traceback(2)
    said = f"\nNo test ended for {QUIET_S:.0f} seconds: the run ends here, incomplete."
    print(said, file=sys.__stderr__, flush=True)
    os._exit(INCOMPLETE)


def pytest_configure(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Ending())
