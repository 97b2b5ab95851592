"""A Hugging Face tokenizer as llama.cpp stores one, where llama.cpp has the same one.

llama.cpp does not run a tokenizer.json: it names one of the ways of cutting text before merging that it has
built in. So a tokenizer is known here exactly when its settings are those of such a name. Two small differences
remain, and are llama.cpp's own: it does not compose decomposed letters first (NFC), and it looks for longer
added tokens before shorter ones, not from left to right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gguf

from engines.contract import EngineError
from engines.models.folder import Folder
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
"""llama.cpp's names for ways of cutting text, with the expression that cuts; empty where the byte-level step
brings its own. "llama-bpe" and "smaug-bpe" differ in whether whole words go before merges."""
NO_MERGE = "<pad pad>"
"""llama.cpp insists on merges, and may get this one: it merges letters, which these two words are not."""


class UnknownTokenizer(EngineError):
    """llama.cpp has no tokenizer like this one."""


@dataclass(frozen=True)
class Vocabulary:
    """What a GGUF file says about text. `tokens` and `types` have one entry for each row of the embedding."""

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
    """The folder's tokenizer for an embedding of `rows` rows.

    Raises UnknownTokenizer where llama.cpp would cut text differently, and EngineError where the tokenizer is
    missing, damaged, or of another model."""
    chat = ChatTokenizer(folder)
    settings: dict[str, Any] = json.loads(chat.library.to_str())
    pre = _pre(settings, folder.name)
    tokens, types = _tokens(settings, rows, folder.name)
    merges = [_merge(pair) for pair in settings["model"].get("merges", [])] or [NO_MERGE]
    ids = {"eos": chat.end}
    others = sorted(chat.stops - {chat.end})
    if others:
        ids["eot"] = others[0]
    for role in ("bos", "unk", "pad"):
        id = chat.library.token_to_id(chat.special.get(f"{role}_token", ""))
        if id is not None:
            ids[role] = id
    bare = chat.library.encode("", add_special_tokens=True).ids
    return Vocabulary(
        pre=pre,
        tokens=tokens,
        types=types,
        merges=merges,
        ids={"bos": chat.end, **ids},  # without one llama.cpp takes token 11, whatever that is
        add_bos=bool(bare) and bare[0] == ids.get("bos"),
        add_eos=bool(bare) and bare[-1] == ids["eos"],
        template=chat.template,
    )


def _pre(settings: Mapping[str, Any], name: str) -> str:
    """llama.cpp's name for the way this tokenizer cuts text. Raises UnknownTokenizer."""
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


def _unknown(name: str) -> UnknownTokenizer:
    return UnknownTokenizer(
        f"llama.cpp has no tokenizer like the one of {name}, so other programs would read text differently: "
        "export it as peft or merged instead."
    )


def _tokens(settings: Mapping[str, Any], rows: int, name: str) -> tuple[list[str], list[int]]:
    """Text and type of every id; rows that have no word are marked as unused."""
    words: dict[int, tuple[str, int]] = {
        id: (word, int(gguf.TokenType.NORMAL)) for word, id in settings["model"]["vocab"].items()
    }
    for token in settings["added_tokens"]:
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
    """Older files write a merge as "a b", newer ones as ["a", "b"]. Byte letters are never blank."""
    return pair if isinstance(pair, str) else " ".join(pair)
