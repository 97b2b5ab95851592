"""The trainer process for real, around a fake engine: its messages, its standard output, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.node.record.errors import DiskFullError
from app.node.trainer import messages
from app.node.trainer.link import TrainerDied, TrainerLink
from engines.contract import AdapterError, EngineError
from tests.node.bench import FAKE

PROMPT = [{"role": "user", "content": "add: 1 + 2 ="}]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with subprocess.Popen(
        [sys.executable, str(FAKE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


def ask(trainer: subprocess.Popen[bytes], request: messages.Request) -> messages.Reply:
    trainer.stdin.write(messages.to_line(request))
    trainer.stdin.flush()
    return messages.decode_reply(trainer.stdout.readline())


def test_every_answer_has_the_number_of_its_question(trainer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    reply = ask(trainer, messages.OpenModel(number=7, model="m", rank=None, seed=1))
    assert isinstance(reply, messages.TrainerOpened) and reply.number == 7 and reply.info.name == "fake"
    reply = ask(trainer, messages.Save(number=9, folder=str(tmp_path)))
    assert reply == messages.TrainerDone(number=9)
    foreign = messages.PeerTexts(prompt=PROMPT, completions_G=("#3", "no"), finished_G=(True, False))
    reply = ask(trainer, messages.ReadGroups(number=10, groups_P=[foreign], max_tokens=9, logprobs=True))
    (reading,) = reply.readings_P
    assert reply.number == 10 and reading.sequences_G[0].completion_T == [ord("#"), ord("3"), 0]
    assert reading.logprobs_GT == [[-0.1, -0.1, -0.1], [0.0, 0.0]]


def test_samples_come_slice_by_slice_with_progress(trainer: subprocess.Popen[bytes]) -> None:
    ask(trainer, messages.OpenModel(number=1, model="m", rank=None, seed=1))
    request = messages.SamplePrompts(
        number=2, prompts_P=[PROMPT] * 3, n=2, max_tokens=9, seed=5, prompts_at_once=2
    )
    first = ask(trainer, request)
    assert first == messages.SampleProgress(number=2, done=4, total=6)
    assert messages.decode_reply(trainer.stdout.readline()) == messages.SampleProgress(
        number=2, done=6, total=6
    )
    sampled = messages.decode_reply(trainer.stdout.readline())
    assert [len(group) for group in sampled.groups_PG] == [2, 2, 2]
    assert sampled.tokens == sum(len(c.tokens_T) for group in sampled.groups_PG for c in group)
    assert sampled.prompts_PT[0] == [*map(ord, "add: 1 + 2 =")]


def test_texts_only_leaves_out_tokens(trainer: subprocess.Popen[bytes]) -> None:
    ask(trainer, messages.OpenModel(number=1, model="m", rank=None, seed=1))
    request = messages.SamplePrompts(
        number=2, prompts_P=[PROMPT], n=1, max_tokens=9, seed=5, prompts_at_once=9, texts_only=True
    )
    ask(trainer, request)
    sampled = messages.decode_reply(trainer.stdout.readline())
    (completion,) = sampled.groups_PG[0]
    assert completion.text and not completion.tokens_T and sampled.tokens > 0 and not sampled.prompts_PT


def test_work_before_a_model_is_refused_in_words(trainer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    reply = ask(trainer, messages.Save(number=1, folder=str(tmp_path)))
    assert isinstance(reply, messages.TrainerFailed) and reply.reason == "engine"


@pytest.mark.parametrize(
    "line", [b"no json\n", b'{"type":"open","number":1}\n', b'{"type":"dance"}\n', b"\xff\xfe\n"]
)
def test_a_line_that_is_no_request_ends_it(trainer: subprocess.Popen[bytes], line: bytes) -> None:
    trainer.stdin.write(line)
    trainer.stdin.flush()
    assert trainer.wait(120) == 1


def test_it_ends_when_its_input_closes(trainer: subprocess.Popen[bytes]) -> None:
    trainer.stdin.close()
    assert trainer.wait(120) == 0


def test_it_ends_when_its_node_is_killed_even_in_the_middle_of_work(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys, time; from pathlib import Path; from app.node.trainer.link import TrainerLink\n"
        "async def main():\n"
        f"    log, command = Path({str(tmp_path / 'log')!r}), [sys.executable, {str(FAKE)!r}]\n"
        "    link = await TrainerLink.start(log, print, alone=True, command=command)\n"
        "    await link.open(Path('m'), None, 1)\n"
        "    print(link.pid, flush=True)\n"
        f"    await link.sample([{PROMPT!r}] * 1000, 1, 9, 1, prompts_at_once=1)\n"
        "asyncio.run(main())"
    )
    environment = {**os.environ, "FAKE_TROUBLE": "slow", "PYTHONPATH": str(ROOT)}
    node = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    trainer = psutil.Process(int(node.stdout.readline()))
    node.kill()
    node.communicate()
    psutil.wait_procs([trainer], timeout=120)
    assert not trainer.is_running() or trainer.status() == psutil.STATUS_ZOMBIE


def test_ctrl_c_is_the_nodes_business(trainer: subprocess.Popen[bytes]) -> None:
    ask(trainer, messages.OpenModel(number=1, model="m", rank=None, seed=1))
    trainer.send_signal(signal.SIGINT)
    assert isinstance(
        ask(trainer, messages.OpenModel(number=2, model="m", rank=None, seed=1)), messages.TrainerOpened
    )


@pytest.mark.parametrize("size", [messages.MAX_LINE, messages.MAX_LINE + 1])
def test_messages_have_a_limit(size: int) -> None:
    line = b"x" * (size - 1) + b"\n"
    with pytest.raises(messages.MessageError):
        messages.decode_reply(line)


async def link_to(tmp_path: Path, script: str, alone: bool = False) -> TrainerLink:
    """A link to a trainer of our own making."""
    program = tmp_path / "trainer.py"
    program.write_text(script)
    command = [sys.executable, str(program)]
    return await TrainerLink.start(tmp_path / "logs" / "trainer.log", print, alone=alone, command=command)


DEATHS = {
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": "memory ran short",
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)": "Another program",
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "crashed",
    "raise ValueError('secret detail')": "after an error",
    "import sys; sys.stdin.readline()": "unasked",
    "input(); print('hello', flush=True)": "couldn't be understood",
    'input(); print(\'{"type":"done","number":99}\', flush=True)': "couldn't be understood",
    'input(); print(\'{"type":"done","number":1}\', flush=True)': "couldn't be understood",
}


@pytest.mark.parametrize("script", DEATHS)
def test_every_death_is_told_in_words(tmp_path: Path, script: str) -> None:
    async def die() -> None:
        link = await link_to(tmp_path, script)
        with pytest.raises(TrainerDied) as died:
            await link.open(Path("m"), None, 1)
        said = str(died.value).replace(str(tmp_path), "")  # the folder's own name may hold any digits
        assert DEATHS[script] in said
        assert not any(word in said for word in ("Traceback", "SIG", "-9", "-11", "secret"))
        assert died.value.remedy

    asyncio.run(die())


FAILURES = {"engine": EngineError, "adapter": AdapterError, "disk": DiskFullError}


@pytest.mark.parametrize("reason", FAILURES)
def test_refusals_become_errors_and_the_link_stays(tmp_path: Path, reason: str) -> None:
    failed = messages.to_line(messages.TrainerFailed(number=1, sentence="No.", reason=reason)).decode()
    done = messages.to_line(messages.TrainerDone(number=2)).decode()
    script = f"for line in ({failed!r}, {done!r}):\n  input(); print(line, end='', flush=True)"

    async def refuse() -> None:
        link = await link_to(tmp_path, script)
        with pytest.raises(FAILURES[reason], match="No"):
            await link.load(tmp_path)
        await link.load(tmp_path)
        await link.end()

    asyncio.run(refuse())


def test_the_log_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "trainer.log"
    log.parent.mkdir()
    log.write_bytes(b"x" * (2**20 + 1))

    async def start() -> None:
        link = await link_to(tmp_path, "")
        await link.end()

    asyncio.run(start())
    assert log.stat().st_size == 0 and log.with_suffix(".old.log").stat().st_size == 2**20 + 1


def test_solo_forbids_the_trainer_the_network(tmp_path: Path) -> None:
    script = (
        "import socket\n"
        "from app.node.trainer.process import serve\n"
        "def reach(*_): socket.create_connection(('127.0.0.1', 9))\n"
        "serve(reach)"
    )

    async def reach() -> None:
        link = await link_to(tmp_path, script, alone=True)
        with pytest.raises(TrainerDied):
            await link.open(Path("m"), None, 1)

    asyncio.run(reach())
    assert "SoloError" in (tmp_path / "logs" / "trainer.log").read_text()


def test_the_trainer_is_told_which_engine_and_which_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_ENGINE", "of somebody else")
    script = (
        "import os, sys; sys.stdin.readline(); sys.stderr.write(os.environ['SHOAL_ENGINE'] + ' ')\n"
        "sys.stderr.write(os.environ['SHOAL_HOME'])"
    )
    (tmp_path / "trainer.py").write_text(script)

    async def start() -> None:
        log = tmp_path / "logs" / "trainer.log"
        command = [sys.executable, str(tmp_path / "trainer.py")]
        link = await TrainerLink.start(log, print, alone=True, command=command, engine="mlx", home=tmp_path)
        with pytest.raises(TrainerDied):
            await link.open(Path("m"), None, 1)

    asyncio.run(start())
    assert (tmp_path / "logs" / "trainer.log").read_text() == f"mlx {tmp_path}"


def test_no_library_finds_the_input_that_a_thread_waits_on() -> None:
    """On Windows the first import of numpy would wait until the node writes (numpy issue 24290)."""
    code = """
import os, threading
from app.node.trainer.messages import own_standard_streams
source, channel = own_standard_streams()
lines = []
waiting = threading.Thread(target=lambda: lines.append(source.readline()))
waiting.start()
channel.write(b"%d\\n" % len(os.read(0, 1)))
waiting.join()
channel.write(lines[0])
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, cwd=ROOT) as child:
        assert child.stdout.readline() == b"0\n"
        child.stdin.write(b"a request\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"a request\n"
