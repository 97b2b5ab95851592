"""Reading a model folder as Hugging Face lays it out: config.json, safetensors, nothing that could run code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from engines.contract import EngineError

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True)
class Folder:
    """A model folder that was found to be one. `files` are its weight files, in order."""

    path: Path
    name: str
    config: dict[str, Any]
    files: tuple[Path, ...]

    @property
    def weight_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)


def open_folder(path: Path) -> Folder:
    """Raises EngineError, one sentence with the remedy, when the folder is not there or is no model for us."""
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
    if "quantization_config" in config:
        raise EngineError(
            f"{path.name} is quantised, and that can't be trained here: take the unquantised model."
        )
    return Folder(path=path, name=_name(path), config=config, files=files)


def _name(path: Path) -> str:
    """The folder's own name, or the Hugging Face name where the folder is a snapshot in its cache."""
    if path.parent.name == "snapshots" and path.parent.parent.name.startswith("models--"):
        return path.parent.parent.name.removeprefix("models--").replace("--", "/")
    return path.name


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object, or EngineError when the file is damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise EngineError(
            f"{path.name} of the model in {path.parent} can't be read: download the model again."
        ) from error


def own_file(folder: Path, file: Path) -> Path:
    """`file` of a model folder, where its content lies in that folder, or in the same model of Hugging Face's
    cache, whose folders are made of links. Raises EngineError for a link to anywhere else: a copy would carry
    another file of this computer along."""
    snapshot = folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--")
    root = folder.parent.parent if snapshot else folder
    if not file.resolve().is_relative_to(root.resolve()):
        raise EngineError(
            f"{file.name} in {folder} is a link to a file elsewhere: put the file itself in its place, then "
            "try again."
        )
    return file


def count_parameters(folder: Folder) -> int:
    """Parameters by the files' headers, without reading the weights."""
    total = 0
    for file in folder.files:
        with open_weights(file, "numpy") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - not a dict
                size = 1
                for length in tensors.get_slice(name).get_shape():
                    size *= length
                total += size
    return total


def fingerprint(folder: Folder, blocks: int = 64, block_bytes: int = 2**16) -> str:
    """SHA-256 over each weight file's size, first megabyte (names and shapes) and evenly spaced blocks."""
    digest = hashlib.sha256()
    for file in folder.files:
        size = file.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        with file.open("rb") as opened:
            digest.update(opened.read(2**20))
            for block in range(blocks):
                opened.seek(size * block // blocks)
                digest.update(opened.read(block_bytes))
    return digest.hexdigest()


@contextmanager
def open_weights(file: Path, framework: str = "pt") -> Iterator[Any]:
    """A weight file's tensors, as torch's unless another `framework` is named. Raises EngineError when it is
    damaged."""
    from safetensors import SafetensorError, safe_open  # an installed app's node does without it

    try:
        with safe_open(str(file), framework=framework) as tensors:
            yield tensors
    except (SafetensorError, OSError) as error:
        raise EngineError(f"The weights in {file.name} are damaged: download the model again.") from error
