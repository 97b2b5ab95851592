"""llama.cpp as sampler: the learner's own distribution, the same tokens for a seed, no adapter where none is
wanted."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from engines import llamacpp
from engines.contract import EngineError, TokenSequence
from engines.llamacpp import open_engine
from engines.llamacpp.model import Context
from engines.torch_lora import open_engine as open_torch
from tests.engines.lessons import PROMPTS, move, sequences, worst
from tests.engines.small_models import MakeModel

if reason := llamacpp.why_unavailable():
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(autouse=True)
def _home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path_factory.getbasetemp() / "home"))


def test_what_prompts_begin_with_alike_is_read_once(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the same answers come of it, of three prompts with the same examples and one with others."""
    examples = " ".join(f"w{n % 9}" for n in range(90))
    others = " ".join(f"w{n % 7}" for n in range(90))
    prompts = [
        [{"role": "user", "content": f"{begin} {text}"}]
        for begin, text in ((examples, "w1 w2"), (examples, "w3"), (examples, "w4 w5"), (others, "w6"))
    ]
    read: list[int] = []
    plain = Context._decode

    def counting(context: Context, size: int) -> None:
        read.append(size)
        plain(context, size)

    monkeypatch.setattr(Context, "_decode", counting)
    shared = open_engine(tiny).sample(prompts, 4, 12, seed=3)
    few = sum(size for size in read if size > 4)
    read.clear()
    monkeypatch.setattr("engines.llamacpp.model.MIN_REUSED_PREFIX", 10**6)
    whole = open_engine(tiny).sample(prompts, 4, 12, seed=3)
    assert few < 0.7 * sum(size for size in read if size > 4)
    assert [[c.tokens_T for c in group] for group in shared] == [[c.tokens_T for c in group] for group in whole]


@pytest.mark.parametrize("kind", ["f16", "bf16", "q8_0"])
def test_fewer_bits_are_near(kind: str, tiny: Path) -> None:
    engine = open_engine(tiny, kind=kind)  # type: ignore[arg-type]
    assert engine.info.sampler == f"llama.cpp {kind}"
    groups = engine.sample(PROMPTS, 8, 24, seed=1)
    assert 0 < worst(engine, groups) < 0.5
    move(engine, groups)
    groups = engine.sample(PROMPTS, 8, 24, seed=2)
    learned = engine.logprobs(sequences(engine, groups))
    sampled = [completion.logprobs_T for group in groups for completion in group]
    apart = [
        abs(a - b) for one, two in zip(learned, sampled, strict=True) for a, b in zip(one, two, strict=True)
    ]
    assert sum(apart) / len(apart) < 0.05


def test_same_seed_same_tokens(tiny: Path) -> None:
    """And those of torch's sampler, which draws at the same quantiles."""
    engine = open_engine(tiny)
    groups = engine.sample(PROMPTS, 4, 16, seed=7)
    assert open_engine(tiny).sample(PROMPTS, 4, 16, seed=7) == groups
    assert engine.sample(PROMPTS, 4, 16, seed=8) != groups
    torch_s = open_torch(tiny).sample(PROMPTS, 4, 16, seed=7)
    assert [[c.tokens_T for c in group] for group in torch_s] == [
        [c.tokens_T for c in group] for group in groups
    ]
    assert [[c.text for c in group] for group in torch_s] == [[c.text for c in group] for group in groups]


@pytest.mark.parametrize("places", [1, 3, 5])
def test_places_change_nothing(places: int, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer sequences than rows: questions wait, are cut in two, and take over where others have finished."""
    engine = open_engine(tiny)
    expected = engine.sample(PROMPTS, 4, 24, seed=3)
    monkeypatch.setattr("engines.llamacpp.engine.MAX_SEQUENCES", places)
    found = open_engine(tiny).sample(PROMPTS, 4, 24, seed=3)
    for group, other in zip(expected, found, strict=True):
        assert [c.tokens_T for c in group] == [c.tokens_T for c in other]
        for one, two in zip(group, other, strict=True):
            assert one.logprobs_T == pytest.approx(two.logprobs_T, abs=1e-4)


def test_many_swaps_take_no_memory(tiny: Path) -> None:
    engine = open_engine(tiny, rank=64)
    process = psutil.Process()
    groups = engine.sample(PROMPTS, 4, 8, seed=1)
    sizes = []
    for number in range(40):
        move(engine, groups, rate=1e-4)
        engine.sample(PROMPTS, 4, 8, seed=number)
        sizes.append(process.memory_info().rss)
    assert max(sizes[20:]) - max(sizes[:20]) < 16 * 2**20


def test_what_cannot_be_sampled(tiny: Path) -> None:
    engine = open_engine(tiny)
    with pytest.raises(EngineError, match="exceed the 256 tokens"):
        engine.sample(PROMPTS, 2, 250, seed=0)
    with pytest.raises(EngineError, match="at least 1"):
        engine.sample(PROMPTS, 0, 8, seed=0)
    assert engine.sample([], 4, 8, seed=0) == []
    # To the last cell of the context: nothing overflows.
    longest = 256 - len(engine.prompt_tokens(PROMPTS[2]))
    assert max(len(c.tokens_T) for c in engine.sample(PROMPTS[2:3], 64, longest, seed=0)[0]) <= longest


def test_a_long_prompt_is_read_in_parts(make_model: MakeModel) -> None:
    folder = make_model("qwen2", max_position_embeddings=2048)
    engine = open_engine(folder)
    prompt = [[{"role": "user", "content": " ".join(f"w{i % 24}" for i in range(700))}]]
    (group,) = engine.sample(prompt, 3, 8, seed=0)
    learned = engine.logprobs(
        [TokenSequence(prompt_T=engine.prompt_tokens(prompt[0]), completion_T=c.tokens_T) for c in group]
    )
    for completion, expected in zip(group, learned, strict=True):
        assert completion.logprobs_T == pytest.approx(expected, abs=1e-3)


def test_short_of_memory(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(tiny)
    expected = engine.sample(PROMPTS, 4, 8, seed=0)
    monkeypatch.setattr("engines.llamacpp.engine.free_memory", lambda _: 2 * 3 * engine._follower.row_bytes(16))
    found = engine.sample(PROMPTS, 4, 8, seed=0)
    assert engine.notes == ["Memory is short: 3 answers are now sampled at a time."]
    assert [[c.tokens_T for c in g] for g in found] == [[c.tokens_T for c in g] for g in expected]
    monkeypatch.setattr("engines.llamacpp.engine.free_memory", lambda _: 0)
    with pytest.raises(EngineError, match="doesn't fit into the free memory"):
        engine.sample(PROMPTS, 4, 8, seed=0)


def test_numbers_that_are_not_finite(tiny: Path) -> None:
    engine = open_engine(tiny)
    with torch.no_grad():
        engine._adapter.values.fill_(math.nan)
    engine._adapter.version += 1
    with pytest.raises(EngineError, match="t finite"):
        engine.sample(PROMPTS, 2, 4, seed=0)


def test_other_devices_and_architectures(tiny: Path, make_model: MakeModel) -> None:
    with pytest.raises(EngineError, match="not on cuda"):
        open_engine(tiny, device="cuda")
    with pytest.raises(EngineError, match="torch engine"):
        open_engine(make_model("gpt_neox"))


def test_a_damaged_conversion_is_made_again(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One with a whole header that llama.cpp still refuses, once; then a sentence."""
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path))
    expected = open_engine(tiny).sample(PROMPTS, 2, 8, seed=0)
    (file,) = (tmp_path / "cache" / "gguf").glob("*.gguf")
    content = file.read_bytes()
    file.write_bytes(content.replace(b"qwen2.block_count", b"qwen2.block_cound"))
    engine = open_engine(tiny)
    assert engine.notes == ["The converted model was damaged and has been made again."]
    assert engine.sample(PROMPTS, 2, 8, seed=0) == expected and file.read_bytes() == content
    file.write_bytes(content[: len(content) // 2])
    assert open_engine(tiny).sample(PROMPTS, 2, 8, seed=0) == expected
    monkeypatch.setattr("engines.llamacpp.follower.gguf.cached", lambda *_: _junk(tmp_path / "junk.gguf"))
    with pytest.raises(EngineError, match=r"can.t open junk\.gguf"):
        open_engine(tiny)


def _junk(file: Path) -> Path:
    file.write_bytes(b"GGUF and nothing else")
    return file


def test_a_damaged_adapter_leaves_the_base(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The high-level Llama runs on silently without its adapter then; here it is an error, and heals."""
    engine = open_engine(tiny)
    base = engine.sample(PROMPTS, 2, 8, seed=0)
    move(engine, base)
    trained = engine.sample(PROMPTS, 2, 8, seed=0)
    write = "engines.llamacpp.follower.gguf_adapter.write_state"
    with monkeypatch.context() as patched:
        patched.setattr(write, lambda *_, to, **__: to.write_bytes(b"GGUF rubbish"))
        move(engine, base, rate=0.0)
        with pytest.raises(EngineError, match="can't read the adapter"):
            engine.sample(PROMPTS, 2, 8, seed=0)
        assert engine.sample(PROMPTS, 2, 8, seed=0, plain=True) == base
    assert engine.sample(PROMPTS, 2, 8, seed=0) == trained


def test_a_process_ends_in_the_middle_of_sampling(tiny: Path) -> None:
    """As the trainer ends: at once, from another thread, while llama.cpp computes."""
    code = (
        "import os, sys, threading, time\n"
        "from engines.llamacpp import open_engine\n"
        f"engine = open_engine({str(tiny)!r})\n"
        "def end():\n    sys.stdin.readline()\n    os._exit(0)\n"
        "threading.Thread(target=end, daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "while True:\n    engine.sample([[{'role': 'user', 'content': 'w1 w2'}]] * 64, 64, 200, seed=1)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            time.sleep(0.3)
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.wait(timeout=120) == 0
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)


def test_under_memory_pressure_steps_get_smaller(tiny: Path) -> None:
    engine = open_engine(tiny)
    before = engine._base.learner.limits.tokens
    assert "tokens at a time" in str(engine.step_down())
    assert engine._base.learner.limits.tokens == before // 2
    while engine.step_down() is not None:
        pass
    assert engine._base.learner.limits.checkpointing
