"""`./shoal run` for real: node, trainer, sandbox, disk."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from app.node.data.home import lock_data_folder, model_mark
from app.node.history import checkpoint
from tests import inside
from tests.e2e.shoal import (
    PATIENCE_S,
    QUICK_PROBES,
    ROOT,
    Event,
    Running,
    checkpoints,
    child,
    command,
    rows,
    shoal,
)

if sys.platform != "win32":
    import fcntl
    import resource
    import termios

SMALL = ("--local", "4", "--families", "chain_sum,gcd", "--probe-every", "50", *QUICK_PROBES)


class Trained(NamedTuple):
    """A home after three rounds, and what the command printed."""

    home: Path
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def trained(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    home = tmp_path_factory.mktemp("trained")
    options = ("--rounds", "3", "--json", "--model", model, "--home", home, "--seed", "1", *QUICK_PROBES)
    return Trained(home, shoal("run", "--solo", *options))


@pytest.fixture
def home(trained: Trained, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return shutil.copytree(trained.home, tmp_path / "home")


def test_three_rounds_with_json(trained: Trained, model: Path) -> None:
    done = trained.done
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert seen[0]["event"] == "start" and seen[0]["engine"]["name"] and seen[0]["round"] == 0
    rounds = [event for event in seen if event["event"] == "round"]
    assert [event["round"] for event in rounds] == [1, 2, 3]
    keys = {"informative_own", "informative_peer", "train_solved", "seconds", "worked_share", "tokens_per_s"}
    assert all(keys <= set(event) for event in rounds)
    probes = [event for event in seen if event["event"] == "probe"]
    assert [event["round"] for event in probes] == [0, 2, 3]
    for event in probes:
        p, n = event["pass_at_1"], event["questions"]
        assert event["stderr"] == pytest.approx((p * (1 - p) / n) ** 0.5)
        assert set(event["families"]) <= set(seen[0]["families"])
    assert seen[-1]["event"] == "end" and seen[-1]["reason"] == "rounds" and seen[-1]["round"] == 3
    assert "Round 2:" in done.stderr and "New puzzles solved after round 3" in done.stderr
    state = checkpoint.read(checkpoints(trained.home) / "round-000003", model_mark(model))
    assert state.round == 3 and state.completions == sum(event["own_groups"] for event in rounds) * 8


OWN_KEY = {**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
"""The key lies in the data folder."""


def test_a_result_is_written_signed_and_believed(
    trained: Trained, home: Path, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "mine.json"
    written = shoal("result", "--out", out, "--model", model, "--home", home, "--json", env=OWN_KEY)
    told = json.loads(written.stdout)
    last = [one for one in map(json.loads, trained.done.stdout.splitlines()) if one["event"] == "probe"][-1]
    assert (told["rounds"], told["pass_at_1"]) == (3, pytest.approx(last["pass_at_1"], abs=1e-6))
    believed = shoal("result", "verify", out, "--home", home, env=OWN_KEY)
    assert (
        believed.returncode == 0
        and f"The signature fits: {told['name']}, that is this node," in believed.stdout
    )
    assert "seed" in believed.stdout.lower() and str(tmp_path) not in out.read_text()
    out.write_bytes(out.read_bytes().replace(b'"seed": 1', b'"seed": 2'))
    spoiled = shoal("result", "verify", out, "--home", home)
    assert spoiled.returncode == 1 and spoiled.stdout == ""
    assert spoiled.stderr.startswith("shoal: The signature doesn't fit") and spoiled.stderr.count("\n") == 1
    again = shoal("result", "--out", out, "--model", model, "--home", home)
    assert again.returncode == 1 and "choose another --out" in again.stderr, "what it doesn't know stays"


@pytest.mark.long
def test_a_resumed_run_is_the_same_run(trained: Trained, model: Path, tmp_path: Path) -> None:
    query = "SELECT round, position, seed, rewards, completions FROM groups ORDER BY round, position"
    for rounds in (1, 2):
        options = ("--rounds", str(rounds), "--seed", "1", "--model", model, "--home", tmp_path)
        assert shoal("run", "--solo", *options).returncode == 0
    assert rows(trained.home, query) == rows(tmp_path, query)


def test_alone_with_no_socket_and_a_safe_soon_end(model: Path, tmp_path: Path) -> None:
    node = Running("--model", model, "--home", tmp_path, *SMALL)
    safe = node.wait_for_kind("checkpoint")["round"]
    trainer = psutil.Process(node.trainer())
    family = [psutil.Process(node.process.pid), *psutil.Process(node.process.pid).children(recursive=True)]
    assert len(family) == 3
    for _ in range(20):
        assert [process.net_connections(kind="inet") for process in family] == [[], [], []]
        time.sleep(0.02)
    if sys.platform == "linux":
        loaded = Path(f"/proc/{node.process.pid}/maps").read_text()
        assert not [one for one in ("libtorch", "aiohttp", "nacl", "zeroconf", "numpy") if one in loaded]
        assert "libtorch" in Path(f"/proc/{trainer.pid}/maps").read_text()
    assert node.stop() == 0
    assert not any(process.is_running() for process in family)
    assert "New puzzles solved" in node.said and f"is saved in {tmp_path}" in node.said
    newest = checkpoint.newest_first(checkpoints(tmp_path))[0]
    assert checkpoint.read(newest, model_mark(model)).round >= safe
    assert rows(tmp_path, "SELECT outcome FROM runs") == [("stopped",)]


@pytest.mark.long
@pytest.mark.skipif(not Path("/usr/bin/strace").exists(), reason="strace is not installed")
def test_no_system_call_asks_for_a_network_socket(model: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    trace = ("strace", "-f", "-qq", "-e", "trace=socket,connect,bind,sendto,sendmsg", "-o", str(log))
    node = Running("--model", model, "--home", tmp_path / "home", "--rounds", "1", *SMALL, prefix=trace)
    node.wait_for_kind("round")
    assert node.process.wait(PATIENCE_S) == 0
    calls = log.read_text().splitlines()
    assert calls and [call for call in calls if "AF_INET" in call or "AF_NETLINK" in call] == []


def test_a_second_signal_ends_it_at_once(model: Path, tmp_path: Path) -> None:
    """The node gives a trainer that cannot say goodbye a second; on a busy computer that may be over before the
    second signal comes, or both arrive as one, so it is sent again and there are several tries."""
    codes = []
    while 1 not in codes and len(codes) < 6:
        node = Running("--model", model, "--home", tmp_path / str(len(codes)), *SMALL)
        trainer = child(node.process.pid, "app.node.trainer.process")
        os.kill(trainer, signal.SIGSTOP)
        try:
            node.process.send_signal(signal.SIGINT)
            for _ in range(3):
                time.sleep(0.25)
                with contextlib.suppress(ProcessLookupError):
                    node.process.send_signal(signal.SIGINT)
            codes.append(node.process.wait(PATIENCE_S))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(trainer, signal.SIGKILL)
    assert codes[-1] == 1
    assert "No round is saved yet" in node.said


def refused(code: int, *arguments: str | Path) -> str:
    done = inside.shoal("run", "--solo", *arguments)
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_wrong_usage_is_refused_in_one_sentence(model: Path, tmp_path: Path) -> None:
    home = ("--home", tmp_path / "home", "--model", model)
    assert "--relay" in refused(2, "--relay", "wss://example.org", *home)
    assert "--external" in refused(2, "--external", "4", *home)
    assert "choose from" in refused(2, "--families", "sudoku", *home)
    assert not (tmp_path / "home").exists()


def test_a_home_that_is_no_folder_or_is_taken(model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "--home" in refused(1, "--model", model, "--home", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "home").mkdir()
    with lock_data_folder(tmp_path / "home"):
        assert "Another node" in refused(1, "--model", model, "--home", tmp_path / "home")


@pytest.mark.skipif(sys.platform != "linux", reason="sets the limits of running processes")
def test_a_full_disk_makes_it_wait_until_there_is_room(model: Path, tmp_path: Path) -> None:
    """The system refuses every write beyond a few bytes of a file, and takes them again later."""
    node = Running("--model", model, "--home", tmp_path, "--snapshots", *SMALL, stdin=subprocess.PIPE)
    node.wait_for_kind("checkpoint")

    def limit(most: int) -> None:
        for pid in (node.process.pid, node.trainer()):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def says(words: str) -> Callable[[Event], bool]:
        return lambda event: event["event"] == "note" and words in event["sentence"]

    limit(1000)
    note = node.wait_for(says("is full"))
    assert str(tmp_path) in note["sentence"]
    node.wait_for(lambda event: event.get("snapshot", {}).get("phase") == "waiting for space on the disk")
    safe = note["round"]
    checkpoint.read(checkpoints(tmp_path) / f"round-{safe:06d}", model_mark(model))
    limit(resource.RLIM_INFINITY)
    node.wait_for(says("has room again"))
    assert node.wait_for_kind("checkpoint")["round"] == safe + 1
    node.wait_for_kind("checkpoint")
    assert node.stop() == 0 and node.said.count(note["sentence"]) == node.said.count("is full") == 1
    played = [round_ for (round_,) in rows(tmp_path, "SELECT round FROM rounds ORDER BY round")]
    assert played == list(range(1, len(played) + 1)) and len(played) >= safe + 2


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_the_keys_of_the_terminal_view(model: Path, tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        arguments = command("run", "--solo", "--model", model, "--home", tmp_path, *SMALL)
        os.execve(arguments[0], arguments, {**os.environ, "TERM": "xterm-256color"})
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        before = termios.tcgetattr(terminal)[3]
        read_until(terminal, " s ago")
        assert not termios.tcgetattr(terminal)[3] & termios.ECHO  # keys are heard at once, and not shown
        os.write(terminal, b"?p")  # what means nothing is left alone
        read_until(terminal, "resume")
        os.write(terminal, b"\x1b[A" + b"p")
        read_until(terminal, "pause")
        os.write(terminal, b"qqq")
        read_until(terminal, "is saved in")
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert termios.tcgetattr(terminal)[3] & termios.ECHO == before & termios.ECHO
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # it leads a session of its own


def read_until(terminal: int, wanted: str) -> str:
    seen, text, deadline = b"", "", time.monotonic() + PATIENCE_S
    while wanted not in text and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 65536)  # which may end in the middle of a character
            text = seen.decode(errors="replace")
    assert wanted in text
    return text
