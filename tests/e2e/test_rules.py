"""Real nodes under rules: they give their computer back, and go on where they were."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.shoal import PATIENCE_S, QUICK_PROBES, Event, Running, rows

QUIET = {
    "idle_s": 10_000,
    "on_battery": False,
    "saver": False,
    "full_screen": False,
    "cpu_others": 0.0,
    "memory_free": 0.6,
    "memory_stalled": 0.0,
    "temperature_c": 50,
    "absent": ["gpu_others", "too_hot"],
}
FAMILIES = ("--families", "chain_sum", "--local", "4", "--probe-every", "1000", *QUICK_PROBES)


class Home:
    """A data folder, and the facts its nodes go by."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.model, self.facts = folder / "home", model, folder / "facts.json"
        self.folder.mkdir()
        (self.folder / "settings.json").write_text('{"idle_s": 1}')
        self.says()

    def says(self, **changes: Any) -> None:
        fresh = self.facts.with_suffix(".new")
        fresh.write_text(json.dumps(QUIET | changes))
        fresh.replace(self.facts)

    @contextmanager
    def node(
        self, *options: str, facts: bool = True, alone: bool = True, **environment: str
    ) -> Iterator[Running]:
        """A node as the window has one."""
        source = ("--facts", self.facts) if facts else ()
        node = Running(
            *("--home", self.folder, "--model", self.model, "--snapshots", "--rules", *source),
            *FAMILIES,
            *options,
            stdin=subprocess.PIPE,
            alone=alone,
            **environment,
        )
        try:
            yield node
        finally:
            node.kill()


@pytest.fixture
def home(tmp_path: Path, model: Path) -> Home:
    return Home(tmp_path, model)


def paused(event: Event) -> bool:
    return event["event"] == "snapshot" and event["snapshot"]["phase"] == "paused"


def decided(reason: str) -> Any:
    return lambda event: event["event"] == "decision" and event["reason"] == reason


def family(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def resident(processes: list[psutil.Process]) -> int:
    return sum(process.memory_info().rss for process in processes)


def wait_until_gone(pid: int) -> float:
    """Seconds until the process has ended."""
    began = time.monotonic()
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.02)
    return time.monotonic() - began


def played(node: Running) -> list[int]:
    return [event["round"] for event in node.events if event["event"] == "round"]


@pytest.mark.long
def test_a_node_gives_way_is_killed_while_paused_and_goes_on_with_the_next_round(home: Home) -> None:
    with home.node() as node:
        node.wait_for_kind("round")
        trainer = node.trainer()
        before = resident(family(node.process.pid))
        taken = psutil.Process(trainer).memory_info().rss
        home.says(idle_s=0)
        print(f"gave way in {wait_until_gone(trainer):.1f} s")
        node.wait_for(paused)
        assert resident(family(node.process.pid)) <= before - taken
        gone_by = time.monotonic() + 30
        while family(node.process.pid):  # the sandbox's child too
            assert time.monotonic() < gone_by
            time.sleep(0.05)
        ruling = node.events[-1]["snapshot"]["ruling"]
        assert (ruling["run"], ruling["reason"], ruling["idle_need_s"]) == (False, "in_use", 1)
        home.says()
        node.wait_for(decided("running"))
        again = node.wait_for_kind("round")["round"]
        assert played(node) == list(range(1, again + 1))
        for line in ("nonsense", "[" * 30_000, '{"command":"settings","changed":{"idle_s":0}}'):
            node.order_line(line)
            assert node.wait_for_kind("refused")["sentence"].endswith(".")
        node.order("pause")
        node.wait_for(paused)
        left = family(node.process.pid)
        node.kill()
        _, alive = psutil.wait_procs(left, timeout=120)
        assert not alive
    safe = max(number for (number,) in rows(home.folder, "SELECT round FROM rounds"))
    with home.node() as node:
        node.wait_for(paused)
        assert node.events[-1]["snapshot"]["ruling"]["sentence"] == "Paused by you."
        assert node.events[-1]["snapshot"]["safe_round"] == safe
        assert not any("trainer" in " ".join(child.cmdline()) for child in family(node.process.pid))
        node.order("resume")
        assert node.wait_for_kind("round")["round"] == safe + 1
        node.order("finish")
        node.wait_for(decided("paused"))
        node.wait_for(paused)
        assert node.process.stdin is not None
        node.process.stdin.close()
        assert node.wait() == 0
        assert "Traceback" not in node.said
    numbers = [number for (number,) in rows(home.folder, "SELECT round FROM rounds ORDER BY round")]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.long
def test_killed_at_any_moment_of_pausing_and_resuming(home: Home) -> None:
    for number in range(6):
        with home.node() as node:
            node.order("resume")
            node.wait_for_kind("round")
            node.order("pause")
            time.sleep(0.15 * number)
            left = family(node.process.pid)
            os.kill(node.process.pid, signal.SIGKILL)
            _, alive = psutil.wait_procs(left, timeout=120)
            assert not alive
    numbers = [number for (number,) in rows(home.folder, "SELECT round FROM rounds ORDER BY round")]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 6
