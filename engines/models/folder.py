"""Reads a model folder in Hugging Face's layout (config.json and safetensors, nothing that could run code) and
the shape of its decoder.

Rotary settings have two spellings: `rope_parameters` (transformers 5), `rope_theta` + `rope_scaling` (before).

shoal.json has what a model's maker recommends for training it here. It is optional."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from engines.contract import EngineError

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True)
class Folder:
    """A validated model folder. `files` are its weight files, in order."""

    path: Path
    name: str
    config: dict[str, Any]
    files: tuple[Path, ...]

    @property
    def weight_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)


def open_folder(path: Path) -> Folder:
    """Validates a model folder. Raises EngineError, one sentence with the remedy, if it is missing or is not a
    supported model."""
    if not path.is_dir():
        raise EngineError(f"There is no model folder at {path}: check the path or give the name of a model.")
    if not (path / "config.json").is_file():
        raise EngineError(
            f"{path} has no config.json, so it isn't a model folder: give the one with the model's files."
        )
    config = read_json(path / "config.json")
    weights = [file for file in sorted(path.glob("*.safetensors")) if file.is_file()]
    files = tuple(file for file in weights if file.name.startswith("model")) or tuple(
        file for file in weights if not file.name.startswith(("adapter", "optimizer"))
    )
    if not files:
        if any(next(path.glob(pattern), None) for pattern in _PICKLES):
            raise EngineError(
                f"{path.name} holds its weights only as pickle files, which can run code and are never opened: "
                "take a version of the model with .safetensors files."
            )
        raise EngineError(f"{path.name} has no .safetensors weights: download the model again.")
    if {"quantization_config", "quantization"} & config.keys():  # the second is MLX's
        raise EngineError(
            f"{path.name} is quantised, and that can't be trained here: take the unquantised model."
        )
    return Folder(path=path, name=_name(path), config=config, files=files)


def _name(path: Path) -> str:
    """Returns the folder's name, or the Hugging Face name if the folder is a snapshot in its cache."""
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):
        return path.parent.parent.name.removeprefix("models--").replace("--", "/")
    return path.name


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON object. Raises EngineError if the file is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise EngineError(
            f"{path.name} of the model in {path.parent} can't be read: download the model again."
        ) from error


def checked_model_file(folder: Path, file: Path) -> Path:
    """Returns `file` if its content is in the model folder, or in the same model of Hugging Face's cache, whose
    folders consist of links. Raises EngineError for a link to anywhere else, so that no copy includes another
    file of this computer."""
    snapshot = folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--")
    root = folder.parent.parent if snapshot else folder
    if not file.resolve().is_relative_to(root.resolve()):
        raise EngineError(
            f"{file.name} in {folder} is a link to a file elsewhere: put the file itself in its place, then "
            "try again."
        )
    return file


def count_parameters(folder: Folder) -> int:
    """Counts the parameters from the files' headers, without reading the weights."""
    total = 0
    for file in folder.files:
        with open_weights(file, "numpy") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a dict
                size = 1
                for length in tensors.get_slice(name).get_shape():
                    size *= length
                total += size
    return total


def fingerprint(folder: Folder) -> str:
    """Returns a SHA-256 over each weight file's size, first megabyte (names and shapes) and 64 evenly
    spaced blocks of 64 KiB."""
    digest = hashlib.sha256()
    for file in folder.files:
        size = file.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        with file.open("rb") as opened:
            digest.update(opened.read(2**20))
            for block in range(64):
                opened.seek(size * block // 64)
                digest.update(opened.read(2**16))
    return digest.hexdigest()


@contextmanager
def open_weights(file: Path, framework: str = "pt") -> Iterator[Any]:
    """Opens a weight file and yields its tensors, as `framework` tensors. Raises EngineError if it is
    damaged."""
    from safetensors import SafetensorError, safe_open  # an installed app's node does without it

    try:
        with safe_open(str(file), framework=framework) as tensors:
            yield tensors
    except (SafetensorError, OSError) as error:
        raise EngineError(f"The weights in {file.name} are damaged: download the model again.") from error


KNOWN_TYPES = ("qwen2", "qwen3", "llama")
"""Model types that our own decoder supports. They differ only in biases and in norms on queries and keys."""


_MAX = 2**24
"""Maximum of any size of a decoder; the longest contexts and largest vocabularies are far below."""
_LONGEST = 120


class Rope(msgspec.Struct, frozen=True, kw_only=True):
    """Rotary settings; the last four fields are Llama 3's frequency scaling, `factor` alone is linear
    scaling."""

    theta: float = 10_000.0
    kind: str = "default"
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 8192


Size = Annotated[int, msgspec.Meta(ge=1)]


class Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes of a Llama-like decoder, as in its config.json; `tied`: the head is the embedding."""

    family: Literal["qwen2", "qwen3", "llama"]
    hidden: Size
    layers: Size
    heads: Size
    kv_heads: Size
    head_dim: Size
    inner: Size
    vocabulary: Size
    context: Size
    tied: bool

    @property
    def linear_parameters(self) -> int:
        """Number of parameters in the matrices that LoRA adapts, without biases."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.inner)

    @property
    def parameters(self) -> int:
        """Number of all parameters, a tied head counted once.

        >>> Shape(family="qwen2", hidden=896, layers=24, heads=14, kv_heads=2, head_dim=64, inner=4864,
        ...       vocabulary=151936, context=32768, tied=True).parameters
        494032768
        """
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        norms = self.layers * 2 * self.hidden + self.hidden
        more = {"qwen2": self.head_dim * (self.heads + 2 * self.kv_heads), "qwen3": 2 * self.head_dim}
        return embeddings + self.linear_parameters + norms + self.layers * more.get(self.family, 0)

    def adapter_parameters(self, rank: int) -> int:
        """Returns the number of LoRA parameters at this rank, on all seven matrices of every layer."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        sides = 2 * (self.hidden + queries) + 2 * (self.hidden + keys) + 3 * (self.hidden + self.inner)
        return self.layers * rank * sides

    def row_bytes(self, tokens: int, itemsize: int) -> int:
        """Returns the bytes of one sampled row: its KV cache, and three copies of its logits in fp32."""
        return 2 * self.layers * self.kv_heads * self.head_dim * tokens * itemsize + 12 * self.vocabulary

    def token_bytes(self, checkpointing: bool, itemsize: int) -> int:
        """Returns the bytes the learner keeps per token until its backward pass."""
        heads = (3 * self.heads + 4 * self.kv_heads) * self.head_dim
        layer = 2 * self.hidden + heads + 2 * self.inner
        kept = self.layers * (self.hidden if checkpointing else layer) + 2 * layer
        return kept * itemsize


class Architecture(Shape, frozen=True, kw_only=True):
    """A Llama-like decoder: its sizes, `eps` of the norms, and its rotary settings."""

    eps: float
    rope: Rope


def read_architecture(config: Mapping[str, Any]) -> Architecture | None:
    """Returns the decoder that config.json describes, None if only transformers can run it. Raises EngineError
    if a known family lacks a size, or has an impossible one."""
    try:
        found = _read(config)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        said = f"{type(error).__name__}: {error}"[:_LONGEST]
        raise EngineError(f"The model's config.json is damaged ({said}): download the model again.") from error
    if found is not None and not _possible(found):
        raise EngineError("The model's config.json has sizes that no model has: download the model again.")
    return found


def _possible(shape: Architecture) -> bool:
    sizes = ("hidden", "layers", "heads", "kv_heads", "head_dim", "inner", "vocabulary", "context")
    rope = shape.rope
    numbers = (rope.theta, rope.factor, rope.low_freq_factor, rope.high_freq_factor, rope.original_context)
    return (
        all(0 < getattr(shape, size) <= _MAX for size in sizes)
        and shape.heads % shape.kv_heads == 0
        and shape.head_dim % 2 == 0
        and 0 <= shape.eps < 1
        and all(0 < number < math.inf for number in numbers)
    )


def _read(config: Mapping[str, Any]) -> Architecture | None:
    family = config.get("model_type")
    if family not in KNOWN_TYPES or config.get("hidden_act", "silu") != "silu":
        return None
    if config.get("use_sliding_window") or set(config.get("layer_types") or ["full_attention"]) - {
        "full_attention"
    }:
        return None
    rope = _read_rope(config)
    if rope is None or config.get("partial_rotary_factor", 1.0) != 1.0:
        return None
    heads = int(config["num_attention_heads"])
    hidden = int(config["hidden_size"])
    return Architecture(
        family=family,
        hidden=hidden,
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or (128 if family == "qwen3" else hidden // heads)),
        inner=int(config["intermediate_size"]),
        vocabulary=int(config["vocab_size"]),
        context=int(config.get("max_position_embeddings") or 2048),
        eps=float(config.get("rms_norm_eps", 1e-6)),
        tied=bool(config.get("tie_word_embeddings", False)),
        rope=rope,
    )


def _read_rope(config: Mapping[str, Any]) -> Rope | None:
    settings = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = settings.get("rope_type", settings.get("type", "default"))
    theta = float(settings.get("rope_theta", config.get("rope_theta") or 10_000.0))
    if "partial_rotary_factor" in settings and settings["partial_rotary_factor"] != 1.0:
        return None
    try:
        if kind == "default":
            return Rope(theta=theta)
        if kind == "linear":
            return Rope(theta=theta, kind=kind, factor=float(settings["factor"]))
        if kind == "llama3":
            return Rope(
                theta=theta,
                kind=kind,
                factor=float(settings["factor"]),
                low_freq_factor=float(settings["low_freq_factor"]),
                high_freq_factor=float(settings["high_freq_factor"]),
                original_context=int(settings["original_max_position_embeddings"]),
            )
    except KeyError:
        return None
    return None


SETTINGS_FILE = "shoal.json"


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Recommended training settings of a model. `families` maps a puzzle family to the level where training and
    probing start; empty means all families at level 0. `others` are further families that may be learned from
    peers' answers, with their starting levels. `max_tokens` is the maximum length of an answer, `groups` the
    questions per round, `rank` the LoRA rank (None: the engine's choice). The defaults are for models of 0.5 to
    3 billion parameters; smaller ones use a higher learning rate."""

    families: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}
    others: dict[str, Annotated[int, msgspec.Meta(ge=0)]] = {}
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=8192)] = 96
    learning_rate: Annotated[float, msgspec.Meta(gt=0, le=0.1)] = 3e-5
    rank: Annotated[int, msgspec.Meta(ge=1, le=256)] | None = None
    groups: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 8


SMALL_MODEL_SETTINGS = ModelSettings(max_tokens=64, learning_rate=1e-4, rank=16)
_SMALL_BYTES = 400 * 10**6
"""Maximum bytes of a small model's weights, which have two or four bytes per parameter."""


def read_settings(folder: Path) -> ModelSettings:
    """Returns the model's shoal.json, or defaults for its size. Raises EngineError for unknown or invalid
    settings."""
    file = folder / SETTINGS_FILE
    if not file.is_file():
        weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        return SMALL_MODEL_SETTINGS if 0 < weights < _SMALL_BYTES else ModelSettings()
    try:
        return msgspec.json.decode(file.read_bytes(), type=ModelSettings)
    except (OSError, msgspec.MsgspecError) as error:
        raise EngineError(
            f"{SETTINGS_FILE} of the model in {folder} is wrong ({error}): correct or delete it."
        ) from error
