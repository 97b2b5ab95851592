"""Finds models that other programs on this computer have downloaded: Hugging Face's tools, LM Studio, Ollama,
Jan, GPT4All, llama.cpp, browsers. Looks at names, sizes and headers only; changes nothing and opens no
socket."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from engines.contract import EngineError
from engines.files import read_json
from engines.models.folder import Shape
from engines.sound import explaining_model_errors

_MAX = 200
"""Maximum files per program that are inspected, to keep the list fast."""
_DEEP = 4
_MODEL_LAYER = "application/vnd.ollama.image.model"
_PART = re.compile(r"mmproj|-(?!0*1-of-)\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
"""Vision parts of a model, and later pieces of a split one: not models themselves."""
_FIRST = re.compile(r"-0*1-of-(?!0*1\.)\d{5}\.gguf$", re.IGNORECASE)
"""The first piece of a split model. Its header says so after the vocabulary, which is not read for a list."""
_MODEL = re.compile(r"\.gguf$|^config\.json$", re.IGNORECASE)
_DOWNLOADS = "Downloads"


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model found on this computer: `name` is an argument of --model, `program` downloaded it. Either
    `problem` says why it cannot be trained here, or `shape` holds its sizes."""

    name: str
    title: str
    program: str
    folder: str
    bytes: int
    ready: bool
    """Whether it can be trained without conversion: a model folder instead of a GGUF file."""
    shape: Shape | None = None
    problem: str = ""


class ModelFolders(msgspec.Struct, frozen=True, kw_only=True):
    """The folders where programs keep their models."""

    gguf: tuple[tuple[str, Path], ...]
    """(program, folder) pairs searched for GGUF files; LM Studio's folder can also contain MLX model
    folders."""
    ollama: tuple[Path, ...]
    hugging_face: Path


def model_folders(
    home: Path | None = None, variables: Mapping[str, str] = os.environ, system: str = sys.platform
) -> ModelFolders:
    """Returns the usual model folders of this system, and those set by the programs' environment variables."""
    own = home or Path.home()
    local = Path(variables.get("LOCALAPPDATA") or own / "AppData" / "Local")
    roaming = Path(variables.get("APPDATA") or own / "AppData" / "Roaming")
    cache = Path(variables.get("XDG_CACHE_HOME") or own / ".cache")
    data = Path(variables.get("XDG_DATA_HOME") or own / ".local" / "share")
    mac = own / "Library"
    llama = {"darwin": mac / "Caches" / "llama.cpp", "win32": local / "llama.cpp"}.get(
        system, cache / "llama.cpp"
    )
    jan = {"darwin": mac / "Application Support" / "Jan" / "data", "win32": roaming / "Jan" / "data"}
    jan_data = jan.get(system, data / "Jan" / "data")
    nomic = {"darwin": mac / "Application Support", "win32": local}.get(system, data) / "nomic.ai" / "GPT4All"
    hub = variables.get("HF_HUB_CACHE") or Path(variables.get("HF_HOME") or cache / "huggingface") / "hub"
    return ModelFolders(
        gguf=(
            *(("LM Studio", root) for root in _lm_studio(own)),
            ("Jan", own / "jan" / "models"),
            ("Jan", jan_data / "models"),
            ("Jan", jan_data / "llamacpp" / "models"),
            ("GPT4All", nomic),
            ("llama.cpp", Path(variables.get("LLAMA_CACHE") or llama)),
            (_DOWNLOADS, own / "Downloads"),
        ),
        ollama=(
            Path(variables.get("OLLAMA_MODELS") or own / ".ollama" / "models"),
            Path("/usr/share/ollama/.ollama/models"),
        ),
        hugging_face=Path(hub),
    )


class _StudioSettings(msgspec.Struct, frozen=True):
    models: str = msgspec.field(default="", name="downloadsFolder")


def _lm_studio(own: Path) -> Iterator[Path]:
    """Yields LM Studio's model folders: the one in its settings, then the usual ones of its home, which a
    pointer file can change."""
    homes, pointer = [own / ".lmstudio", own / ".cache" / "lm-studio"], own / ".lmstudio-home-pointer"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if pointer.is_file() and (named := pointer.read_text("utf-8").strip()):
            homes.insert(0, Path(named))
    for home in homes:
        settings = home / "settings.json"
        kept = read_json(settings, _StudioSettings) if settings.is_file() else None
        if kept is not None and kept.models:
            yield Path(kept.models)
        yield home / "models"


def lm_studio_folder(where: ModelFolders | None = None) -> Path | None:
    """Returns the folder where LM Studio stores its models; None if it is not installed."""
    roots = (root for program, root in (where or model_folders()).gguf if program == "LM Studio")
    return next((root for root in roots if root.is_dir()), None)


def find(where: ModelFolders | None = None) -> list[FoundModel]:
    """Returns every model found, each file once, ordered by program and name."""
    where = where or model_folders()
    seen: set[Path] = set()
    found: list[FoundModel] = []
    for one in (*_hugging_face(where.hugging_face), *_files(where.gguf), *_ollama(where.ollama)):
        with contextlib.suppress(OSError):
            real = Path(one.folder if one.ready else one.name).resolve()
            if real not in seen:
                seen.add(real)
                found.append(one)
    return found


def _files(roots: tuple[tuple[str, Path], ...]) -> Iterator[FoundModel]:
    for program, root in roots:
        for path in islice(_below(root, 1 if program == _DOWNLOADS else _DEEP), _MAX):
            one = _file(path, program) if path.suffix.casefold() == ".gguf" else _folder(path.parent, program)
            if one is not None:
                yield one


def _below(folder: Path, depth: int) -> Iterator[Path]:
    """Yields the GGUF files, and the config.json of model folders, in a folder and down to `depth` levels below
    it; links to folders are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError:
        return
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                if depth:
                    yield from _below(Path(entry.path), depth - 1)
            elif _MODEL.search(entry.name) and not _PART.search(entry.name) and entry.is_file():
                yield Path(entry.path)


def _ollama(roots: tuple[Path, ...]) -> Iterator[FoundModel]:
    """Yields Ollama's models; a manifest names the model, and its file is named by digest."""
    for root in roots:
        for manifest in islice(sorted((root / "manifests").glob("*/*/*/*")), _MAX):
            with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
                if not manifest.is_file() or manifest.stat().st_size > 2**20:
                    continue
                said = msgspec.json.decode(manifest.read_bytes(), type=_Manifest)
                for layer in said.layers:
                    if layer.kind == _MODEL_LAYER and re.fullmatch(r"sha256:[0-9a-f]{64}", layer.digest):
                        path = root / "blobs" / layer.digest.replace(":", "-")
                        title = f"{manifest.parent.name}:{manifest.name}"
                        if (one := _file(path, "Ollama", title)) is not None:
                            yield one


class _Layer(msgspec.Struct, frozen=True):
    kind: str = msgspec.field(default="", name="mediaType")
    digest: str = ""


class _Manifest(msgspec.Struct, frozen=True):
    layers: list[_Layer] = []


def _file(path: Path, program: str, title: str = "") -> FoundModel | None:
    """Describes a GGUF file from its header; None if the file does not exist. A bad file gets a `problem`
    instead of raising."""
    from engines.models.gguf import config, header, tokenizer  # here: an installed app's node does without gguf

    try:
        if not path.is_file():
            return None
        size = path.stat().st_size
        with explaining_model_errors(path):
            said = header.read_opening(path)
            config.family(said, path.name, pieces=2 if _FIRST.search(path.name) else 1)
            tokenizer.splitting_rule(said.values, path.name, whole=False)
            shape, problem = config.rough_shape(said, path.name), ""
    except FileNotFoundError:
        return None
    except (OSError, EngineError) as error:
        shape, problem = None, str(error) if isinstance(error, EngineError) else f"{path.name} can't be read."
        size = 0 if isinstance(error, OSError) else size
    return FoundModel(
        name=str(path),
        title=title or config.model_stem(path),
        program=program,
        folder=str(path.parent),
        bytes=size,
        ready=False,
        shape=shape,
        problem=problem,
    )


class _Config(msgspec.Struct, frozen=True):
    architectures: list[str] = []


def _folder(folder: Path, program: str, name: str = "") -> FoundModel | None:
    """Describes a model folder; None if it is incomplete or not a text model. MLX's quantised models are listed
    with the reason why they cannot be trained."""
    from engines.models.folder import open_folder, read_architecture

    kinds = (read_json(folder / "config.json", _Config) or _Config()).architectures
    if not (kinds and kinds[0].endswith("ForCausalLM")):
        return None
    shape, problem, size = None, "", 0
    try:
        opened = open_folder(folder)
        size, shape = opened.weight_bytes, read_architecture(opened.config)
    except EngineError as error:
        if name or not any(folder.glob("*.safetensors")):
            return None  # for example after an interrupted download
        problem = str(error)
    return FoundModel(
        name=name or str(folder),
        title=name or folder.name,
        program=program,
        folder=str(folder),
        bytes=size,
        ready=not problem,
        shape=shape,
        problem=problem,
    )


def _hugging_face(cache: Path) -> Iterator[FoundModel]:
    """Yields the complete models in Hugging Face's cache, and GGUF files, which llama.cpp keeps there too."""
    for place in islice(sorted(cache.glob("models--*--*")), _MAX):
        with contextlib.suppress(OSError, UnicodeDecodeError, EngineError):
            main = place / "refs" / "main"
            commit = main.read_text("ascii").strip() if main.is_file() else ""
            if not commit.isalnum():
                continue
            snapshot, id = place / "snapshots" / commit, place.name.removeprefix("models--").replace("--", "/")
            for path in _below(snapshot, 1):
                if path.suffix.casefold() == ".gguf":
                    one = _file(path, "Hugging Face")
                else:
                    one = _folder(snapshot, "Hugging Face", id) if path.parent == snapshot else None
                if one is not None:
                    yield one
