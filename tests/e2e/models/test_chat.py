"""Chat and puzzles as people and windows start them: real processes, the starter model, a node beside them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from engines import opening
from tests import inside
from tests.e2e.shoal import PATIENCE_S, ROOT, Running, child, command, shoal

if sys.platform != "win32":
    import fcntl
    import pty
    import select
    import struct
    import termios
    import time

SMALL = ("--local", "4", "--probe-every", "100", "--families", "chain_sum,gcd")
Message = dict[str, Any]
posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals and no kill -9")


class Chatting:
    """A chat as a window holds one."""

    def __init__(self, *arguments: str | Path, prefix: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*prefix, *command("chat", "--json", "--attached", *arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        self.asked = 0

    def read(self) -> Message:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the chat ended"
        found: Message = json.loads(line)
        return found

    def ask(self, kind: str, **what: object) -> list[Message]:
        """All replies to a request; those that only tell how far an answer is, `growing` keeps."""
        self.asked += 1
        self.send(json.dumps({"type": kind, "number": self.asked, **what}).encode())
        replies = [self.read()]
        while replies[-1]["type"] not in ("done", "failed"):
            replies.append(self.read())
        assert {one["number"] for one in replies} == {self.asked}
        self.growing = [one for one in replies if one["type"] == "growing"]
        return [one for one in replies if one["type"] != "growing"]

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def close(self) -> int:
        """As a window that goes: the pipe closes."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def chatting(model: Path, tmp_path: Path) -> Iterator[Chatting]:
    made = Chatting("--model", model, "--home", tmp_path / "home")
    yield made
    made.process.kill()
    made.process.wait()


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chat") / "home"


@pytest.fixture(scope="module")
def shared(model: Path, shared_home: Path) -> Iterator[tuple[Chatting, Message]]:
    """One chat for the tests that leave it as it was, and its first message."""
    made = Chatting("--model", model, "--home", shared_home)
    yield made, made.read()
    made.process.kill()
    made.process.wait()


def test_a_question_a_puzzle_and_what_is_wrong(shared: tuple[Chatting, Message], shared_home: Path) -> None:
    chatting, opened = shared
    assert opened["type"] == "opened" and opened["learned"] is None and "gcd" in opened["levels"]

    before, after, _ = chatting.ask("ask", text="What is 4 + 3?")
    assert (before["side"], after["side"]) == ("before", "after")
    assert before["text"] == after["text"], "nothing was learned, and the same luck gives the same answer"

    drawn, _ = chatting.ask("draw", family="gcd", level=2)
    assert (drawn["family"], drawn["level"], drawn["levels"]) == ("gcd", 2, 5) and drawn["text"]
    before, after, solution, _ = chatting.ask("solve", puzzle=drawn["puzzle"])
    assert isinstance(before["solved"], bool) and before["solved"] == after["solved"]
    numbers = [int(one) for one in re.findall(r"\d+", drawn["text"])]
    assert numbers and all(one % int(solution["text"]) == 0 for one in numbers)
    judged, *_ = chatting.ask("judge", puzzle=drawn["puzzle"], answer=f" {solution['text']} ")
    assert judged["solved"] is True
    judged, *_ = chatting.ask("judge", puzzle=drawn["puzzle"], answer="__import__('os').abort()")
    assert judged["solved"] is False

    for kind, what in (
        ("draw", {"family": "nonsense"}),
        ("draw", {"family": "gcd", "level": 60}),
        ("solve", {"puzzle": 4711}),
        ("ask", {"text": "   "}),
        ("ask", {"text": "1 + " * 900}),
    ):
        failed = chatting.ask(kind, **what)[-1]
        assert failed["type"] == "failed" and not failed["final"] and "\n" not in failed["sentence"]
    chatting.send(b"x" * 2**20)
    assert chatting.read()["type"] == "failed"
    chatting.ask("forget")
    assert chatting.ask("ask", text="2 + 2 =")[-1]["type"] == "done", "and it goes on"
    assert not shared_home.exists() or not list(shared_home.iterdir()), "it keeps nothing"


def test_a_model_that_only_speaks_puzzle_says_so(shared: tuple[Chatting, Message]) -> None:
    chatting, opened = shared
    assert not opened["engine"]["talks"]
    assert [one["type"] for one in chatting.ask("ask", text="Hello, how are you?")] == ["onlypuzzles", "done"]
    after, done = chatting.ask("ask", text="Spell this word backward: sun", sides="after")
    assert (after["side"], done["type"]) == ("after", "done")
    assert chatting.growing and all(after["text"].startswith(one["text"]) for one in chatting.growing)


def test_an_answer_is_ended_by_its_number(shared: tuple[Chatting, Message]) -> None:
    chatting, _ = shared
    coming = chatting.asked + 1
    chatting.send(b'{"type":"stop","number":%d}' % coming)  # heard before the question is even read
    (stopped, done) = chatting.ask("ask", text="Simplify the fraction 57/95")
    assert (stopped["side"], stopped["stopped"], stopped["finished"]) == ("before", True, False)
    assert stopped["tokens"] == 1 and done["type"] == "done"
    before, after, _ = chatting.ask("ask", text="Simplify the fraction 57/95")
    assert not before["stopped"] and not after["stopped"]


def test_it_goes_with_its_window_and_leaves_nothing_running(chatting: Chatting) -> None:
    chatting.read()
    (drawn, _) = chatting.ask("draw", family="chain_sum")
    chatting.ask("solve", puzzle=drawn["puzzle"])
    judge = psutil.Process(child(chatting.process.pid, "app.sapo.scoring.child"))
    asked = 300
    for number in range(asked):  # the window goes in the middle of it
        chatting.send(b'{"type":"ask","number":%d,"text":"and 1 + 1?"}' % (100 + number))
    assert chatting.close() == 0
    judge.wait(PATIENCE_S)
    assert chatting.process.stdout is not None
    assert chatting.process.stdout.read().count(b'"type":"done"') < asked, "nobody would read the rest"


def test_a_model_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = shoal("chat", "--json", "--model", tmp_path / "empty", "--home", tmp_path / "home", input="")
    failed = json.loads(done.stdout)
    assert done.returncode == 1 and failed["final"] and "empty" in failed["sentence"]
    done = shoal("chat", "--model", tmp_path / "empty", "--home", tmp_path / "home", input="")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


@pytest.mark.long
def test_it_follows_a_node_that_learns_beside_it(model: Path, tmp_path: Path) -> None:
    """The node replaces safe points all the time; every answer is of one that was whole."""
    node = Running("--model", model, "--home", tmp_path, *SMALL, "--rounds", "8")
    chat = Chatting("--model", model, "--home", tmp_path)
    try:
        node.wait_for_kind("round")
        chat.read()
        seen = [chat.ask("ask", text="5 + 8 =")[1]["learned"]]
        while node.process.poll() is None:
            seen.append(chat.ask("ask", text="5 + 8 =")[1]["learned"])
        assert node.wait() == 0
        seen.append(chat.ask("ask", text="5 + 8 =")[1]["learned"])
        rounds = [one for one in seen if one is not None]
        assert rounds == sorted(rounds) and len(set(rounds)) > 1 and rounds[-1] == 8
        assert chat.close() == 0
    finally:
        chat.process.kill()
        node.kill()


@pytest.mark.long
@pytest.mark.parametrize("engine", ["llamacpp", "mlx"])
def test_every_engine_says_what_torch_has_learned(engine: str, model: Path, tmp_path: Path) -> None:
    if reason := opening.why_unavailable(engine):
        pytest.skip(reason)
    assert shoal("run", "--solo", "--rounds", "1", *SMALL, "--model", model, "--home", tmp_path).returncode == 0
    chat = Chatting("--model", model, "--home", tmp_path, "--engine", engine)
    opened = chat.read()
    assert (opened["engine"]["name"], opened["learned"]) == (engine, 1)
    (drawn, _) = chat.ask("draw", family="chain_sum")
    before, after, *_ = chat.ask("solve", puzzle=drawn["puzzle"])
    assert (before["learned"], after["learned"]) == (None, 1)
    assert chat.close() == 0


@pytest.mark.long
@pytest.mark.skipif(not Path("/usr/bin/strace").exists(), reason="strace is not installed")
@pytest.mark.parametrize("name", ["chat", "puzzle"])
def test_no_system_call_asks_for_a_network_socket(name: str, model: Path, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    trace = ["strace", "-f", "-qq", "-e", "trace=socket,connect,bind,sendto,sendmsg,execve", "-o", str(log)]
    asked, options = ("/puzzle gcd\n", ["--model", str(model)]) if name == "chat" else ("1\n", [])
    done = subprocess.run(
        [*trace, *command(name, "--home", tmp_path / "home", *options)],
        input=asked,
        text=True,
        cwd=ROOT,
        timeout=PATIENCE_S * 3,
        stdout=subprocess.DEVNULL,
    )
    calls = log.read_text().splitlines()
    assert done.returncode == 0
    assert calls and [call for call in calls if "AF_INET" in call or "AF_NETLINK" in call] == []


class OnTerminal:
    """A command on a terminal of 100 columns."""

    def __init__(self, *arguments: str | Path) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(ROOT)
            line = command(*arguments)
            os.execve(line[0], line, {**os.environ, "TERM": "xterm-256color"})
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))

    def wait_for(self, wanted: str) -> str:
        seen, text, deadline = b"", "", time.monotonic() + PATIENCE_S
        while wanted not in text and time.monotonic() < deadline:
            if select.select([self._terminal], [], [], 0.1)[0]:
                seen += os.read(self._terminal, 65536)  # which may end in the middle of a character
                text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode(errors="replace"))
        assert wanted in text, text
        return text

    def type(self, text: bytes) -> None:
        os.write(self._terminal, text)

    def wait(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(status)


@posix
def test_a_conversation_on_a_terminal(model: Path, tmp_path: Path) -> None:
    terminal = OnTerminal("chat", "--model", model, "--home", tmp_path / "home")
    assert "nothing learned here yet" in terminal.wait_for("› ")
    terminal.type(b"/puzzle chain_sum 3\n")
    shown = terminal.wait_for("› ")
    assert "Sums, level 3 of 5" in shown and "before" in shown and "after" in shown and "right:" in shown
    terminal.type(b"/nonsense\n")
    assert "There is no command /nonsense" in terminal.wait_for("› ")
    terminal.type(b"4 + 3 =\n")
    assert "tokens" in terminal.wait_for("› ")
    terminal.type(b"Hello, how are you?\n")
    assert "only solves puzzles" in terminal.wait_for("› ")
    terminal.type(b"\x04")
    assert terminal.wait() == 0


@posix
def test_a_person_solves_puzzles_on_a_terminal(tmp_path: Path) -> None:
    terminal = OnTerminal("puzzle", "--family", "gcd", "--home", tmp_path)
    shown = terminal.wait_for("› ")
    one, other = (int(number) for number in re.findall(r"(\d+), (\d+)", shown)[-1])
    while other:
        one, other = other, one % other
    terminal.type(f"{one}\n".encode())
    assert "✓ right" in terminal.wait_for("› ")
    terminal.type(b"none\n")
    assert "✗ wrong" in terminal.wait_for("› ")
    terminal.type(b"\n")
    assert "skipped" in terminal.wait_for("› ")
    terminal.type(b"/quit\n")
    assert "1 of 2" in terminal.wait_for("1 of 2")
    assert terminal.wait() == 0
    assert not list(tmp_path.iterdir()), "it keeps nothing"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["puzzle", "--family", "nonsense"], "There is no family nonsense"),
        (["chat", "--engine", "abacus"], "abacus"),
    ],
)
def test_wrong_usage_is_a_sentence(arguments: list[str], words: str) -> None:
    done = inside.shoal(*arguments)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""
