"""From a GGUF header to a Hugging Face tokenizer: the way back of gguf_tokenizer.

What the header says of text is held to be data: the tokenizers library builds from it or refuses it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gguf
from tokenizers import Tokenizer

from engines.contract import EngineError
from engines.models.gguf.header import WORDS, Header
from engines.models.gguf.tokenizer import CUTS, NO_MERGE

TOKENS, TYPES, MERGES = WORDS, "tokenizer.ggml.token_type", "tokenizer.ggml.merges"
ARRAYS = (TOKENS, TYPES, MERGES)
"""Arrays of the header that are needed here."""
_SAME = {"llama3": "llama-bpe", "llama-v3": "llama-bpe", "deepseek-r1-qwen": "qwen2"}
"""llama.cpp's other names for the same way of cutting."""
_ENDS = frozenset(
    ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>"]
)
"""At these control tokens llama.cpp ends an answer too, whatever else the header says."""
_ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}


@dataclass(frozen=True)
class Words:
    """The contents of the files in a model's folder, by name."""

    files: dict[str, str]
    stops: tuple[int, ...]


def read(header: Header, rows: int, name: str) -> Words:
    """The tokenizer for an embedding of `rows` rows. Raises EngineError."""
    values = header.values
    if values.get("tokenizer.ggml.model") != "gpt2":
        raise EngineError(
            f"The tokenizer of {name} is of another kind than byte-level BPE, which alone is read from GGUF "
            "files here: take the model as a folder with a tokenizer.json."
        )
    said = values.get("tokenizer.ggml.pre")
    pre = _SAME.get(str(said), said)
    if pre not in CUTS:
        raise EngineError(
            f"{name} cuts text in a way that isn't known here ({str(said)[:40]!a}): take the model as a "
            "folder with a tokenizer.json."
        )
    tokens, merges = _texts(header, TOKENS), _texts(header, MERGES)
    types: list[Any] = values[TYPES] if isinstance(values.get(TYPES), list) else []
    if not len(tokens) == len(types) == rows or len(set(tokens)) != rows or "" in tokens:
        raise _damaged(name)
    vocabulary = {word: id for id, word in enumerate(tokens) if types[id] != gguf.TokenType.UNUSED}
    ids = {role: _id(header, key, rows) for role, key in _ROLES.items()}
    special = {f"{role}_token": tokens[id] for role, id in ids.items() if id is not None}
    if ids["eos"] is None:
        raise EngineError(f"{name} names no end token, so its answers would never end: choose another.")
    bos = ids["bos"] if values.get("tokenizer.ggml.add_bos_token", pre == "llama-bpe") is True else None
    settings = _settings(str(pre), vocabulary, types, merges, None if bos is None else (tokens[bos], bos))
    text = _built(settings, vocabulary, name)
    ends = {id for word, id in vocabulary.items() if word in _ENDS and types[id] == gguf.TokenType.CONTROL}
    others = {id for key in ("eot", "eom") if (id := _id(header, key, rows)) is not None}
    stops = (ids["eos"], *sorted((ends | others) - {ids["eos"]}))
    files = {
        "tokenizer.json": text,
        "tokenizer_config.json": json.dumps(
            {**special, "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False},
            indent=1,
        ),
        "generation_config.json": json.dumps({"eos_token_id": list(stops)}, indent=1),
    }
    template = values.get("tokenizer.chat_template")
    if isinstance(template, str) and template:
        files["chat_template.jinja"] = template
    return Words(files, stops)


def _settings(
    pre: str,
    vocabulary: dict[str, int],
    types: Sequence[int],
    merges: Sequence[str],
    bos: tuple[str, int] | None,
) -> dict[str, Any]:
    """tokenizer.json. Every word stands in the model's own vocabulary, so that each keeps its id."""
    added = [
        {
            "id": id,
            "content": word,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": types[id] != gguf.TokenType.USER_DEFINED,
        }
        for word, id in vocabulary.items()
        if types[id] in (gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED)
    ]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    cut = CUTS[pre]
    steps: list[dict[str, Any]] = [bytes_]
    if cut:
        split = {"type": "Split", "pattern": {"Regex": cut}, "behavior": "Isolated", "invert": False}
        steps = [split, {**bytes_, "use_regex": False}]
    elif pre == "smollm":
        steps = [{"type": "Digits", "individual_digits": True}, bytes_]
    processor: dict[str, Any] = {**bytes_, "use_regex": False}
    if bos is not None:
        word, id = bos
        opening = {"SpecialToken": {"id": word, "type_id": 0}}
        text = [{"Sequence": {"id": "A", "type_id": 0}}]
        processor = {
            "type": "TemplateProcessing",
            "single": [opening, *text],
            "pair": [opening, *text, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {word: {"id": word, "ids": [id], "tokens": [word]}},
        }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"} if pre == "qwen2" else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0],
        "post_processor": processor,
        "decoder": bytes_,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": pre == "llama-bpe",
            "vocab": vocabulary,
            "merges": [_pair(merge) for merge in merges if merge != NO_MERGE],
        },
    }


def _built(settings: dict[str, Any], vocabulary: dict[str, int], name: str) -> str:
    """The text of tokenizer.json, once the library has taken it with every word under its own id."""
    text = json.dumps(settings, ensure_ascii=False)
    try:
        built = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise _damaged(name) from error
    if built.get_vocab(with_added_tokens=True) != vocabulary:
        raise _damaged(name)
    return text


def _pair(merge: str) -> list[str]:
    """Two words with a blank between; one at the very beginning belongs to the first of them.

    >>> _pair("Ġ the"), _pair("a  b")
    (['Ġ', 'the'], ['a', ' b'])
    """
    at = merge.find(" ", 1)
    return [merge[:at], merge[at + 1 :]] if at > 0 else [merge, ""]


def _texts(header: Header, key: str) -> list[str]:
    """Empty where the header has no such texts."""
    found = header.values.get(key)
    return found if isinstance(found, list) and all(isinstance(one, str) for one in found) else []


def _id(header: Header, key: str, rows: int) -> int | None:
    found = header.values.get(f"tokenizer.ggml.{key}_token_id")
    return found if type(found) is int and 0 <= found < rows else None


def _damaged(name: str) -> EngineError:
    return EngineError(f"The tokenizer of {name} is damaged: download the file again, or choose another model.")
