"""The sandbox with real processes: killed, stopped, hanging, out of memory, left alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.sapo.asking import MAX_ANSWER
from app.sapo.families import FAMILIES
from app.sapo.groups import GroupRecord
from app.sapo.questions import (
    Coordinates,
    QuestionError,
    QuestionPrompt,
    UnmadeQuestion,
    UnsoundQuestion,
    draw,
    make,
)
from app.sapo.scoring import sandbox as module
from app.sapo.scoring.pipe import MAX_FRAME, Judge, PipeError, frame
from app.sapo.scoring.sandbox import Sandbox, SandboxError, SandboxSuspended, score_group

ROOT = Path(__file__).resolve().parents[3]
STAND_IN = Path(__file__).with_name("stand_in_child.py")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and limits")
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is bounded where /proc tells")

QUESTION = draw("gcd", 2, 3)
RIGHT = FAMILIES["gcd"].solution(QUESTION.entry)
WRONG = RIGHT + "1"


def anywhere(family: str = "gcd", **changes: Any) -> Coordinates:
    return Coordinates(**({"family": family, "level": 0, "seed": 1, "index": 0} | changes))


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return gone(pid)


def test_scores_come_in_the_order_of_the_answers(sandbox: Sandbox) -> None:
    answers = [RIGHT, WRONG, None, "", f" {RIGHT}.0 ", "0" * (MAX_ANSWER + 1), "\ud800\0", RIGHT]
    assert sandbox.score(QUESTION.coordinates, answers) == [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    assert sandbox.score(QUESTION.coordinates, []) == []


def test_every_character_survives_the_pipe() -> None:
    """A lone surrogate is no UTF-8 and NUL ends strings elsewhere."""
    for text in ("\ud800", "\udfff\0\ud800", "\0" * MAX_ANSWER, "\U0010ffff" * MAX_ANSWER, "¬∧∨→↔"):
        assert text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass") == text
        frame(Judge(1, text.encode("utf-8", "surrogatepass")))
    with pytest.raises(PipeError, match="too large"):
        frame(Judge(1, b"x" * 10_000))


@pytest.mark.parametrize(
    ("coordinates", "sentence"),
    [
        (anywhere("rubiks_cube"), "no family called 'rubiks_cube'"),
        (anywhere(level=99), "gcd has levels 0 to 4, not 99"),
        (anywhere(version="7"), "version 7"),
        (anywhere(seed=-1), "out of range"),
        (anywhere(seed=2**70), "cannot be a question's"),
        (anywhere("\ud800"), "cannot be a question's"),
        (anywhere("x" * 10**6), "cannot be a question's"),
        (anywhere("x" * 4000), "no family called"),
    ],
    ids=range(8),
)
def test_coordinates_that_name_nothing(sandbox: Sandbox, coordinates: Coordinates, sentence: str) -> None:
    pid = sandbox.pid
    with pytest.raises(QuestionError, match=sentence):
        sandbox.score(coordinates, [RIGHT])
    assert sandbox.score(QUESTION.coordinates, [RIGHT]) == [1.0]
    assert sandbox.pid == pid


def test_an_unsound_question_is_named_so(sandbox: Sandbox) -> None:
    for seed in range(100):
        try:
            sandbox.score(anywhere("propositional_logic", seed=seed * 10**7), [None])
        except UnsoundQuestion:
            return
    pytest.fail("every second item of this family is unsound, but none was refused")


@pytest.mark.parametrize("onward", [False, True])
def test_questions_of_the_child_are_those_of_this_process(sandbox: Sandbox, onward: bool) -> None:
    """All levels, also the items that are no questions."""
    places = [
        Coordinates(family=family.name, level=level, seed=2**41 + 10**7 * seed, index=0)
        for family in FAMILIES.values()
        for level in range(len(family.levels))
        for seed in range(6)
    ]
    here, there = make(places, onward), sandbox.questions(places, onward)
    refused = 0
    for mine, its in zip(here, there, strict=True):
        if isinstance(mine, QuestionError):
            assert type(its) is type(mine) and str(its) == str(mine)
            refused += 1
        else:
            assert its == mine
    assert (refused == 0) == onward
    assert any(isinstance(its, QuestionPrompt) and its.coordinates.index > 0 for its in there) == onward


def test_every_refusal_stands_in_its_place_and_what_is_loaded_stays(sandbox: Sandbox) -> None:
    assert sandbox.score(QUESTION.coordinates, [RIGHT]) == [1.0]
    pid = sandbox.pid
    nowhere = [anywhere("rubiks_cube"), anywhere(seed=2**70), anywhere("x" * 10**6), anywhere(version="7")]
    places = [place for bad in nowhere for place in (bad, anywhere(), anywhere("lcm", level=3))]
    made = sandbox.questions(places)
    assert [type(one) for one in made] == [QuestionError, QuestionPrompt, QuestionPrompt] * 4
    assert "no family called" in str(made[0]) and "cannot be a question's" in str(made[3])
    assert made[1:3] == make([anywhere(), anywhere("lcm", level=3)])
    assert sandbox.questions([]) == []
    assert sandbox.score(QUESTION.coordinates, [RIGHT, WRONG]) == [1.0, 0.0] and sandbox.pid == pid


def test_the_longest_question_fits_the_pipe() -> None:
    longest = max(
        len(draw(family.name, level, 10**7 * seed).text.encode())
        for family in FAMILIES.values()
        for level in range(len(family.levels))
        for seed in range(40)
    )
    assert longest < MAX_FRAME // 4


def test_threads_and_asyncio_share_one_child(sandbox: Sandbox) -> None:
    questions = [draw(family, 0, seed * 10**8) for seed in range(20) for family in ("lcm", "chain_sum", "bf")]

    async def all_at_once() -> list[list[float]]:
        return await asyncio.gather(
            *(
                asyncio.to_thread(
                    sandbox.score,
                    question.coordinates,
                    [FAMILIES[question.coordinates.family].solution(question.entry), "x"],
                )
                for question in questions
            )
        )

    assert asyncio.run(all_at_once()) == [[1.0, 0.0]] * len(questions)


def test_a_group_is_scored_whole(sandbox: Sandbox) -> None:
    completions = (
        f"work #{RIGHT}",
        f"<answer>{WRONG}</answer>",
        RIGHT,
        f"#{RIGHT}",
        f"#{WRONG} <answer>{RIGHT}</answer>",
    )
    group = GroupRecord(
        coordinates=QUESTION.coordinates,
        completions_G=completions,
        finished_G=(True, True, True, False, True),
        model="m",
    )
    scored = score_group(sandbox, group)
    assert scored.scores_G == (1.0, 0.0, 0.0, 1.0, 1.0)
    assert scored.rewards_G == (1, 0, 0, 0, 1)
    assert scored.informative and scored.completions_G == completions
    with pytest.raises(ValueError, match="5 completions, but 1 marks"):
        score_group(
            sandbox,
            GroupRecord(
                coordinates=QUESTION.coordinates, completions_G=completions, finished_G=(True,), model=""
            ),
        )


@POSIX
def test_a_killed_or_stopped_child_is_replaced_and_no_point_is_lost() -> None:
    with Sandbox(judge_seconds=1.0) as sandbox, ThreadPoolExecutor(1) as thread:
        assert sandbox.score(QUESTION.coordinates, [RIGHT, WRONG]) == [1.0, 0.0]

        first = sandbox.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert sandbox.score(QUESTION.coordinates, [RIGHT, WRONG]) == [1.0, 0.0]

        second = sandbox.pid
        assert second is not None
        os.kill(second, signal.SIGSTOP)
        assert sandbox.score(QUESTION.coordinates, [WRONG, RIGHT]) == [0.0, 1.0]

        third = sandbox.pid
        assert third is not None
        scores = thread.submit(sandbox.score, QUESTION.coordinates, [RIGHT, WRONG] * 2000)
        os.kill(third, signal.SIGKILL)
        assert scores.result() == [1.0, 0.0] * 2000

        assert len({first, second, third, sandbox.pid}) == 4
        assert all(wait_until_gone(pid) for pid in (first, second, third))


def told(made: QuestionPrompt | QuestionError) -> QuestionPrompt | tuple[type, str]:
    """What can be compared: refusals are only equal to themselves."""
    return (type(made), str(made)) if isinstance(made, QuestionError) else made


@POSIX
def test_no_question_is_lost_with_a_child() -> None:
    places = [anywhere(level=2, seed=seed * 10**7) for seed in range(6000)]
    expected = list(map(told, make(places)))
    with Sandbox(judge_seconds=20.0) as sandbox, ThreadPoolExecutor(2) as threads:
        for how in (signal.SIGKILL, signal.SIGTERM):
            assert sandbox.questions(places[:1]) == make(places[:1])
            first = sandbox.pid
            assert first is not None
            made = threads.submit(sandbox.questions, places)
            scores = threads.submit(sandbox.score, QUESTION.coordinates, [RIGHT, WRONG] * 50)
            time.sleep(0.1)
            os.kill(first, how)
            assert list(map(told, made.result())) == expected
            assert scores.result() == [1.0, 0.0] * 50
            assert sandbox.pid != first


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def command(start: str) -> tuple[str, ...]:
        return (sys.executable, "-P", str(STAND_IN), str(tmp_path), start)

    monkeypatch.setattr(module, "COMMAND", command("starts"))
    return tmp_path


@pytest.mark.usefixtures("stand_in")
def test_an_answer_that_breaks_the_child_scores_0_and_the_rest_its_due() -> None:
    with Sandbox(judge_seconds=1.0) as sandbox:
        answers = ["score 0.5", "hang", "right", "die", "noise", "late", None, "score 0.25", "right"]
        assert sandbox.score(anywhere(), answers) == [0.5, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.25, 1.0]


@pytest.mark.usefixtures("stand_in")
def test_the_machines_fault_is_forgiven_once() -> None:
    with Sandbox(judge_seconds=1.0) as sandbox:
        assert sandbox.score(anywhere(), ["once hang", "once die", "right"]) == [1.0, 1.0, 1.0]


@pytest.mark.usefixtures("stand_in")
def test_scores_that_are_none_are_0_and_the_others_in_range() -> None:
    with Sandbox(judge_seconds=1.0) as sandbox:
        answers = ["score nan", "score inf", "score -inf", "score 7", "score -3", "score 0.99"]
        assert sandbox.score(anywhere(), answers) == [0.0, 1.0, 0.0, 1.0, 0.0, 0.99]


@pytest.mark.usefixtures("stand_in")
def test_a_question_that_cannot_be_made_in_time_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOAD_SECONDS", 0.3)
    with Sandbox(judge_seconds=1.0) as sandbox:
        with pytest.raises(
            QuestionError, match="seed 1 was not made within 0 seconds: leave this question out"
        ):
            sandbox.score(anywhere("hang"), ["right"])
        monkeypatch.setattr(module, "LOAD_SECONDS", 30.0)
        assert sandbox.score(anywhere(), ["right"]) == [1.0]
        with pytest.raises(UnsoundQuestion, match="Not here"):
            sandbox.score(anywhere("unsound"), ["right"])


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("trouble", ["hang", "die", "noise"])
def test_a_question_that_breaks_the_child_is_left_out_and_the_others_are_made(
    trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox() as sandbox:
        sandbox.questions([anywhere()])
        monkeypatch.setattr(module, "LOAD_SECONDS", 1.0)
        families = ("fine", trouble, f"once {trouble}", "fine")
        made = sandbox.questions([anywhere(family) for family in families])
    assert [type(one) for one in made] == [QuestionPrompt, UnmadeQuestion, QuestionPrompt, QuestionPrompt]
    assert "seed 1 was not made within 1 seconds: leave this question out" in str(made[1])


@pytest.mark.parametrize(
    ("start", "reason"), [("fails", "No module named 'reasoning_gym'"), ("exits", "ended with code 3")]
)
def test_a_child_that_does_not_start_is_explained(
    start: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-P", str(STAND_IN), str(tmp_path), start))
    with (
        Sandbox() as sandbox,
        pytest.raises(SandboxError, match=rf"does not start \(.*{reason}.*\): run ./shoal"),
    ):
        sandbox.score(anywhere(), ["right"])


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A child that is ready when the file `go` lies in this folder."""
    monkeypatch.setattr(module, "COMMAND", (sys.executable, "-P", str(STAND_IN), str(tmp_path), "slow"))
    monkeypatch.setattr(module, "START_SECONDS", 0.1)
    return tmp_path


def test_a_child_that_starts_slowly_is_waited_for_and_its_owner_hears_so_once(slow: Path) -> None:
    calls: list[Path] = []

    def late() -> None:
        calls.append(slow)
        (slow / "go").touch()

    with Sandbox(late=late) as sandbox:
        begun = sandbox.pid
        assert sandbox.score(anywhere(), ["right"]) == [1.0]
        assert sandbox.pid == begun, "the same one: a new one would start as slowly"
        assert sandbox.score(anywhere(), ["right"]) == [1.0]
    assert len(calls) == 1


def test_a_child_that_never_starts_is_no_reason_to_blame_the_set_up(
    slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_START_SECONDS", 0.2)
    with Sandbox() as sandbox, pytest.raises(SandboxError) as refused:
        sandbox.score(anywhere(), ["right"])
    assert "Close busy apps" in str(refused.value) and "set-up" not in str(refused.value)


@pytest.mark.usefixtures("stand_in")
def test_closing_ends_the_child_also_under_a_waiting_thread() -> None:
    sandbox = Sandbox(judge_seconds=60.0)
    assert sandbox.score(anywhere(), ["right"]) == [1.0]
    pid = sandbox.pid
    assert pid is not None
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(sandbox.score, anywhere(), ["hang"])
        time.sleep(0.2)
        sandbox.close()
        with pytest.raises(SandboxError, match="closed: open a new Sandbox"):
            waiting.result(timeout=30)
    assert gone(pid) and sandbox.pid is None
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.score(anywhere(), ["right"])
    with pytest.raises(SandboxError, match="closed"):
        sandbox.questions([anywhere()])


@pytest.mark.usefixtures("stand_in")
def test_closing_ends_the_making_of_questions_too() -> None:
    sandbox = Sandbox()
    assert sandbox.questions([anywhere()])
    with ThreadPoolExecutor(1) as thread:
        making = thread.submit(sandbox.questions, [anywhere("hang")])
        time.sleep(0.2)
        sandbox.close()
        with pytest.raises(SandboxError, match="closed: open a new Sandbox"):
            making.result(timeout=30)


def test_the_child_ends_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from app.sapo.scoring.sandbox import Sandbox; from app.sapo.questions import Coordinates\n"
            "s = Sandbox(); s.score(Coordinates(family='gcd', level=0, seed=1, index=0), ['1'])\n"
            "print(s.pid, flush=True); input()",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert not gone(child)
    parent.kill()
    parent.communicate()
    assert wait_until_gone(child)


def limited(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a process that has limited itself like the child."""
    before = "import os, socket\nfrom app.sapo.scoring import child\n"
    return subprocess.run(
        [sys.executable, "-c", before + code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@POSIX
@pytest.mark.parametrize(
    "act",
    [
        "open({path!r}, 'w')",
        "open('/etc/hosts')",
        "socket.socket()",
        "os.pipe()",
        "os.dup(0)",
        "os.listdir('/')",
    ],
)
def test_the_child_can_open_nothing(act: str, tmp_path: Path) -> None:
    done = limited("child.limit_resources()\n" + act.format(path=str(tmp_path / "canary")))
    assert done.returncode == 1 and "OSError" in done.stderr
    assert not (tmp_path / "canary").exists()


@POSIX
def test_the_child_can_write_into_no_file_that_is_open(tmp_path: Path) -> None:
    path = tmp_path / "canary"
    done = limited(
        f"f = os.open({str(path)!r}, os.O_CREAT | os.O_WRONLY)\nchild.limit_resources()\nos.write(f, b'x')"
    )
    assert done.returncode != 0 and path.read_bytes() == b""


@LINUX
def test_the_childs_memory_is_bounded() -> None:
    done = limited(
        "child.limit_resources()\nbytearray(64 * 2**20)\nprint('half', flush=True)\nbytearray(2**30)"
    )
    assert done.stdout == "half\n" and done.returncode == 1 and "MemoryError" in done.stderr


@POSIX
def test_a_child_that_spins_ends_without_its_parent() -> None:
    done = limited("child._limit_cpu(0)\nwhile True: pass")
    assert done.returncode == -signal.SIGXCPU


@LINUX
def test_the_running_child_has_its_limits(sandbox: Sandbox) -> None:
    sandbox.score(QUESTION.coordinates, [RIGHT])
    assert sandbox.pid is not None
    child = psutil.Process(sandbox.pid)
    assert child.rlimit(psutil.RLIMIT_NOFILE) == child.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
    assert 0 < child.rlimit(psutil.RLIMIT_AS)[1] < 2**31
    assert 0 < child.rlimit(psutil.RLIMIT_CPU)[0] < 1000
    assert child.num_threads() == 1 and not child.net_connections() and not child.open_files()


def test_a_resting_sandbox_has_no_child_whoever_asks_and_wakes_with_one() -> None:
    with Sandbox() as sandbox:
        assert sandbox.score(QUESTION.coordinates, [RIGHT]) == [1.0]
        first = sandbox.pid
        assert first is not None
        sandbox.suspend()
        sandbox.suspend()
        for ask in (
            lambda: sandbox.score(QUESTION.coordinates, [RIGHT]),
            lambda: sandbox.questions([anywhere()]),
        ):
            with pytest.raises(SandboxSuspended, match="resume it first"):
                ask()
        assert sandbox.pid is None and wait_until_gone(first)
        sandbox.resume()
        second = sandbox.pid
        assert second not in (None, first)
        sandbox.resume()
        assert sandbox.score(QUESTION.coordinates, [RIGHT, WRONG]) == [1.0, 0.0] and sandbox.pid == second
    for late in (sandbox.suspend, sandbox.resume):
        late()
        assert sandbox.pid is None


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("asked", ["answers", "questions"])
def test_a_rest_holds_also_against_a_thread_that_waits(asked: str) -> None:
    with Sandbox(judge_seconds=60.0) as sandbox, ThreadPoolExecutor(1) as thread:
        assert sandbox.score(anywhere(), ["right"]) == [1.0]
        if asked == "answers":
            waiting = thread.submit(sandbox.score, anywhere(), ["hang", "right"])
        else:
            waiting = thread.submit(sandbox.questions, [anywhere("hang"), anywhere()])
        time.sleep(0.2)
        sandbox.suspend()
        with pytest.raises(SandboxSuspended):
            waiting.result(timeout=30)
        assert sandbox.pid is None


@pytest.mark.usefixtures("stand_in")
def test_a_sandbox_may_begin_with_a_rest() -> None:
    with Sandbox(suspended=True) as sandbox:
        assert sandbox.pid is None
        sandbox.resume()
        assert sandbox.pid is not None and sandbox.score(anywhere(), ["right"]) == [1.0]
