"""A scoring child that does what the answer or the family says: to show what the parent does when one breaks.

Speaks the protocol of app.sapo.scoring.pipe. What it breaks on the first time only, it remembers as files in a
folder.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from app.sapo.scoring.pipe import (
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


def send(reply: Reply) -> None:
    sys.stdout.buffer.write(frame(reply))
    sys.stdout.buffer.flush()


def trouble(memory: Path, text: str) -> tuple[str, str]:
    what, _, value = text.partition(" ")
    first = memory / f"{what} {value}"
    if what == "once" and not first.exists():
        first.touch()
        what = value
    if what == "hang":
        time.sleep(600)
    if what == "die":
        os._exit(7)
    if what == "noise":
        os.write(1, b"hello\n" * 1000)
    return what, value


def main(memory: Path, start: str) -> None:
    if start == "exits":
        sys.exit(3)
    if start == "fails":
        send(ScorerFailed("ModuleNotFoundError: No module named 'reasoning_gym'"))
        return
    while start == "slow" and not (memory / "go").exists():
        time.sleep(0.01)
    send(Ready())
    while (body := read_frame(sys.stdin.buffer)) is not None:
        request = decode_request(body)
        if isinstance(request, Make):
            for place in request.places:
                trouble(memory, place.family)
                send(QuestionMade(request.number, place.index, "How much?", False, 0))
            continue
        if isinstance(request, LoadQuestion):
            trouble(memory, request.coordinates.family)
            unsound = request.coordinates.family == "unsound"
            send(NoQuestion(request.number, "Not here.", True) if unsound else Loaded(request.number))
            continue
        what, value = trouble(memory, request.answer.decode("utf-8", "surrogatepass"))
        if what == "late":
            send(Judged(request.number - 1, 1.0))
        send(Judged(request.number, float(value) if what == "score" else 1.0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
