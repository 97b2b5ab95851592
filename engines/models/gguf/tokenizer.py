"""Converts a Hugging Face tokenizer to llama.cpp's form and back, if llama.cpp has an equal one.

llama.cpp does not run a tokenizer.json: it names one of its built-in rules for splitting text before merging. A
tokenizer is supported here exactly if its settings are those of such a rule. Two small differences of llama.cpp
remain: it does not compose decomposed letters first (NFC), and it looks for longer added tokens before shorter
ones, not from left to right.

On the way back, from a GGUF header to a Hugging Face tokenizer, what the header says of text is held to be
data: the tokenizers library builds from it or refuses it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gguf
from tokenizers import Tokenizer

from engines.contract import EngineError
from engines.models.folder import Folder
from engines.models.gguf.header import TOKENS_KEY, Header
from engines.models.tokens import ChatTokenizer

_CUT = (
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|%s| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+"
    "|\\s+(?!\\S)|\\s+"
)
CUTS = {
    "qwen2": _CUT % "\\p{N}",
    "llama-bpe": _CUT % "\\p{N}{1,3}",
    "smaug-bpe": _CUT % "\\p{N}{1,3}",
    "smollm": "",
    "gpt-2": "",
}
"""llama.cpp's names of splitting rules, with the regular expression; "" if the byte-level step has its own.
"llama-bpe" and "smaug-bpe" differ in whether whole words take precedence over merges."""
NO_MERGE = "<pad pad>"
"""A harmless merge for a tokenizer without any, because llama.cpp requires merges. Merging starts from single
characters, so these two words never occur as its parts."""


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer data of a GGUF file. `tokens` and `types` have one entry for each row of the embedding."""

    pre: str
    tokens: Sequence[str]
    types: Sequence[int]
    merges: Sequence[str]
    ids: Mapping[str, int]
    """Roles (bos, eos, eot, unk, pad) to token ids."""
    add_bos: bool
    add_eos: bool
    template: str | None = field(repr=False)

    def add_to(self, writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(self.pre)
        writer.add_token_list(self.tokens)
        writer.add_token_types(self.types)
        writer.add_token_merges(self.merges)
        for role, id in self.ids.items():
            writer.add_uint32(f"tokenizer.ggml.{_KEYS[role]}_token_id", id)
        writer.add_add_bos_token(self.add_bos)
        writer.add_add_eos_token(self.add_eos)
        if self.template:
            writer.add_chat_template(self.template)


_KEYS = {"bos": "bos", "eos": "eos", "eot": "eot", "unk": "unknown", "pad": "padding"}


def read(folder: Folder, rows: int) -> Vocabulary:
    """Returns the folder's tokenizer for an embedding of `rows` rows. Raises EngineError if llama.cpp would
    split text differently, or if the tokenizer is missing, damaged, or of another model."""
    chat = ChatTokenizer(folder)
    settings: dict[str, Any] = json.loads(chat.library.to_str())
    pre = _pre(settings, folder.name)
    tokens, types = _tokens(settings, rows, folder.name)
    merges = [_merge(pair) for pair in settings["model"].get("merges", [])] or [NO_MERGE]
    ids = {"eos": chat.end}
    others = sorted(id for id in chat.stops - {chat.end} if id < rows)
    if others:
        ids["eot"] = others[0]
    for role in ("bos", "unk", "pad"):
        id = chat.library.token_to_id(chat.special.get(f"{role}_token", ""))
        if id is not None and id < rows:
            ids[role] = id
    bare = chat.library.encode("", add_special_tokens=True).ids
    return Vocabulary(
        pre=pre,
        tokens=tokens,
        types=types,
        merges=merges,
        ids={"bos": chat.end, **ids},  # without one llama.cpp uses token 11, whatever it is
        add_bos=bool(bare) and bare[0] == ids.get("bos"),
        add_eos=bool(bare) and bare[-1] == ids["eos"],
        template=chat.template,
    )


def _pre(settings: Mapping[str, Any], name: str) -> str:
    """Returns llama.cpp's name for this tokenizer's splitting rule. Raises EngineError if llama.cpp has no such
    rule."""
    model = settings.get("model") or {}
    plain = (
        model.get("type") == "BPE"
        and not model.get("byte_fallback")
        and not model.get("dropout")
        and not model.get("continuing_subword_prefix")
        and not model.get("end_of_word_suffix")
    )
    normalizer = settings.get("normalizer")
    composed = normalizer is None or normalizer.get("type") == "NFC"
    simple = not any(
        token["lstrip"] or token["rstrip"] or token["single_word"] for token in settings["added_tokens"]
    )
    steps = settings.get("pre_tokenizer") or {}
    steps = steps["pretokenizers"] if steps.get("type") == "Sequence" else [steps]
    bytes_ = steps[-1]
    if not (plain and composed and simple) or bytes_.get("type") != "ByteLevel" or bytes_["add_prefix_space"]:
        raise _unknown(name)
    ignores = bool(model.get("ignore_merges"))
    first = steps[0]
    found = None
    if len(steps) == 1 and bytes_["use_regex"]:
        found = "gpt-2"
    elif (
        len(steps) == 2 and first.get("type") == "Digits" and first["individual_digits"] and bytes_["use_regex"]
    ):
        found = "smollm"
    elif len(steps) == 2 and _is_split(first) and not bytes_["use_regex"]:
        cut = first["pattern"].get("Regex", "")
        found = next((name for name, known in CUTS.items() if known and known == cut), None)
    if found == "llama-bpe":
        return found if ignores else "smaug-bpe"
    if found is None or ignores:
        raise _unknown(name)
    return found


def _is_split(step: Mapping[str, Any]) -> bool:
    return step.get("type") == "Split" and step["behavior"] == "Isolated" and not step["invert"]


def _unknown(name: str) -> EngineError:
    return EngineError(
        f"llama.cpp has no tokenizer like the one of {name}, so other programs would read text differently: "
        "export it as peft or merged instead."
    )


def _tokens(settings: Mapping[str, Any], rows: int, name: str) -> tuple[list[str], list[int]]:
    """Returns text and type of every id; rows without a word are marked as unused. An added token without a
    row is left out: the model can neither read nor say it, and its text is split as any other."""
    words: dict[int, tuple[str, int]] = {
        id: (word, int(gguf.TokenType.NORMAL)) for word, id in settings["model"]["vocab"].items()
    }
    for token in (token for token in settings["added_tokens"] if token["id"] < rows):
        kind = gguf.TokenType.CONTROL if token["special"] else gguf.TokenType.USER_DEFINED
        words[token["id"]] = (token["content"], int(kind))
    texts = {word for word, _ in words.values()}
    if not words or max(words) >= rows or len(texts) != len(words) or "" in texts:
        raise EngineError(f"The tokenizer of {name} belongs to another model: download the model again.")
    unused = int(gguf.TokenType.UNUSED)
    found = [words.get(id) or (f"[PAD{id}]", unused) for id in range(rows)]
    if len({word for word, _ in found}) != rows:
        raise EngineError(
            f"The tokenizer of {name} has words that GGUF keeps for itself: choose another model."
        )
    return [word for word, _ in found], [kind for _, kind in found]


def _merge(pair: str | Sequence[str]) -> str:
    """Returns a merge as "a b": older files write it so, newer ones as ["a", "b"]. Byte letters are never
    blank."""
    return pair if isinstance(pair, str) else " ".join(pair)


TOKENS, TYPES, MERGES = TOKENS_KEY, "tokenizer.ggml.token_type", "tokenizer.ggml.merges"
ARRAYS = (TOKENS, TYPES, MERGES)
"""Arrays of the header that are needed here."""
_SAME = {"llama3": "llama-bpe", "llama-v3": "llama-bpe", "deepseek-r1-qwen": "qwen2"}
"""llama.cpp's aliases of the same splitting rule."""
_ENDS = frozenset(
    ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>"]
)
"""Control tokens at which llama.cpp always ends an answer, whatever the header says."""
_READ = {"model": "gpt2", "pre": "gpt-2"}
_ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}


@dataclass(frozen=True)
class TokenizerFiles:
    """The tokenizer's files for a model folder, content by name, and the ids of the end tokens."""

    files: dict[str, str]
    stops: tuple[int, ...]


def read_tokenizer(header: Header, rows: int, name: str) -> TokenizerFiles:
    """Returns the tokenizer of a GGUF header for an embedding of `rows` rows. Raises EngineError."""
    values = header.values
    pre = splitting_rule(values, name)
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
    settings = _settings(pre, vocabulary, types, merges, None if bos is None else (tokens[bos], bos))
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
    return TokenizerFiles(files, stops)


def splitting_rule(values: Mapping[str, Any], name: str, whole: bool = True) -> str:
    """Returns llama.cpp's name for the rule that splits text. Raises EngineError for an unsupported tokenizer,
    for example SentencePiece's. With `whole` off, `values` may be incomplete and missing keys are accepted."""
    kind, said = (values.get(f"tokenizer.ggml.{key}", None if whole else known) for key, known in _READ.items())
    if kind != "gpt2":
        raise EngineError(
            f"The tokenizer of {name} is of another kind than byte-level BPE, which alone is read from GGUF "
            "files here: take the model as a folder with a tokenizer.json."
        )
    pre = _SAME.get(str(said), said)
    if pre not in CUTS:
        raise EngineError(
            f"{name} cuts text in a way that isn't known here ({str(said)[:40]!a}): take the model as a "
            "folder with a tokenizer.json."
        )
    return str(pre)


def _settings(
    pre: str,
    vocabulary: dict[str, int],
    types: Sequence[int],
    merges: Sequence[str],
    bos: tuple[str, int] | None,
) -> dict[str, Any]:
    """Returns the content of tokenizer.json. Every token is listed in the vocabulary, so that it keeps its
    id."""
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
    """Returns the text of tokenizer.json after checking that the tokenizers library accepts it with every word
    under its own id."""
    text = json.dumps(settings, ensure_ascii=False)
    try:
        built = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing narrower
        raise _damaged(name) from error
    if built.get_vocab(with_added_tokens=True) != vocabulary:
        raise _damaged(name)
    return text


def _pair(merge: str) -> list[str]:
    """Splits a merge at its blank; a blank at the very beginning belongs to the first word.

    >>> _pair("Ġ the"), _pair("a  b")
    (['Ġ', 'the'], ['a', ' b'])
    """
    at = merge.find(" ", 1)
    return [merge[:at], merge[at + 1 :]] if at > 0 else [merge, ""]


def _texts(header: Header, key: str) -> list[str]:
    """Returns the header's strings under this key; empty if it has none."""
    found = header.values.get(key)
    return found if isinstance(found, list) and all(isinstance(one, str) for one in found) else []


def _id(header: Header, key: str, rows: int) -> int | None:
    found = header.values.get(f"tokenizer.ggml.{key}_token_id")
    return found if type(found) is int and 0 <= found < rows else None


def _damaged(name: str) -> EngineError:
    return EngineError(f"The tokenizer of {name} is damaged: download the file again, or choose another model.")
