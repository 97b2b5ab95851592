"""Lists the models of a data folder: the starter, the catalogue's, downloaded ones, and the owner's folders;
what each has learned here, whether it fits, and how fast it will train (app.models.fit). Opens no socket and
loads no model library."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from app.common.files import read_json, size_on_disk
from app.models.catalogue import STARTER, Entry, entries
from app.models.fit import (
    ComputerRoom,
    expected_round_s,
    likely_dtype,
    machine_class,
    memory_and_fit,
    memory_here,
)
from app.models.found import FoundModel, ModelFolders
from app.models.found import find as find_elsewhere
from app.models.shelf import InstalledModel, PartialDownload, Shelf, starter_folder
from app.node.data.home import model_folder, model_mark
from app.node.data.library import Library, ModelEntry, Training
from app.node.history import checkpoint
from app.node.round import placing
from engines.contract import EngineError
from engines.facts import cores
from engines.models.folder import (
    ModelSettings,
    Shape,
    count_parameters,
    open_folder,
    read_architecture,
    read_settings,
)

STARTER_ABOUT = "Comes with Shoal. For puzzles alone: it gets better within minutes, on any computer."


def survey(home: Path, elsewhere: ModelFolders | None = None) -> Library:
    """Reads everything again; takes some tenths of a second, more on slow disks. `elsewhere`: where other
    programs keep their models."""
    shelf = Shelf(home)
    room = ComputerRoom(memory=memory_here(), dtype=likely_dtype(), disk=shelf.free_bytes())
    trained = {row.folder: row for row in trainings(home)}
    partials = {one.id: one for one in shelf.unfinished()}
    installed = {one.name: one for one in shelf.installed()}
    others = find_elsewhere(elsewhere)
    ready = {one.name: one for one in others if one.ready and one.name not in installed}
    installed |= {
        one.name: InstalledModel(
            name=one.name, folder=one.folder, bytes=one.bytes, local=Path(one.name).is_absolute()
        )
        for one in ready.values()
    }
    taken = {one.name for one in installed.values()}
    models = [_starter(room)]
    models += [
        _entry(entry, room, installed.pop(entry.id, None), partials.get(entry.id)) for entry in entries()
    ]
    models += [_other(one, room) for one in installed.values()]
    models = [
        msgspec.structs.replace(model, program=ready[model.name].program) if model.name in ready else model
        for model in models
    ]
    models += [_found(one, room) for one in others if not one.ready and one.name not in taken]
    named = {model.name for model in models}
    models += [
        ModelEntry(name=one.id, title=one.id, bytes=one.total, partial=one)
        for one in partials.values()
        if one.id not in named
    ]
    owned = []
    for model in models:
        place = _training_place(home, model)
        row = trained.pop(str(place), None) if place else None
        owned.append(msgspec.structs.replace(model, training=row))
    every = [*trained.values(), *(model.training for model in owned if model.training)]
    return Library(
        models=_paced(owned),
        orphans=tuple(trained.values()),
        disk_free=room.disk,
        hub_bytes=size_on_disk(shelf.root),
        training_bytes=sum(row.bytes for row in every),
        memory=room.memory,
        dtype=room.dtype,
    )


def trainings(home: Path) -> list[Training]:
    """Returns the training of every model in this data folder."""
    root = home / "models"
    folders = (folder for folder in sorted(root.iterdir() if root.is_dir() else ()) if folder.is_dir())
    return [_training(folder) for folder in folders]


def _training(folder: Path) -> Training:
    found = placing.read(folder)
    rounds, seconds = _learned(folder)
    best = read_json(folder / checkpoint.BEST_FOLDER / checkpoint.STATE_FILE, _Point)
    return Training(
        folder=str(folder),
        bytes=size_on_disk(folder),
        rounds=rounds,
        round_s=seconds / rounds if rounds and seconds else None,
        begins=(*found.active, *found.later) if found else (),
        waiting=found.waiting if found else (),
        best=best.state.round if best is not None else None,
    )


class _Lived(msgspec.Struct, frozen=True):
    round: int = 0
    seconds: float = 0.0


class _Point(msgspec.Struct, frozen=True):
    state: _Lived


def _learned(folder: Path) -> tuple[int, float]:
    """Returns the round of the newest checkpoint, and the total seconds of training up to it."""
    newest = next(iter(checkpoint.newest_first(folder / "checkpoints")), None)
    found = re.search(r"(\d+)$", newest.name) if newest else None
    if newest is None or found is None:
        return 0, 0.0
    point = read_json(newest / checkpoint.STATE_FILE, _Point)
    return int(found[1]), point.state.seconds if point is not None else 0.0


def _paced(models: list[ModelEntry]) -> tuple[ModelEntry, ...]:
    """Adds the seconds of a round, as those that were measured here let expect them."""
    played = [(model.parameters, model.training.round_s if model.training else None) for model in models]
    expected = expected_round_s([one for one in played if one[0]], machine_class(), cores())
    return tuple(
        msgspec.structs.replace(model, round_s=expected.get(size, seconds))
        for model, (size, seconds) in zip(models, played, strict=True)
    )


def _starter(room: ComputerRoom) -> ModelEntry:
    try:
        folder = starter_folder()
    except EngineError:
        return ModelEntry(name=STARTER, title="Starter", about="Missing from this installation.")
    made = ModelEntry(
        name=STARTER,
        title="Starter",
        about=STARTER_ABOUT,
        installed=True,
        licence="Apache-2.0",
        bytes=size_on_disk(folder),
        recommended=True,
    )
    return _judged(made, folder, room)


def _entry(
    entry: Entry, room: ComputerRoom, here: InstalledModel | None, partial: PartialDownload | None
) -> ModelEntry:
    have = entry.bytes if here else partial.have if partial else 0
    made = ModelEntry(
        name=entry.id,
        title=entry.title,
        about=entry.about,
        installed=here is not None,
        folder=here.folder if here else "",
        bytes=here.bytes if here else entry.bytes,
        licence=entry.licence,
        licence_url=entry.licence_url,
        gated=entry.gated,
        chat=entry.chat,
        commit=here.source.commit if here and here.source else "",
        partial=partial,
    )
    missing = max(0, entry.bytes - have)
    return _fitted(made, room, entry.shape, entry.stored_parameters, entry.settings.max_tokens, missing)


def _other(one: InstalledModel, room: ComputerRoom) -> ModelEntry:
    """Returns the entry of an installed model that is not in the catalogue."""
    title = one.title or (Path(one.folder).name if one.local else one.name)
    made = ModelEntry(
        name=one.name,
        title=title,
        installed=True,
        local=one.local,
        folder=one.folder,
        bytes=one.bytes,
        commit=one.source.commit if one.source else "",
    )
    return _judged(made, Path(one.folder), room)


def _found(one: FoundModel, room: ComputerRoom) -> ModelEntry:
    """Returns the entry of a GGUF file that another program downloaded."""
    shown = ModelEntry(
        name=one.name,
        title=one.title,
        about=one.problem,
        local=True,
        folder=one.folder,
        bytes=one.bytes,
        program=one.program,
        problem=one.problem,
    )
    if one.shape is None:
        return shown
    stored = one.shape.parameters  # in half precision after conversion
    return _fitted(shown, room, one.shape, stored, ModelSettings().max_tokens, 2 * stored)


def _judged(model: ModelEntry, folder: Path, room: ComputerRoom) -> ModelEntry:
    """Adds size and fit from the model's own config; without a readable config they are left out."""
    model = msgspec.structs.replace(model, folder=str(folder))
    try:
        opened = open_folder(folder)
        shape = read_architecture(opened.config)
        if shape is None:
            return model
        return _fitted(model, room, shape, count_parameters(opened), read_settings(folder).max_tokens, 0)
    except EngineError as error:
        return msgspec.structs.replace(model, about=str(error))


def _fitted(
    model: ModelEntry, room: ComputerRoom, shape: Shape, stored: int, max_tokens: int, missing: int
) -> ModelEntry:
    """Adds whether it fits here (app.models.fit.memory_and_fit)."""
    takes, fit = memory_and_fit(shape, room, stored, max_tokens, missing)
    return msgspec.structs.replace(
        model, parameters=shape.parameters, max_tokens=max_tokens, learning=takes, fit=fit
    )


def _training_place(home: Path, model: ModelEntry) -> Path | None:
    """Returns the folder of its training, from the name and mark that `./shoal run` uses. None for a model that
    is not installed."""
    if not model.installed or not model.folder:
        return None
    folder = Path(model.folder)
    name = folder.name if model.local else model.name
    try:
        return model_folder(home, name, model_mark(folder))
    except OSError:
        return None
