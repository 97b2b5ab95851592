"""Finds the models of a data folder: the starter, those of the catalogue, downloaded ones, the owner's own
folders; what each has learned here; how fast it will learn here before it has played a round; and how much room
is left. Opens no socket and loads no model library."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.common.files import read_json, size
from app.models.catalogue import STARTER, Entry, entries
from app.models.found import FoundModel, ModelFolders
from app.models.found import find as find_elsewhere
from app.models.shelf import InstalledModel, PartialDownload, Shelf, starter_folder
from app.node.data.home import model_folder, model_mark
from app.node.data.library import Library, ModelEntry, Training
from app.node.history import checkpoint
from app.node.round import placing
from engines.choice import SAMPLER_BYTES, sampler_kind
from engines.contract import EngineError
from engines.facts import cores
from engines.models.folder import ModelSettings, count_parameters, open_folder, read_architecture, read_settings
from engines.models.needs import (
    Dtype,
    Fit,
    MemoryNeeds,
    MemoryRoom,
    Shape,
    fits,
    likely_dtype,
    memory_here,
    needs,
)

STARTER_ABOUT = "Comes with Shoal. Tiny: it gets better within minutes, on any computer."


TRAINER_BASE_BYTES = 340_000_000
"""Bytes that a trainer takes before it holds a model: Python with torch and llama.cpp. Its starter was measured
at 411 MB in all."""
CACHE_ROWS = 64
"""Answers of a round whose keys and values llama.cpp holds at a time, up to _KEYS bytes."""
_KEYS, _TOKENS = 640 << 20, 256
SAFETY_FACTOR = 1.15
"""Factor on the sum of the parts: SmolLM2 135M took 1.94 GB where the parts sum to 2.2, and 0.5 billion
parameters 4.9 where they sum to 4.3."""


def survey(
    home: Path,
    memory: MemoryRoom | None = None,
    dtype: Dtype | None = None,
    elsewhere: ModelFolders | None = None,
) -> Library:
    """Reads everything again; takes some tenths of a second, more on slow disks. `elsewhere` is where other
    programs keep their models."""
    shelf = Shelf(home)
    room = _Room(memory or memory_here(), dtype or likely_dtype(), shelf.free())
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
        models=room.paced(owned),
        orphans=tuple(trained.values()),
        disk_free=room.disk,
        hub_bytes=size(shelf.root),
        training_bytes=sum(row.bytes for row in every),
        memory=room.memory,
        dtype=room.dtype,
    )


def trainings(home: Path) -> list[Training]:
    """Every model's training in this data folder."""
    root = home / "models"
    folders = (folder for folder in sorted(root.iterdir() if root.is_dir() else ()) if folder.is_dir())
    return [_training(folder) for folder in folders]


def _training(folder: Path) -> Training:
    found = placing.read(folder)
    rounds, seconds = _learned(folder)
    answers = sum(one.answers for one in found.tried) if found else 0
    best = read_json(folder / checkpoint.BEST_FOLDER / checkpoint.STATE_FILE, _Point)
    return Training(
        folder=str(folder),
        bytes=size(folder),
        rounds=rounds,
        round_s=seconds / rounds if rounds and seconds else None,
        answer_s=found.seconds / answers if found and found.seconds and answers else None,
        answers=answers,
        placed=found is not None and not found.looking,
        begins=(*found.in_play, *found.later) if found else (),
        waiting=found.waiting if found else (),
        best=best.state.round if best is not None else None,
    )


class _Lived(msgspec.Struct, frozen=True):
    round: int = 0
    seconds: float = 0.0


class _Point(msgspec.Struct, frozen=True):
    state: _Lived


def _learned(folder: Path) -> tuple[int, float]:
    """Rounds in the newest checkpoint, and the seconds they took."""
    newest = next(iter(checkpoint.newest_first(folder / "checkpoints")), None)
    found = re.search(r"(\d+)$", newest.name) if newest else None
    if newest is None or found is None:
        return 0, 0.0
    point = read_json(newest / checkpoint.STATE_FILE, _Point)
    return int(found[1]), point.state.seconds if point is not None else 0.0


class _Room(msgspec.Struct, frozen=True):
    memory: MemoryRoom
    dtype: Dtype
    disk: int

    def judge(self, shape: Shape, stored: int, max_tokens: int, missing: int) -> tuple[MemoryNeeds, Fit]:
        found = needs(shape, self.dtype, stored_parameters=stored, max_tokens=max_tokens, disk=missing)
        copy = int(SAMPLER_BYTES[sampler_kind(shape.parameters)] * shape.parameters)
        keys = min(_KEYS, CACHE_ROWS * shape.row_bytes(_TOKENS, 2))
        takes = int(SAFETY_FACTOR * (found.takes + copy + keys + TRAINER_BASE_BYTES))
        found = msgspec.structs.replace(found, learning=found.learning + copy, takes=takes)
        left = MemoryRoom(
            free=max(0, self.memory.free - TRAINER_BASE_BYTES),
            most=max(0, self.memory.most - TRAINER_BASE_BYTES),
        )
        return found, fits(found, left, self.disk)

    def paced(self, models: list[ModelEntry]) -> tuple[ModelEntry, ...]:
        """With the seconds of a round, if they can be predicted."""
        works = {model.name: work for model in models if (work := _work(model)) is not None}
        here, load = cores(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0

        def timed(model: ModelEntry, work: RoundWork) -> ModelEntry:
            round_s = seconds_of_round(work, here, self.dtype, works.values(), load)
            return msgspec.structs.replace(model, round_s=round_s, look_s=seconds_of_look(work, round_s))

        return tuple(timed(model, works[model.name]) if model.name in works else model for model in models)


def _work(model: ModelEntry) -> RoundWork | None:
    if not model.parameters:
        return None
    known = model.training
    return RoundWork(
        parameters=model.parameters,
        max_tokens=model.max_tokens,
        round_s=known.round_s if known else None,
        answer_s=known.answer_s if known else None,
        answers=known.answers if known else 0,
        looks=_looks(model),
    )


def _looks(model: ModelEntry) -> bool:
    """Whether its first look is still to come: not where its own settings say what it begins with."""
    known = model.training
    if known is not None and (known.rounds or known.placed):
        return False
    try:
        return not (model.folder and read_settings(Path(model.folder)).families)
    except EngineError:
        return True


def _starter(room: _Room) -> ModelEntry:
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
        bytes=size(folder),
        recommended=True,
    )
    return _judged(made, folder, room)


def _entry(
    entry: Entry, room: _Room, here: InstalledModel | None, partial: PartialDownload | None
) -> ModelEntry:
    have = entry.bytes if here else partial.have if partial else 0
    found, fit = room.judge(
        entry.shape, entry.stored_parameters, entry.settings.max_tokens, max(0, entry.bytes - have)
    )
    return ModelEntry(
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
        parameters=entry.shape.parameters,
        max_tokens=entry.settings.max_tokens,
        learning=found.takes,
        fit=fit,
        commit=here.source.commit if here and here.source else "",
        partial=partial,
    )


def _other(one: InstalledModel, room: _Room) -> ModelEntry:
    """A model that the catalogue does not know."""
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


def _found(one: FoundModel, room: _Room) -> ModelEntry:
    """A GGUF file that another program has fetched."""
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
    stored = one.shape.parameters  # in half precision, once it is taken over
    known, fit = room.judge(one.shape, stored, ModelSettings().max_tokens, 2 * stored)
    return msgspec.structs.replace(
        shown,
        parameters=one.shape.parameters,
        max_tokens=ModelSettings().max_tokens,
        learning=known.takes,
        fit=fit,
    )


def _judged(model: ModelEntry, folder: Path, room: _Room) -> ModelEntry:
    """With what its own config says of it; without that if it cannot be read."""
    try:
        opened = open_folder(folder)
        known = read_architecture(opened.config)
        if known is None:
            return msgspec.structs.replace(model, folder=str(folder))
        shape = Shape(**{name: getattr(known, name) for name in Shape.__struct_fields__})
        tokens = read_settings(folder).max_tokens
        found, fit = room.judge(shape, count_parameters(opened), tokens, 0)
    except EngineError as error:
        return msgspec.structs.replace(model, about=str(error), folder=str(folder))
    return msgspec.structs.replace(
        model,
        folder=str(folder),
        parameters=shape.parameters,
        max_tokens=tokens,
        learning=found.takes,
        fit=fit,
    )


def _training_place(home: Path, model: ModelEntry) -> Path | None:
    """Where its training is, from the name and mark that `./shoal run` uses."""
    if not model.installed or not model.folder:
        return None
    folder = Path(model.folder)
    name = folder.name if model.local else model.name
    try:
        return model_folder(home, name, model_mark(folder))
    except OSError:
        return None


# The work of a round grows with parameters times tokens. The constants are those of a round of SmolLM2 135M (8
# questions, 8 answers) on two cores in 16 bits, slower by the processes that want the processor now; rounds of
# another model on this very computer replace them. The
# model's own first look, which answers the same kind of questions under the same load, tells more than either.

FIXED_S = 2.0
"""Seconds that every round takes, whatever the model: drawing, scoring, saving."""
_REFERENCE = 135e6 * 64
_REFERENCE_S = 5.0
_REFERENCE_CORES = 2
_MOST_CORES = 8
"""More cores bring little more."""
_TELLING = 50e6
"""Parameters from which a model's own rounds predict those of other models."""


_FREE, _BUSY = 1.0, 4.0
"""The range around an estimate by size: 12 s were said of SmolLM2 135M in 32 bits on two cores, which took 8 to
16 s there, and 36 to 42 s while llama.cpp was compiled; 57 s of 0.5 billion parameters, which took 220."""
_LOOK_ANSWERS = (450, 750)
"""What a first look asks for: 480 to 744 answers in four homes of SmolLM2 135M."""
_LOOK_ROUNDS = (6.0, 16.0)
"""Its seconds before any answer was timed, in those of a round: 43, 71, 151 and 372 s with bf16 beside other
programs, where 7 to 28 s a round are expected."""
_KNOWN = (0.7, 2.0)
"""The range if another model has played here."""
_ANSWERS = 64
_LOOKED = (0.2, 0.9)
"""Seconds of a round relative to the time that the first look took for as many answers: 0.22 to 0.87 in six
homes of SmolLM2 135M. Without examples, prompts are short."""


class RoundWork(msgspec.Struct, frozen=True, kw_only=True):
    """`round_s` is the mean duration of a round here, None before the first; `answer_s` of an answer in the
    first look, None before it."""

    parameters: int
    max_tokens: int
    round_s: float | None = None
    answer_s: float | None = None
    answers: int = 0
    """Of a first look that is not over; `looks` tells whether there is one to come, or under way."""
    looks: bool = False


def seconds_of_round(
    work: RoundWork, cores: int, dtype: Dtype, others: Iterable[RoundWork] = (), load: float = 0.0
) -> tuple[float, float]:
    """The least and the most seconds of a round: both as measured, or a range. `load` counts the processes that
    want the processor now.

    >>> small = RoundWork(parameters=135_000_000, max_tokens=64)
    >>> seconds_of_round(small, 2, "bfloat16"), seconds_of_round(small, 4, "float32")
    ((7.0, 28.0), (7.0, 28.0))
    >>> seconds_of_round(small, 2, "bfloat16", load=3.0)
    (17.5, 70.0)
    >>> known = RoundWork(parameters=135_000_000, max_tokens=64, round_s=12.0)
    >>> seconds_of_round(known, 2, "bfloat16")
    (12.0, 12.0)
    >>> seconds_of_round(RoundWork(parameters=270_000_000, max_tokens=64), 2, "bfloat16", [known])
    (15.4, 44.0)
    >>> seconds_of_round(RoundWork(parameters=135_000_000, max_tokens=64, answer_s=1.5), 2, "bfloat16", [known])
    (19.2, 86.4)
    """
    if work.round_s is not None:
        return work.round_s, work.round_s
    if work.answer_s is not None:
        least, most = _LOOKED
        return round(least * _ANSWERS * work.answer_s, 2), round(most * _ANSWERS * work.answer_s, 2)
    telling = [one for one in others if one.round_s is not None and one.parameters >= _TELLING]
    factor, (least, most) = 1.0, (_KNOWN if telling else (_FREE, _BUSY))
    slower = 1.0 if telling else 1.0 + load / cores
    if telling:
        nearest = min(telling, key=lambda one: abs(one.parameters - work.parameters))
        assert nearest.round_s is not None
        factor = max(nearest.round_s - FIXED_S, 0.1) / _computing_s(nearest, cores, dtype)
    expected = slower * (FIXED_S + factor * _computing_s(work, cores, dtype))
    return round(least * expected, 2), round(most * expected, 2)


def seconds_of_look(work: RoundWork, round_s: tuple[float, float]) -> tuple[float, float] | None:
    """The least and the most seconds until the first look is over, where a round takes `round_s`; None if there
    is none to come.

    >>> seconds_of_look(RoundWork(parameters=1, max_tokens=1, looks=True), (7.0, 28.0))
    (42.0, 448.0)
    >>> begun = RoundWork(parameters=1, max_tokens=1, looks=True, answer_s=0.2, answers=400)
    >>> seconds_of_look(begun, (7.0, 28.0))
    (10.0, 70.0)
    >>> seconds_of_look(RoundWork(parameters=1, max_tokens=1), (7.0, 28.0))
    """
    if not work.looks:
        return None
    if work.answer_s is None:
        return _LOOK_ROUNDS[0] * round_s[0], _LOOK_ROUNDS[1] * round_s[1]
    least, most = (round(max(1, count - work.answers) * work.answer_s, 2) for count in _LOOK_ANSWERS)
    return least, most


def _computing_s(work: RoundWork, cores: int, dtype: Dtype) -> float:
    slower = 2.0 if dtype == "float32" else 1.0
    share = _REFERENCE_CORES / min(cores, _MOST_CORES)
    return _REFERENCE_S * slower * share * work.parameters * work.max_tokens / _REFERENCE
