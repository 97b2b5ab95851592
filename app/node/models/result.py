"""A result to keep and to show: what a model learned here, signed by the node's key, and played again.

A file is one JSON object: `key`, `signature` and `result`. The signature (Ed25519) is over a domain and the
exact bytes of `result` in the file, so a file holds as it stands or not at all. It says who wrote it, not that
it is true: that is what playing it again is for. Nothing of the owner's is in it: no text but answers to
generated puzzles, no path, no time of day; questions of one's own are counted under one name.
"""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import psutil

from app.common import signing
from app.common.remedy import command
from app.common.text import safe, safe_line
from app.install.updates.installed import version
from app.models.catalogue import STARTER
from app.node.data.home import model_mark
from app.node.history import flips
from app.node.models.trained import PlayedRun, TrainedModel
from app.node.record.errors import NodeError
from app.node.record.settings import Settings, starting_levels
from app.sapo.probe import Score, interval
from app.sapo.questions import VERSION
from app.sapo.sets.question_set import is_own
from app.swarm.identity.identity import Identity, node_name
from engines.contract import EngineInfo
from engines.models.folder import open_folder, read_settings

MAX_FILE_BYTES = 2**22
"""Bytes of a file that are read."""
MOST_PUZZLES = 100_000
"""What is played again for a file takes no more: hours."""
OWN_SETS = "questions of one's own"
"""What all question sets are called: their names say what is in them."""
LOCAL = "local"
_DOMAIN = b"shoal-result-v1\0"
_EXAMPLES, _EXAMPLE = 3, 400
"""Flips of each kind that are shown, and the characters of each text."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Few = Annotated[int, msgspec.Meta(ge=1, le=4096)]
Figure = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
Short = Annotated[str, msgspec.Meta(max_length=200)]
Text = Annotated[str, msgspec.Meta(max_length=_EXAMPLE + 1)]
Command = Annotated[str, msgspec.Meta(max_length=4000)]
Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Mark = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{8}\Z")]


class ResultError(NodeError):
    """The file can't be believed or used; the message says why and what to do."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Base(_Part, frozen=True, kw_only=True):
    """The model as it came: `sha256` is over its weight files in the order of their names, `mark` changes with
    its tokenizer and configuration too."""

    name: Short
    sha256: Digest
    mark: Mark
    parameters: Count


class RunSegment(_Part, frozen=True, kw_only=True):
    """Rounds that were played with the same settings and engine. `families` have the level they began at."""

    first_round: Count
    last_round: Count
    seed: Count | None
    solo: bool
    recipe: Short
    groups: Few
    external: Count
    completions: Count
    max_tokens: Count
    learning_rate: Figure
    rank: Count | None
    families: dict[Short, Count]
    every: bool
    """Whether they are all that this model is offered."""
    place: bool
    probe_every: Count
    probe_questions: Few
    shuffled_rewards: bool
    engine: Short
    sampler: Short
    device: Short
    dtype: Short
    threads: Count


class MeasuredPoint(_Part, frozen=True, kw_only=True):
    """A measurement on held-out questions, one answer each at temperature 1; `stderr` is one standard error."""

    round: Count
    pass_at_1: Share
    stderr: Share
    questions: Count
    lenient: Share

    @property
    def interval(self) -> tuple[float, float]:
        """95 %."""
        return interval(Score(share=self.pass_at_1, stderr=self.stderr), self.questions)


class Example(_Part, frozen=True, kw_only=True):
    """A held-out puzzle whose answer flipped; `now` says whether it is right since."""

    question: Text
    before: Text
    after: Text
    now: bool


class FlipCounts(_Part, frozen=True, kw_only=True):
    """Between the first and the latest measurement of the same questions: see app.node.history.flips."""

    first: Count
    latest: Count
    questions: Count
    gained: Count
    lost: Count
    difference: Annotated[float, msgspec.Meta(ge=-1, le=1)]
    error: Share
    chance: Share
    examples: Annotated[tuple[Example, ...], msgspec.Meta(max_length=2 * _EXAMPLES)] = ()


class Machine(_Part, frozen=True, kw_only=True):
    """The kind of computer, not which one."""

    system: Short
    processor: Short
    cores: Count
    memory_gb: Count


class Result(_Part, frozen=True, kw_only=True):
    """Everything that is signed. `questions` is the version of the puzzles, `questions_mark` the set of
    held-out ones; `families` have the share solved in the last measurement; `adapter` is the SHA-256 of what
    was learned."""

    shoal: Short
    questions: Short
    day: Short
    base: Base
    adapter: Digest
    rounds: Count
    steps: Count
    answers: Count
    tokens: Count
    seconds: Figure
    from_peers: Count
    """Groups and lessons of other models that it learned from."""
    played: Annotated[tuple[RunSegment, ...], msgspec.Meta(min_length=1, max_length=1000)]
    questions_mark: Mark
    curve: Annotated[tuple[MeasuredPoint, ...], msgspec.Meta(min_length=1, max_length=20_000)]
    families: dict[Short, Share]
    flips: FlipCounts | None
    machine: Machine
    repeat: Annotated[tuple[Command, ...], msgspec.Meta(max_length=1001)] = ()
    """Commands for people; no one runs them from here (see `repeating`)."""

    @property
    def first(self) -> MeasuredPoint:
        return self.curve[0]

    @property
    def last(self) -> MeasuredPoint:
        return self.curve[-1]

    @property
    def seeds(self) -> tuple[int | None, ...]:
        return tuple(dict.fromkeys(one.seed for one in self.played))


class SignedResult(_Part, frozen=True, kw_only=True):
    """The file. `result` are the bytes that were signed."""

    key: Digest
    signature: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{128}\Z")]
    result: msgspec.Raw


class VerifiedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says, and who signed it."""

    key: str
    name: str
    result: Result


# ---- made


def make(found: TrainedModel, model: Path) -> Result:
    """The result of what was learned in the folder `found.place` from the model in `model`. Raises ResultError
    where nothing was measured, or an older Shoal noted too little."""
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
    from engines.models.lora import ADAPTER  # it loads numpy, which a window that reads results needs not

    offered = starting_levels(model, read_settings(model).families)
    played = tuple(_stretches(found.runs, offered))
    own = any(OWN_SETS in one.families for one in played)
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
        from_peers=found.peer_groups + found.peer_lessons,
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
        flips=_flips(found, last.questions_mark, own),
        machine=Machine(
            system=platform.system(),
            processor=platform.machine(),
            cores=os.cpu_count() or 0,
            memory_gb=round(psutil.virtual_memory().total / 2**30),
        ),
    )
    return msgspec.structs.replace(result, repeat=tuple(repeating(result)))


def _stretches(runs: Sequence[PlayedRun], offered: Mapping[str, int]) -> Iterator[RunSegment]:
    """Runs that go on where the one before ended, with the same settings, are one."""
    last: RunSegment | None = None
    for run in runs:
        settings, engine = _settings(run), _engine(run)
        one = RunSegment(
            first_round=run.first_round if last is None else last.first_round,
            last_round=run.last_round,
            seed=settings.seed,
            solo=settings.solo,
            recipe=settings.recipe,
            groups=settings.groups,
            external=settings.external,
            completions=settings.completions,
            max_tokens=settings.max_tokens,
            learning_rate=settings.learning_rate,
            rank=settings.rank,
            families={_public(name): level for name, level in settings.families.items()},
            every=settings.families == offered,
            place=settings.place,
            probe_every=settings.probe_every,
            probe_questions=settings.probe_questions,
            shuffled_rewards=settings.shuffled_rewards,
            engine=engine.name,
            sampler=engine.sampler,
            device=safe_line(engine.device, 100),
            dtype=engine.dtype,
            threads=engine.threads,
        )
        if last is not None and one != msgspec.structs.replace(last, last_round=run.last_round):
            yield last
            one = msgspec.structs.replace(one, first_round=run.first_round)
        last = one
    if last is not None:
        yield last


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
    return OWN_SETS if is_own(family) else family


def _flips(found: TrainedModel, mark: str, own: bool) -> FlipCounts | None:
    """Without examples where questions of one's own are among them."""
    flipped = flips.read(found.place, mark)
    if flipped is None or flipped.latest > found.state.round:
        return None
    kinds = () if own else (flipped.gained, flipped.lost)
    pairs = [pair for kind in kinds for pair in kind[:: len(kind) // _EXAMPLES or 1][:_EXAMPLES]]
    return FlipCounts(
        first=flipped.first,
        latest=flipped.latest,
        questions=len(flipped.pairs),
        gained=len(flipped.gained),
        lost=len(flipped.lost),
        difference=round(flipped.difference, 6),
        error=round(min(1.0, flipped.error), 6),
        chance=round(flipped.chance, 6),
        examples=tuple(
            Example(
                question=safe(pair.question, _EXAMPLE),
                before=safe(pair.before, _EXAMPLE),
                after=safe(pair.after, _EXAMPLE),
                now=pair.now,
            )
            for pair in pairs
        ),
    )


def weights_digest(model: Path) -> str:
    """SHA-256 of the weight files in the order of their names: of a single one, the hash that hubs show too."""
    return _digest(open_folder(model).files)


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        with path.open("rb") as file:
            while chunk := file.read(2**20):
                digest.update(chunk)
    return digest.hexdigest()


def sign(result: Result, identity: Identity) -> bytes:
    """The file's content."""
    body = msgspec.json.format(msgspec.json.encode(result), indent=1)
    signature = identity.sign(_DOMAIN + body).hex()
    return msgspec.json.encode(
        SignedResult(key=identity.key.hex(), signature=signature, result=msgspec.Raw(body))
    )


# ---- read


def verify(content: bytes) -> VerifiedResult:
    """What a signed file says. Raises ResultError for one that isn't a result, was changed, or isn't signed by
    the key it names."""
    try:
        signed = msgspec.json.decode(content, type=SignedResult)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ResultError("This is no result of Shoal: pick the file that `result` wrote.") from error
    key, body = bytes.fromhex(signed.key), bytes(signed.result)
    if not signing.verifies(key, _DOMAIN + body, bytes.fromhex(signed.signature)):
        raise ResultError(
            "The signature doesn't fit: the file was changed after it was signed. Ask for the file itself."
        )
    try:
        result = msgspec.json.decode(body, type=Result)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        why = safe_line(str(error), 120).rstrip(".")
        raise ResultError(
            f"The signature fits, but this isn't a result that this version reads ({why}): update Shoal."
        ) from error
    if any(one.last_round < one.first_round for one in result.played):
        raise ResultError("The signature fits, but the rounds it names can't have happened: don't trust it.")
    return VerifiedResult(key=signed.key, name=node_name(key), result=result)


def read(path: Path) -> VerifiedResult:
    """Raises ResultError, also for what is no file, or is too large to be one of these."""
    try:
        if not path.is_file():
            raise ResultError(f"There is no file {path}: check its name.")
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ResultError(f"{path} can't be read ({error.strerror}): check that it is yours.") from error
    if len(content) > MAX_FILE_BYTES:
        raise ResultError(f"{path.name} is larger than any result of Shoal: pick the file that `result` wrote.")
    return verify(content)


# ---- played again


def options(one: RunSegment, model: str, seed: int | None) -> list[str]:
    """Of `./shoal run`, for rounds like these."""
    said: dict[str, object] = {
        "model": model,
        "rounds": one.last_round - one.first_round + 1,
        "seed": seed,
        "engine": one.engine,
        "recipe": one.recipe if one.recipe != "default" else None,
        "local": one.groups,
        "families": None if one.every else ",".join(one.families),
        "probe-every": one.probe_every if one.probe_every != 10 else None,
        "probe-questions": one.probe_questions,
    }
    words = [word for name, value in said.items() if value is not None for word in (f"--{name}", str(value))]
    bare = (["--no-placement"] if not one.place and model != STARTER else []) + (
        ["--shuffled-rewards"] if one.shuffled_rewards else []
    )
    return ["--solo", *words, *bare]


def repeating(result: Result) -> list[str]:
    """The commands that play it again by hand, none where it can't be."""
    if obstacle(result) and result.base.name != LOCAL:
        return []
    model = "FOLDER" if result.base.name == LOCAL else safe_line(result.base.name)
    runs = [" ".join(options(one, model, one.seed)) for one in result.played]
    return [command(f"{words} --home NEW") for words in (*(f"run {one}" for one in runs), "result")]


def obstacle(result: Result) -> str:
    """Why it can't be played again; empty where it can."""
    if result.from_peers:
        return "It also learned from other models' answers, and those can't be played again."
    if any(OWN_SETS in one.families for one in result.played):
        return "It learned questions of its owner's, which aren't in the file."
    if sum((one.last_round - one.first_round + 1) * one.groups for one in result.played) > MOST_PUZZLES:
        return f"It took more than {MOST_PUZZLES} puzzles, which is too long to play again for a file."
    if result.questions != VERSION:
        return (
            f"It was made with puzzles of version {safe_line(result.questions, 40)}, and this Shoal has "
            f"{VERSION}: use Shoal {safe_line(result.shoal, 40)} to play it again."
        )
    return ""


def differs(then: RunSegment, now: RunSegment) -> list[str]:
    """The names of settings that must be equal and aren't. Engine, number format and threads may differ."""
    free = {
        "first_round",
        "last_round",
        "seed",
        "solo",
        "external",
        "engine",
        "sampler",
        "device",
        "dtype",
        "threads",
    }
    a, b = msgspec.to_builtins(then), msgspec.to_builtins(now)
    return [name for name in a if name not in free and a[name] != b[name]]


class ResultComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two results of the same settings. `points` are (round, then, now) of every measurement that both have;
    `apart` and `allowed` are of the last one: now less then, and 1.96 standard errors of that difference."""

    points: tuple[tuple[int, float, float], ...]
    equal: int
    apart: float
    allowed: float

    @property
    def agrees(self) -> bool:
        return self.equal == len(self.points) or abs(self.apart) <= self.allowed


def compare(then: Result, now: Result) -> ResultComparison:
    """Raises ResultError where what must be equal is not: the base, the settings, the held-out questions."""
    if (then.base.sha256, then.base.mark) != (now.base.sha256, now.base.mark):
        raise ResultError("The base model here isn't the one of the result, so the figures can't be compared.")
    for at, one in enumerate(then.played):
        if names := differs(one, now.played[min(at, len(now.played) - 1)]):
            raise ResultError(
                f"This version of Shoal sets {', '.join(names)} otherwise, so the figures can't be compared."
            )
    if then.questions_mark != now.questions_mark:
        raise ResultError(
            "On this computer it began with other kinds of puzzles, so its held-out questions are others and "
            "the figures can't be compared."
        )
    played = {point.round: point for point in now.curve}
    both = [(point, played[point.round]) for point in then.curve if point.round in played]
    if not both:
        raise ResultError("The two were measured after other rounds, so the figures can't be compared.")
    last, again = both[-1]
    return ResultComparison(
        points=tuple((a.round, a.pass_at_1, b.pass_at_1) for a, b in both),
        equal=sum(a.pass_at_1 == b.pass_at_1 for a, b in both),
        apart=again.pass_at_1 - last.pass_at_1,
        allowed=1.96 * (last.stderr**2 + again.stderr**2) ** 0.5,
    )


def plain(found: VerifiedResult) -> dict[str, Any]:
    """For `--json`."""
    return {"key": found.key, "name": found.name, "result": msgspec.to_builtins(found.result)}
