"""Makes a result (app.node.models.result) from what a model learned in this data folder."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from app.common.text import safe_line
from app.install.updates.installed import version
from app.node.data.home import model_mark
from app.node.models.result import (
    OWNERS_SETS,
    Base,
    Machine,
    MeasuredPoint,
    Result,
    ResultError,
    RunSegment,
    commands_to_repeat,
)
from app.node.models.trained import PlayedRun, TrainedModel
from app.node.record.settings import Settings, starting_levels
from app.sapo.sets.question_set import QuestionSet, is_owners_set
from engines.contract import EngineInfo
from engines.models.folder import open_folder, read_settings
from engines.models.lora import ADAPTER


def make_result(found: TrainedModel, model: Path, skill: QuestionSet | None = None) -> Result:
    """Returns the result of what was learned in the folder `found.place` from the model in the folder `model`,
    of puzzles or of a skill. Raises ResultError if nothing was measured, or if an older Shoal recorded too
    little."""
    if found.last is None or not found.runs:
        raise ResultError(
            "Nothing was measured yet, so there is no result: let it learn a few rounds, then try again."
        )
    info = _engine(found.runs[-1])
    base = Base(
        name=_settings(found.runs[-1]).public_model,
        sha256=weights_digest(model),
        mark=model_mark(model),
        parameters=info.parameters,
    )
    offered = starting_levels(model, read_settings(model).families)
    played = tuple(_segments(found.runs, offered))
    last, state = found.last, found.state
    result = Result(
        shoal=version(),
        questions=state.questions,
        day=time.strftime("%Y-%m-%d"),
        base=base,
        adapter=_digest([found.folder / ADAPTER]),
        rounds=state.round,
        steps=state.steps,
        answers=state.completions,
        tokens=state.tokens,
        seconds=round(state.seconds, 1),
        from_peers=found.peer_groups + found.imitated,
        played=played,
        questions_mark=last.questions_mark,
        curve=tuple(
            MeasuredPoint(
                round=one.round,
                pass_at_1=round(one.share, 6),
                stderr=round(one.stderr, 6),
                questions=one.questions,
                lenient=round(one.lenient, 6),
            )
            for one in found.curve
        ),
        families={_public(name): round(share, 6) for name, share in last.families.items()},
        machine=Machine(
            system=platform.system(),
            processor=platform.machine(),
            cores=os.cpu_count() or 0,
            memory_gb=round(psutil.virtual_memory().total / 2**30),
        ),
        skill=safe_line(skill.name) if skill is not None else "",
        constant=round(skill.constant_share()[0], 6) if skill is not None else 0.0,
    )
    return msgspec.structs.replace(result, repeat=tuple(commands_to_repeat(result)))


def _segments(runs: Sequence[PlayedRun], offered: Mapping[str, int]) -> Iterator[RunSegment]:
    """Yields the segments of the runs; consecutive runs with the same settings are merged."""
    last: RunSegment | None = None
    for run in runs:
        one = _segment(run, offered)
        if last is not None and one != msgspec.structs.replace(
            last, first_round=one.first_round, last_round=one.last_round
        ):
            yield last
            last = None
        last = one if last is None else msgspec.structs.replace(one, first_round=last.first_round)
    if last is not None:
        yield last


def _segment(run: PlayedRun, offered: Mapping[str, int]) -> RunSegment:
    """Returns the segment of a run. Most fields are copied from the run's settings and its engine by name."""
    settings, engine = _settings(run), _engine(run)
    alike = {
        name: getattr(source, name)
        for source in (engine, settings)
        for name in set(RunSegment.__struct_fields__) & set(source.__struct_fields__)
    }
    named = {
        "first_round": run.first_round,
        "last_round": run.last_round,
        "families": {_public(name): level for name, level in settings.families.items()},
        "every": settings.families == offered,
        "engine": engine.name,
        "device": safe_line(engine.device, 100),
    }
    return RunSegment(**alike | named)


def _settings(run: PlayedRun) -> Settings:
    try:
        return msgspec.convert(run.settings, Settings)
    except msgspec.ValidationError as error:
        raise _too_old() from error


def _engine(run: PlayedRun) -> EngineInfo:
    try:
        return msgspec.convert(run.engine, EngineInfo)
    except msgspec.ValidationError as error:
        raise _too_old() from error


def _too_old() -> ResultError:
    return ResultError(
        "This model was begun with an older Shoal that noted too little for a result: start over with it, or "
        "take another model."
    )


def _public(family: str) -> str:
    return OWNERS_SETS if is_owners_set(family) else family


def weights_digest(model: Path) -> str:
    """Returns the SHA-256 of the weight files in the order of their names; for a single file it equals the hash
    that hubs show."""
    return _digest(open_folder(model).files)


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            while chunk := file.read(2**20):
                digest.update(chunk)
    return digest.hexdigest()
