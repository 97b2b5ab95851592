"""A shareable result: what a model learned here, signed by the node's key.

A file is one JSON object: `key`, `signature` and `result`. The signature (Ed25519) covers a domain prefix and
the exact bytes of `result` in the file, so any change invalidates it. It proves who wrote the file, not that it
is true: its commands repeat the run. The file has no private data: no answer, no path, no time of day; the
owner's question sets appear under one common name, but for the skill whose result it is.

Light to import, for a window that reads one; app.node.models.result_making makes it.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import msgspec

from app.common import signing
from app.common.text import safe_line
from app.models.catalogue import STARTER
from app.node.record.errors import NodeError
from app.node.rules.setting import PROBE_EVERY
from app.sapo.probe import Score, confidence_interval
from app.sapo.questions import QUESTIONS_VERSION
from app.swarm.identity.identity import Identity, node_name
from engines.remedy import command

MAX_FILE_BYTES = 2**22
"""Maximum size of a file that is read."""
OWNERS_SETS = "questions of one's own"
"""Common name of all question sets: their own names could reveal what is in them."""
LOCAL = "local"
_DOMAIN = b"shoal-result-v1\0"

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Few = Annotated[int, msgspec.Meta(ge=1, le=4096)]
Figure = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
Short = Annotated[str, msgspec.Meta(max_length=200)]
Command = Annotated[str, msgspec.Meta(max_length=4000)]
Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Mark = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{8}\Z")]


class ResultError(NodeError):
    """The file cannot be trusted or used; the message says why and what to do."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Base(_Part, frozen=True, kw_only=True):
    """The untrained model. `sha256` covers its weight files in the order of their names; `mark` also changes
    with its tokenizer and configuration."""

    name: Short
    sha256: Digest
    mark: Mark
    parameters: Count


class RunSegment(_Part, frozen=True, kw_only=True):
    """Consecutive rounds with the same settings and engine. `families`: the levels they began at."""

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
    """Whether `families` are all families that this model is offered."""
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
        """95 % confidence interval of `pass_at_1`."""
        return confidence_interval(Score(share=self.pass_at_1, stderr=self.stderr), self.questions)


class Machine(_Part, frozen=True, kw_only=True):
    """The kind of computer, without anything that identifies it."""

    system: Short
    processor: Short
    cores: Count
    memory_gb: Count


class Result(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """The signed part of a result file: the model, how it was trained, and what it then solved. `questions` is
    the version of the puzzles, `questions_mark` identifies the set of held-out questions, `families` has the
    share of each family that was solved in the last measurement, and `adapter` is the SHA-256 of the trained
    adapter."""

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
    """Number of peer groups and of peers' right answers that it learned from."""
    played: Annotated[tuple[RunSegment, ...], msgspec.Meta(min_length=1, max_length=1000)]
    questions_mark: Mark
    curve: Annotated[tuple[MeasuredPoint, ...], msgspec.Meta(min_length=1, max_length=20_000)]
    families: dict[Short, Share]
    machine: Machine
    repeat: Annotated[tuple[Command, ...], msgspec.Meta(max_length=1001)] = ()
    """Commands for people to read; they are never executed from here (see `commands_to_repeat`)."""
    skill: Short = ""
    constant: Share = 0.0
    """The skill that was learned, and the share of its questions that one constant answer gets right; empty for
    puzzles."""
    flips: dict[str, Any] | None = None
    """Answers before and after, in files of earlier versions; not read."""

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
    """The file's JSON. `result`: the exact bytes that were signed."""

    key: Digest
    signature: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{128}\Z")]
    result: msgspec.Raw


class VerifiedResult(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a verified file, and its signer."""

    key: str
    name: str
    result: Result


def sign(result: Result, identity: Identity) -> bytes:
    """Returns the content of a signed file."""
    body = msgspec.json.format(msgspec.json.encode(result), indent=1)
    signature = identity.sign(_DOMAIN + body).hex()
    return msgspec.json.encode(
        SignedResult(key=identity.key.hex(), signature=signature, result=msgspec.Raw(body))
    )


def verify(content: bytes) -> VerifiedResult:
    """Decodes a signed file. Raises ResultError if it is not a result, was changed, or was not signed by the
    key it names."""
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
    """Reads and verifies a file. Raises ResultError, also if it is missing, unreadable or too large."""
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


def options_to_repeat(one: RunSegment, model: str, seed: int | None) -> list[str]:
    """Returns the options of `./shoal run` that repeat these rounds."""
    said: dict[str, object] = {
        "model": model,
        "rounds": one.last_round - one.first_round + 1,
        "seed": seed,
        "engine": one.engine,
        "recipe": one.recipe if one.recipe != "default" else None,
        "local": one.groups,
        "families": None if one.every else ",".join(one.families),
        "probe-every": one.probe_every if one.probe_every != PROBE_EVERY else None,
        "probe-questions": one.probe_questions,
    }
    words = [word for name, value in said.items() if value is not None for word in (f"--{name}", str(value))]
    bare = (["--no-placement"] if not one.place and model != STARTER else []) + (
        ["--shuffled-rewards"] if one.shuffled_rewards else []
    )
    return ["--solo", *words, *bare]


def commands_to_repeat(result: Result) -> list[str]:
    """Returns the commands that repeat the result, quoted for a shell, as the values can be a stranger's; empty
    if that is impossible."""
    if why_not_repeatable(result) and result.base.name != LOCAL:
        return []
    model = "FOLDER" if result.base.name == LOCAL else safe_line(result.base.name)
    runs = [f"run {shlex.join(options_to_repeat(one, model, one.seed))}" for one in result.played]
    return [safe_line(command(f"{words} --home NEW"), 4000) for words in (*runs, "result")]


def why_not_repeatable(result: Result) -> str:
    """Returns why the result cannot be repeated; empty if it can."""
    if result.from_peers:
        return "It also learned from other models' answers, and those can't be played again."
    if any(OWNERS_SETS in one.families for one in result.played):
        return "It learned questions of its owner's, which aren't in the file."
    if result.questions != QUESTIONS_VERSION:
        return (
            f"It was made with puzzles of version {safe_line(result.questions, 40)}, and this Shoal has "
            f"{QUESTIONS_VERSION}: use Shoal {safe_line(result.shoal, 40)} to play it again."
        )
    return ""


def as_dict(found: VerifiedResult) -> dict[str, Any]:
    """Returns the result as plain data for `--json`."""
    return {"key": found.key, "name": found.name, "result": msgspec.to_builtins(found.result)}
