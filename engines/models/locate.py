"""From a model's name to its folder. Nothing is ever downloaded here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from engines.contract import EngineError
from engines.models.catalogue import STARTER, full_name
from engines.models.gguf_shelf import GgufShelf, is_gguf
from engines.models.shelf import Shelf, own_corner
from engines.remedy import command

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def locate(
    model: str | Path, home: Path | None = None, tell: Callable[[float], None] | None = None, make: bool = True
) -> Path:
    """The folder of a model: "starter", a folder's path, or a hub's name (the catalogue has short ones): one
    that was fetched into the data folder `home` or SHOAL_HOME, else one in Hugging Face's own cache.

    Of a GGUF file it is the folder made of it in the data folder, where `tell` hears how far that is; with
    `make` off, only one that is made already. Raises EngineError, one sentence, when there is none."""
    name = str(model)
    if name == STARTER:
        return starter_folder()
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return folder.resolve()
    if is_gguf(name):
        return _of_file(folder, home, tell, make)
    name = full_name(name)
    if isinstance(model, str) and _HUB_ID.fullmatch(name):
        return _fetched(name, home) or _cached(name)
    raise EngineError(
        f"There is no model at {name}: give an existing folder, a .gguf file, a Hugging Face name or starter."
    )


def starter_folder() -> Path:
    """The starter model in this installation's resources. Raises EngineError when it is not there."""
    folder = Path(__file__).resolve().parents[2] / "resources" / "starter"
    if not (folder / "config.json").is_file():
        raise EngineError("The starter model is missing from this installation: install Shoal again.")
    return folder


def _of_file(file: Path, home: Path | None, tell: Callable[[float], None] | None, make: bool) -> Path:
    named = os.environ.get("SHOAL_HOME")
    shelf = GgufShelf(home or (Path(named).expanduser() if named else own_corner()))
    found = shelf.find(file)
    if found is not None:
        return found
    if not file.is_file():
        raise EngineError(f"There is no file {file}: check its name.")
    if not make:
        raise EngineError(f"{file.name} hasn't been added yet: run {command(f'models get {file}')}.")
    return shelf.take(file, tell)


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
