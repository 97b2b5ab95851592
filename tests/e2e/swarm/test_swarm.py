"""Nodes learning from each other: real nodes, a real relay, kill -9 of both, cut lines, unequal nodes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from app.sapo.questions import Coordinates, generate
from tests.e2e.conftest import STARTER
from tests.e2e.relay import Relay, counts
from tests.e2e.shoal import PATIENCE_S, QUICK_PROBES, ROOT, Event, Running, command, rows
from tests.interrupting import interruptible

if sys.platform == "win32":
    pytest.skip("kills processes as POSIX does", allow_module_level=True)

SMALL = ("--local", "4", "--external", "2", "--families", "chain_sum,gcd", "--probe-every", "500")
LIGHT = (*SMALL, "--rest", "2")
"""Between rounds there is room for the other processes of this computer."""

Start = Callable[..., Running]


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Relay]:
    relay = Relay(tmp_path / "relay")
    yield relay
    relay.kill()


@pytest.fixture
def start(model: Path, tmp_path: Path) -> Iterator[Start]:
    """`start(name, url, *options)`: a node with a home of its own, killed at the latest when the test ends."""
    nodes: list[Running] = []

    def start(name: str, url: str, *options: str | Path) -> Running:
        options = options or (*LIGHT, *QUICK_PROBES)
        if "--model" not in options:
            options = (*options, "--model", model)
        node = Running("--relay", url, "--home", tmp_path / name, *options, alone=False)
        nodes.append(node)
        return node

    yield start
    for node in nodes:
        if node.process.poll() is None:
            node.kill()


def learns_from_peers(event: Event) -> bool:
    return event["event"] == "round" and event["informative_peer"] > 0


def connected(event: Event) -> bool:
    return event["event"] == "link" and event["state"] == "connected"


def check_nothing_lost(relay: Relay, homes: Sequence[Path]) -> int:
    """created = acknowledged = stored over everything these homes ever did. Returns how many."""
    found = [counts(home) for home in homes]
    created = sum(one.created for one in found)
    assert created == sum(one.accepted + one.duplicate for one in found), found
    assert relay.stats().stored == created
    return created


def test_nodes_learn_from_each_other_while_relay_and_node_are_killed(
    relay: Relay, start: Start, tmp_path: Path
) -> None:
    names = ("ann", "eve")
    nodes = {name: start(name, relay.url) for name in names}
    for node in nodes.values():
        node.wait_for(learns_from_peers)
    if sys.platform == "linux":  # peers' questions, too, are made in the sandbox alone
        for process in (relay.process, *(node.process for node in nodes.values())):
            assert "numpy" not in Path(f"/proc/{process.pid}/maps").read_text()
    identities = [e for node in nodes.values() for e in node.events if e["event"] == "identity"]
    assert len({e["name"] for e in identities}) == len({e["public_key"] for e in identities}) == 2

    relay.kill()
    for node in nodes.values():
        lost = node.wait_for(lambda event: event["event"] == "link" and event["state"] == "lost")
        assert lost["sentence"] and lost["retry_s"] is not None
        for _ in range(2):  # it goes on alone
            node.wait_for_kind("round")
        node.wait_for(lambda event: event["event"] == "swarm" and event["created"] > 0)
    nodes["eve"].kill()
    assert "Traceback" not in nodes["eve"].said
    nodes["eve"] = start("eve", relay.url)
    nodes["eve"].wait_for_kind("round")
    before = {name: len(node.events) for name, node in nodes.items()}

    relay.open()
    for name, node in nodes.items():
        if not any(connected(event) for event in node.events[before[name] :]):
            node.wait_for(connected)
        node.wait_for(learns_from_peers)
    for node in nodes.values():
        assert node.stop() == 0
        last = [event for event in node.events if event["event"] == "swarm"][-1]
        assert last["waiting"] == last["held"] == last["dropped"] == 0
        assert "It keeps learning on its own" in node.said or node is nodes["eve"]
    assert check_nothing_lost(relay, [tmp_path / name for name in names]) > 3
    for name in names:
        taken = rows(tmp_path / name, "SELECT round, peer FROM groups WHERE source = 'peer'")
        assert taken and all(peer for _, peer in taken)
        query = "SELECT family, level, seed, item FROM groups WHERE source = 'peer'"
        questions = rows(tmp_path / name, query)
        assert len(questions) == len(set(questions)), "a peer's group was trained on twice"


@pytest.mark.long
def test_two_nodes_with_a_copied_folder_practise_apart_and_both_hear_of_it(
    relay: Relay, start: Start, tmp_path: Path
) -> None:
    assert start("here", relay.url, *SMALL, "--rounds", "2").wait() == 0
    shutil.copytree(tmp_path / "here", tmp_path / "copy")
    nodes = [start(name, relay.url) for name in ("here", "copy")]
    told = [
        node.wait_for(lambda event: "Another computer shares" in event.get("sentence", "")) for node in nodes
    ]
    assert sum("identity new" in event["sentence"] for event in told) == 1
    assert all(node.stop() == 0 for node in nodes)
    query = "SELECT family, level, seed, item FROM groups WHERE source = 'own' AND round > 2"
    here, copy = (set(rows(tmp_path / name, query)) for name in ("here", "copy"))
    assert here and copy and not here & copy


@pytest.mark.long
def test_a_folder_of_this_computer_is_nobodys_business(relay: Relay, start: Start, tmp_path: Path) -> None:
    """While the relay is away the outbox holds what was published, as it will be sent. That all of it is stored
    once the relay is back, test_nodes_learn_from_each_other_while_relay_and_node_are_killed shows."""
    secret = tmp_path / "my secret project"
    shutil.copytree(STARTER, secret)

    def run(rounds: str) -> Running:
        node = start("ann", relay.url, *SMALL, "--rounds", rounds, "--model", secret)
        assert node.wait() == 0
        return node

    run("1")
    relay.kill()
    alone = run("3")
    assert alone.events[-1]["reason"] == "rounds" and "It keeps learning on its own" in alone.said
    with contextlib.closing(sqlite3.connect(tmp_path / "ann" / "outbox.sqlite")) as db:
        frames = [json.loads(frame) for (frame,) in db.execute("SELECT frame FROM messages")]
    assert frames and {json.loads(frame["body"])["model"] for frame in frames} == {"local"}
    assert all("secret" not in json.dumps(frame) for frame in frames)
    for frame in frames:
        task = json.loads(frame["body"])["task"]
        assert not generate(Coordinates(**task)).held_out


@pytest.mark.long
def test_a_swarm_of_two_in_one_command(model: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        command(
            "swarm", "--nodes", "2", "--rounds", "6", "--home", tmp_path, "--json", "--models", model, *LIGHT
        ),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=2 * PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert [node["rounds"] for node in summary["nodes"]] == [6, 6]
    assert len({node["name"] for node in summary["nodes"]}) == 2
    assert all(0 <= node["pass_at_1"] <= 1 for node in summary["nodes"])
    assert sum(node["informative_peer"] for node in summary["nodes"]) > 0
    assert summary["created"] == summary["acknowledged"] == summary["stored"] > 0 and summary["lost"] == 0
    assert "0 lost" in done.stderr and "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node-1", "node-2", "relay", "relay.log"]


@pytest.mark.long
def test_ctrl_c_ends_a_swarm_and_kill_9_leaves_nothing_behind(model: Path, tmp_path: Path) -> None:
    import psutil

    def begin(home: Path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
        options = ("--nodes", "2", "--rounds", "500", "--home", home, "--json", "--models", model, *LIGHT)
        with interruptible():
            process = subprocess.Popen(
                command("swarm", *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
            )
        deadline = time.monotonic() + PATIENCE_S
        while len(list(home.glob("node-*/models/*/checkpoints/round-*"))) < 3:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
        return process, psutil.Process(process.pid).children(recursive=True)

    def is_relay(one: psutil.Process) -> bool:
        try:
            return "relay" in one.cmdline()
        except psutil.Error:  # killed, and its parent has not looked yet
            return False

    process, family = begin(tmp_path / "one")
    (relay,) = [one for one in family if is_relay(one)]
    relay.kill()
    deadline = time.monotonic() + PATIENCE_S
    while not [one for one in psutil.Process(process.pid).children() if is_relay(one) and one != relay]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(10)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "The relay stopped on its own" in err
    summary = json.loads(out.splitlines()[-1])
    assert summary["lost"] == 0 and summary["created"] == summary["stored"] + summary["waiting"]
    _, alive = psutil.wait_procs(family, timeout=10)
    assert not alive

    process, family = begin(tmp_path / "two")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive
