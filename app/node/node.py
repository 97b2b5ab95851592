"""The life cycle of a node: it starts, works while the rules allow it, pauses, and ends.

`Node.run` opens history, sandbox and swarm, then loops: waits while the gate is closed, else runs one step of
the `TrainingRun` (app.node.training_run). A closing gate cancels the step, unless a round is just being saved.
A trainer that dies is restarted after a while (`Supervisor`). `obey` gets rulings from the `Governor`
(app.node.governing).

The node owns the sandbox, the gate and the life cycle of the swarm; the training run owns state and files.
Views only read `snapshot`, a frozen value that is replaced at every change.

Left out: threads and locks. Everything runs in one event loop; scoring and disk work, which block, run in
threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app.node.record import events
from app.node.record.errors import DiskFullError, NodeError
from app.node.record.reasons import Reason
from app.node.record.settings import Settings
from app.node.record.snapshot import Phase, Ruling, Snapshot, SwarmView
from app.node.round.peers import NodeSwarm
from app.node.round.watch import EventFanout, SnapshotWriter
from app.node.supervisor import Supervisor
from app.node.trainer.link import TRAINER, TrainerDied
from app.node.training_run import TrainingRun
from app.sapo.questions import QuestionError
from app.sapo.scoring.sandbox import Sandbox, SandboxError
from app.skills.skill import Skill
from engines.contract import EngineError

_SAVING_S = 2.0
"""Maximum seconds that a pause waits for a round that is being saved; a round in an earlier phase is
abandoned.
"""
SKILL_TURN_S = 600.0
"""Seconds of a skill's turn, if several are learned: long enough that loading takes less than a fiftieth."""
_NOTHING_IN_FLIGHT = {
    Phase.STARTING,
    Phase.LOADING,
    Phase.HOLDING,
    Phase.PAUSED,
    Phase.RESTING,
    Phase.WAITING,
}
_CONNECTS_LATER = "It connects as soon as this round is done, so that nothing is lost."
_CONNECTS_RESUMED = "Paused. It connects when you resume."
_OWNERS_PAUSES = (Reason.PAUSED.value, Reason.SNOOZED.value)
_STARVED = "This computer is very busy, so starting takes longer than usual. Learning begins by itself."
"""Shown when the scoring process needs minutes to start."""


class Node:
    """One node, run once. `tell` gets every event; `snapshot` is always current, for views to read.

    With `governed` it waits for the first ruling (`obey`) and follows the latest; without, it always runs.
    """

    def __init__(
        self,
        settings: Settings,
        model: Path,
        home: Path,
        identity: bytes,
        tell: Callable[[events.Event], None],
        trainer: Sequence[str] = TRAINER,
        swarm: NodeSwarm | None = None,
        hold: bool = False,
        governed: bool = False,
        sets: Sequence[Path] = (),
        skills: Sequence[Skill] = (),
    ) -> None:
        """`sets`: files of question sets that the sandbox has to load. `skills`: what is learned instead of
        puzzles; several take turns."""
        self._swarm, self._sets = swarm, sets
        self._begun = asyncio.Event()
        if not hold:
            self._begun.set()
        self._gate = Gate(open=not governed)
        self._leaving = asyncio.Event()
        self._parting: asyncio.Task[None] | None = None
        self._ruled = asyncio.Event()
        if not governed:
            self._ruled.set()
        self._turns = deque(
            TrainingRun(
                msgspec.structs.replace(settings, families={skill.family: 0}) if skill else settings,
                model,
                home,
                identity,
                tell,
                trainer,
                swarm,
                self._begun,
                skill,
            )
            for skill in (skills or (None,))
        )
        self._turn_ends = math.inf
        self._connects, self._running, self._connected = not governed, False, False
        self.on_class: Callable[[bool], None] = lambda paused: None
        """Called when the teacher of a class pauses or resumes everybody."""
        self._class_paused = False

    @property
    def snapshot(self) -> Snapshot:
        return self._watch.snapshot

    @property
    def _training(self) -> TrainingRun:
        """What is learned now; the next ones stand behind it."""
        return self._turns[0]

    @property
    def _supervisor(self) -> Supervisor:
        return self._training.supervisor

    @property
    def _telling(self) -> EventFanout:
        return self._training.telling

    @property
    def _watch(self) -> SnapshotWriter:
        return self._training.watch

    def begin(self) -> None:
        """Lets a node that was started with `hold` begin its first round."""
        self._begun.set()

    def skip(self) -> None:
        """Ends the placement once the questions in flight are answered, and starts training."""
        self._training.skip()

    def stop_after_round(self) -> None:
        """Ends after the round in flight, as after the last of `settings.rounds`; other skills get no turn."""
        self._training.finish()
        while len(self._turns) > 1:
            self._turns.pop()

    def leave(self) -> None:
        """Closes every connection now, and ends as soon as the round, measurement or placement in flight is
        saved. Then another node can continue in a different swarm."""
        swarm, self._swarm = self._swarm, None
        self._training.leave_swarm()
        self._watch.show_swarm(SwarmView(sentence=_CONNECTS_LATER))
        if swarm is not None and self._connected:
            self._parting = asyncio.create_task(swarm.close())
        self._leaving.set()

    def obey(self, ruling: Ruling) -> None:
        """Pauses or resumes the node, and sets the effort that the ruling names.

        Pausing ends the trainer and abandons the round in flight, unless it is just being saved; resuming plays
        that round again. A changed effort applies from the next round on.
        """
        self._supervisor.effort = ruling.effort
        self._watch.show_ruling(ruling)
        self._gate.set_open(ruling.run)
        self._ruled.set()
        self._connects = self._connects or ruling.reason not in _OWNERS_PAUSES
        self._connect()

    async def run(self) -> None:
        """Trains until `settings.rounds` are done. Raises NodeError if it cannot continue.

        Cancel it to stop: the round in flight is abandoned, everything before it is saved.
        """
        self._training.open()
        if len(self._turns) > 1:
            self._turn_ends = time.monotonic() + SKILL_TURN_S
        loop = asyncio.get_running_loop()
        self._sandbox = Sandbox(
            suspended=not self._gate.open,
            late=lambda: loop.call_soon_threadsafe(self._telling.note, _STARVED),
            sets=self._sets,
        )
        self._training.set_sandbox(self._sandbox)
        self._running = True
        self._connect()
        reason, sentence = "failed", ""
        try:
            await self._start_early()
            await self._learn()
            if self._swarm is not None:
                self._watch.report(Phase.SENDING)
                await self._swarm.flush()
            reason = "stopped" if self._leaving.is_set() else "rounds"
        except asyncio.CancelledError:
            reason = "stopped"
            raise
        except (EngineError, QuestionError, SandboxError) as error:
            sentence = await self._supervisor.engine_fault() or str(error)
            raise NodeError(sentence) from error
        except NodeError as error:
            sentence = str(error)
            raise
        finally:
            self._watch.report(Phase.STOPPING)
            await self._close(reason, sentence)

    async def _learn(self) -> None:
        """Repeats `_step` as long as the gate is open and the node is not leaving."""
        done = False
        while not done:
            if not self._gate.open:
                await self._pause()
            if self._leaving.is_set():
                return
            self._sandbox.resume()
            step = asyncio.create_task(self._step())
            try:
                await self._done_or_closed(step)
            finally:
                step.cancel()
                await asyncio.wait({step})
            done = not step.cancelled() and step.result()
            if (done or time.monotonic() >= self._turn_ends) and len(self._turns) > 1:
                await self._change_turn(done)
                done = False

    async def _change_turn(self, done: bool) -> None:
        """Goes on with the next skill; one that is done gets no other turn."""
        before = self._turns.popleft()
        await before.supervisor.end()
        before.close("turn")
        if not done:
            self._turns.append(before)
        now, shown = self._training, before.watch.snapshot
        now.supervisor.effort = before.supervisor.effort
        if shown.ruling is not None:
            now.watch.show_ruling(shown.ruling)
        now.open()
        now.set_sandbox(self._sandbox)
        self._turn_ends = time.monotonic() + SKILL_TURN_S

    async def _done_or_closed(self, step: asyncio.Task[bool]) -> None:
        """Returns when the step is done or may be abandoned: the gate has closed, or the node is leaving and
        nothing is in flight."""
        closed = asyncio.create_task(self._gate.wait_closed())
        leaving = asyncio.create_task(self._leaving.wait())
        try:
            await asyncio.wait({step, closed, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if self._watch.snapshot.phase not in _NOTHING_IN_FLIGHT:
                await asyncio.wait({step, closed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()
            leaving.cancel()
        ends = time.monotonic() + _SAVING_S
        while self._watch.snapshot.phase is Phase.SAVING and not step.done() and time.monotonic() < ends:
            await asyncio.sleep(0.02)

    async def _step(self) -> bool:
        """Runs one step of the training run, starting a trainer first if none is running. Returns True when all
        rounds are done."""
        done = False
        try:
            if self._supervisor.outdated:
                await self._supervisor.end()
            if self._supervisor.link is None:
                await self._supervisor.start()
            done = await self._training.step()
            self._supervisor.reset_deaths()
        except TrainerDied as death:
            await self._after(death)
        except DiskFullError:
            await self._supervisor.end()  # it learns again what it learned after the last checkpoint
            await self._training.disk.wait()
        return done

    async def _pause(self) -> None:
        """Waits until the gate opens or the node leaves. The swarm stays connected, so that a short pause needs
        no new sign-in and published groups are acknowledged, but no peer groups are fetched or checked."""
        await asyncio.to_thread(self._sandbox.suspend)  # later requests there are refused
        await self._supervisor.end()
        if self._swarm is not None:
            self._swarm.pause_fetching(True)
        await self._training.show_paused()
        self._watch.report(Phase.PAUSED)
        open_ = asyncio.create_task(self._gate.wait_open())
        leaving = asyncio.create_task(self._leaving.wait())
        try:
            await asyncio.wait({open_, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            open_.cancel()
            leaving.cancel()
        self._watch.report(Phase.STARTING)
        if self._swarm is not None:
            self._swarm.pause_fetching(False)

    async def _start_early(self) -> None:
        await self._ruled.wait()
        if self._gate.open:
            with contextlib.suppress(DiskFullError):  # the first step waits for room
                await self._supervisor.start()

    async def _after(self, death: TrainerDied) -> None:
        """Reports the trainer's death and waits a little; the next step starts a new trainer."""
        sentence, wait = await self._supervisor.handle_death(death, self._training.state)
        again = events.TrainerRestarted(round=self._training.state.round, sentence=sentence, wait_s=wait)
        self._telling.say("trainer_restarted", again)
        self._watch.report(Phase.WAITING)
        await asyncio.sleep(wait)

    async def _close(self, reason: str, sentence: str) -> None:
        if self._swarm is not None and self._connected:
            await self._swarm.close()
        if self._parting is not None:
            await self._parting
        await self._supervisor.end()
        self._sandbox.close()
        self._training.close(reason)
        self._training.tell_end(reason, sentence)

    def _connect(self) -> None:
        """Connects to the swarm, which may open a port of this computer. An owner's pause delays it until the
        owner resumes."""
        if self._swarm is None or self._connected or not (self._running and self._ruled.is_set()):
            return
        if self._connects:
            self._connected = True
            self._swarm.open(self._sandbox, self.forward_event, self._show_swarm)
        else:
            self._watch.show_swarm(SwarmView(sentence=_CONNECTS_RESUMED))

    def _show_swarm(self, view: SwarmView) -> None:
        if self._leaving.is_set():
            return
        self._watch.show_swarm(view)
        if view.class_paused != self._class_paused:
            self._class_paused = view.class_paused
            self.on_class(view.class_paused)

    def forward_event(self, event: events.Event) -> None:
        """Forwards events of the swarm and of the rules."""
        self._telling.forward_event(event)


class Gate:
    """Whether a node may work now: the rules open and close it, and the node waits for either. Belongs to one
    event loop; call `set_open` only within it."""

    def __init__(self, open: bool = True) -> None:
        self._open, self._closed = asyncio.Event(), asyncio.Event()
        self.set_open(open)

    @property
    def open(self) -> bool:
        return self._open.is_set()

    def set_open(self, open: bool) -> None:
        """Opens or closes the gate."""
        now, other = (self._open, self._closed) if open else (self._closed, self._open)
        other.clear()
        now.set()

    async def wait_open(self) -> None:
        await self._open.wait()

    async def wait_closed(self) -> None:
        await self._closed.wait()
