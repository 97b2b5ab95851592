"""A node's life: start the trainer, go on from the last safe point, play rounds, probe, keep everything
safe. While the rules say so it is paused: the trainer has ended, and everything else waits."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from app.learning.lesson import weighty
from app.node.data.home import model_folder, model_mark
from app.node.healing import Healer, placed
from app.node.history import checkpoint, points
from app.node.history.resume import (
    new_curve,
    open_history,
    other_models,
    resume,
    set_history_aside,
    with_questions,
)
from app.node.in_play import InPlay, told
from app.node.record import events
from app.node.record.errors import DiskFullError, NodeError, no_room, room_on_disk
from app.node.record.figures import questions_mark
from app.node.record.records import Probe
from app.node.record.settings import Settings
from app.node.record.snapshot import Phase, Ruling, Snapshot, SwarmView, standing
from app.node.record.state import State
from app.node.round import language
from app.node.round.gate import Gate
from app.node.round.keeping import free_older, keep
from app.node.round.peers import Judged, OwnGroup, Swarm
from app.node.round.probing import due, probe
from app.node.round.round import Played, Tools, play
from app.node.round.teaching import teach
from app.node.round.watch import Watch
from app.node.supervisor import Supervisor
from app.node.swarm.answers import Answers
from app.node.telling import Telling
from app.node.trainer.link import TRAINER, Link, TrainerDied
from app.sapo import curriculum, seeds
from app.sapo.probe import probe_questions
from app.sapo.questions import VERSION, Asked, QuestionError
from app.sapo.scoring.sandbox import Sandbox, SandboxError
from engines.contract import EngineError, EngineInfo

_SAVING_S = 2.0
"""How long a pause waits for a round that is being saved; one that is not yet so far is abandoned."""
_STARVED = "This computer is very busy, so starting takes longer than usual. Learning begins by itself."
"""Said when what checks answers needs minutes to start."""


class Node:
    """One node, run once. `tell` gets every event; `snapshot` is always current, for views to read.

    With `governed` it waits for the first ruling (`obey`) and goes by the latest; without, it always runs.
    """

    def __init__(
        self,
        settings: Settings,
        model: Path,
        home: Path,
        identity: bytes,
        tell: Callable[[events.Event], None],
        trainer: Sequence[str] = TRAINER,
        swarm: Swarm | None = None,
        hold: bool = False,
        governed: bool = False,
    ) -> None:
        self._model, self._home, self._identity = model, home, identity
        self._tell, self._swarm = tell, swarm
        self._mark = model_mark(model)
        self._folder = model_folder(home, settings.model, self._mark)
        self._checkpoints = self._folder / "checkpoints"
        self._watch = Watch(settings, str(home))
        self._begun = asyncio.Event()
        if not hold:
            self._begun.set()
        self._gate = Gate(open=not governed)
        self._ruled = asyncio.Event()
        if not governed:
            self._ruled.set()
        self._telling = Telling(
            self._watch, tell, lambda row: self._store.add_event(row), lambda: self._state.round
        )
        self._supervisor = Supervisor(settings, home, trainer, self._telling.note)
        self._state = State(
            round=0,
            curriculum=curriculum.start(settings.families),
            identity=sha256(identity).hexdigest()[:16],
            questions=VERSION,
        )
        self._fresh = self._state
        self._questions: list[Asked] = []
        self._healer = Healer(self._folder / "best")
        self._in_play = InPlay(settings, self._folder, home, self._healer, self._watch, swarm)
        self.on_class: Callable[[bool], None] = lambda paused: None
        """Hears whether the teacher of a class pauses everybody."""
        self._class_paused = False
        self._answers = Answers(home)
        self._remembered: Sequence[language.Remembered] = ()
        self._run: int | None = None
        self._ends_at: int | None = None
        self._curve: list[Probe] = []

    @property
    def snapshot(self) -> Snapshot:
        return self._watch.snapshot

    @property
    def _settings(self) -> Settings:
        return self._in_play.settings

    @property
    def _link(self) -> Link:
        assert self._supervisor.link is not None
        return self._supervisor.link

    def begin(self) -> None:
        """Ends the waiting of a node that was made to `hold` before its first round."""
        self._begun.set()

    def harder(self) -> None:
        """Every family a level up, from the next round on."""
        self._healer.harder = True

    def finish(self) -> None:
        """Ends after the round in flight, as after the last of `settings.rounds`."""
        self._ends_at = self._state.round + 1

    def obey(self, ruling: Ruling) -> None:
        """Pauses or goes on, with the effort that the ruling names.

        Pausing ends the trainer and abandons the round in flight, unless it is just being saved; going on
        plays that round again. A changed effort holds from the next round on.
        """
        self._supervisor.effort = ruling.effort
        self._watch.ruled(ruling)
        self._gate.put(ruling.run)
        self._ruled.set()

    async def run(self) -> None:
        """Learns until `settings.rounds` are done. Raises NodeError when it cannot go on.

        Cancelling it is the way to stop: the round in flight is abandoned, everything before it is safe.
        """
        with room_on_disk(self._home):
            self._store, self._news = open_history(self._folder)
        starting = asyncio.create_task(self._start_early())  # its imports take seconds, so it comes first
        loop = asyncio.get_running_loop()
        self._sandbox = Sandbox(
            resting=not self._gate.open, late=lambda: loop.call_soon_threadsafe(self._telling.note, _STARVED)
        )
        if self._swarm is not None:
            self._swarm.open(self._sandbox, self.hear, self._show_swarm)
        reason, sentence = "failed", ""
        try:
            await starting
            await self._learn()
            if self._swarm is not None:
                self._watch.report(Phase.SENDING)
                await self._swarm.flush()
            reason = "rounds"
        except asyncio.CancelledError:
            reason = "stopped"
            raise
        except (EngineError, QuestionError, SandboxError) as error:
            sentence = await self._supervisor.fault() or str(error)
            raise NodeError(sentence) from error
        except NodeError as error:
            sentence = str(error)
            raise
        finally:
            self._watch.report(Phase.STOPPING)
            await self._close(reason, sentence)

    async def _learn(self) -> None:
        """Whatever is next, as long as the gate is open."""
        done = False
        while not done:
            if not self._gate.open:
                await self._pause()
            self._sandbox.wake()
            step = asyncio.create_task(self._step())
            try:
                await self._done_or_closed(step)
            finally:
                step.cancel()
                await asyncio.wait({step})
            done = not step.cancelled() and step.result()

    async def _done_or_closed(self, step: asyncio.Task[bool]) -> None:
        """Returns when the step is done, or when it may be abandoned because the gate has closed."""
        closed = asyncio.create_task(self._gate.closed())
        try:
            await asyncio.wait({step, closed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()
        ends = time.monotonic() + _SAVING_S
        while self._watch.snapshot.phase is Phase.SAVING and not step.done() and time.monotonic() < ends:
            await asyncio.sleep(0.02)

    async def _step(self) -> bool:
        """One round or one probe, with a trainer that is started where there is none. True: all is done."""
        try:
            if self._supervisor.outdated:
                await self._supervisor.end()
            if self._supervisor.link is None:
                await self._supervisor.start()
            if self._supervisor.engine is None:
                await self._ready()
            if self._in_play.due(self._state):
                await self._place()
            elif self._probe_due():
                await self._probe()
            elif again := self._joining():
                await self._join(again)
            elif self._state.round == self._ends_at:
                return True
            else:
                await self._round()
            self._supervisor.worked()
        except TrainerDied as death:
            await self._after(death)
        return False

    async def _pause(self) -> None:
        """Until the gate opens. The swarm stays connected, so that a short pause costs no new sign-in and what
        was published gets its answers; but nothing is fetched and checked for rounds that are not played."""
        await asyncio.to_thread(self._sandbox.rest)  # whoever still asks there is refused
        await self._supervisor.end()
        if self._swarm is not None:
            self._swarm.rest(True)
        if self._run is None:
            await asyncio.to_thread(self._look_back)
            self._watch.resting(self._state)
        self._watch.report(Phase.PAUSED)
        await self._gate.opened()
        self._watch.report(Phase.STARTING)
        if self._swarm is not None:
            self._swarm.rest(False)

    def _look_back(self) -> None:
        """Where the node will go on, read without a trainer; `_ready` looks again, and more closely."""
        for folder in checkpoint.newest_first(self._checkpoints):
            with contextlib.suppress(checkpoint.CheckpointError):
                self._state = checkpoint.read(folder, self._mark)
                return

    async def _start_early(self) -> None:
        await self._ruled.wait()
        if self._gate.open:
            await self._supervisor.start()

    async def _ready(self) -> None:
        """Loads the model and the last safe point into a trainer that has just been started."""
        self._watch.report(Phase.LOADING)
        opening = self._link.open(self._model, self._settings.rank, seeds.hashed("adapter", self._identity))
        self._in_play.read()
        engine, self._questions = await asyncio.gather(opening, self._probe_questions())  # both take seconds
        state, sentences = await resume(self._link, self._checkpoints, self._mark, self._fresh)
        state = self._in_play.asked_as(state)
        with room_on_disk(self._home):
            if state.round == 0 and self._store.last_round() > 1:
                self._store.close()
                aside = set_history_aside(self._folder)
                self._store, _ = open_history(self._folder)
                self._run = None
                sentences.append(f"The earlier history is kept as {aside.name}.")
            self._store.forget_after(state.round)
            self._curve = self._store.probes(questions_mark(self._questions))
            if state.questions != VERSION:
                sentences.append(new_curve(self._store.last_probe()))
                state = with_questions(state)
            if self._run is None:
                self._run = self._store.begin_run(state.round + 1, self._settings, engine)
        if changed := self._supervisor.opened(engine):
            sentences.append(changed)
        self._state = self._in_play.practised(state)
        self._remembered = await self._small_talk()
        if self._ends_at is None and self._settings.rounds is not None:
            self._ends_at = state.round + self._settings.rounds
        if state.round == 0 and (other := other_models(self._folder)):
            sentences.append(other)
        if self._swarm is not None:
            self._swarm.remember(self._store.used())
        self._watch.ready(engine, self._state, self._curve, self._ends_at)
        self._tell(self._started(engine))
        for sentence in (*self._news, *sentences):
            self._telling.note(sentence)
        self._news = []

    async def _small_talk(self) -> Sequence[language.Remembered]:
        """What is held while this model learns; read by it before its first step, where it can talk at all."""
        assert self._supervisor.engine is not None
        kept = language.read(self._folder)
        if kept or self._state.steps or not self._supervisor.engine.talks:
            return kept
        remembered = await language.listen(self._link)
        with room_on_disk(self._home):
            language.write(self._folder, remembered)
        return remembered

    async def _round(self) -> None:
        if not self._begun.is_set():
            self._watch.report(Phase.HOLDING)
            self._tell(events.Holding(round=self._state.round))
            await self._begun.wait()
        began = time.monotonic()
        try:
            await self._take_owner_answers()
            played = await self._play()
            self._watch.report(Phase.SAVING)
            try:
                await self._keep(played)
            except DiskFullError as error:
                await self._keep_in_last_room(played, error)
        except (TrainerDied, asyncio.CancelledError) as end:
            if self._swarm is not None:
                self._swarm.give_back(blamed=isinstance(end, TrainerDied))
            raise
        if played.refusal is not None:
            self._telling.note(f"Round {played.state.round} {played.refusal}")
        if self._swarm is not None:
            own_P = [OwnGroup(*pair) for pair in zip(played.questions_P, played.verdicts_P, strict=True)]
            judged_P = [
                Judged(group, *right)
                for group, right in zip(played.mixed.groups_P, played.weighed.right_P, strict=True)
            ]
            self._swarm.settle(own_P, time.monotonic() - began, judged_P)
        if not played.lesson:
            await self._use_owner_answers(played)
        if self._settings.rest and self._state.round != self._ends_at:
            self._watch.report(Phase.RESTING)
            await asyncio.sleep(self._settings.rest * (time.monotonic() - began))

    async def _take_owner_answers(self) -> None:
        """Those that may teach in the next round; none while what others wrote is kept out."""
        families = () if self._state.vigil.alone else tuple(self._state.curriculum.levels)
        await asyncio.to_thread(self._answers.take, self._sandbox, families)

    async def _use_owner_answers(self, played: Played) -> None:
        """What became of the owner's own answers: one was looked at, others lie in the outbox now."""
        weights_P = zip(played.mixed.groups_P, played.weighed.peer, strict=True)
        for sentence in self._answers.used([group for group, weights_GT in weights_P if weighty(weights_GT)]):
            self._telling.note(sentence)
        if self._swarm is None:
            return
        for scored in await asyncio.to_thread(self._answers.to_share, self._sandbox):
            if not self._swarm.share(scored):
                return
            self._answers.shared(scored)

    async def _place(self) -> None:
        """Finds out what the model can begin with, and goes on with that."""
        found = await self._in_play.place(self._tools())
        self._state = self._in_play.practised(msgspec.structs.replace(self._state, way=found.way, taught=False))
        self._questions = []
        self._questions = await self._probe_questions()
        self._curve = self._store.probes(questions_mark(self._questions))
        self._watch.probed(self._state, self._curve)
        self._telling.say("placement", told(found, self._state.round, placed(found)))

    def _joining(self) -> dict[str, int]:
        """Families that may join now; none where this run is the last to know."""
        return {} if self._state.round == self._ends_at else self._in_play.joining(self._state.round)

    async def _join(self, families: dict[str, int]) -> None:
        sentence = await self._in_play.join(self._tools(), self._state, families)
        self._state = self._in_play.practised(self._state)
        if sentence:
            self._telling.note(sentence)

    async def _play(self) -> Played:
        """Lesson zero where a placement has left one, else an ordinary round."""
        lesson = self._in_play.lesson
        if lesson and not self._state.taught:
            return await teach(self._tools(), self._state, lesson)
        return await play(self._tools(), self._state)

    async def _heal(self) -> None:
        """Says why nothing is gained, and does what may help."""
        healed = await self._healer.heal(self._state, self._settings, self._curve, self._link)
        if healed is None:
            return
        self._state = healed.state
        flat = events.Flat(round=self._state.round, cause=healed.cause.value, sentence=healed.sentence)
        self._telling.say("flat", flat)

    async def _keep(self, played: Played) -> None:
        assert self._run is not None
        kept = await keep(played, self._link, self._store, self._checkpoints, self._mark, self._run)
        self._state = kept.state
        self._watch.played(kept, self._curve)
        self._tell(kept.row)
        self._tell(events.Checkpointed(round=kept.state.round, folder=str(kept.folder)))
        self._healer.saw(kept.row)
        await self._heal()

    async def _keep_in_last_room(self, played: Played, error: DiskFullError) -> None:
        """A full disk costs the older safe point, not the round: its room is used, and then the node ends."""
        with contextlib.suppress(DiskFullError):
            free_older(self._checkpoints, self._home, error)
            await self._keep(played)
        raise DiskFullError(f"{no_room(self._home)} Round {self._state.round} is safe.") from error

    async def _probe(self) -> None:
        row = await probe(self._tools(), self._questions, self._state)
        with room_on_disk(self._home):
            self._store.add_probe(row)
        self._curve = self._store.probes(row.questions_mark)
        if self._swarm is not None:
            self._swarm.measured(row)
        self._state = msgspec.structs.replace(self._state, everyday=row.everyday_before)
        self._watch.probed(self._state, self._curve)
        self._tell(row)
        self._healer.measured(self._curve, self._checkpoints)
        await asyncio.to_thread(points.keep, self._folder, row.share)
        await self._heal()

    async def _probe_questions(self) -> list[Asked]:
        settings, make = self._settings, self._sandbox.questions
        return self._questions or await asyncio.to_thread(
            probe_questions, self._in_play.probed, settings.probe_questions, make
        )

    def _probe_due(self) -> bool:
        """At the start of the curve, where `due` says, and at the end; once after a round."""
        if not self._curve:
            return True
        round_ = self._state.round
        measured = any(row.round == round_ for row in self._curve)
        last = self._watch.snapshot.last
        lesson = last is not None and last.round == round_ and last.lesson > 0
        return not measured and (lesson or due(round_, self._settings.probe_every) or round_ == self._ends_at)

    async def _after(self, death: TrainerDied) -> None:
        """Say so, wait a little, and do the round again."""
        sentence, wait = await self._supervisor.after(death, self._state)
        again = events.TrainerRestarted(round=self._state.round, sentence=sentence, wait_s=wait)
        self._telling.say("trainer_restarted", again)
        self._watch.report(Phase.WAITING)
        await asyncio.sleep(wait)

    async def _close(self, reason: str, sentence: str) -> None:
        if self._swarm is not None:
            await self._swarm.close()
        await self._supervisor.end()
        self._sandbox.close()
        standing_ = standing(self._watch.snapshot.curve)
        with contextlib.suppress(sqlite3.Error):  # the history may be what failed
            if self._run is not None:
                self._store.end_run(self._run, reason)
        self._store.close()
        last = self._curve[-1] if self._curve else None
        ended = events.Ended.at(last, round=self._state.round, reason=reason, sentence=sentence or standing_)
        self._tell(ended)

    def _tools(self) -> Tools:
        assert self._supervisor.engine is not None
        return Tools(
            link=self._link,
            engine=self._supervisor.engine,
            sandbox=self._sandbox,
            settings=self._settings,
            identity=self._identity,
            report=self._watch.report,
            peers=self._swarm,
            remembered=self._remembered,
            owner_P=self._answers.taken,
        )

    def _show_swarm(self, view: SwarmView) -> None:
        self._watch.swarm(view)
        if view.class_paused != self._class_paused:
            self._class_paused = view.class_paused
            self.on_class(view.class_paused)

    def hear(self, event: events.Event) -> None:
        """What the swarm and the rules tell."""
        self._telling.hear(event)

    def _started(self, engine: EngineInfo) -> events.Started:
        settings = self._settings
        return events.Started(
            model=settings.model,
            engine=engine,
            home=str(self._home),
            round=self._state.round,
            recipe=settings.recipe,
            local=settings.groups,
            external=settings.external,
            families=self._state.curriculum.levels,
            shuffled_rewards=settings.shuffled_rewards,
        )
