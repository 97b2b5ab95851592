"""A scoring child that does what the answer says: for showing what the parent does with a child that breaks.

Speaks the protocol of app.sapo.pipe. What it breaks on the first time only, it remembers as files in a folder.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from app.sapo.pipe import (
    Failed,
    Judge,
    Judged,
    Loaded,
    Ready,
    Refused,
    Reply,
    decode_request,
    frame,
    read_frame,
)


def send(reply: Reply) -> None:
    sys.stdout.buffer.write(frame(reply))
    sys.stdout.buffer.flush()


def main(memory: Path, start: str) -> None:
    if start == "exits":
        sys.exit(3)
    if start == "fails":
        send(Failed("ModuleNotFoundError: No module named 'reasoning_gym'"))
        return
    send(Ready())
    while (body := read_frame(sys.stdin.buffer)) is not None:
        request = decode_request(body)
        if not isinstance(request, Judge):
            if request.coordinates.family == "hang":
                time.sleep(600)
            unsound = request.coordinates.family == "unsound"
            send(Refused(request.number, "Not here.", True) if unsound else Loaded(request.number))
            continue
        what, _, value = request.answer.decode("utf-8", "surrogatepass").partition(" ")
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
        if what == "late":
            send(Judged(request.number - 1, 1.0))
        send(Judged(request.number, float(value) if what == "score" else 1.0))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
