"""Stores downloaded models in HOME/hub, laid out as Hugging Face's own cache, so that its tools read it too.

HUB/models--Owner--Name/snapshots/COMMIT/   the model's files, complete and verified
HUB/models--Owner--Name/refs/main           the COMMIT in use
HUB/models--Owner--Name/source.json         where it came from (ModelSource)
HUB/.partial/Owner--Name/                   a download in progress or interrupted (UnfinishedDownload)
HUB/gguf/NAME-DIGEST/                       converted from a GGUF file of the user's (gguf_shelf)
HUB/folders.json                            folders elsewhere that the user added as models

Nothing is ever downloaded here."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from app.models.catalogue import STARTER, full_name
from app.models.gguf_shelf import HUB_FOLDER, GgufShelf, is_gguf
from engines.contract import EngineError
from engines.files import (
    discard,
    folder_lock,
    free_bytes,
    lock_of,
    read_json,
    size_on_disk,
    user_temp_folder,
    write_json,
)
from engines.remedy import command

PARTIAL = ".partial"
SOURCE, STATE, FOLDERS = "source.json", "state.json", "folders.json"


class ModelSource(msgspec.Struct, frozen=True, kw_only=True):
    """Origin of a downloaded model. `revision` was requested, `commit` is what it resolved to; `digests` maps
    file names to SHA-256 for large files and git blob SHA-1 for small ones."""

    id: str
    revision: str
    commit: str
    endpoint: str
    fetched: float
    bytes: int
    digests: dict[str, str]


class UnfinishedDownload(msgspec.Struct, frozen=True, kw_only=True):
    """State of a download in progress or interrupted. `sentence` says why it stopped; empty while it runs, and
    if it was killed."""

    id: str
    revision: str
    commit: str = ""
    total: int = 0
    sentence: str = ""


class InstalledModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model on this computer: its name for `locate`, its folder, its bytes on disk. `local`: the folder, or
    the GGUF file that it was converted from, belongs to the user."""

    name: str
    folder: str
    bytes: int
    local: bool = False
    source: ModelSource | None = None
    title: str = ""


class PartialDownload(msgspec.Struct, frozen=True, kw_only=True):
    """A download that is not complete: `have` of `total` bytes are on disk; `running` while a process downloads
    it."""

    id: str
    have: int
    total: int
    sentence: str
    running: bool


class Shelf:
    """The models of one data folder. Creates no folder before it is needed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / HUB_FOLDER

    def model_folder(self, id: str) -> Path:
        """Returns the folder of a hub model, which need not exist."""
        return self.root / f"models--{_flat(id)}"

    def partial_folder(self, id: str) -> Path:
        """Returns the folder of a model's unfinished download, which need not exist."""
        return self.root / PARTIAL / _flat(id)

    def find(self, id: str) -> Path | None:
        """Returns the folder of a downloaded model, None if it is not here."""
        place = self.model_folder(id)
        try:
            commit = (place / "refs" / "main").read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None
        folder = place / "snapshots" / commit
        return folder if commit.isalnum() and (folder / "config.json").is_file() else None

    def source(self, id: str) -> ModelSource | None:
        return read_json(self.model_folder(id) / SOURCE, ModelSource)

    def installed(self) -> list[InstalledModel]:
        """Returns the downloaded models by name, then those converted from GGUF files, then the user's own
        folders."""
        found = []
        for place in sorted(self.root.glob("models--*--*")):
            id = _name(place.name.removeprefix("models--"))
            folder = self.find(id)
            if folder is not None:
                found.append(
                    InstalledModel(
                        name=id, folder=str(folder), bytes=size_on_disk(place), source=self.source(id)
                    )
                )
        for one in GgufShelf(self.home).converted_models():
            found.append(
                InstalledModel(
                    name=one.origin.path,
                    folder=str(one.folder),
                    bytes=size_on_disk(one.folder),
                    local=True,
                    title=one.origin.title,
                )
            )
        for path in self.folders():
            found.append(InstalledModel(name=str(path), folder=str(path), bytes=size_on_disk(path), local=True))
        return found

    def unfinished(self) -> list[PartialDownload]:
        """Returns the downloads that are interrupted or in progress."""
        found = []
        for place in sorted((self.root / PARTIAL).glob("*--*")):
            state = read_json(place / STATE, UnfinishedDownload)
            if state is None:
                continue
            found.append(
                PartialDownload(
                    id=state.id,
                    have=sum(file.stat().st_size for file in _files(place / "files")),
                    total=state.total,
                    sentence=state.sentence,
                    running=is_downloading(place),
                )
            )
        return found

    def folders(self) -> list[Path]:
        """Returns the user's own model folders that still exist."""
        kept = read_json(self.root / FOLDERS, list[str]) or []
        return [Path(text) for text in kept if Path(text).is_dir()]

    def add_folder(self, folder: Path) -> Path:
        """Registers a folder as a model and returns its resolved path. Raises EngineError if it is not a model,
        and OSError."""
        from engines.models.folder import open_folder  # safetensors, which the window does not import

        path = open_folder(folder.expanduser().resolve()).path
        kept = {str(one) for one in self.folders()} | {str(path)}
        write_json(self.root / FOLDERS, sorted(kept))
        return path

    def remove(self, name: str) -> int:
        """Deletes a downloaded or converted model with its partial files, or unregisters a user's folder
        without deleting it. Returns the bytes freed. Raises EngineError if there is no such model, or while it
        is being downloaded."""
        folder = Path(name).expanduser()
        freed_of_file = GgufShelf(self.home).remove(name)
        if freed_of_file is not None:
            return freed_of_file
        if folder.is_absolute() or "/" not in name:
            return self._forget(folder)
        place, partial = self.model_folder(name), self.partial_folder(name)
        if not place.is_dir() and not partial.is_dir():
            raise EngineError(f"{name} isn't on this computer: {command('models')} lists what is.")
        if is_downloading(partial):
            raise EngineError(f"{name} is being downloaded right now: cancel that first.")
        freed = 0
        for path in (place, partial):
            freed += size_on_disk(path)
            discard(path)
        return freed

    def _forget(self, folder: Path) -> int:
        kept = [str(path) for path in self.folders()]
        wanted = str(folder.resolve())
        if wanted not in kept:
            raise EngineError(f"{folder} is no model of this data folder: {command('models')} lists them.")
        write_json(self.root / FOLDERS, [one for one in kept if one != wanted])
        return 0

    def tidy(self, id: str) -> None:
        """Deletes a published model's partial files and its earlier versions."""
        discard(self.partial_folder(id))
        folder = self.find(id)
        for other in self.model_folder(id).glob("snapshots/*") if folder is not None else ():
            if other != folder:
                discard(other)

    def free_bytes(self) -> int:
        """Returns the bytes free on the disk that holds the models."""
        return free_bytes(self.root)


def is_downloading(partial: Path) -> bool:
    """Returns whether a process is downloading into the folder `partial` now."""
    if not lock_of(partial).exists() or not partial.is_dir():
        return False
    with folder_lock(partial) as ours:
        return not ours


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*") if folder.is_dir() else ():
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink():
                yield path


def _flat(id: str) -> str:
    return id.replace("/", "--")


def _name(flat: str) -> str:
    return flat.replace("--", "/", 1)


_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def locate(
    model: str | Path, home: Path | None = None, tell: Callable[[float], None] | None = None, make: bool = True
) -> Path:
    """Returns the folder of a model: "starter", a folder's path, a GGUF file, or a hub name (or short name of
    the catalogue), looked up in the data folder `home`, in SHOAL_HOME, and then in Hugging Face's own cache. A
    GGUF file is converted first if needed, with calls of `tell` with the share done; with `make` off, only an
    existing conversion counts. Raises EngineError, one sentence, if there is no such model."""
    name = str(model)
    if name == STARTER:
        return starter_folder()
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return folder.resolve()
    if is_gguf(name):
        return _of_file(folder, home, tell, make)
    name = full_name(name)
    if name == STARTER:
        return starter_folder()
    if isinstance(model, str) and _HUB_ID.fullmatch(name):
        return _fetched(name, home) or _cached(name)
    raise EngineError(
        f"There is no model at {name}: give an existing folder, a .gguf file, a Hugging Face name or starter."
    )


def starter_folder() -> Path:
    """Returns the folder of the starter model in this installation's resources. Raises EngineError if it is
    missing."""
    folder = Path(__file__).resolve().parents[2] / "resources" / "starter"
    if not (folder / "config.json").is_file():
        raise EngineError("The starter model is missing from this installation: install Shoal again.")
    return folder


def _of_file(file: Path, home: Path | None, tell: Callable[[float], None] | None, make: bool) -> Path:
    named = os.environ.get("SHOAL_HOME")
    shelf = GgufShelf(home or (Path(named).expanduser() if named else user_temp_folder()))
    found = shelf.find(file)
    if found is not None:
        return found
    if not file.is_file():
        raise EngineError(f"There is no file {file}: check its name.")
    if not make:
        raise EngineError(f"{file.name} hasn't been added yet: run {command(f'models get {file}')}.")
    return shelf.convert(file, tell)


def _fetched(name: str, home: Path | None) -> Path | None:
    named = os.environ.get("SHOAL_HOME")
    places = (home, Path(named) if named else None)
    return next((found for place in places if place and (found := Shelf(place).find(name))), None)


def _cached(name: str) -> Path:
    from huggingface_hub import snapshot_download  # only here: it takes half a second to import
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except (LocalEntryNotFoundError, ValueError, OSError) as error:
        raise EngineError(
            f"The model {name} isn't on this computer: run {command(f'models get {name}')}, or choose starter."
        ) from error
    return folder
