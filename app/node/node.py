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

from app.common.retry import wait_s
from app.learning.lesson import weighty
from app.learning.placement import Placement, joined, next_again
from app.node import checkpoint, events, language, placing, points
from app.node.answers import Answers
from app.node.effort import Effort
from app.node.errors import DiskFullError, NodeError, no_room, room_on_disk
from app.node.figures import questions_mark
from app.node.gate import Gate
from app.node.healing import Healer, placed, titles
from app.node.home import model_folder, model_mark
from app.node.keeping import free_older, keep
from app.node.link import TRAINER, Link, TrainerDied
from app.node.memory import most
from app.node.peers import Judged, OwnGroup, PeerGroup, Swarm
from app.node.preferences import Preferences
from app.node.probing import due, probe
from app.node.records import Happening, Probe
from app.node.resume import (
    new_curve,
    open_history,
    other_models,
    resume,
    set_history_aside,
    with_families,
    with_questions,
)
from app.node.round import Played, Tools, play
from app.node.settings import Settings
from app.node.snapshot import Phase, Ruling, Snapshot, SwarmView, standing
from app.node.state import State
from app.node.teaching import teach
from app.node.watch import Watch
from app.packs import place as packs
from app.sapo import curriculum, seeds
from app.sapo.probe import probe_questions
from app.sapo.questions import VERSION, Asked, QuestionError
from app.sapo.sandbox import Sandbox, SandboxError
from engines.contract import EngineError, EngineInfo

_DEATHS = 5
"""A trainer that dies this often without finishing anything is not started again."""
_DEATHS_OPENING = 2
"""The same before this run has ever seen its model open: a model that kills its reader does so every time."""
_LEAST_SHARE = 1 / 16
"""Of the measured budget; a trainer that still dies for want of memory with this much is helped by nothing."""
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
        self._settings, self._model, self._home, self._identity = settings, model, home, identity
        self._tell, self._trainer, self._swarm = tell, trainer, swarm
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
        self._effort: Effort | None = None
        self._effort_given: Effort | None = None
        self._link: Link | None = None
        self._engine: EngineInfo | None = None
        self._engine_before = ""
        self._deaths, self._opened = 0, False
        self._share = 1.0
        self._state = State(
            round=0,
            curriculum=curriculum.start(settings.families),
            identity=sha256(identity).hexdigest()[:16],
            questions=VERSION,
        )
        self._fresh = self._state
        self._questions: list[Asked] = []
        self._placement: Placement | None = None
        self._healer = Healer(self._folder / "best")
        self.on_class: Callable[[bool], None] = lambda paused: None
        """Hears whether the teacher of a class pauses everybody."""
        self._class_paused = False
        self._answers = Answers(home)
        self._owner_P: list[PeerGroup] = []
        self._remembered: Sequence[language.Remembered] = ()
        self._run: int | None = None
        self._ends_at: int | None = None
        self._curve: list[Probe] = []

    @property
    def snapshot(self) -> Snapshot:
        return self._watch.snapshot

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
        self._effort = ruling.effort
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
            resting=not self._gate.open, late=lambda: loop.call_soon_threadsafe(self._note, _STARVED)
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
            sentence = await self._engine_fault() or str(error)
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
            if self._link is not None and self._effort != self._effort_given:
                await self._end_trainer()
            if self._link is None:
                await self._start_trainer()
            if self._engine is None:
                await self._ready()
            if self._placing_due():
                await self._place()
            elif self._probe_due():
                await self._probe()
            elif again := self._joining():
                await self._join(again)
            elif self._state.round == self._ends_at:
                return True
            else:
                await self._round()
            self._deaths = 0
        except TrainerDied as death:
            await self._after(death)
        return False

    async def _pause(self) -> None:
        """Until the gate opens. The swarm stays connected, so that a short pause costs no new sign-in and what
        was published gets its answers; but nothing is fetched and checked for rounds that are not played."""
        await asyncio.to_thread(self._sandbox.rest)  # whoever still asks there is refused
        await self._end_trainer()
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
            await self._start_trainer()

    async def _start_trainer(self) -> None:
        if missing := packs.missing():
            raise NodeError(missing)
        log = self._home / "logs" / "trainer.log"
        self._effort_given = self._effort
        self._link = await Link.start(
            log,
            self._note,
            alone=self._settings.solo,
            command=self._trainer,
            effort=self._effort,
            engine=self._settings.engine,
            home=self._home,
            share=self._share,
            memory=most(Preferences(self._home).values["trainer_memory"]),
        )

    async def _engine_fault(self) -> str:
        """What is wrong with an installed app's engine: no start is tried again with a broken one. Empty where
        nothing is, and in a checkout."""
        if not packs.installed():
            return ""
        from app.packs.soundness import fault

        return await asyncio.to_thread(fault, packs.folder())

    async def _end_trainer(self) -> None:
        if self._link is not None:
            await self._link.end()
        self._link = self._engine = None

    async def _ready(self) -> None:
        """Loads the model and the last safe point into a trainer that has just been started."""
        assert self._link is not None
        self._watch.report(Phase.LOADING)
        opening = self._link.open(self._model, self._settings.rank, seeds.hashed("adapter", self._identity))
        if self._settings.place and (found := placing.read(self._folder, among=self._settings.families)):
            self._begin_with(found)
        engine, self._questions = await asyncio.gather(opening, self._probe_questions())  # both take seconds
        state, sentences = await resume(self._link, self._checkpoints, self._mark, self._fresh)
        if self._placement is not None and state.way != self._placement.way:
            state = msgspec.structs.replace(state, way=self._placement.way, taught=False)
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
        if self._engine_before not in ("", engine.name):
            sentences.append(f"The engine is {engine.name} from now on. It was {self._engine_before} before.")
        self._engine_before = engine.name
        families = with_families(state.curriculum, self._settings.families)
        self._state = msgspec.structs.replace(state, curriculum=families)
        self._engine, self._opened = engine, True
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
            self._note(sentence)
        self._news = []

    async def _small_talk(self) -> Sequence[language.Remembered]:
        """What is held while this model learns; read by it before its first step, where it can talk at all."""
        assert self._link is not None and self._engine is not None
        kept = language.read(self._folder)
        if kept or self._state.steps or not self._engine.talks:
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
            self._owner_P = await self._owner_answers()
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
            self._note(f"Round {played.state.round} {played.refusal}")
        if self._swarm is not None:
            own_P = [OwnGroup(*pair) for pair in zip(played.questions_P, played.verdicts_P, strict=True)]
            judged_P = [
                Judged(group, *right)
                for group, right in zip(played.mixed.groups_P, played.weighed.right_P, strict=True)
            ]
            self._swarm.settle(own_P, time.monotonic() - began, judged_P)
        if not played.lesson:
            await self._answers_used(played)
        if self._settings.rest and self._state.round != self._ends_at:
            self._watch.report(Phase.RESTING)
            await asyncio.sleep(self._settings.rest * (time.monotonic() - began))

    async def _owner_answers(self) -> list[PeerGroup]:
        """Those that may teach in the next round; none while what others wrote is kept out."""
        if self._state.vigil.alone:
            return []
        families = tuple(self._state.curriculum.levels)
        return await asyncio.to_thread(self._answers.to_learn, self._sandbox, families)

    async def _answers_used(self, played: Played) -> None:
        """What became of the owner's own answers: one was looked at, others lie in the outbox now."""
        weights_P = zip(played.mixed.groups_P, played.weighed.peer, strict=True)
        learned_P = [group for group, weights_GT in weights_P if weighty(weights_GT)]
        for group in self._owner_P:
            self._answers.taught(group)
            self._note(_taught(any(one is group for one in learned_P)))
        self._owner_P = []
        if self._swarm is None:
            return
        for scored in await asyncio.to_thread(self._answers.to_share, self._sandbox):
            if not self._swarm.share(scored):
                return
            self._answers.shared(scored)

    def _placing_due(self) -> bool:
        fresh = self._settings.place and self._placement is None and self._state.round == 0
        return fresh or self._healer.place_again

    async def _place(self) -> None:
        """Finds out what the model can begin with, and goes on with that; see app.node.placing."""
        found = await placing.place(self._tools(), self._healer.candidates or self._settings.families)
        with room_on_disk(self._home):
            placing.write(self._folder, found)
        self._begin_with(found)
        self._healer.placed()
        levels = with_families(self._state.curriculum, self._settings.families)
        self._state = msgspec.structs.replace(self._state, curriculum=levels, way=found.way, taught=False)
        self._questions = []
        self._questions = await self._probe_questions()
        self._curve = self._store.probes(questions_mark(self._questions))
        self._watch.probed(self._state, self._curve)
        sentence = placed(found)
        self._watch.note(sentence)
        self._record("placement", sentence)
        self._tell(
            events.Placed(
                round=self._state.round,
                way=found.way.name,
                families=found.families,
                later=found.later,
                waiting=found.waiting,
                lesson=len(found.lesson),
                seconds=round(found.seconds, 1),
                sentence=sentence,
            )
        )

    def _joining(self) -> dict[str, int]:
        """Families that wait and may join now, with their levels; none where this run is the last to know."""
        found, round_ = self._placement, self._state.round
        if found is None or round_ == self._ends_at:
            return {}
        levels = {one.family: one.level for one in found.tried}
        return {family: levels[family] for family in next_again(found, round_)}

    async def _join(self, families: dict[str, int]) -> None:
        """Tries families that waited, and goes on with those that go well."""
        assert self._placement is not None
        before, round_ = self._placement, self._state.round
        tried = await placing.again(self._tools(), self._state.way, families, round_)
        after = joined(before, tried, round_)
        with room_on_disk(self._home):
            placing.write(self._folder, after)
        self._begin_with(after)
        levels = with_families(self._state.curriculum, self._settings.families)
        self._state = msgspec.structs.replace(self._state, curriculum=levels)
        if new := [family for family in after.joined if family not in before.joined]:
            self._note(f"New to the mix: {titles(new)}. They were tried again, and it can learn from them now.")

    def _begin_with(self, found: Placement) -> None:
        """Holds for this run's settings; where nothing was found, the candidates stay."""
        self._placement = found
        self._watch.placed(found.waiting)
        self._healer.candidates = self._healer.candidates or self._settings.families
        if found.families:
            self._settings = msgspec.structs.replace(self._settings, families=found.in_play)
            if self._swarm is not None:
                self._swarm.practise(found.in_play)

    async def _play(self) -> Played:
        """Lesson zero where a placement has left one, else an ordinary round."""
        lesson = self._placement.lesson if self._placement is not None else ()
        if lesson and not self._state.taught:
            return await teach(self._tools(), self._state, lesson)
        return await play(self._tools(), self._state)

    async def _heal(self) -> None:
        """Says why nothing is gained, and does what may help."""
        assert self._link is not None
        healed = await self._healer.heal(self._state, self._settings, self._curve, self._link)
        if healed is None:
            return
        self._state = healed.state
        self._watch.note(healed.sentence)
        self._record("flat", healed.sentence)
        self._tell(events.Flat(round=self._state.round, cause=healed.cause.value, sentence=healed.sentence))

    async def _keep(self, played: Played) -> None:
        assert self._link is not None and self._run is not None
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
        families = (self._placement and self._placement.families) or settings.families
        return self._questions or await asyncio.to_thread(
            probe_questions, families, settings.probe_questions, make
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
        """A dead trainer is an ordinary event: say so, wait a little, and do the round again."""
        self._link = self._engine = None
        self._deaths += 1
        if self._deaths == 1 and not death.of_memory and (fault := await self._engine_fault()):
            raise NodeError(f"{fault} Round {self._state.round} is safe.")
        if self._deaths >= (_DEATHS if self._opened or death.of_memory else _DEATHS_OPENING):
            raise NodeError(
                f"{death} That happened {self._deaths} times in a row: {death.remedy} "
                f"Round {self._state.round} is safe."
            )
        wait = wait_s(self._deaths, first_s=0.5, longest_s=30.0, growth=4.0)
        sentence = f"{death} It restarts and plays round {self._state.round + 1} again."
        if death.of_memory and self._share > _LEAST_SHARE:
            self._share /= 2
            sentence += f" It uses {100 * self._share:.3g} % of its memory for a step now."
        self._watch.note(sentence)
        self._record("trainer_restarted", sentence)
        self._tell(events.TrainerRestarted(round=self._state.round, sentence=sentence, wait_s=wait))
        self._watch.report(Phase.WAITING)
        await asyncio.sleep(wait)

    async def _close(self, reason: str, sentence: str) -> None:
        if self._swarm is not None:
            await self._swarm.close()
        if self._link is not None:
            await self._link.end()
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
        assert self._link is not None and self._engine is not None
        return Tools(
            link=self._link,
            engine=self._engine,
            sandbox=self._sandbox,
            settings=self._settings,
            identity=self._identity,
            report=self._watch.report,
            peers=self._swarm,
            remembered=self._remembered,
            owner_P=self._owner_P,
        )

    def _show_swarm(self, view: SwarmView) -> None:
        self._watch.swarm(view)
        if view.class_paused != self._class_paused:
            self._class_paused = view.class_paused
            self.on_class(view.class_paused)

    def hear(self, event: events.Event) -> None:
        """What the swarm and the rules tell, which know no rounds; their sentences are kept in the history."""
        if isinstance(event, events.Noted):
            self._note(event.sentence)
            return
        if isinstance(event, events.SwarmDone | events.Decided | events.SettingsNow | events.Refused):
            event = msgspec.structs.replace(event, round=self._state.round)
        if isinstance(event, events.Decided):
            self._record("decision", event.sentence)
        self._tell(event)

    def _note(self, sentence: str) -> None:
        self._watch.note(sentence)
        self._record("note", sentence)
        self._tell(events.Noted(round=self._state.round, sentence=sentence))

    def _record(self, kind: str, sentence: str) -> None:
        with contextlib.suppress(sqlite3.Error):  # a sentence is not worth a round
            self._store.add_event(
                Happening(at=time.time(), round=self._state.round, kind=kind, sentence=sentence)
            )

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


def _taught(learned: bool) -> str:
    if learned:
        return "Your answer taught your model: it had failed that puzzle."
    return "Your answer changed nothing: your model can already solve that puzzle, or it's too long to read."
