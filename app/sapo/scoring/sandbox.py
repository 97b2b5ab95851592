"""Generates questions and scores answers in a child process that can be killed at any time.

Text from models and peers may be crafted to break a scorer. The scorers are written to withstand that; the
sandbox is the second line of defence: the child has no files, no sockets and limited memory, and 250 ms per
answer. If anything goes wrong there, the answer scores 0 and nothing else happens. Questions, whose coordinates
may come from a peer, are only generated in the child, within 5 s each: only their texts come out, and the
library stays out of the node's memory.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from app.common.process.surroundings import child_environment, working_folder
from app.sapo.asking import MAX_ANSWER, extract_answer
from app.sapo.families import FAMILIES
from app.sapo.families.family import clamp
from app.sapo.groups import GroupRecord, binary_rewards
from app.sapo.questions import Coordinates, QuestionError, QuestionPrompt, UnmadeQuestion, UnsoundQuestion
from app.sapo.scoring.pipe import (
    Judge,
    Judged,
    Loaded,
    LoadQuestion,
    Make,
    NoQuestion,
    PipeError,
    QuestionMade,
    Ready,
    Reply,
    Request,
    ScorerFailed,
    decode_reply,
    frame,
    read_frame,
)
from engines import remedy

JUDGE_SECONDS = 0.25
LOAD_SECONDS = 5.0
START_SECONDS, LONGEST_START_SECONDS = 120.0, 1800.0
"""A start usually takes seconds, but minutes on a very busy computer, where a second attempt would not be
faster. After the first limit `late` is called, and the same child is awaited until the second."""
QUESTIONS_PER_REQUEST = 32
"""Maximum questions in one request to the child; between requests other threads get their turn."""

COMMAND = (sys.executable, "-P", "-m", "app.sapo.scoring.child")


class SandboxError(Exception):
    """There is no child: the sandbox is closed, or the child cannot start. The message says why and what to
    do.
    """


class SandboxSuspended(SandboxError):
    """The sandbox is suspended, or was before the answer came."""


class Sandbox:
    """A scoring child, started immediately and restarted whenever it is lost. Thread-safe.

    `judge_seconds`: wall-clock limit for one answer. `suspended`: no child is started until `resume`. `sets`:
    files of question sets that the child reads at its start. `late`: called in the waiting thread if a child
    takes long to start. From asyncio call `score` and `questions` through `asyncio.to_thread`; `suspend` and
    `close` may be called while another thread waits.
    """

    def __init__(
        self,
        judge_seconds: float = JUDGE_SECONDS,
        suspended: bool = False,
        late: Callable[[], object] = lambda: None,
        sets: Sequence[Path] = (),
    ) -> None:
        self._judge_seconds, self._late = judge_seconds, late
        self._command = (*COMMAND, *map(str, sets))
        self._asking = Lock()
        self._starting = Lock()
        self._closed = False
        self._suspended = suspended
        self._numbers = 0
        self._child: _Child | None = None if suspended else _Child(self._command)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Process id of the child; None while none is running."""
        child = self._child
        return None if child is None else child.process.pid

    def score(self, coordinates: Coordinates, answers: Sequence[str | None]) -> list[float]:
        """Returns raw scores in [0, 1], in the order of the answers. 0 for None, for more than MAX_ANSWER
        characters, and for an answer that raises, hangs or kills the child.

        If the child was lost, the answer is tried once more in a new one: the computer may have been busy,
        which must not make a right answer wrong. Raises QuestionError if the coordinates identify no question,
        and SandboxError.
        """
        with self._asking:
            self._load(coordinates)
            return [self._judge(coordinates, answer) for answer in answers]

    def questions(
        self, places: Sequence[Coordinates], onward: bool = False, worked: bool = False
    ) -> list[QuestionPrompt | QuestionError]:
        """Generates questions in the child, the same as `make` in this process. Returns each question in order,
        or its error: UnmadeQuestion if the child was lost over it twice. `worked`: with worked answers, for
        examples. Raises SandboxError."""
        made: list[QuestionPrompt | QuestionError] = []
        while len(made) < len(places):
            with self._asking:
                made += self._make(places[len(made) : len(made) + QUESTIONS_PER_REQUEST], onward, worked)
        return made

    def suspend(self) -> None:
        """Ends the child, which frees its memory, and starts none until `resume`. Waiting calls, and calls made
        meanwhile, raise SandboxSuspended."""
        with self._starting:
            self._suspended = True
            child, self._child = self._child, None
        if child is not None:
            child.kill()

    def resume(self) -> None:
        """Starts a child again; does nothing if the sandbox is not suspended."""
        with self._starting:
            if self._suspended and not self._closed:
                self._child = _Child(self._command)
            self._suspended = False

    def close(self) -> None:
        """Ends the child. Waiting calls raise SandboxError."""
        with self._starting:
            self._closed = True
            if self._child is not None:
                self._child.kill()
                self._child = None

    def _make(
        self, places: Sequence[Coordinates], onward: bool, worked: bool
    ) -> list[QuestionPrompt | QuestionError]:
        """Returns at least the first question; fewer than requested if the child was lost."""
        made: list[QuestionPrompt | QuestionError] = []
        for _ in range(2):
            child = self._running()
            number = self._number()
            try:
                child.send(Make(number, tuple(places), onward, worked))
                for place in places:
                    made.append(_made(place, child.reply(number, LOAD_SECONDS)))
                return made
            except PipeError as error:
                return [_unspeakable(error)] if len(places) == 1 else self._make(places[:1], onward, worked)
            except _Lost:
                self._drop(child)
            if made:
                return made
        return [_unmade(places[0])]

    def _judge(self, coordinates: Coordinates, answer: str | None) -> float:
        if answer is None or not 0 < len(answer) <= MAX_ANSWER:
            return 0.0
        text = answer.encode("utf-8", "surrogatepass")
        for _ in range(2):
            child = self._load(coordinates)
            try:
                reply = child.ask(Judge(self._number(), text), self._judge_seconds)
                if isinstance(reply, Judged):
                    return clamp(reply.score)
            except _Lost:
                pass
            self._drop(child)
        return 0.0

    def _load(self, coordinates: Coordinates) -> _Child:
        """Returns a child that has loaded the question. Generating one has a separate, longer limit."""
        for _ in range(2):
            child = self._running()
            if child.loaded == coordinates:
                return child
            child.loaded = None
            try:
                reply = child.ask(LoadQuestion(self._number(), coordinates), LOAD_SECONDS)
            except PipeError as error:
                raise _unspeakable(error) from error
            except _Lost:
                reply = None
            if isinstance(reply, Loaded):
                child.loaded = coordinates
                return child
            if isinstance(reply, NoQuestion):
                raise _refusal(reply)
            self._drop(child)
        raise _unmade(coordinates)

    def _running(self) -> _Child:
        for _ in range(2):
            with self._starting:
                self._allow()
                child = self._child = self._child or _Child(self._command)
            try:
                child.wait_until_ready(self._late)
                return child
            except _TooLate:
                self._drop(child)
                minutes = LONGEST_START_SECONDS / 60
                raise SandboxError(
                    f"The scoring process didn't start within {minutes:.0f} minutes, as this computer is too "
                    "busy. Close busy apps, then start again."
                ) from None
            except _Lost as lost:
                reason = str(lost)
            self._drop(child)
        self._allow()  # this process may have ended it
        how = (
            remedy.repair_phrase()
            if remedy.installed()
            else f"run {remedy.command()} again to repair the set-up"
        )
        raise SandboxError(f"The scoring process does not start ({reason}): {how}.")

    def _allow(self) -> None:
        """Raises SandboxError if no child may run now."""
        if self._closed:
            raise SandboxError("The scoring process was closed: open a new Sandbox.")
        if self._suspended:
            raise SandboxSuspended("The scoring process is suspended: resume it first.")

    def _drop(self, child: _Child) -> None:
        child.kill()
        with self._starting:
            if self._child is child:
                self._child = None

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers


def score_group(sandbox: Sandbox, group: GroupRecord) -> GroupRecord:
    """Scores a group, own or a peer's: extracts the answers, scores them in the sandbox, and makes the scores
    binary. Claims of the sender are ignored. Blocks: from asyncio call it through `asyncio.to_thread`. Raises
    QuestionError, and ValueError if completions and flags have different lengths."""
    if len(group.completions_G) != len(group.finished_G):
        raise ValueError(
            f"This group has {len(group.completions_G)} completions, but {len(group.finished_G)} marks of "
            "having ended: leave it out."
        )
    family = FAMILIES.get(group.coordinates.family)
    read = family.read if family is not None else extract_answer
    answers_G = [read(completion) for completion in group.completions_G]
    scores_G = tuple(sandbox.score(group.coordinates, answers_G))
    return group.with_scores(scores_G, binary_rewards(scores_G, group.finished_G))


class _Lost(Exception):
    """The child is dead, silent for too long, or sent something unexpected."""


class _TooLate(_Lost):
    """The child is alive but did not answer in time."""


def _made(place: Coordinates, reply: Reply) -> QuestionPrompt | QuestionError:
    """Converts a reply to a question, or to the error. Raises _Lost."""
    if isinstance(reply, QuestionMade):
        coordinates = msgspec.structs.replace(place, index=reply.index)
        return QuestionPrompt(
            coordinates=coordinates,
            text=reply.text,
            held_out=reply.held_out,
            content=reply.content,
            worked=reply.worked,
            solution=reply.solution,
        )
    if isinstance(reply, NoQuestion):
        return _refusal(reply)
    raise _Lost("it answers another question")


def _refusal(reply: NoQuestion) -> QuestionError:
    return (UnsoundQuestion if reply.unsound else QuestionError)(reply.reason)


def _unspeakable(error: PipeError) -> QuestionError:
    return QuestionError(f"These coordinates cannot be a question's: {error}")


def _unmade(place: Coordinates) -> UnmadeQuestion:
    return UnmadeQuestion(
        f"{place.family} at level {place.level}, seed {place.seed} was not made within {LOAD_SECONDS:.0f} "
        "seconds: leave this question out."
    )


class _Child:
    """One child process, and a thread that reads its replies, because Windows cannot wait for pipes with a
    timeout."""

    def __init__(self, command: Sequence[str]) -> None:
        self.loaded: Coordinates | None = None
        self._ready = False
        self._replies: SimpleQueue[Reply | None] = SimpleQueue()
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Its own session: Ctrl-C in a terminal is for the parent. One thread: it only ever scores.
            start_new_session=True,
            creationflags=flags,
            cwd=working_folder(),
            env={
                # No setting of ours, and so no secret: other programs can read what a process was given.
                **{name: value for name, value in child_environment().items() if not name.startswith("SHOAL_")},
                "OMP_NUM_THREADS": "1",
                "OPENBLAS_NUM_THREADS": "1",
            },
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._requests = self.process.stdin
        Thread(
            target=_read, args=(self.process.stdout, self._replies), name="scoring replies", daemon=True
        ).start()

    def wait_until_ready(self, late: Callable[[], object]) -> None:
        """Returns when the child is ready. Raises _Lost with the reason."""
        if self._ready:
            return
        try:
            reply = self._receive(START_SECONDS)
        except _TooLate:
            late()
            reply = self._receive(LONGEST_START_SECONDS - START_SECONDS)
        if not isinstance(reply, Ready):
            raise _Lost(reply.reason if isinstance(reply, ScorerFailed) else "it speaks another language")
        self._ready = True

    def ask(self, request: Request, seconds: float) -> Reply:
        """Sends a request and returns its reply. Raises _Lost, and PipeError if the request cannot be
        encoded.
        """
        self.send(request)
        return self.reply(request.number, seconds)

    def send(self, request: Request) -> None:
        """Sends a request. Raises like `ask`."""
        content = frame(request)
        try:
            self._requests.write(content)
            self._requests.flush()
        except OSError as error:
            raise _Lost(str(error)) from error

    def reply(self, number: int, seconds: float) -> Reply:
        """Returns the next reply to this request. Raises _Lost."""
        reply = self._receive(seconds)
        if isinstance(reply, Ready | ScorerFailed) or reply.number != number:
            raise _Lost("it answers another question")
        return reply

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self._requests.close()

    def _receive(self, seconds: float) -> Reply:
        try:
            reply = self._replies.get(timeout=seconds)
        except Empty:
            raise _TooLate(f"it did not answer within {seconds:g} seconds") from None
        if reply is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise _Lost(f"it ended with code {self.process.wait(timeout=1)}")
            raise _Lost("it says what is no message")
        return reply


def _read(stream: BinaryIO, replies: SimpleQueue[Reply | None]) -> None:
    """Puts every reply into the queue, then None when there are no more."""
    try:
        with stream:
            while (body := read_frame(stream)) is not None:
                replies.put(decode_reply(body))
    except (PipeError, msgspec.MsgspecError, OSError, ValueError):
        pass  # a child that sends invalid frames counts as dead
    replies.put(None)
