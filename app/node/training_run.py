"""Trains one model: `TrainingRun.step` does the next thing that is due.

In this order: opens the model with its last checkpoint (`_ready`); a placement finds the families it can begin
with; a measurement on held-out questions adds a point to the curve; else a round is played, saved and settled.
A step that is interrupted by a dead trainer or a pause leaves no trace: the next step repeats it from the last
checkpoint.

It owns the state, the history and the curve. Its parts: `ActiveFamilies` (families and placement), `Healer`
(reacts to missing progress), `EventFanout` and `SnapshotWriter` (reporting), `Supervisor` (the trainer
process). `Node` (app.node.node) owns it, decides when it may work, and starts the trainer.

Left out: retries, pauses and the rules. They belong to the node, so that a step here is straight-line code.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import msgspec

from app.learning.brake import WINDOW_ROUNDS
from app.learning.choosing import JudgedGroup
from app.learning.round_weights import carries_weight
from app.node.active_families import ActiveFamilies, placement_event
from app.node.data.home import model_folder, model_mark, skill_folder
from app.node.healing import Healer, placement_summary
from app.node.history import checkpoint
from app.node.history.resume import (
    for_current_questions,
    new_curve_sentence,
    open_history,
    other_models_sentence,
    resume,
    set_history_aside,
)
from app.node.record import events
from app.node.record.errors import DiskFullError, raising_disk_full
from app.node.record.records import JOINED_QUESTIONS, Probe, questions_mark
from app.node.record.settings import Settings
from app.node.record.snapshot import Phase, curve_sentence
from app.node.record.state import NodeState
from app.node.round import language
from app.node.round.keeping import DiskPatience, save_round
from app.node.round.peers import NodeSwarm
from app.node.round.probing import FIRST_STEP, UNTRAINED_STEP, is_probe_due, probe
from app.node.round.round import PlayedRound, play_round
from app.node.round.teaching import recover_language, teach
from app.node.round.tools import RoundTools
from app.node.round.watch import EventFanout, SnapshotWriter
from app.node.skill_training import SkillTraining
from app.node.supervisor import Supervisor
from app.node.swarm.answers import Answers
from app.node.trainer.link import TrainerDied, TrainerLink
from app.sapo import curriculum, seeds
from app.sapo.asking import TAGGED
from app.sapo.probe import probe_questions
from app.sapo.questions import QUESTIONS_VERSION, QuestionPrompt
from app.sapo.scoring.sandbox import Sandbox
from app.skills.skill import Skill
from engines.contract import EngineInfo


class TrainingRun:
    """Runs placement, probes and rounds of one model in order; owns state, history and checkpoints. The node
    starts and ends the trainer through `supervisor`."""

    def __init__(
        self,
        settings: Settings,
        model: Path,
        home: Path,
        identity: bytes,
        tell: Callable[[events.Event], None],
        trainer: Sequence[str],
        swarm: NodeSwarm | None,
        begun: asyncio.Event,
        skill: Skill | None = None,
    ) -> None:
        """`skill`: learn it; None for puzzles."""
        self._model, self._home, self._identity = model, home, identity
        self._tell, self._swarm, self._begun = tell, swarm, begun
        self._mark = model_mark(model)
        self._folder = model_folder(home, settings.model, self._mark)
        if skill is not None:
            self._folder = skill_folder(self._folder, skill.slug, skill.made.mark)
        self._checkpoints = self._folder / "checkpoints"
        self.watch = SnapshotWriter(settings, str(home))
        self.telling = EventFanout(
            self.watch, tell, lambda row: self._store.add_event(row), lambda: self.state.round
        )
        self.disk = DiskPatience(home, self._checkpoints, self.watch, self.telling)
        self.supervisor = Supervisor(settings, home, trainer, self.telling.note)
        self.state = NodeState(
            round=0,
            curriculum=curriculum.start(settings.families),
            identity=sha256(identity).hexdigest()[:16],
            questions=QUESTIONS_VERSION,
            way=skill.way if skill is not None else TAGGED,
        )
        self._fresh = self.state
        self._questions: list[QuestionPrompt] = []
        self.healer = Healer(self._folder / checkpoint.BEST_FOLDER)
        self._active = ActiveFamilies(settings, self._folder, home, self.healer, self.watch, swarm)
        self._skill: SkillTraining | None = None
        if skill is not None:
            note = self.telling.note
            self._skill = SkillTraining(skill, self._folder, self._mark, self.healer, self.disk, note)
        self._answers = Answers(home)
        self._remembered: Sequence[language.RememberedTalk] | None = None
        self._run: int | None = None
        self._ends_at: int | None = None
        self._curve: list[Probe] = []

    def open(self) -> None:
        """Opens the history. Raises NodeError."""
        with raising_disk_full(self._home):
            self._store, self._news = open_history(self._folder)
            if self._skill is not None:
                self._skill.write_place(self._model, self._settings.model)

    def set_sandbox(self, sandbox: Sandbox) -> None:
        """Sets the sandbox that scores the answers."""
        self._sandbox = sandbox

    def leave_swarm(self) -> None:
        """Stops publishing and requesting groups."""
        self._swarm = None

    def skip(self) -> None:
        """Ends a placement with what is known so far."""
        self._active.enough = self._active.needs_placement(self.state)

    def finish(self) -> None:
        """Ends the run after the round in flight."""
        self._ends_at = self.state.round + 1

    async def step(self) -> bool:
        """Does the next thing that is due; needs a running trainer. Returns True when all rounds are done.
        Raises TrainerDied."""
        if self.supervisor.engine is None:
            await self._ready()
        if self._active.needs_placement(self.state):
            await self._place()
            return False
        if self._remembered is None:  # no step of its own: one that is done forgets a trainer's deaths
            self._remembered = await self._small_talk()
        if self._probe_due():
            await self._probe()
        elif self.state.round == self._ends_at or self.learned:
            return True
        else:
            await self._round()
        return False

    @property
    def learned(self) -> bool:
        """Whether a skill's rounds bring nothing more, and no number of rounds was asked for."""
        return self.state.practice.done and self._ends_at is None

    async def show_paused(self) -> None:
        """Shows where the node will continue, if it is paused before it had a trainer."""
        if self._run is None:
            await asyncio.to_thread(self._look_back)
            self.watch.show_paused(self.state)

    def close(self, reason: str) -> None:
        """Records the reason of the end and closes the history."""
        with contextlib.suppress(sqlite3.Error):  # the history may be what failed
            if self._run is not None:
                self._store.end_run(self._run, reason)
        self._run = None
        self._store.close()

    def tell_end(self, reason: str, sentence: str) -> None:
        """Sends the last event."""
        standing_ = curve_sentence(self.watch.snapshot.curve)
        last = self._curve[-1] if self._curve else None
        ended = events.NodeEnded.at(last, round=self.state.round, reason=reason, sentence=sentence or standing_)
        self._tell(ended)

    @property
    def _settings(self) -> Settings:
        return self._active.settings

    @property
    def _link(self) -> TrainerLink:
        assert self.supervisor.link is not None
        return self.supervisor.link

    def _look_back(self) -> None:
        """Reads the state of the last checkpoint without a trainer, to show where the node will continue;
        `_ready` reads it again and verifies more."""
        for folder in checkpoint.newest_first(self._checkpoints):
            with contextlib.suppress(checkpoint.CheckpointError):
                self.state = checkpoint.read(folder, self._mark)
                return

    async def _ready(self) -> None:
        """Loads the model and the last checkpoint into a trainer that was just started."""
        self.watch.report(Phase.LOADING)
        opening = self._link.open(
            self._model, self._settings.rank, seeds.hashed_seed("adapter", self._identity)
        )
        self._active.read()
        places = self._active.needs_placement(self._fresh)  # its result decides what is measured
        engine, _ = await asyncio.gather(opening, self._curve_questions(places))  # both take seconds
        state, sentences = await resume(self._link, self._checkpoints, self._mark, self._fresh)
        if self._skill is not None:
            state, changed_rows = await self._skill.with_current_rows(self._link, state)
            sentences += [changed_rows] if changed_rows else []
        state = self._active.with_prompt_style(state)
        await self._curve_questions(self._active.needs_placement(state))
        with raising_disk_full(self._home):
            if state.round == 0 and self._store.last_round() > 1:
                self._store.close()
                aside = set_history_aside(self._folder)
                self._store, _ = open_history(self._folder)
                self._run = None
                sentences.append(f"The earlier history is kept as {aside.name}.")
            self._store.forget_after(state.round)
            self._curve = self._store.probes(questions_mark(self._questions)) if self._questions else []
            if state.questions != QUESTIONS_VERSION:
                sentences.append(new_curve_sentence(self._store.last_probe()))
                state = for_current_questions(state)
            if self._run is None:
                self._run = self._store.begin_run(state.round + 1, self._settings, engine)
        if changed := self.supervisor.record_engine(engine):
            sentences.append(changed)
        self.state = self._active.with_active_families(state)
        if self._skill is not None and self._settings.rounds is None and (said := self._skill.learned(state)):
            sentences.append(said)
        self._remembered = None
        if self._ends_at is None and self._settings.rounds is not None:
            self._ends_at = state.round + self._settings.rounds
        if state.round == 0 and self._skill is None and (other := other_models_sentence(self._folder)):
            sentences.append(other)
        if self._swarm is not None:
            self._swarm.buffer.remember_used(self._store.used_questions())
        self.watch.show_ready(engine, self.state, self._curve, self._ends_at)
        self._tell(self._started(engine))
        for sentence in (*self._news, *sentences):
            self.telling.note(sentence)
        self._news = []

    async def _small_talk(self) -> Sequence[language.RememberedTalk]:
        """Returns the everyday replies that must stay as likely as before training. A model that can chat
        measures them before its first step; that takes seconds, so it is done after a placement."""
        assert self.supervisor.engine is not None
        if self._skill is not None:  # a skill does not change plain talk, which is the base model's
            return ()
        kept = language.read(self._folder)
        if kept or self.state.steps or not self.supervisor.engine.talks:
            return kept
        remembered = await language.measure_reference(self._link)
        with raising_disk_full(self._home):
            language.write(self._folder, remembered)
        return remembered

    async def _round(self) -> None:
        if not self._begun.is_set():
            self.watch.report(Phase.HOLDING)
            self._tell(events.WaitingToBegin(round=self.state.round))
            await self._begun.wait()
        began, before = time.monotonic(), self.state
        try:
            await self._take_owner_answers()
            played = await self._play()
            self.watch.report(Phase.SAVING)
            await self._keep(played)
        except (TrainerDied, DiskFullError, asyncio.CancelledError) as end:
            if self._swarm is not None:
                self._swarm.buffer.give_back(blamed=isinstance(end, TrainerDied))
            raise
        if played.refusal is not None:
            self.telling.note(f"Round {played.state.round} {played.refusal}")
        if self._swarm is not None:
            pairs = zip(played.questions_P, played.verdicts_P, strict=True)
            own_P = [scored for asked, scored in pairs if not asked.held_out]
            own_P += [one.scored for one in played.tried]
            self._swarm.count_taught({answer.id for answer in played.imitated.answers})
            judged_P = [
                JudgedGroup(group, *right)
                for group, right in zip(played.mixed.groups_P, played.weighed.right_P, strict=True)
            ]
            self._swarm.settle_round(own_P, time.monotonic() - began, judged_P)
        if played.scored_P:
            await self._use_owner_answers(played)
            if self._skill is None and self._active.can_settle:
                await self._settle_families(played, before)
        if self._settings.rest and self.state.round != self._ends_at:
            self.watch.report(Phase.RESTING)
            await asyncio.sleep(self._settings.rest * (time.monotonic() - began))

    async def _take_owner_answers(self) -> None:
        """Loads the owner's own answers that may be trained on in the next round; none while peers' texts are
        excluded from training."""
        families = () if self.state.vigil.alone else tuple(self.state.curriculum.levels)
        await asyncio.to_thread(self._answers.take, self._sandbox, families)

    async def _use_owner_answers(self, played: PlayedRound) -> None:
        """Marks the owner's answers as used: those that the round looked at, and those that were published."""
        weights_P = zip(played.mixed.groups_P, played.weighed.peer, strict=True)
        learned_P = [group for group, weights_GT in weights_P if carries_weight(weights_GT)]
        with raising_disk_full(self._home):
            sentences = self._answers.mark_used(learned_P)
        for sentence in sentences:
            self.telling.note(sentence)
        if self._swarm is None:
            return
        for scored in await asyncio.to_thread(self._answers.take_shareable, self._sandbox):
            if not self._swarm.share(scored):
                return
            with raising_disk_full(self._home):
                self._answers.mark_shared(scored)

    async def _place(self) -> None:
        """Continues the placement by some questions, and saves the result."""
        found = await self._active.place(self._tools())
        await self.disk.write(lambda: self._active.keep(found))
        if found.in_progress:
            return
        self.healer.reset_after_placement()
        self.state = self._active.with_active_families(
            msgspec.structs.replace(self.state, way=found.way, taught=False)
        )
        self._questions = []
        self._questions = await self._probe_questions()
        self._curve = self._store.probes(questions_mark(self._questions))
        self.watch.show_probes(self.state, self._curve)
        self.telling.say("placement", placement_event(found, self.state.round, placement_summary(found)))

    @property
    def _first_lesson_done(self) -> bool:
        """Whether the first lesson is done or not needed."""
        return self.state.taught or not self._active.first_lesson_answers

    async def _play(self) -> PlayedRound:
        """Plays the first lesson if it is due, else an ordinary round."""
        lesson = self._active.first_lesson_answers
        if self._skill is not None and not self.state.taught:
            return await self._skill.teach(self._tools(), self.state)
        if lesson and not self.state.taught:
            return await teach(self._tools(), self.state, lesson)
        if self._skill is not None:
            return await play_round(self._tools(), self.state)
        tools = replace(
            self._tools(),
            offered=await self._active.answers_to_imitate(self.state),
            trying=self._active.families_to_try(self.state),
        )
        played = await play_round(tools, self.state)
        if played.imitated.answers and played.state.round % WINDOW_ROUNDS == 0:
            await recover_language(tools, self.state)
        return played

    async def _settle_families(self, played: PlayedRound, before: NodeState) -> None:
        """Activates the families that the round's questions of them opened, and tells so. `before`: the state
        before the round."""
        opened = await self.disk.write(
            lambda: self._active.after_round(self.state, played.tried, before.imitated)
        )
        self.state = self._active.with_active_families(self.state)
        for said in opened:
            if isinstance(said, str):
                self.telling.note(said)
            else:
                self.telling.say("skill", said)

    async def _heal(self) -> None:
        """Reports why progress has stalled, and changes the state to fix it."""
        if self._skill is not None:
            return
        healed = await self.healer.heal(self.state, self._settings, self._curve, self._link)
        if healed is None:
            return
        self.state = healed.state
        flat = events.ProgressStalled(
            round=self.state.round, cause=healed.cause.value, sentence=healed.sentence
        )
        self.telling.say("flat", flat)

    async def _keep(self, played: PlayedRound) -> None:
        assert self._run is not None
        run, link = self._run, self._link
        kept = await self.disk.finish(
            lambda: save_round(played, link, self._store, self._checkpoints, self._mark, run)
        )
        self.state = kept.state
        self.watch.show_groups(kept, self._curve)
        self._tell(kept.row)
        self._tell(events.CheckpointSaved(round=kept.state.round, folder=str(kept.folder)))
        self.healer.record_round(kept.row)
        if self._skill is not None and played.taught_answers:
            self._skill.after_part(self.state)
        await self._heal()

    async def _probe(self) -> None:
        joined_P = await self._joined_questions()
        if self._skill is not None:
            row, self.state = await self._skill.measure(self._tools(), self._questions, self.state)
        else:
            first = self._just_first_lesson_done and self.state.round != self._ends_at
            every = FIRST_STEP if first else 1 if self._first_lesson_done else UNTRAINED_STEP
            row = await probe(self._tools(), self._questions, self.state, joined_P, every=every)
        await self.disk.write(lambda: self._store.add_probe(row))
        self._curve = self._store.probes(row.questions_mark)
        if self._swarm is not None:
            self._swarm.report_probe(row)
        self.state = msgspec.structs.replace(self.state, everyday=row.everyday_before)
        self.watch.show_probes(self.state, self._curve)
        self._tell(row)
        if self._skill is None:
            self.healer.keep_best(self._curve, self._checkpoints)
        await self._heal()

    async def _probe_questions(self) -> list[QuestionPrompt]:
        settings, make = self._settings, self._sandbox.questions
        most = settings.probe_questions
        if self._skill is not None:  # greedy decoding: asking twice would give the same answer
            most = min(most, self._skill.skill.held_out or most)
        return self._questions or await asyncio.to_thread(probe_questions, self._active.probed, most, make)

    async def _curve_questions(self, later: bool) -> None:
        self._questions = [] if later else await self._probe_questions()

    async def _joined_questions(self) -> list[QuestionPrompt]:
        joined = self._active.joined
        count, make = JOINED_QUESTIONS * len(joined), self._sandbox.questions
        return await asyncio.to_thread(probe_questions, joined, count, make) if joined else []

    def _probe_due(self) -> bool:
        """Whether to measure now: at the start of the curve, after the first lesson, when `is_probe_due` says
        so, and at the end; at most once per round."""
        if not self._curve:
            return True
        round_ = self.state.round
        measured = any(row.round == round_ for row in self._curve)
        due_now = (
            self._just_first_lesson_done
            or is_probe_due(round_, self._settings.probe_every)
            or round_ == self._ends_at
        )
        return not measured and due_now

    @property
    def _just_first_lesson_done(self) -> bool:
        last = self.watch.snapshot.last
        if last is None or last.round != self.state.round:
            return False
        return last.lesson > 0

    def _tools(self) -> RoundTools:
        assert self.supervisor.engine is not None
        return RoundTools(
            link=self._link,
            engine=self.supervisor.engine,
            sandbox=self._sandbox,
            settings=self._settings,
            identity=self._identity,
            report=self.watch.report,
            peers=self._swarm,
            remembered=self._remembered or (),
            owner_P=self._answers.taken,
        )

    def _started(self, engine: EngineInfo) -> events.Started:
        settings = self._settings
        return events.Started(
            model=settings.model,
            engine=engine,
            home=str(self._home),
            round=self.state.round,
            recipe=settings.recipe,
            local=settings.groups,
            external=settings.external,
            families=self.state.curriculum.levels,
            shuffled_rewards=settings.shuffled_rewards,
        )
