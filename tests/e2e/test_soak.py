"""Ten minutes of kills, cut lines, full disks and clock jumps among real processes: nothing is lost."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.soak_page import summed
from tests.bench.soak_place import clock_library
from tests.e2e.shoal import ROOT, command

if sys.platform != "linux":
    pytest.skip("preloads a library and mounts a small disk", allow_module_level=True)


@pytest.mark.long
@pytest.mark.timeout(2400)  # twice five minutes, their quiet ends, and a busy computer's starts
def test_ten_minutes_in_two_pieces_lose_nothing(tmp_path: Path) -> None:
    words = ["bench", "soak", "--hours", str(5 / 60), "--every", "12", "--out", str(tmp_path), "--json"]
    for piece in (1, 2):
        done = subprocess.run(command(*words), cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        figures = json.loads(done.stdout.splitlines()[-1])
        assert figures["pieces"] == piece and figures["lost"] == 0
    counts, events = figures["counts"], figures["events"]
    assert counts["acknowledged"] > 200 and figures["rounds"] > 10
    assert sum(n for name, n in events.items() if name.startswith("kill")) >= 5
    told = sum(
        counts[name] for name in ("waiting", "accepted", "duplicate", "stale", "invalid", "blocked", "dropped")
    )
    assert counts["created"] == told, "every group is accounted for"
    assert counts["journal"] == "ok" and set(figures["memory"]) >= {
        "relay",
        "peers",
        "window",
        "node",
        "trainer",
    }
    assert (tmp_path / "page.md").read_text().startswith("# Soak")


def test_the_wall_clock_jumps_and_the_steady_one_does_not(tmp_path: Path) -> None:
    shim, ahead = clock_library(tmp_path), tmp_path / "clock"
    if shim is None:
        pytest.skip("there is no C compiler")
    ahead.write_bytes(struct.pack("q", 0))
    look = "import time; print(time.time(), time.monotonic(), flush=True); input()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", look * 2],
        env={**os.environ, "LD_PRELOAD": str(shim), "SHOAL_SOAK_CLOCK": str(ahead)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    before = [float(word) for word in process.stdout.readline().split()]
    with ahead.open("r+b") as file:
        file.write(struct.pack("q", 10**6))
    print(file=process.stdin, flush=True)
    after = [float(word) for word in process.stdout.readline().split()]
    process.communicate("\n")
    assert after[0] - before[0] >= 10**6 > after[1] - before[1] >= 0


def test_a_group_that_only_an_outbox_knows_counts_as_lost(tmp_path: Path) -> None:
    memory = [
        {"role": "relay", "life": "relay 1", "age_s": age, "mb": 40.0 + min(3600, age) / 360}
        for age in range(0, 6000, 10)
    ]
    piece = {
        "hours": 1.0, "events": {"kill relay": 2}, "rounds": 5, "created": 9, "waiting": 0, "accepted": 9,
        "duplicate": 0, "stale": 0, "invalid": 0, "blocked": 0, "dropped": 0, "acknowledged": 9, "stored": 8,
        "lost": 1, "journal": "ok",
    }  # fmt: skip
    figures = summed([piece, {**piece, "stored": 9, "lost": 0}], memory, tmp_path)
    assert figures["lost"] == 1 and not figures["passed"] and figures["events"] == {"kill relay": 4}
    assert figures["memory"]["relay"]["worst_trend_percent"] == 0.0
    assert "**1 acknowledged ones lost.**" in (tmp_path / "page.md").read_text()
