"""A GGUF file becomes a model folder: the same weights, words and answers, and nothing a hostile one wants."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFReader

from app.models.gguf_shelf import GgufShelf
from app.models.shelf import Shelf, locate, starter_folder
from engines.contract import EngineError, Kind
from engines.models.folder import open_folder, open_weights
from engines.models.gguf import gguf, header
from engines.models.gguf.config import READABLE, UnpackPlan
from engines.models.tokens import ChatTokenizer
from tests.engines.llama import llama_cpp, logits, opened, tokenized
from tests.engines.small_models import MakeModel, entry, made, number, text
from tests.engines.speaking import HOSTILE, make_speaking

ROOT = Path(__file__).parents[3]


def unpacked(file: Path, to: Path) -> Path:
    to.mkdir()
    UnpackPlan(file).write(to)
    return to


def weights(folder: Path) -> dict[str, Any]:
    found = {}
    for file in open_folder(folder).files:
        with open_weights(file) as tensors:
            found |= {name: tensors.get_tensor(name) for name in tensors.keys()}  # noqa: SIM118 - not a dict
    return found


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama"])
@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_there_and_back(family: str, kind: Kind, make_model: MakeModel, tmp_path: Path) -> None:
    folder = tmp_path / "from"
    make_speaking(make_model, folder, "qwen2", family)
    gguf.write(folder, tmp_path / "model.gguf", kind)
    back = unpacked(tmp_path / "model.gguf", tmp_path / "to")
    was, found = weights(folder), weights(back)
    assert set(found) == set(was) - ({"lm_head.weight"} if "lm_head.weight" not in found else set())
    for name, tensor in found.items():
        halves = {"f16": torch.float16, "bf16": torch.bfloat16}
        stored = was[name].to(halves[kind]) if kind in halves and tensor.ndim == 2 else was[name]
        assert tensor.dtype == stored.dtype and bool((tensor == stored).all()), name
    assert gguf.architecture(open_folder(back)) == gguf.architecture(open_folder(folder))
    again = tmp_path / "again.gguf"
    gguf.write(back, again, kind)
    tokens = list(range(5, 60))
    assert np.array_equal(logits(again, tokens), logits(tmp_path / "model.gguf", tokens))


@pytest.mark.parametrize("kind", ["qwen2", "llama-bpe", "smaug-bpe", "smollm", "gpt-2"])
def test_the_words_are_llama_cpps(kind: str, make_model: MakeModel, tmp_path: Path) -> None:
    folder = tmp_path / "from"
    make_speaking(make_model, folder, kind)
    gguf.write(folder, tmp_path / "model.gguf")
    back = unpacked(tmp_path / "model.gguf", tmp_path / "to")
    was, own = ChatTokenizer(open_folder(folder)), ChatTokenizer(open_folder(back))
    with opened(tmp_path / "model.gguf") as model:
        for text in HOSTILE:
            assert own.library.encode(text, add_special_tokens=False).ids == tokenized(model, text), text
            assert own.library.encode(text, add_special_tokens=True).ids == tokenized(model, text, add=True)
            ids = own.completion(text, True)
            assert ids == was.completion(text, True)
        assert own.texts([own.completion(HOSTILE[0], True)]) == [HOSTILE[0]]
    prompt = [{"role": "user", "content": "one two"}]
    assert own.prompt(prompt) == was.prompt(prompt) and own.template == was.template
    assert own.stops >= was.stops and own.end == was.end


def test_the_starters_answers(tmp_path: Path) -> None:
    gguf.write(starter_folder(), tmp_path / "starter.gguf", "f32")
    back = unpacked(tmp_path / "starter.gguf", tmp_path / "to")
    from engines.torch_lora import open_engine

    prompt = [{"role": "user", "content": "Find the value of x in the equation: 3*x + 4 = 10\n"}]
    one, two = (
        open_engine(folder, threads=1).sample([prompt], n=4, max_tokens=16, seed=3)
        for folder in (starter_folder(), back)
    )
    assert one == two


FTYPES = {
    "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K": 12, "Q4_K": 15, "Q5_K": 17,
    "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30, "BF16": 32,
}  # fmt: skip
"""llama_ftype, llama.h."""


def requantised(file: Path, to: Path, ftype: int, pure: bool) -> None:
    settings = llama_cpp.llama_model_quantize_default_params()
    settings.ftype, settings.nthread = ftype, 1
    settings.allow_requantize = True
    settings.pure = pure
    assert llama_cpp.llama_model_quantize(str(file).encode(), str(to).encode(), settings) == 0


@pytest.fixture(scope="module")
def wide(make_model: MakeModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with rows that K-quants can hold, as F32."""
    folder = tmp_path_factory.mktemp("wide") / "from"
    make_speaking(
        make_model, folder, "llama-bpe", "llama", hidden_size=256, intermediate_size=512, head_dim=32,
        num_attention_heads=8, num_key_value_heads=2, num_hidden_layers=2,
    )  # fmt: skip
    gguf.write(folder, folder.with_name("wide.gguf"), "f32")
    return folder.with_name("wide.gguf")


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("kind", FTYPES)
def test_every_format_is_read_as_llama_cpp_reads_it(kind: str, mixed: bool, wide: Path, tmp_path: Path) -> None:
    """llama.cpp itself turns the rounded file back into fp32; ours rounds that to fp16 and nothing more."""
    requantised(wide, tmp_path / "small.gguf", FTYPES[kind], pure=not mixed)
    kinds = {tensor.tensor_type for tensor in GGUFReader(tmp_path / "small.gguf").tensors}
    assert GGMLQuantizationType[kind] in kinds
    requantised(tmp_path / "small.gguf", tmp_path / "f32.gguf", 0, pure=True)
    found = weights(unpacked(tmp_path / "small.gguf", tmp_path / "small"))
    exact = weights(unpacked(tmp_path / "f32.gguf", tmp_path / "f32"))
    assert set(found) == set(exact)
    for name, tensor in found.items():
        wanted = exact[name].to(tensor.dtype)
        assert bool(((tensor.float() - wanted.float()).abs() <= 1e-3 * wanted.float().abs() + 1e-7).all()), name


def test_every_readable_format_is_tested() -> None:
    assert {kind.name for kind in READABLE} == {*FTYPES, "F32", "F16"}


def test_one_file_is_taken_over_once(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "own.gguf"
    gguf.write(starter_folder(), file, "f16")
    shelf = GgufShelf(home)
    folder = locate(str(file), home)
    told: list[float] = []
    assert locate(file, home, told.append) == folder and not told
    shutil.copyfile(file, tmp_path / "other-name.gguf")
    assert locate(tmp_path / "other-name.gguf", home, told.append) == folder and not told
    assert [one.name for one in Shelf(home).installed()] == [str(tmp_path / "other-name.gguf")]
    gguf.write(starter_folder(), tmp_path / "other-name.gguf", "q8_0")  # the file changes
    changed = shelf.convert(tmp_path / "other-name.gguf", told.append)
    assert changed != folder and told[-1] == 1.0
    assert [one.folder for one in shelf.converted_models()] == [changed]
    (tmp_path / "other-name.gguf").unlink()
    assert locate(tmp_path / "other-name.gguf", home) == changed
    assert Shelf(home).remove(str(tmp_path / "other-name.gguf")) > 0 and not shelf.converted_models()
    with pytest.raises(EngineError, match="There is no file"):
        locate(tmp_path / "other-name.gguf", home)
    with pytest.raises(EngineError, match="models get"):
        locate(file, home, make=False)


def test_killed_at_any_moment_it_is_made_again(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "own.gguf"
    gguf.write(starter_folder(), file, "f16")
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom app.models.gguf_shelf import GgufShelf\n"
        "def tell(share):\n    if share > float(sys.argv[3]):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "GgufShelf(Path(sys.argv[1])).convert(Path(sys.argv[2]), tell)\n"
    )
    for share in (0.0, 0.5, 0.99):
        done = subprocess.run([sys.executable, "-c", program, home, file, str(share)], cwd=ROOT, timeout=60)
        assert done.returncode == -9
        assert not GgufShelf(home).converted_models() and not Shelf(home).installed()
    folder = locate(file, home)
    assert weights(folder) and {one.name for one in (home / "hub" / "gguf").iterdir() if one.is_dir()} == {
        folder.name
    }


def test_no_room_is_said_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.gguf"
    gguf.write(starter_folder(), file, "f16")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 5 * 10**8))
    with pytest.raises(EngineError, match="free up some space"):
        GgufShelf(tmp_path / "home").convert(file)
    assert not GgufShelf(tmp_path / "home").converted_models()


@pytest.fixture(scope="module")
def small(make_model: MakeModel, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("small") / "from"
    make_speaking(make_model, folder, "smollm", "llama")
    gguf.write(folder, folder.with_name("small.gguf"), "f16")
    return folder.with_name("small.gguf").read_bytes()


ARCH = entry("general.architecture", 8, text("llama"))
LIES: dict[str, bytes] = {
    "nothing": b"",
    "another file": b"PK\x03\x04" * 100,
    "version 9": b"GGUF" + number(9, "I") + bytes(16),
    "2^64 tensors": b"GGUF" + number(3, "I") + number(2**64 - 1) + number(0),
    "2^63 entries": b"GGUF" + number(3, "I") + number(0) + number(2**63),
    "a text of 2^63 bytes": made([number(2**63) + b"x"]),
    "an array of 2^62 numbers": made([entry("a", 9, number(4, "I") + number(2**62))]),
    "an array of 2^40 texts": made([entry("a", 9, number(8, "I") + number(2**40))]),
    "arrays in arrays": made([entry("a", 9, (number(9, "I") + number(1)) * 5000)]),
    "the same key twice": made([ARCH, ARCH]),
    "alignment 0": made([ARCH, entry("general.alignment", 4, number(0, "I"))]),
    "alignment a text": made([ARCH, entry("general.alignment", 8, text("x"))]),
    "alignment 3": made([ARCH, entry("general.alignment", 4, number(3, "I"))]),
    "no family": made([]),
    "another family": made([entry("general.architecture", 8, text("mamba"))]),
    "a family that is a number": made([entry("general.architecture", 4, number(7, "I"))]),
    "an adapter": made([ARCH, entry("general.type", 8, text("adapter"))]),
    "a piece": made([ARCH, entry("split.count", 2, number(4, "H"))]),
    "2^32 layers": made(
        [
            ARCH,
            *(
                entry(f"llama.{key}", 4, number(2**32 - 1, "I"))
                for key in ("block_count", "embedding_length", "attention.head_count", "feed_forward_length")
            ),
        ]
    ),
    "a tensor of 2^189 numbers": made(
        [ARCH], text("x") + number(3, "I") + number(2**63) * 3 + number(0, "I") + number(0), 1
    ),
    "a tensor of 9 dimensions": made(
        [ARCH], text("x") + number(9, "I") + number(1) * 9 + number(0, "I") + number(0), 1
    ),
    "a tensor of no known kind": made(
        [ARCH], text("x") + number(1, "I") + number(1) + number(999, "I") + number(0), 1
    ),
    "a tensor beyond the end": made(
        [ARCH], text("x") + number(1, "I") + number(1) + number(0, "I") + number(2**62), 1
    ),
}


def judged(file: Path, to: Path) -> str:
    """Taken over whole, or refused in one sentence; the sentence, empty where it was taken."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    try:
        UnpackPlan(file).write(to)
        ChatTokenizer(open_folder(to))
    except EngineError as error:
        said = str(error)
        assert said.endswith(".") and "\n" not in said and len(said) < 400 and said.isprintable(), said
        return said
    return ""


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_in_one_sentence(lie: str, tmp_path: Path) -> None:
    (tmp_path / "lie.gguf").write_bytes(LIES[lie])
    assert judged(tmp_path / "lie.gguf", tmp_path / "to")


@pytest.mark.parametrize("second, whole", [(0, False), (32, False), (64, True)])
def test_tensors_do_not_share_bytes(second: int, whole: bool, tmp_path: Path) -> None:
    """A file of 2.2 MB whose tensors lay over one another became a model of 217."""
    tensors = [text(name) + number(1, "I") + number(16) + number(0, "I") for name in ("x", "y")]
    content = made([ARCH], tensors[0] + number(second) + tensors[1] + number(0), 2)
    (tmp_path / "a.gguf").write_bytes(content + bytes(256))
    if whole:
        assert set(header.read(tmp_path / "a.gguf").places) == {"x", "y"}
    else:
        with pytest.raises(EngineError):
            header.read(tmp_path / "a.gguf")


def test_other_families_hear_which_ones_work(tmp_path: Path) -> None:
    (tmp_path / "lie.gguf").write_bytes(LIES["another family"])
    said = judged(tmp_path / "lie.gguf", tmp_path / "to")
    assert "mamba" in said and all(name in said for name in ("Qwen2", "Qwen3", "Llama"))


MUTATIONS: list[Callable[[bytearray, Random], None]] = []


def mutation(change: Callable[[bytearray, Random], None]) -> Callable[[bytearray, Random], None]:
    MUTATIONS.append(change)
    return change


def _at(file: bytearray, chance: Random) -> int:
    """Mostly in the header, where the lies are."""
    return chance.randrange(min(len(file) - 8, 2000 if chance.random() < 0.7 else len(file)))


@mutation
def _bits(file: bytearray, chance: Random) -> None:
    for _ in range(chance.choice([1, 1, 4, 30])):
        file[_at(file, chance)] ^= 1 << chance.randrange(8)


@mutation
def _length(file: bytearray, chance: Random) -> None:
    value = chance.choice([0, 1, 2**31, 2**32, 2**62, 2**63, 2**64 - 1, len(file)])
    at = _at(file, chance)
    file[at : at + 8] = number(value)


@mutation
def _cut(file: bytearray, chance: Random) -> None:
    del file[_at(file, chance) :]


@mutation
def _hole(file: bytearray, chance: Random) -> None:
    at = _at(file, chance)
    del file[at : at + chance.randrange(1, 64)]


@mutation
def _twice(file: bytearray, chance: Random) -> None:
    at = _at(file, chance)
    file[at:at] = file[at : at + chance.randrange(1, 256)]


@mutation
def _noise(file: bytearray, chance: Random) -> None:
    at = _at(file, chance)
    file[at : at + 16] = chance.randbytes(16)


def fuzzed(small: bytes, place: Path, count: int, seed: int) -> int:
    """How many of so many changed files were refused. Memory may not grow by much, whatever they claim."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for index in range(count):
        chance = Random(f"{seed} {index}")
        file = bytearray(small)
        chance.choice(MUTATIONS)(file, chance)
        (place / "changed.gguf").write_bytes(file)
        refused += bool(judged(place / "changed.gguf", place / "to"))
    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 200 * 2**20
    return refused


def test_changed_files(small: bytes, tmp_path: Path) -> None:
    (tmp_path / "whole.gguf").write_bytes(small)
    assert judged(tmp_path / "whole.gguf", tmp_path / "to") == ""
    assert fuzzed(small, tmp_path, 200, 0) > 80


@pytest.mark.long
def test_ten_thousand_changed_files(small: bytes, tmp_path: Path) -> None:
    assert fuzzed(small, tmp_path, 10_000, 1) > 4_000


def test_a_damaged_file_costs_run_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "lie.gguf").write_bytes(LIES["a text of 2^63 bytes"])
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", "run", "--solo", "--model", tmp_path / "lie.gguf"],
        capture_output=True, text=True, cwd=ROOT, timeout=60, env={**os.environ, "SHOAL_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1 and "lie.gguf" in done.stderr


def test_the_config_is_what_transformers_reads(small: bytes, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (tmp_path / "small.gguf").write_bytes(small)
    folder = unpacked(tmp_path / "small.gguf", tmp_path / "to")
    import torch

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokens = list(range(3, 40))
    with torch.no_grad():
        found = model(torch.tensor([tokens])).logits[0].numpy()
    gguf.write(folder, tmp_path / "f32.gguf", "f32")
    assert np.abs(found - logits(tmp_path / "f32.gguf", tokens)).max() < 1e-4
    words = AutoTokenizer.from_pretrained(folder)
    own = ChatTokenizer(open_folder(folder)).library
    for line in HOSTILE:
        assert words.encode(line, add_special_tokens=False) == own.encode(line, add_special_tokens=False).ids
    assert (
        json.loads((folder / "config.json").read_text())["rope_theta"]
        == model.config.rope_parameters["rope_theta"]
    )
