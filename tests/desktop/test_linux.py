"""Power, heat and load on Linux: made-up trees of the kernel's files, and this computer's own processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from app.desktop.apps import own_processes
from app.desktop.facts import ABSENT, SourceError
from app.desktop.linux import LinuxPower, PlatformSaver
from app.desktop.sensors import CpuOfOthers, MemoryStalled, processor_c, stalled_share

MAINS = {"type": "Mains", "online": "1"}
UNPLUGGED = {"type": "Mains", "online": "0"}
MOUSE = {"type": "Battery", "scope": "Device", "status": "Discharging"}


def battery(status: str, **more: str) -> dict[str, str]:
    return {"type": "Battery", "status": status, "present": "1", **more}


@pytest.mark.parametrize(
    ("supplies", "expected"),
    [
        ([], ABSENT),
        ([MAINS], False),
        ([UNPLUGGED], ABSENT),
        ([MOUSE], ABSENT),
        ([UNPLUGGED, battery("Discharging")], True),
        ([UNPLUGGED, battery("Full"), battery("Discharging")], True),
        ([MAINS, battery("Discharging")], False),  # a weak charger
        ([UNPLUGGED, {"type": "USB", "online": "1"}, battery("Charging")], False),
        ([battery("Charging")], False),
        ([battery("Not charging")], False),  # held at 80 %
        ([battery("Full"), MOUSE], False),
        ([battery("Discharging", present="0")], ABSENT),
        ([{"type": "UPS", "status": "Discharging"}], True),
        ([{"type": "Battery"}], None),
        ([UNPLUGGED, battery("Unknown")], None),
    ],
)
def test_battery_or_mains(tmp_path: Path, supplies: list[dict[str, str]], expected: object) -> None:
    for place, supply in enumerate(supplies):
        folder = tmp_path / f"supply{place}"
        folder.mkdir()
        for name, word in supply.items():
            (folder / name).write_text(word + "\n")
    if expected is None:
        with pytest.raises(SourceError, match="plugged in"):
            LinuxPower(tmp_path).read()
    else:
        assert LinuxPower(tmp_path).read() is expected


def test_a_kernel_without_power_supplies_has_no_battery(tmp_path: Path) -> None:
    assert LinuxPower(tmp_path / "none").read() is ABSENT


def test_the_firmwares_power_profile(tmp_path: Path) -> None:
    file = tmp_path / "platform_profile"
    assert PlatformSaver(file).read() is ABSENT
    file.write_text("low-power\n")
    assert PlatformSaver(file).read() is True
    file.write_text("balanced\n")
    assert PlatformSaver(file).read() is False


def test_memory_pressure(tmp_path: Path) -> None:
    assert MemoryStalled(tmp_path / "none").read() is ABSENT
    for text in ("", "some", "some avg10=many", "some avg60=1.00"):
        with pytest.raises(SourceError, match="unknown shape"):
            stalled_share(text)


def test_only_possible_temperatures_of_processors_count() -> None:
    def read(*degrees: float | None) -> list[SimpleNamespace]:
        return [SimpleNamespace(current=value) for value in degrees]

    assert processor_c({"coretemp": read(51.0, 63.5, -128.0, 255.0, 0.0, None), "nvme": read(90.0)}) == [
        51.0,
        63.5,
    ]
    assert processor_c({}) == []


BURN = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"


@pytest.fixture
def burner(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    """A process that takes a whole core, with so much niceness more than this one."""
    process = subprocess.Popen(["nice", "-n", str(request.param), sys.executable, "-c", BURN])
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("burner", [0, 5], indirect=True)
def test_our_own_work_is_nobody_elses_and_low_priority_disturbs_nobody(burner: subprocess.Popen[bytes]) -> None:
    """The same second, seen by who started the work and by who did not: they differ by about one core, or not
    at all where the work gives way by itself."""
    cores = psutil.cpu_count() or 1
    ours, theirs = CpuOfOthers(), CpuOfOthers(own=lambda: {os.getpid()} - {burner.pid})
    ours.read(), theirs.read()
    spent_before = sum(psutil.Process(burner.pid).cpu_times()[:2])
    began = time.monotonic()
    ours._last, theirs._last = ours._taken(), theirs._taken()
    while sum(psutil.Process(burner.pid).cpu_times()[:2]) - spent_before < 1.0:
        assert time.monotonic() - began < 240
        time.sleep(0.1)
    without, with_it = ours.read(), theirs.read()
    core_share = 1.0 / (time.monotonic() - began) / cores
    low = psutil.Process(burner.pid).nice() > 0
    assert with_it - without == pytest.approx(0.0 if low else core_share, abs=0.35 * core_share)


def test_work_of_a_child_that_ended_is_still_ours() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("only Linux hands a child's time on to its parent")
    if os.nice(0) > 0:
        pytest.skip("at low priority the system books no time that counts")
    source = CpuOfOthers(own=lambda: {os.getpid()})  # the child itself is never seen
    source.read()
    before = source._taken()[2]
    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)
    after = source._taken()[2]
    assert sum(after.values()) - sum(before.values()) > 0.1


def test_own_processes_are_found_through_others() -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\ninput()\nchild.kill()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        grandchild = int(process.stdout.readline())
        found = own_processes()
        process.stdin.write("\n")
        process.stdin.flush()
    assert {os.getpid(), process.pid, grandchild} <= found
    assert os.getppid() not in found
    assert own_processes(process.pid) == set()
