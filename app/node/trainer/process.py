"""The trainer process: runs an engine that is controlled by JSON lines. The node starts it with `python -m
app.node.trainer.process`.

It reads requests on standard input and replies on standard output; everything that libraries print goes to
standard error. It exits when its input closes, so it cannot outlive its node, not even after kill -9.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn

import msgspec

from app.common.process.control import apply_niceness_to_session
from app.common.process.memory import limit_memory, trim_heap
from app.node.record.errors import says_disk_full
from app.node.record.reasons import Effort
from app.node.trainer import memory, messages, solo
from app.node.trainer.messages import GroupTokens, PeerTexts, ReadGroups, own_standard_streams, send
from app.skills.answering import answer
from engines import opening
from engines.contract import AdapterError, Completion, Engine, EngineError, TokenSequence, progress
from engines.sound import explaining_model_errors

PROMPT_TOKENS = 1024
"""Maximum prompt tokens; groups with a longer prompt are left out. The longest prompt of the families has about
300."""


def read_groups(engine: Engine, request: ReadGroups) -> list[GroupTokens | None]:
    """Returns every group as tokens, None for one that does not fit. The log-probs of all groups come from one
    engine call.

    Unfinished completions only count as failures in their group's mean, so they are cut to `max_tokens` and not
    measured.
    """
    sequences_PG = [encode_group(engine, group, request.max_tokens) for group in request.groups_P]
    if not request.logprobs:
        return [GroupTokens(sequences_G=one, logprobs_GT=None) if one else None for one in sequences_PG]
    fitting = [
        list(zip(sequences_G, group.finished_G, strict=True)) if sequences_G else None
        for group, sequences_G in zip(request.groups_P, sequences_PG, strict=True)
    ]
    finished = [sequence for rows in fitting for sequence, done in rows or () if done]
    measured = iter(engine.logprobs(finished) if finished else [])
    return [
        GroupTokens(
            sequences_G=[sequence for sequence, _ in rows],
            logprobs_GT=[
                next(measured) if done else [0.0] * len(sequence.completion_T) for sequence, done in rows
            ],
        )
        if rows
        else None
        for rows in fitting
    ]


def encode_group(engine: Engine, group: PeerTexts, max_tokens: int) -> list[TokenSequence] | None:
    """Returns a group's sequences; None if its prompt or a finished completion is too long or empty."""
    sequences_G = []
    for text, done in zip(group.completions_G, group.finished_G, strict=True):
        try:
            sequence = engine.encode(group.prompt, text, done)
        except EngineError:  # for example a chat template that refuses the prompt
            return None
        completion_T = sequence.completion_T
        if len(sequence.prompt_T) > PROMPT_TOKENS or (done and not 0 < len(completion_T) <= max_tokens):
            return None
        sequences_G.append(
            TokenSequence(
                prompt_T=sequence.prompt_T, completion_T=completion_T if done else completion_T[:max_tokens]
            )
        )
    return sequences_G


SOLO_FLAG = "--solo"
"""The trainer's only flag: forbids any use of the network."""

ENGINE_ENV = "SHOAL_ENGINE"
"""Environment variable: one of engines.opening.ENGINE_CHOICES."""

BATCH_SHARE = "SHOAL_BATCH_SHARE"
"""Environment variable: factor by which the measured memory budget is multiplied. Below 1 after the trainer
has run out of memory."""

HOME_ENV = "SHOAL_HOME"
"""Environment variable: the data folder, in which engines cache converted models."""

THREADS_ENV = "SHOAL_THREADS"
"""Environment variable: number of CPU threads for the engine, for several nodes on one computer."""

MEMORY_ENV = "SHOAL_MEMORY"
"""Environment variable: maximum bytes of memory of this process; unset or 0 for no limit."""

EFFORT_ENV = "SHOAL_EFFORT"
"""Environment variable: how much of the computer to use, an app.node.record.reasons.Effort as JSON."""

OpenEngine = Callable[[str, int | None, int], Engine]
"""Opens an engine from (model path, rank, seed)."""


def main() -> None:
    """Runs the trainer with the engine that the node chose."""
    apply_niceness_to_session()
    most = os.environ.get(MEMORY_ENV, "")
    if most.isdecimal() and int(most):
        limit_memory(int(most))
    serve(_open, beforehand=_prepare)


def _prepare() -> None:
    """Imports the engine's library. The seconds this takes overlap with the node's own start."""
    try:
        opening.preload(_wanted())
    except (ImportError, OSError):
        traceback.print_exc()  # the owner gets a sentence when the engine is opened


def _wanted() -> str:
    return os.environ.get(ENGINE_ENV) or opening.AUTO


def _open(model: str, rank: int | None, seed: int) -> Engine:
    threads, effort = os.environ.get(THREADS_ENV, ""), given_effort()
    return opening.open_engine(
        _wanted(),
        Path(model),
        rank=rank,
        seed=seed,
        threads=int(threads) if threads.isdecimal() else None,
        thread_share=effort.thread_share if effort else None,
        batch_share=(effort.batch_share if effort else 1.0) * float(os.environ.get(BATCH_SHARE) or 1.0),
    )


def given_effort() -> Effort | None:
    """Returns the effort that the node started this trainer with; None if it set none."""
    text = os.environ.get(EFFORT_ENV)
    return msgspec.json.decode(text, type=Effort) if text else None


class DutyCycle:
    """Sleeps between pieces of work, as the effort demands."""

    def __init__(self, effort: Effort | None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._effort, self._sleep = effort, sleep

    def after(self, worked_s: float) -> None:
        rest_s = self._effort.rest_s(worked_s) if self._effort is not None else 0.0
        if rest_s > 0:
            self._sleep(rest_s)


def serve(open_engine: OpenEngine, beforehand: Callable[[], None] | None = None) -> NoReturn:
    """Answers requests until standard input closes; `beforehand` runs once the input is watched."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole terminal; the node decides what ends
    if SOLO_FLAG in sys.argv[1:]:
        solo.refuse_network()
    source, channel = own_standard_streams()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(source, requests), daemon=True).start()
    try:
        if beforehand is not None:
            beforehand()
        _work(open_engine, requests, channel)
    except BaseException:
        traceback.print_exc()
    os._exit(1)  # not sys.exit, which would wait for the thread that holds standard input


def _work(open_engine: OpenEngine, requests: queue.SimpleQueue[bytes], channel: BinaryIO) -> NoReturn:
    engine: Engine | None = None
    model, proved = "", False
    rest, watch = DutyCycle(given_effort()), memory.MemoryWatch()
    while True:
        request = messages.decode_request(requests.get())
        progress.heard = partial(_tell_tokens, channel, request.number)
        try:
            if isinstance(request, messages.OpenModel):
                model = request.model
                engine = open_engine(request.model, request.rank, request.seed)
                reply: messages.Reply = messages.TrainerOpened(number=request.number, info=engine.info)
            elif engine is None:
                raise EngineError("The trainer was asked to work before it was given a model.")
            else:
                with contextlib.nullcontext() if proved else explaining_model_errors(model):
                    reply = reply_to(engine, request, lambda message: _send(channel, message), rest)
                if isinstance(reply, messages.StepDone):
                    proved = True
                    trim_heap()
                    if sentence := watch.after_step(engine.step_down):
                        getattr(engine, "notes", []).append(sentence)
        except Exception as error:
            reply = _refusal(request.number, error)
        for sentence in _fresh_notes(engine):
            _send(channel, messages.TrainerNote(number=request.number, sentence=sentence))
        _send(channel, reply)


def _tell_tokens(channel: BinaryIO, number: int, tokens: int) -> None:
    _send(channel, messages.TokensDone(number=number, tokens=tokens))


def _fresh_notes(engine: Engine | None) -> list[str]:
    """Takes and clears the engine's notes for the owner; empty for an engine without `notes`."""
    notes: list[str] = getattr(engine, "notes", [])
    fresh = list(dict.fromkeys(notes))
    notes.clear()
    return fresh


def _refusal(number: int, error: Exception) -> messages.TrainerFailed:
    """Returns the reply for errors that the owner can act on; raises every other error, which ends the process
    with a traceback in the log."""
    if says_disk_full(error):
        return messages.TrainerFailed(number=number, sentence="There is no room on the disk.", reason="disk")
    if isinstance(error, AdapterError):
        return messages.TrainerFailed(number=number, sentence=str(error), reason="adapter")
    if isinstance(error, EngineError):
        return messages.TrainerFailed(number=number, sentence=str(error), reason="engine")
    raise error


def reply_to(
    engine: Engine, request: messages.Request, tell: Callable[[messages.Reply], None], rest: DutyCycle
) -> messages.Reply:
    """Does what the node asks for, and returns the reply. Raises EngineError."""
    number = request.number
    match request:
        case messages.SamplePrompts():
            return _sample(engine, request, tell, rest)
        case messages.Learn():
            stats = engine.step(request.batch)
            rest.after(stats.seconds)
            return messages.StepDone(number=number, stats=stats)
        case messages.ReadGroups():
            return messages.ReadAll(number=number, readings_P=read_groups(engine, request))
        case messages.AnswerQuestions():
            answers_P = answer(engine, request.prompts_P, request.labels, request.max_tokens)
            return messages.Answered(number=number, answers_P=answers_P)
        case messages.CountLetters():
            from app.skills.baseline import predicted

            return messages.LettersCounted(number=number, labels=predicted(request.taught, request.asked))
        case messages.Save():
            engine.save(Path(request.folder))
        case messages.LoadAdapter():
            engine.load(Path(request.folder))
        case messages.OpenModel():
            raise EngineError("The trainer already has a model.")
    return messages.TrainerDone(number=number)


def _sample(
    engine: Engine, request: messages.SamplePrompts, tell: Callable[[messages.Reply], None], rest: DutyCycle
) -> messages.Sampled:
    """Samples in slices, so that the owner sees progress on slow models. `seconds` in the reply excludes
    rest.
    """
    worked_s = 0.0
    total = len(request.prompts_P) * request.n
    groups_PG: list[list[Completion]] = []
    for first in range(0, len(request.prompts_P), request.prompts_at_once):
        prompts = request.prompts_P[first : first + request.prompts_at_once]
        started = time.monotonic()
        groups_PG += engine.sample(prompts, request.n, request.max_tokens, request.seed + first)
        slice_s = time.monotonic() - started
        worked_s += slice_s
        tell(messages.SampleProgress(number=request.number, done=len(groups_PG) * request.n, total=total))
        rest.after(slice_s)
    tokens = sum(len(completion.tokens_T) for group in groups_PG for completion in group)
    if request.texts_only:
        groups_PG = [
            [Completion(tokens_T=[], logprobs_T=[], finished=one.finished, text=one.text) for one in group]
            for group in groups_PG
        ]
    return messages.Sampled(
        number=request.number,
        groups_PG=groups_PG,
        prompts_PT=[] if request.texts_only else [engine.prompt_tokens(prompt) for prompt in request.prompts_P],
        tokens=tokens,
        seconds=worked_s,
    )


def _listen(source: BinaryIO, requests: queue.SimpleQueue[bytes]) -> None:
    """Reads requests in a separate thread, so that the end of the input ends even a busy trainer."""
    while line := source.readline(messages.MAX_LINE + 1):
        requests.put(line)
    os._exit(0)


def _send(channel: BinaryIO, message: messages.Reply) -> None:
    send(channel, messages.to_line(message))


if __name__ == "__main__":
    main()
