"""What llama.cpp makes of text with an exported file is what the model's own tokenizer makes of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engines.contract import EngineError
from engines.models import gguf, gguf_header
from engines.models.folder import open_folder
from engines.models.gguf_tokenizer import UnknownTokenizer
from engines.models.locate import starter_folder
from engines.models.tokens import ChatTokenizer
from tests.engines.llama import opened, tokenized
from tests.engines.models import MakeModel

HOSTILE = [
    "Calculate -3 + 4.\nAnswer: x=12345 and 0.5",
    "I've been 'told he's there, 'RE you sure? 'M not sure I'll make it, 'D you like tea? We'Ve a'lL",
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n"
    "\U0001f680 (normal) \U0001f636\u200d\U0001f32b\ufe0f ok \U0001f999\U0001f999",
    "3 33 333 3333 33333 333333 3333333 33333333 3.3 3..3 3...3",
    "\u1780\u17b6\u1793\u17cb\u178f\u17c2 \u6211\u60f3\u5728apple\u5de5\u4f5c1314151\u5929\uff5e "
    "------======= \u043d\u0435\u0449\u043e \u043d\u0430 ''''''```````\"\"\"\"......!!!!!!?????? ",
    "\u00e9 \u00f1 \u00fc \u202e\u2028\u00a0\u3000 \u00b2\u2075 \u0661\u0662 \u216b",
    "\x00\x01\x7f\r\r\n\t<s></s><|im_end|><|im_start|><pad><end> <end <think>",
    "   leading and trailing   \r\n\r\n   ",
    "def f(x):\n    return x**2  # \u2192 42\n",
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
]
CORPUS = [
    *HOSTILE,
    "the quick brown fox jumps over the lazy dog " * 3,
    "12 345 6789 " * 5,
    "he's I'll they're " * 4,
]
CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def cutter(kind: str) -> Any:
    from tokenizers import Regex, pre_tokenizers

    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    bare = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if kind == "gpt-2":
        return whole
    if kind == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), whole])
    digits = r"\p{N}" if kind == "qwen2" else r"\p{N}{1,3}"
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CUT % digits), "isolated"), bare])


def byte_pairs(kind: str) -> Any:
    """A tokenizer of this kind, trained on a few lines, with control tokens, plain added ones, a template."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE(ignore_merges=kind == "llama-bpe"))
    made.pre_tokenizer = cutter(kind)
    if kind == "qwen2":
        made.normalizer = normalizers.NFC()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        eos_token="<|im_end|>",
        pad_token="<pad>",
        additional_special_tokens=["<|im_start|>"],
        chat_template="{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
        "{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    )
    tokenizer.add_tokens(["<think>", "</think>"])
    if kind in ("llama-bpe", "smaug-bpe"):
        first = tokenizer.convert_tokens_to_ids("<s>")
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", first)]
        )
    return tokenizer


@pytest.fixture(scope="module")
def speaking(make_model: MakeModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind)
            shutil.copytree(make_model("qwen2", vocab_size=512), made[kind], dirs_exist_ok=True)
            byte_pairs(kind).save_pretrained(made[kind])
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
    values = gguf_header.read(tmp_path / "model.gguf").values
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
    with pytest.raises(UnknownTokenizer, match="no tokenizer like") as caught:
        gguf.write(make_model("qwen2"), tmp_path / "model.gguf")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    gguf.write(make_model("qwen2"), tmp_path / "model.gguf", ids_only=True)
    assert gguf_header.read(tmp_path / "model.gguf").values["tokenizer.ggml.model"] == "none"


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
    with pytest.raises(UnknownTokenizer):
        gguf.write(folder, tmp_path / "model.gguf")


def test_a_tokenizer_of_another_model(
    speaking: Callable[[str], Path], make_model: MakeModel, tmp_path: Path
) -> None:
    """More words than the embedding has rows."""
    folder = tmp_path / "small"
    shutil.copytree(speaking("qwen2"), folder)
    shutil.copy(make_model("qwen2", vocab_size=100) / "config.json", folder)
    with pytest.raises(EngineError, match="belongs to another model"):
        gguf.write(folder, tmp_path / "model.gguf")
