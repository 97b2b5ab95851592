"""Memory of our own processes is bounded by the system: who asks for more is refused; mapped files are free."""

from __future__ import annotations

import asyncio
import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.common.process import memory
from app.common.process.memory import JobLimits
from app.node.trainer.link import TrainerDied, TrainerLink
from app.node.trainer.memory import memory_limit

ROOT = Path(__file__).parents[2]
MB = 2**20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux")
def test_what_is_written_counts_and_what_is_mapped_does_not(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    with file.open("wb") as opened:
        opened.truncate(2000 * MB)
    program = (
        "import mmap, sys\nfrom app.common.process.memory import limit_memory\n"
        "assert limit_memory(500 * 2**20)\n"
        "with open(sys.argv[1], 'rb') as file:\n"
        "    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "assert mapped[-1] == 0\nkept = bytearray(200 * 2**20)\n"
        "try:\n    more = bytearray(500 * 2**20)\nexcept MemoryError:\n    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, file], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux")
def test_a_trainer_that_wants_more_is_refused_and_ends_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its engine asks for six gigabytes: the process and its limit are real, and the system stays out of it."""
    monkeypatch.setenv("FAKE_TROUBLE", "greedy")
    program = (
        "from app.node.trainer import process\nfrom tests.node.fake_trainer import FakeEngine\n"
        "process._open = FakeEngine\nprocess.main()\n"
    )
    trainer, log = [sys.executable, "-c", program], tmp_path / "log"

    async def opened() -> int | None:
        link = await TrainerLink.start(log, print, alone=True, command=trainer, memory=1500 * MB)
        try:
            with pytest.raises(TrainerDied):
                await link.open(tmp_path, None, 1)
            return link._process.returncode
        finally:
            await link.end()

    assert asyncio.run(opened()) == 1 and log.read_text().rstrip().endswith("MemoryError")


def test_the_owner_s_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathlib.Path.exists", lambda path: False)
    assert memory_limit(100) == 0 < memory_limit(50) < memory_limit(80)
    assert abs(memory_limit(80) - 1.6 * memory_limit(50)) < 10


class Kernel:
    """What Windows' own functions are asked for."""

    def __init__(self, refuses: str = "") -> None:
        self.asked: list[tuple[Any, ...]] = []
        self._refuses = refuses

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.asked.append((name, *arguments))
            return 0 if name == self._refuses else 7

        return call


def test_the_job_object_says_what_windows_documents() -> None:
    """Sizes and places of JOBOBJECT_EXTENDED_LIMIT_INFORMATION on 64 bits; nothing here runs Windows."""
    assert ctypes.sizeof(JobLimits) == 144
    assert (JobLimits.basic.offset, JobLimits.process_memory.offset) == (0, 112)
    assert (
        JobLimits._fields_[0][1].flags.offset == 16 and JobLimits._fields_[0][1].active_processes.offset == 40
    )
    kernel = Kernel()
    assert memory.join_limited_job(kernel, 300 * MB, alone=True)
    (_, job, kind, pointer, size) = next(one for one in kernel.asked if one[0] == "SetInformationJobObject")
    limits = pointer._obj
    assert (job, kind, size) == (7, 9, 144)
    assert (limits.basic.flags, limits.basic.active_processes) == (0x108, 1)
    assert limits.process_memory == 300 * MB
    assert kernel.asked[-1] == ("AssignProcessToJobObject", 7, 7)
    for name in ("CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject"):
        assert not memory.join_limited_job(Kernel(name), 300 * MB)
