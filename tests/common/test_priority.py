"""Low priority: this process, and the session that it leads where the system schedules by session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.common.process.control import NICE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="niceness is POSIX")

GROUP = Path("/proc/self/autogroup")


CODE = """
import os, pathlib, sys
from app.common.process.control import apply_niceness_to_session
os.nice(int(sys.argv[1]))
apply_niceness_to_session(pathlib.Path(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("nice", "leads", "written"), [(7, True, "7"), (7, False, "untouched"), (0, True, "untouched")]
)
def test_only_the_leader_of_a_session_hands_its_niceness_on(
    tmp_path: Path, nice: int, leads: bool, written: str
) -> None:
    if os.nice(0) and not nice:
        pytest.skip("the tests themselves run at low priority")
    group = tmp_path / "autogroup"
    group.write_text("untouched")
    command = [sys.executable, "-c", CODE, str(max(0, nice - os.nice(0))), str(group)]
    subprocess.run(command, check=True, start_new_session=leads)
    assert group.read_text() == (str(max(nice, os.nice(0))) if written != "untouched" else written)


def test_lower_priority_never_raises_priority() -> None:
    code = "from app.common.process.control import lower_priority; import os; os.nice(15); lower_priority();"
    code += "print(os.nice(0))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert int(done.stdout) >= 15


@pytest.mark.skipif(not GROUP.exists(), reason="this kernel does not schedule by session")
def test_the_kernel_believes_it() -> None:
    code = (
        "import os, pathlib; from app.common.process.control import apply_niceness_to_session, lower_priority; "
        "lower_priority(); apply_niceness_to_session();"
        "print(pathlib.Path('/proc/self/autogroup').read_text())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, start_new_session=True
    )
    assert int(done.stdout.split()[-1]) >= 10


def test_lower_priority_reaches_processes_that_run_already() -> None:
    code = (
        "from app.common.process.control import lower_priority; import sys; lower_priority([int(sys.argv[1])])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    ) as other:
        subprocess.run([sys.executable, "-c", code, str(other.pid)], check=True)
        assert os.getpriority(os.PRIO_PROCESS, other.pid) >= NICE
        other.communicate(b"\n")
