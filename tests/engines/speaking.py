"""Tiny models with tokenizers of every kind that llama.cpp knows, trained on a few lines of hostile text."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.engines.small_models import MakeModel

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


def make_speaking(
    make_model: MakeModel, to: Path, kind: str = "qwen2", family: str = "qwen2", **changes: Any
) -> Path:
    """A model folder in `to` whose tokenizer is of this kind."""
    shutil.copytree(make_model(family, vocab_size=512, **changes), to, dirs_exist_ok=True)
    byte_pairs(kind).save_pretrained(to)
    return to
