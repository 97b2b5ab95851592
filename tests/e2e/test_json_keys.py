"""`--json` is read by programs outside: every key of every event, by a node that meets with everything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import inside
from tests.e2e.contract import SHAPES, event_misfits, misfits
from tests.e2e.relay import Relay
from tests.e2e.shoal import QUICK_PROBES, Running, shoal
from tests.e2e.test_rules import QUIET

if sys.platform == "win32":
    pytest.skip("kills processes as POSIX does", allow_module_level=True)


def test_every_event_of_a_run_has_its_keys(model: Path, tmp_path: Path) -> None:
    home, facts, relay = tmp_path / "home", tmp_path / "facts.json", Relay(tmp_path / "relay")
    home.mkdir()
    (home / "settings.json").write_text('{"idle_s": 1}')
    facts.write_text(json.dumps(QUIET))
    node = Running(
        *("--relay", relay.url, "--home", home, "--model", model),
        *("--local", "4", "--families", "chain_sum,gcd", *QUICK_PROBES, "--rules", "--facts", facts, "--hold"),
        alone=False,
        stdin=subprocess.PIPE,
    )
    try:
        node.wait_for_kind("holding")
        node.order_line("nonsense")
        node.wait_for_kind("refused")
        node.order("begin")
        node.wait_for_kind("checkpoint")
        os.kill(node.trainer(), signal.SIGKILL)
        node.wait_for_kind("trainer_restarted")
        node.wait_for_kind("checkpoint")
        node.order("stop")
        assert node.wait() == 0
    finally:
        node.kill()
        relay.kill()
    assert {event["event"] for event in node.events} == set(SHAPES["run"]) - {"placement", "skill", "flat"}
    assert [wrong for event in node.events for wrong in event_misfits(event)] == []


def test_the_summary_of_a_swarm_and_the_lines_of_an_export(model: Path, tmp_path: Path) -> None:
    options = ("--local", "4", "--families", "chain_sum,gcd", "--models", model, "--home", tmp_path)
    done = shoal("swarm", "--nodes", "1", "--rounds", "1", *options, "--json", stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert misfits(json.loads(done.stdout.splitlines()[-1]), SHAPES["swarm"], "summary") == []
    source = ("--home", tmp_path / "node-1", "--model", model)
    export = ("export", *source, "--format", "peft", "--json", tmp_path / "out")
    for _ in range(2):  # the second time the folder is taken
        told = [json.loads(line) for line in inside.shoal(*export).stdout.splitlines()]
        assert [w for line in told for w in misfits(line, SHAPES["export"][line["event"]], line["event"])] == []
        assert told[-1]["event"] in ("exported", "refused")
