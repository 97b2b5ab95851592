"""The child process that generates questions and scores answers; started by `app.sapo.scoring.sandbox`.

It loads the library and every level, then drops its privileges: it can open no file or socket, write no file
and start no process, and its memory and CPU time are limited as far as the system supports it. Then it answers
requests from standard input until that closes.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from app.common.process.control import apply_niceness_to_session
from app.common.process.memory import limit_added_memory
from app.sapo.families import FAMILIES
from app.sapo.questions import Coordinates, Question, QuestionError, UnsoundQuestion, draw, generate
from app.sapo.scoring.pipe import (
    MAX_REASON,
    Judge,
    Judged,
    Loaded,
    LoadQuestion,
    Make,
    NoQuestion,
    QuestionMade,
    Ready,
    Reply,
    ScorerFailed,
    decode_request,
    frame,
    read_frame,
)
from app.sapo.sets.question_set import SetError, decode
from app.sapo.sets.question_set import family as family_of

MEMORY_BYTES = 256 * 2**20
"""Bytes of address space allowed in addition to those in use after loading."""

LOAD_CPU, JUDGE_CPU = 10, 1
"""CPU seconds for one question, and for one answer. The parent's wall-clock limits are reached first; these end
a child that hangs after its parent is gone."""

KEPT_QUESTIONS = 256  # a few rounds' worth: an answer is scored more than once


def main() -> None:
    apply_niceness_to_session()
    requests = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    _quiet()
    try:
        warm_up()
        limit_resources()
    except Exception as error:  # the parent must learn why the child did not start
        _send(replies, ScorerFailed(f"{type(error).__name__}: {error}"[:MAX_REASON]))
        return
    _send(replies, Ready())
    serve(requests, replies)


def warm_up() -> None:
    """Imports the library, creates every level's data set and reads the given question sets, so that no file
    has to be opened later. An unreadable set is skipped: its questions are refused, all others work."""
    for file in sys.argv[1:]:
        with contextlib.suppress(OSError, SetError):
            FAMILIES.enable(family_of(decode(Path(file).read_bytes())))
    for family in FAMILIES.values():
        for level in range(len(family.levels)):
            draw(family.name, level, seed=0)


def limit_resources() -> None:
    """Forbids new file descriptors, file writes, core dumps and processes, and limits memory where the system
    supports it."""
    if sys.platform == "win32":
        limit_added_memory(MEMORY_BYTES)
    else:
        import resource

        none_at_all = (
            resource.RLIMIT_NOFILE,
            resource.RLIMIT_FSIZE,
            resource.RLIMIT_CORE,
            resource.RLIMIT_NPROC,
        )
        wanted = dict.fromkeys(none_at_all, 0)
        used = _address_space()
        if used is not None:
            wanted[resource.RLIMIT_AS] = used + MEMORY_BYTES
        for kind, limit in wanted.items():
            hard = resource.getrlimit(kind)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (limit, limit))


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Sends one reply for each question or answer, until the pipe closes."""
    question: Question | None = None
    while (body := read_frame(requests)) is not None:
        request = decode_request(body)
        if isinstance(request, Make):
            for place in request.places:
                made = _question(place, request.onward)
                if isinstance(made, Question):
                    index, family = made.coordinates.index, FAMILIES[made.coordinates.family]
                    worked = family.worked(made.entry) if request.worked else ""
                    solution = family.solution(made.entry) if request.worked else ""
                    content = made.content
                    held_out = family.holds_out(content)
                    reply = QuestionMade(request.number, index, made.text, held_out, content, worked, solution)
                    _send(replies, reply)
                else:
                    _send(replies, _refused(request.number, made))
        elif isinstance(request, LoadQuestion):
            made = _question(request.coordinates)
            if isinstance(made, Question):
                question = made
                _send(replies, Loaded(request.number))
            else:
                question = None
                _send(replies, _refused(request.number, made))
        else:
            _limit_cpu(JUDGE_CPU)
            _send(replies, Judged(request.number, _judge(question, request)))


def _question(place: Coordinates, onward: bool = False) -> Question | QuestionError:
    _limit_cpu(LOAD_CPU)
    try:
        return draw(place.family, place.level, place.seed) if onward else _kept(place)
    except QuestionError as error:
        return error


def _refused(number: int, error: QuestionError) -> NoQuestion:
    return NoQuestion(number, str(error)[:MAX_REASON], isinstance(error, UnsoundQuestion))


_kept = lru_cache(maxsize=KEPT_QUESTIONS)(generate)


def _judge(question: Question | None, request: Judge) -> float:
    if question is None:
        return 0.0
    try:
        answer = request.answer.decode("utf-8", "surrogatepass")
        return FAMILIES[question.coordinates.family].judge(answer, question.entry)
    except Exception:  # an answer that makes the scorer fail is wrong
        return 0.0


def _send(stream: BinaryIO, reply: Reply) -> None:
    stream.write(frame(reply))
    stream.flush()


def _quiet() -> None:
    """Redirects the standard streams to the null device: the library prints, and standard output carries our
    messages."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdin, sys.stdout):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _address_space() -> int | None:
    """Returns the bytes of address space in use; None on systems without Linux's /proc."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _limit_cpu(seconds: int) -> None:
    if sys.platform != "win32":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        limit = int(time.process_time()) + 1 + seconds
        resource.setrlimit(
            resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard)
        )


if __name__ == "__main__":
    main()
