"""Runs a node in this process, with its terminal view, keys and commands, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from app.common.process.control import when_asked_to_stop
from app.common.process.streams import bare
from app.node.governing import Governor, ruling_without_rules
from app.node.node import Node
from app.node.record import commands, events
from app.node.record.reasons import Reason
from app.node.rules.orders import serving
from app.node.terminal.lines import read_commands
from app.node.terminal.terminal import Terminal, closing_sentence
from app.node.trainer import solo


class Keys:
    """Reads single keys from the terminal. `open` makes the terminal deliver each key immediately and without
    echo, `close` restores it. Without a terminal, or in the background, `there` is False and nothing happens.
    Ctrl-C is not affected."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None
        self.there = False

    def open(self) -> None:
        if not sys.stdin or not sys.stdin.isatty():
            return
        if os.name == "nt":
            self.there = True
            return
        import termios
        import tty

        with contextlib.suppress(OSError, termios.error):
            file = sys.stdin.fileno()
            if os.tcgetpgrp(file) == os.getpgrp():
                self._before = termios.tcgetattr(file)
                tty.setcbreak(file)
                self.there = True

    def pressed(self) -> Iterator[str]:
        """Yields the keys pressed since the last call, one letter at a time."""
        if not self.there:
            return
        if sys.platform == "win32":
            import msvcrt

            while msvcrt.kbhit():
                yield msvcrt.getwch()
            return
        file = sys.stdin.fileno()
        with contextlib.suppress(OSError):
            while select.select([file], [], [], 0)[0]:
                said = os.read(file, 64)
                if not said:  # the terminal is gone
                    self.there = False
                    return
                if not said.startswith(b"\x1b"):  # an arrow or a function key is no letter
                    yield from said.decode("utf-8", "replace")

    def close(self) -> None:
        self.there = False
        if self._before is not None:
            import termios

            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
            self._before = None


_REFRESH_S = 0.25
_LAST_RESORT_S = 2.5
"""Seconds after which a stop that is still in progress ends the process anyway: everything valuable is on
disk."""
_ORPHAN_S = 6.0
"""Seconds after which a thread ends the process, for an event loop that no longer reacts."""


class LiveView(Protocol):
    """A view of a running node."""

    def open(self) -> None: ...

    def refresh(self) -> None: ...

    def close(self) -> None: ...


class LiveTerminal:
    """The view in the terminal with its keys: p pauses and resumes, q stops safely."""

    def __init__(self, node: Node, governor: Governor | None, said: str, keys: bool) -> None:
        self._node, self._governor = node, governor
        self._terminal = Terminal(Console(file=bare(sys.stderr)), lambda: node.snapshot, said)
        self._keys = Keys() if keys else None
        self.stop: Callable[[], None] | None = None

    def open(self) -> None:
        if self._keys is not None:
            self._keys.open()
            self._terminal.keys = self._keys.there
        self._terminal.open()

    def refresh(self) -> None:
        for key in self._keys.pressed() if self._keys is not None else ():
            self._press(key)
        self._terminal.refresh()

    def close(self) -> None:
        self._terminal.close()
        if self._keys is not None:
            self._keys.close()

    def _press(self, key: str) -> None:
        match key.lower():
            case "p":
                self._pause()
            case "q" if self.stop is not None:
                stop, self.stop = self.stop, None  # a second one would end it at once
                stop()

    def _pause(self) -> None:
        ruling = self._node.snapshot.ruling
        paused = ruling is not None and ruling.reason == Reason.PAUSED.value
        if self._governor is not None:
            self._governor.do(commands.Resume() if paused else commands.Pause())
        else:
            self._node.obey(ruling_without_rules(paused=not paused))


def _give_way(node: Node, asked: bool) -> None:
    """Pauses a node without rules while another program's request is answered."""
    ruling = node.snapshot.ruling
    resting = ruling is not None and ruling.reason == Reason.SERVING.value
    if asked and (ruling is None or ruling.run):
        node.forward_event(events.NodeNote(round=0, sentence=Reason.SERVING.sentence))
        node.obey(ruling_without_rules(True, Reason.SERVING))
    elif resting and not asked:
        node.obey(ruling_without_rules(False))


async def run_node(
    node: Node, governor: Governor | None, home: Path, offline: bool, view: LiveView | None, obeys_stdin: bool
) -> None:
    """Runs the node and its view until done or stopped. `offline` blocks the network;
    `obeys_stdin`: commands come on standard input."""
    if offline:
        solo.refuse_network()
    task = asyncio.create_task(node.run())
    stop = _stop_on_signals(task, node, view)
    if isinstance(view, LiveTerminal):
        view.stop = stop
    await asyncio.sleep(0)  # the node opens its history before anything is told about it
    ruling = asyncio.create_task(governor.run()) if governor is not None else None
    if obeys_stdin:
        _take_commands(node, governor, stop)
    if view is not None:
        view.open()
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_REFRESH_S)
            if governor is None:
                _give_way(node, serving(home))
            if view is not None:
                view.refresh()
            if ruling is not None and ruling.done() and not task.cancelling():
                task.cancel()  # without rules no one would see that the owner is back
    finally:
        if view is not None:
            view.close()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    if ruling is not None:
        ruling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ruling


def _take_commands(node: Node, governor: Governor | None, stop: Callable[[], None]) -> None:
    """Carries out commands from standard input."""
    loop = asyncio.get_running_loop()

    def do(command: commands.Command) -> None:
        try:
            match command:
                case commands.Stop():
                    stop()
                case commands.Leave():
                    node.leave()
                case commands.Begin():
                    node.begin()
                case commands.Skip():
                    node.skip()
                case _ if governor is not None:
                    governor.do(command)
                case commands.Finish():
                    node.stop_after_round()
                case _:
                    raise ValueError("This node runs without rules: start it with --rules.")
        except ValueError as error:
            refuse(commands.CommandError(str(error), commands.name(command)))

    def refuse(error: commands.CommandError) -> None:
        node.forward_event(events.CommandRefused(round=0, command=error.name, sentence=str(error)))

    def order(command: commands.Command) -> None:
        if isinstance(command, commands.Stop):
            timer = threading.Timer(_ORPHAN_S, os._exit, [0])
            timer.daemon = True
            timer.start()
        _on(loop, lambda: do(command))

    read_commands(0, order, lambda error: _on(loop, lambda: refuse(error)))


def _on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(call)


def _stop_on_signals(task: asyncio.Task[None], node: Node, view: LiveView | None) -> Callable[[], None]:
    """Returns a function that stops the node: safely at the first call or signal, immediately at the second."""

    def stop() -> None:
        if task.cancelling():
            end_now(1)
        task.cancel()
        timer = threading.Timer(_LAST_RESORT_S, end_now, [0])
        timer.daemon = True
        timer.start()

    def end_now(code: int) -> None:
        if view is not None:
            view.close()
        print(closing_sentence(node.snapshot), file=sys.stderr, flush=True)
        os._exit(code)

    when_asked_to_stop(stop)
    return stop
