"""Every export is opened again by the library it is for, and computes what the engine computes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from app.models import export
from app.models import export as merge
from app.models.export import FORMATS, ExportOrder
from engines.contract import AdapterError, Batch, EngineError, Row, TokenSequence
from engines.models.folder import open_folder
from engines.models.gguf import gguf
from engines.models.tokens import ChatTokenizer
from engines.torch_lora import open_engine
from tests.engines.small_models import MakeModel, reference
from tests.engines.speaking import HOSTILE, make_speaking

SEQUENCE = TokenSequence(prompt_T=[5, 6, 3, 10, 200, 11], completion_T=[10, 11, 300, 42, 7])
TOKENS = SEQUENCE.prompt_T + SEQUENCE.completion_T
BATCH = Batch(
    rows_S=[Row(prompt_T=[5, 6, 3], completion_T=[10, 300, 7], weights_T=[1.0, -0.5, 0.7])], learning_rate=0.05
)
FAMILIES = ("qwen2", "qwen3", "llama")


class Learned:
    """A model that has learned something: folders of base and adapter, and the engine's own log-probs."""

    def __init__(self, base: Path, adapter: Path) -> None:
        engine = open_engine(base, rank=4, seed=1, device="cpu")
        plain = engine.logprobs([SEQUENCE])[0]
        for _ in range(4):
            engine.step(BATCH)
        engine.save(adapter)
        self.base, self.adapter = base, adapter
        self.logprobs = engine.logprobs([SEQUENCE])[0]
        assert np.abs(np.subtract(plain, self.logprobs)).max() > 0.5

    def order(self, format: str, **more: Any) -> ExportOrder:
        return ExportOrder(format=format, base=self.base, adapter=self.adapter, kind="f32", **more)


@pytest.fixture(scope="module")
def learned(make_model: MakeModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Learned]:
    made: dict[str, Learned] = {}

    def make(family: str) -> Learned:
        if family not in made:
            place = tmp_path_factory.mktemp(f"learned-{family}")
            made[family] = Learned(make_speaking(make_model, place / "base", family=family), place / "adapter")
        return made[family]

    return make


def logprobs(logits_TV: Any) -> list[float]:
    found = torch.as_tensor(np.array(logits_TV)).float().log_softmax(-1)
    first = len(SEQUENCE.prompt_T) - 1
    return [float(found[first + at, token]) for at, token in enumerate(SEQUENCE.completion_T)]


@torch.no_grad()
def by_torch(model: Any) -> list[float]:
    return logprobs(model.eval()(torch.tensor([TOKENS])).logits[0].numpy())


def by_peft(out: Path, base: Path) -> list[float]:
    from peft import PeftModel

    return by_torch(PeftModel.from_pretrained(reference(base), out))


def by_transformers(out: Path, base: Path) -> list[float]:
    from transformers import AutoTokenizer

    own = ChatTokenizer(open_folder(base)).library
    theirs = AutoTokenizer.from_pretrained(out, local_files_only=True)
    for text in HOSTILE:
        assert (
            theirs(text, add_special_tokens=False).input_ids == own.encode(text, add_special_tokens=False).ids
        )
    return by_torch(reference(out))


def by_llama_cpp_with_base(out: Path, base: Path) -> list[float]:
    from tests.engines.llama import logits

    gguf.write(base, out / "base.gguf", "f32")
    return logprobs(logits(out / "base.gguf", TOKENS, out / "adapter.gguf"))


def by_llama_cpp(out: Path, base: Path) -> list[float]:
    from tests.engines.llama import logits, opened, tokenized

    own = ChatTokenizer(open_folder(base)).library
    with opened(out / "model.gguf") as model:
        assert tokenized(model, HOSTILE[1]) == own.encode(HOSTILE[1], add_special_tokens=False).ids
    return logprobs(logits(out / "model.gguf", TOKENS))


def by_mlx(out: Path, base: Path) -> list[float]:
    mlx = pytest.importorskip("mlx.core", reason="mlx is not installed")
    utils = pytest.importorskip("mlx_lm.utils", reason="mlx-lm is not installed")
    told = out.parent / "told-base"  # mlx-lm reads the rotary base only where older files have it
    shutil.copytree(base, told)
    (told / "config.json").write_text(
        json.dumps(merge.portable_config(json.loads((base / "config.json").read_text())))
    )
    model, _ = utils.load_model(told)
    model = utils.load_adapters(model, str(out))
    model.eval()
    return logprobs(np.array(model(mlx.array([TOKENS]))[0]))


LOADED: dict[str, Callable[[Path, Path], list[float]]] = {
    "peft": by_peft,
    "gguf": by_llama_cpp_with_base,
    "mlx": by_mlx,
    "merged": by_transformers,
    "ollama": by_llama_cpp,
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("format", FORMATS)
def test_its_own_library_computes_the_same(
    format: str, family: str, learned: Callable[[str], Learned], tmp_path: Path
) -> None:
    one = learned(family)
    out = tmp_path / "deep" / "out"
    export.write(one.order(format, files={"README.md": "a card\n"}), out)
    assert LOADED[format](out, one.base) == pytest.approx(one.logprobs, rel=1e-3, abs=1e-3)
    assert (out / "README.md").read_text() == "a card\n"
    assert not [file for file in out.parent.iterdir() if file.name.startswith(".writing")]


def test_a_merged_model_opens_in_mlx_too(learned: Callable[[str], Learned], tmp_path: Path) -> None:
    mlx = pytest.importorskip("mlx.core", reason="mlx is not installed")
    utils = pytest.importorskip("mlx_lm.utils", reason="mlx-lm is not installed")
    export.write(learned("qwen2").order("merged"), tmp_path / "out")
    model, _ = utils.load_model(tmp_path / "out")
    found = logprobs(np.array(model(mlx.array([TOKENS]))[0]))
    assert found == pytest.approx(learned("qwen2").logprobs, rel=1e-3, abs=1e-3)


def test_a_merged_model_can_be_trained_on(learned: Callable[[str], Learned], tmp_path: Path) -> None:
    export.write(learned("llama").order("merged"), tmp_path / "out")
    engine = open_engine(tmp_path / "out", rank=4, device="cpu")
    assert engine.logprobs([SEQUENCE])[0] == pytest.approx(learned("llama").logprobs, rel=1e-3, abs=1e-3)


def test_shards_and_half_precision(make_model: MakeModel, tmp_path: Path) -> None:
    """A base in bf16 and several files: the merged one has the same files and number format."""
    base = make_speaking(make_model, tmp_path / "base", family="llama")
    (base / "model.safetensors").unlink()
    reference(make_model("llama", vocab_size=512), torch.bfloat16).save_pretrained(base, max_shard_size="40KB")
    one = Learned(base, tmp_path / "adapter")
    export.write(one.order("merged"), tmp_path / "out")
    names = sorted(file.name for file in base.glob("model*"))
    assert len(names) > 2 and sorted(file.name for file in (tmp_path / "out").glob("model*")) == names
    assert all(t.dtype == torch.bfloat16 for t in load_file(next((tmp_path / "out").glob("model-*"))).values())
    assert by_torch(reference(tmp_path / "out")) == pytest.approx(one.logprobs, abs=0.2)


@pytest.mark.skipif(os.name == "nt", reason="links need a right on Windows")
@pytest.mark.parametrize("format", ["merged", "ollama"])
@pytest.mark.parametrize("name", ["LICENSE", "NOTICE.md"])
def test_a_link_out_of_a_model_is_no_file_to_copy(
    format: str, name: str, learned: Callable[[str], Learned], tmp_path: Path
) -> None:
    """Another file of the owner's was copied, with its content, into what they give away."""
    made, secret = learned("llama"), tmp_path / "secret"
    secret.write_text("not to be given away")
    cached = tmp_path / "models--some--base"
    base = cached / "snapshots" / "1"
    shutil.copytree(made.base, base)
    (base / name).symlink_to(secret)
    with pytest.raises(EngineError, match=name):
        export.write(ExportOrder(format, base, made.adapter, kind="f32"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (cached / "blobs").mkdir()
    secret.rename(cached / "blobs" / "licence")
    (base / name).unlink()
    (base / name).symlink_to(Path("../../blobs/licence"))
    export.write(ExportOrder(format, base, made.adapter, kind="f32"), tmp_path / "out")
    assert (tmp_path / "out" / name).read_text() == "not to be given away", "Hugging Face's cache is of links"


def test_what_is_in_the_way(learned: Callable[[str], Learned], tmp_path: Path) -> None:
    """An empty folder is taken; anything else stays as it is."""
    order = learned("qwen2").order("peft")
    (tmp_path / "empty").mkdir()
    export.write(order, tmp_path / "empty")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("empty", "file", "link"):
        with pytest.raises(EngineError, match="is there already"):
            export.write(order, tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(EngineError, match="couldn't be written"):
        export.write(order, tmp_path / "file" / "out")


@pytest.mark.parametrize("format", FORMATS)
def test_no_room(
    format: str, learned: Callable[[str], Learned], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    with pytest.raises(EngineError, match="are free") as caught:
        export.write(learned("qwen2").order(format), tmp_path / "out")
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", FORMATS)
def test_an_adapter_of_another_base(
    format: str, learned: Callable[[str], Learned], make_model: MakeModel, tmp_path: Path
) -> None:
    other = make_speaking(make_model, tmp_path / "other", family="qwen2", hidden_size=48)
    order = ExportOrder(format=format, base=other, adapter=learned("qwen2").adapter)
    with pytest.raises(AdapterError, match=r"of another model|has not") as caught:
        export.write(order, tmp_path / "out")
    assert "\n" not in str(caught.value) and not (tmp_path / "out").exists()
    same_shape = make_speaking(make_model, tmp_path / "same", family="qwen2", seed=7)
    with pytest.raises(AdapterError, match="trained on another model: give base"):
        export.write(
            ExportOrder(format=format, base=same_shape, adapter=learned("qwen2").adapter), tmp_path / "out"
        )


@pytest.mark.parametrize("format", FORMATS)
def test_a_damaged_adapter(format: str, learned: Callable[[str], Learned], tmp_path: Path) -> None:
    shutil.copytree(learned("qwen2").adapter, tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_model.safetensors").write_bytes(b"\0" * 64)
    order = ExportOrder(format=format, base=learned("qwen2").base, adapter=tmp_path / "adapter")
    with pytest.raises(AdapterError, match="missing or damaged"):
        export.write(order, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", ["merged", "ollama"])
def test_a_damaged_base(format: str, learned: Callable[[str], Learned], tmp_path: Path) -> None:
    shutil.copytree(learned("qwen2").base, tmp_path / "base")
    weights = tmp_path / "base" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-50])
    with pytest.raises(EngineError, match="damaged"):
        export.write(
            ExportOrder(format=format, base=tmp_path / "base", adapter=learned("qwen2").adapter),
            tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def test_an_architecture_without_gguf(make_model: MakeModel, tmp_path: Path) -> None:
    """One that only transformers runs: GGUF says so, the others work."""
    base = make_model("gpt_neox")
    engine = open_engine(base, rank=4, device="cpu")
    engine.save(tmp_path / "adapter")
    for format in ("gguf", "ollama"):
        with pytest.raises(EngineError, match="is gpt_neox, and only Qwen2, Qwen3 and Llama"):
            export.write(ExportOrder(format=format, base=base, adapter=tmp_path / "adapter"), tmp_path / format)
    export.write(ExportOrder(format="merged", base=base, adapter=tmp_path / "adapter"), tmp_path / "merged")
    assert reference(tmp_path / "merged")


def test_ranks_that_mlx_does_not_know(learned: Callable[[str], Learned], tmp_path: Path) -> None:
    shutil.copytree(learned("qwen2").adapter, tmp_path / "adapter")
    file = tmp_path / "adapter" / "adapter_model.safetensors"
    tensors = load_file(file)
    name = next(n for n in tensors if "lora_A" in n)
    tensors[name] = tensors[name][:2].contiguous()
    other = name.replace("lora_A", "lora_B")
    tensors[other] = tensors[other][:, :2].contiguous()
    save_file(tensors, file)
    with pytest.raises(AdapterError, match="several ranks"):
        export.write(
            ExportOrder(format="mlx", base=learned("qwen2").base, adapter=tmp_path / "adapter"),
            tmp_path / "out",
        )
