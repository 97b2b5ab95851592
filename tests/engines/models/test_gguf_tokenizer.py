"""What llama.cpp makes of text with an exported file is what the model's own tokenizer makes of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.models.shelf import starter_folder
from engines.contract import EngineError
from engines.models.folder import open_folder
from engines.models.gguf import gguf, header, tokenizer
from engines.models.tokens import ChatTokenizer
from tests.engines.llama import opened, tokenized
from tests.engines.small_models import MakeModel
from tests.engines.speaking import HOSTILE, make_speaking


@pytest.fixture(scope="module")
def speaking(make_model: MakeModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            make_speaking(make_model, made[kind], kind)
        return made[kind]

    return make


def agree(file: Path, folder: Path, texts: list[str]) -> None:
    own = ChatTokenizer(open_folder(folder)).library
    with opened(file) as model:
        for text in texts:
            assert tokenized(model, text) == own.encode(text, add_special_tokens=False).ids, text
            assert tokenized(model, text, add=True) == own.encode(text, add_special_tokens=True).ids, text


@pytest.mark.parametrize("kind", ["qwen2", "llama-bpe", "smaug-bpe", "smollm", "gpt-2"])
def test_the_same_token_ids(kind: str, speaking: Callable[[str], Path], tmp_path: Path) -> None:
    folder = speaking(kind)
    gguf.write(folder, tmp_path / "model.gguf")
    values = header.read(tmp_path / "model.gguf").values
    assert values["tokenizer.ggml.pre"] == kind
    assert values["tokenizer.ggml.add_bos_token"] is (kind in ("llama-bpe", "smaug-bpe"))
    assert "<|im_start|>assistant" in values["tokenizer.chat_template"]
    agree(tmp_path / "model.gguf", folder, HOSTILE)


def test_merges_in_the_older_layout(speaking: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "older"
    shutil.copytree(speaking("qwen2"), folder)
    file = folder / "tokenizer.json"
    settings = json.loads(file.read_text())
    assert all(isinstance(pair, list) for pair in settings["model"]["merges"])
    settings["model"]["merges"] = [" ".join(pair) for pair in settings["model"]["merges"]]
    file.write_text(json.dumps(settings))
    gguf.write(folder, tmp_path / "model.gguf")
    agree(tmp_path / "model.gguf", folder, HOSTILE)


def test_the_starter(tmp_path: Path) -> None:
    folder = starter_folder()
    gguf.write(folder, tmp_path / "starter.gguf")
    questions = [
        "Find the value of x in the equation: 3*x + 4 = 10\n",
        "State the final answer to the following arithmetic problem: 12 - 7 + 3 =\n",
        "Your task is to convert a number between two different bases.\n\nIf the target base is > 10, use "
        "lowercase letters a-z for digits above 9.\n\nNow, convert the binary number 10110 to base-7\n",
        "Simplify the fraction 12/18 to its lowest terms. Give only the simplified fraction as your final "
        "answer.\n",
    ]
    agree(tmp_path / "starter.gguf", folder, [*HOSTILE, *questions])


@pytest.mark.xfail(strict=True, reason="llama.cpp composes no letters and takes longer added tokens first")
@pytest.mark.parametrize(
    "text",
    ["e\u0301", "Calculate to its lowest terms. Give only the simplified fraction as your final answer."],
)
def test_where_llama_cpp_itself_differs(text: str, tmp_path: Path) -> None:
    gguf.write(starter_folder(), tmp_path / "starter.gguf")
    agree(tmp_path / "starter.gguf", starter_folder(), [text])


def test_a_tokenizer_llama_cpp_does_not_know(make_model: MakeModel, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no tokenizer like") as caught:
        gguf.write(make_model("qwen2"), tmp_path / "model.gguf")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    gguf.write(make_model("qwen2"), tmp_path / "model.gguf", ids_only=True)
    assert header.read(tmp_path / "model.gguf").values["tokenizer.ggml.model"] == "none"


def change(settings: dict[str, Any], path: str, value: Any) -> None:
    *way, last = path.split(".")
    for step in way:
        settings = settings[int(step) if step.isdigit() else step]  # type: ignore[index]
    settings[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.dropout", 0.1),
        ("model.ignore_merges", True),
        ("normalizer", {"type": "Lowercase"}),
        ("pre_tokenizer", None),
        ("pre_tokenizer.pretokenizers.0.invert", True),
        ("pre_tokenizer.pretokenizers.0.pattern", {"Regex": "."}),
        ("pre_tokenizer.pretokenizers.1.add_prefix_space", True),
        ("pre_tokenizer.pretokenizers.1.use_regex", True),
        ("added_tokens.0.lstrip", True),
    ],
)
def test_a_setting_that_llama_cpp_would_ignore(
    path: str, value: Any, speaking: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "changed"
    shutil.copytree(speaking("qwen2"), folder)
    settings = json.loads((folder / "tokenizer.json").read_text())
    change(settings, path, value)
    (folder / "tokenizer.json").write_text(json.dumps(settings))
    with pytest.raises(EngineError, match="no tokenizer like"):
        gguf.write(folder, tmp_path / "model.gguf")


def test_an_added_token_without_a_row_is_left_out(speaking: Callable[[str], Path], tmp_path: Path) -> None:
    """`add_special_tokens({"pad_token": "[PAD]"})` without resized embeddings: such a model trained, and its
    export was refused as of another model."""
    whole, folder = speaking("qwen2"), tmp_path / "padded"
    shutil.copytree(whole, folder)
    settings = json.loads((folder / "tokenizer.json").read_text())
    rows = ChatTokenizer(open_folder(whole)).library.get_vocab_size()
    settings["added_tokens"].append({**settings["added_tokens"][0], "id": rows, "content": "[PAD]"})
    (folder / "tokenizer.json").write_text(json.dumps(settings))
    special = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**special, "pad_token": "[PAD]"}))
    padded, plain = (tokenizer.read(open_folder(place), rows) for place in (folder, whole))
    assert (padded.tokens, padded.types, padded.merges) == (plain.tokens, plain.types, plain.merges)
    assert max(padded.ids.values()) < rows and padded.ids["eos"] == plain.ids["eos"]


def test_a_tokenizer_of_another_model(
    speaking: Callable[[str], Path], make_model: MakeModel, tmp_path: Path
) -> None:
    """More words than the embedding has rows."""
    folder = tmp_path / "small"
    shutil.copytree(speaking("qwen2"), folder)
    shutil.copy(make_model("qwen2", vocab_size=100) / "config.json", folder)
    with pytest.raises(EngineError, match="belongs to another model"):
        gguf.write(folder, tmp_path / "model.gguf")
