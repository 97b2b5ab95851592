"""A result to keep and to show: what a model learned here, signed by the node's key, and played again.

A file is one JSON object: `key`, `signature` and `result`. The signature (Ed25519) is over a domain and the
exact bytes of `result` in the file, so a file holds as it stands or not at all. It says who wrote it, not that
it is true: that is what playing it again is for. Nothing of the owner's is in it: no text but answers to
generated puzzles, no path, no time of day; questions of one's own are counted under one name.

Light to import, for a window that reads one; app.node.models.result_making makes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from app.common import signing
from app.common.remedy import command
from app.common.text import safe_line
from app.models.catalogue import STARTER
from app.node.record.errors import NodeError
from app.sapo.probe import Score, interval
from app.sapo.questions import VERSION
from app.swarm.identity.identity import Identity, node_name

MAX_FILE_BYTES = 2**22
"""Bytes of a file that are read."""
MOST_PUZZLES = 100_000
"""What is played again for a file takes no more: hours."""
OWN_SETS = "questions of one's own"
"""What all question sets are called: their names say what is in them."""
LOCAL = "local"
_DOMAIN = b"shoal-result-v1\0"
EXAMPLES, EXAMPLE_CHARS = 3, 400
"""Flips of each kind that are shown, and the characters of each text."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Few = Annotated[int, msgspec.Meta(ge=1, le=4096)]
Figure = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
Short = Annotated[str, msgspec.Meta(max_length=200)]
Text = Annotated[str, msgspec.Meta(max_length=EXAMPLE_CHARS + 1)]
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
    examples: Annotated[tuple[Example, ...], msgspec.Meta(max_length=2 * EXAMPLES)] = ()


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


def sign(result: Result, identity: Identity) -> bytes:
    """The file's content."""
    body = msgspec.json.format(msgspec.json.encode(result), indent=1)
    signature = identity.sign(_DOMAIN + body).hex()
    return msgspec.json.encode(
        SignedResult(key=identity.key.hex(), signature=signature, result=msgspec.Raw(body))
    )


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


# Played again: with which options of `./shoal run`, why not, and whether two results agree.


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
