"""The node's connection to the trainer: starts the process, sends requests, ends it, and explains how it
ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TypeVar

import msgspec

from app.common.files import prepare_log
from app.common.process import surroundings as secrets
from app.common.process.control import detached_popen_kwargs
from app.common.process.surroundings import child_environment, working_folder
from app.common.text import rounded_duration
from app.node.record.errors import DiskFullError
from app.node.record.reasons import Effort
from app.node.trainer import messages, solo
from app.node.trainer.process import BATCH_SHARE, EFFORT_ENV, ENGINE_ENV, HOME_ENV, MEMORY_ENV, SOLO_FLAG
from app.skills.answering import SkillAnswer
from engines import remedy
from engines.contract import AdapterError, Batch, EngineError, EngineInfo, Messages, StepStats
from engines.facts import engine_variables
from engines.opening import AUTO

TRAINER = (sys.executable, "-m", "app.node.trainer.process")
SILENCE_S = 300.0
"""Seconds without a token read, sampled or trained on after which a trainer counts as hung; see
`TrainerLink._patience_s`. A slow trainer reports its progress (`TokensDone`)."""
_SILENCES = 10.0
"""Minimum patience as a multiple of the longest silence so far, so that a busy computer gets more time."""
_OPENING = 6.0
"""Factor on the patience while a model is opened: it may be converted, or come from a slow disk."""
_ORDINARY = 100_000_000
"""Number of parameters up to which SILENCE_S applies; for larger models it grows in proportion."""
_LAST_WORDS_S = 5.0
"""Seconds after which a trainer that closed its output but did not exit is killed."""

Tell = Callable[[int, int], None]
"""Called with (done, total) completions while the trainer samples."""
_MEMORY = "close other programs or choose a smaller --model."
_FAILURES = {"engine": EngineError, "adapter": AdapterError, "disk": DiskFullError}
_Answer = TypeVar("_Answer", bound=messages.Reply)


class TrainerDied(Exception):
    """The trainer ended unexpectedly. The message says so in a sentence; `remedy` says what to do if it happens
    repeatedly. `of_memory`: the likely cause was too little memory."""

    def __init__(self, what: str, remedy: str, of_memory: bool = False) -> None:
        super().__init__(what)
        self.remedy = remedy
        self.of_memory = of_memory


class TrainerLink:
    """A running trainer. It answers one request at a time; after a cancelled request only `end` may be called.

    Every request raises TrainerDied if the process ends, sends an invalid message or makes no progress,
    EngineError if the engine refuses, and DiskFullError if there is no space for what it writes.
    """

    def __init__(self, process: Process, log: Path, note: Callable[[str], None]) -> None:
        self._process = process
        self._log = log
        self._note = note
        self._numbers = count(1)
        self._parameters = 0
        self._silence_s = 0.0

    @classmethod
    async def start(
        cls,
        log: Path,
        note: Callable[[str], None],
        *,
        alone: bool,
        command: Sequence[str] = TRAINER,
        effort: Effort | None = None,
        engine: str = AUTO,
        home: Path | None = None,
        share: float = 1.0,
        memory: int = 0,
    ) -> TrainerLink:
        """Starts the process and returns before it is ready. `alone`: it may not use the network. `note` gets
        sentences of the engine for the owner. `effort` None: the engine uses the resources it finds best.
        `engine`: one of engines.opening.ENGINE_CHOICES. `home`: the data folder. `share`: factor on the
        measured memory budget, reduced after deaths from lack of memory. `memory`: maximum bytes it may use
        (0: no limit)."""
        environment = {
            **child_environment(secrets.without_secrets()),
            **(solo.OFFLINE_ENVIRONMENT if alone else {}),
            **({EFFORT_ENV: msgspec.json.encode(effort).decode()} if effort is not None else {}),
            **({HOME_ENV: str(home)} if home is not None else {}),
            ENGINE_ENV: engine,
            BATCH_SHARE: str(share),
            MEMORY_ENV: str(memory),
            **engine_variables(),
            # Two caches, one plan for every length of a row: by themselves they grew by 6 MB with every step.
            "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16",
            "LRU_CACHE_CAPACITY": "16",
            "TOKENIZERS_PARALLELISM": "false",
        }
        with prepare_log(log).open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                *([SOLO_FLAG] if alone else []),
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                env=environment,
                cwd=working_folder(),
                limit=messages.MAX_LINE,
                **detached_popen_kwargs(),
            )
        return cls(process, log, note)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def open(self, model: Path, rank: int | None, seed: int) -> EngineInfo:
        request = messages.OpenModel(number=next(self._numbers), model=str(model), rank=rank, seed=seed)
        info = (await self._ask(request, messages.TrainerOpened)).info
        self._parameters = info.parameters
        return info

    async def sample(
        self,
        prompts_P: list[list[dict[str, str]]],
        n: int,
        max_tokens: int,
        seed: int,
        *,
        prompts_at_once: int,
        texts_only: bool = False,
        tell: Tell | None = None,
    ) -> messages.Sampled:
        request = messages.SamplePrompts(
            number=next(self._numbers),
            prompts_P=prompts_P,
            n=n,
            max_tokens=max_tokens,
            seed=seed,
            prompts_at_once=prompts_at_once,
            texts_only=texts_only,
        )
        return await self._ask(request, messages.Sampled, tell)

    async def read(
        self, groups_P: list[messages.PeerTexts], max_tokens: int, *, logprobs: bool
    ) -> list[messages.GroupTokens | None]:
        request = messages.ReadGroups(
            number=next(self._numbers), groups_P=groups_P, max_tokens=max_tokens, logprobs=logprobs
        )
        return (await self._ask(request, messages.ReadAll)).readings_P

    async def answer(
        self, prompts_P: Sequence[Messages], labels: Sequence[str], max_tokens: int
    ) -> list[SkillAnswer | None]:
        """Returns an answer to each prompt (app.skills.answering), None for one that is too long. Raises
        TrainerDied and EngineError."""
        request = messages.AnswerQuestions(
            number=next(self._numbers),
            prompts_P=[list(one) for one in prompts_P],
            labels=tuple(labels),
            max_tokens=max_tokens,
        )
        return (await self._ask(request, messages.Answered)).answers_P

    async def count_letters(self, taught: Sequence[tuple[str, str]], asked: Sequence[str]) -> list[str]:
        """Returns the label of each text in `asked` that counting letters finds. Raises TrainerDied."""
        request = messages.CountLetters(number=next(self._numbers), taught=list(taught), asked=list(asked))
        return (await self._ask(request, messages.LettersCounted)).labels

    async def step(self, batch: Batch) -> StepStats:
        request = messages.Learn(number=next(self._numbers), batch=batch)
        return (await self._ask(request, messages.StepDone)).stats

    async def save(self, folder: Path) -> None:
        await self._ask(messages.Save(number=next(self._numbers), folder=str(folder)), messages.TrainerDone)

    async def load(self, folder: Path) -> None:
        await self._ask(
            messages.LoadAdapter(number=next(self._numbers), folder=str(folder)), messages.TrainerDone
        )

    async def end(self, patience_s: float = 1.0) -> None:
        """Closes the trainer's input, which ends it, and kills it if that takes longer than `patience_s`."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), patience_s)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _ask(self, request: messages.Request, answer: type[_Answer], tell: Tell | None = None) -> _Answer:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(messages.to_line(request))
            await self._process.stdin.drain()
            while True:
                line = await self._line(self._process.stdout, opening=isinstance(request, messages.OpenModel))
                if not line:
                    raise await self._death()
                reply = messages.decode_reply(line)
                if reply.number != request.number:
                    raise messages.MessageError(f"Answer {reply.number} came to question {request.number}.")
                if isinstance(reply, messages.TokensDone):
                    continue
                if isinstance(reply, messages.SampleProgress):
                    if tell is not None:
                        tell(reply.done, reply.total)
                elif isinstance(reply, messages.TrainerNote):
                    self._note(reply.sentence)
                elif isinstance(reply, messages.TrainerFailed):
                    raise _FAILURES[reply.reason](reply.sentence)
                elif isinstance(reply, answer):
                    return reply
                else:
                    raise messages.MessageError(
                        f"{type(reply).__name__} is no answer to {type(request).__name__}."
                    )
        except (BrokenPipeError, ConnectionResetError):
            raise await self._death() from None
        except (
            messages.MessageError,
            ValueError,
        ) as error:  # ValueError: a line longer than the reader's limit
            await self.end(0.0)
            raise TrainerDied(
                f"The trainer couldn't be understood ({str(error).rstrip('.')}).", _engine()
            ) from error

    async def _line(self, lines: asyncio.StreamReader, opening: bool) -> bytes:
        """Returns the next line. If none comes within the patience, kills the trainer and raises
        TrainerDied.
        """
        patience, asked = self._patience_s(opening), time.monotonic()
        try:
            line = await asyncio.wait_for(lines.readline(), patience)
        except TimeoutError:
            await self.end(0.0)
            raise TrainerDied(
                f"The trainer hasn't answered for {rounded_duration(patience)}.", _MEMORY
            ) from None
        if not opening:
            self._silence_s = max(self._silence_s, time.monotonic() - asked)
        return line

    def _patience_s(self, opening: bool) -> float:
        """Returns the maximum seconds between two lines before a trainer counts as hung."""
        least = SILENCE_S * (_OPENING if opening else max(1.0, self._parameters / _ORDINARY))
        return max(least, _SILENCES * self._silence_s)

    async def _death(self) -> TrainerDied:
        await self.end(_LAST_WORDS_S)
        return describe_exit(self._process.returncode or 0, self._log)


def describe_exit(returncode: int, log: Path) -> TrainerDied:
    """Describes an exit code in a sentence.

    >>> str(describe_exit(-9, Path("t.log")))
    'The system ended the trainer, most likely because memory ran short.'
    >>> str(describe_exit(1, Path("t.log")))
    'The trainer stopped after an error (details are in t.log).'
    """
    if os.name != "nt" and returncode == -signal.SIGKILL:
        return TrainerDied(
            "The system ended the trainer, most likely because memory ran short.", _MEMORY, of_memory=True
        )
    if os.name != "nt" and returncode == -signal.SIGTERM:
        return TrainerDied("Another program ended the trainer.", "find out which one.")
    if os.name != "nt" and returncode == -signal.SIGILL:
        return TrainerDied("This processor doesn't know an instruction that the trainer uses.", _engine())
    if returncode < 0 or returncode > 255:
        return TrainerDied(f"The trainer crashed (details are in {log}).", _MEMORY)
    if returncode == 0:
        return TrainerDied("The trainer ended unasked.", _engine())
    return TrainerDied(f"The trainer stopped after an error (details are in {log}).", _engine())


def _engine() -> str:
    return f"{remedy.repair_phrase()}, or choose another --model."
