"""`load.c` in Python, for computers without a compiler: the same plan in, the same figures out, less load.

    python -m app.bench.slow_load PLAN TIMES

It takes more processor time than a relay does, so its figures of time say less; those of the relay's own
processor time and memory stay right.
"""

from __future__ import annotations

import array
import json
import math
import re
import selectors
import socket
import sys
import time
from collections import Counter, deque
from pathlib import Path
from random import Random

from app.bench.joining import masked
from app.bench.loading import HEAD

_CODE = re.compile(rb'"code":"([a-z-]{1,32})"')
_KIND = re.compile(rb'\{"t":"([a-z]{1,16})"')
_CHUNK = 1 << 18


class Line:
    def __init__(self, fd: int, first: int) -> None:
        self.socket = socket.socket(fileno=fd)
        self.socket.setblocking(False)
        self.next = first
        self.out = bytearray()
        self.held = bytearray()
        self.publishes: deque[float] = deque()
        self.samples: deque[float] = deque()


class Generator:
    def __init__(self, plan: bytes) -> None:
        _magic, connections, _, rounds, rate, seconds, patience, seed = HEAD.unpack_from(plan)
        at = HEAD.size
        fds = array.array("i", plan[at : at + 4 * connections])
        at += (4 * connections + 7) // 8 * 8
        self.ends = array.array("Q", plan[at : at + 8 * (rounds + 1)])
        self.frames = memoryview(plan)[at + 8 * (rounds + 1) :]
        self.sample_frame = self.frames[self.ends[rounds] :]
        self.rounds, self.rate, self.seconds, self.patience = rounds, rate, seconds, patience
        self.random = Random(seed)
        self.lines = [Line(fd, i) for i, fd in enumerate(fds)]
        self.selector = selectors.DefaultSelector()
        for line in self.lines:
            self.selector.register(line.socket, selectors.EVENT_READ, line)
        self.published: list[float] = []
        self.sampled: list[float] = []
        self.late: list[float] = []
        self.count: Counter[str] = Counter()
        self.others: Counter[str] = Counter()
        self.open = 0
        self.going = True

    def run(self) -> None:
        start = now = progress = self.last = time.perf_counter()
        step, steps, due = 0, 2 * self.rounds if self.rate else 0, start
        if not self.rate:
            for line in self.lines[: self.rounds]:
                self.publish(line, now)
        while True:
            now = time.perf_counter()
            self.going = now < start + self.seconds
            while step < steps and self.going and due <= now:
                round = step // 2
                self.late.append(now - due)
                if step % 2 == 0:
                    self.publish(self.lines[round % len(self.lines)], due)
                else:
                    self.ask(self.lines[(round + len(self.lines) // 2) % len(self.lines)], due)
                due -= math.log(1.0 - self.random.random()) / (2 * self.rate)
                step += 1
                progress = now = time.perf_counter()
            if (not self.open and (step == steps or not self.going)) or now > progress + self.patience:
                break
            wait = 0.25 if step == steps else max(0.0, min(0.25, due - now))
            for key, events in self.selector.select(wait):
                if events & selectors.EVENT_WRITE:
                    self.flush(key.data)
                if events & selectors.EVENT_READ:
                    self.read(key.data)
                    progress = self.last = time.perf_counter()
        self.took = self.last - start

    def publish(self, line: Line, due: float) -> None:
        round = line.next
        line.next += len(self.lines)
        line.publishes.append(due)
        self.put(line, self.frames[self.ends[round] : self.ends[round + 1]])

    def ask(self, line: Line, due: float) -> None:
        line.samples.append(due)
        self.put(line, self.sample_frame)

    def put(self, line: Line, frame: memoryview) -> None:
        self.open += 1
        line.out += frame
        self.flush(line)

    def flush(self, line: Line) -> None:
        try:
            sent = line.socket.send(line.out) if line.out else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self.lose(line)
            return
        self.count["bytes_out"] += sent
        del line.out[:sent]
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if line.out else 0)
        self.selector.modify(line.socket, events, line)

    def lose(self, line: Line) -> None:
        self.count["dead"] += 1
        self.open -= len(line.publishes) + len(line.samples)
        line.publishes.clear()
        line.samples.clear()
        line.next = self.rounds
        self.selector.unregister(line.socket)
        line.socket.close()

    def read(self, line: Line) -> None:
        try:
            came = line.socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            came = b""
        if not came:
            self.lose(line)
            return
        self.count["bytes_in"] += len(came)
        line.held += came
        while (frame := _frame(line.held)) is not None:
            opcode, start, end = frame
            payload = bytes(memoryview(line.held)[start:end])
            del line.held[:end]
            if opcode == 1:
                self.answer(line, payload, time.perf_counter())
            elif opcode == 9:
                line.out += masked(payload, 10)
                self.flush(line)
            elif opcode == 8:
                self.others["close"] += 1
                self.lose(line)
                return

    def answer(self, line: Line, text: bytes, now: float) -> None:
        kind = _KIND.match(text)
        name = kind[1].decode() if kind else "no message"
        if name == "batch":
            self.count["batches"] += 1
            self.count["counted"] += 1
            self.count["items"] += text.count(b'"sig":"')
            self.close(line.samples, self.sampled, now)
            self.again(line, now)
        elif name in ("ok", "err"):
            found = _CODE.search(text)
            code = found[1].decode() if found else "no code"
            if (name, code) == ("ok", "accepted"):
                self.count["accepted"] += 1
            else:
                self.others[code] += 1
            if name == "ok":
                self.close(line.publishes, self.published, now)
                if not self.rate and self.going:
                    self.ask(line, now)
            else:
                self.close(line.samples or line.publishes, self.sampled, now)
                self.again(line, now)
        else:
            self.others[name] += 1

    def close(self, waiting: deque[float], times: list[float], now: float) -> None:
        if waiting:
            times.append(now - waiting.popleft())
            self.open -= 1

    def again(self, line: Line, now: float) -> None:
        if not self.rate and self.going and line.next < self.rounds:
            self.publish(line, now)


def _frame(held: bytearray) -> tuple[int, int, int] | None:
    if len(held) < 2:
        return None
    start, size = 2, held[1] & 0x7F
    if size >= 126:
        start = 4 if size == 126 else 10
        size = int.from_bytes(held[2:start], "big")
        if len(held) < start:
            return None
    return (held[0] & 0x0F, start, start + size) if len(held) >= start + size else None


def main(plan: Path, times: Path) -> None:
    generator = Generator(plan.read_bytes())
    generator.run()
    with times.open("wb") as file:
        for kind in (generator.published, generator.sampled, generator.late):
            array.array("I", [min(int(one * 1e6), 2**32 - 1) for one in kind]).tofile(file)
    names = ("accepted", "batches", "counted", "items", "dead", "overrun", "bytes_in", "bytes_out")
    print(
        json.dumps(
            {
                **{name: generator.count[name] for name in names},
                "unanswered": generator.open,
                "seconds": generator.took,
                "cpu_s": time.process_time(),
                "published": len(generator.published),
                "sampled": len(generator.sampled),
                "late": len(generator.late),
                "others": generator.others,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
