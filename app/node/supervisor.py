"""Keeps a node's trainer running: starts it, ends it, and decides after a crash whether and when to restart
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from app.common.rate import backoff_s
from app.install.packs import place as packs
from app.node.record.errors import NodeError, raising_disk_full
from app.node.record.reasons import Effort
from app.node.record.settings import Settings
from app.node.record.state import NodeState
from app.node.rules.preferences import Preferences
from app.node.trainer.link import TrainerDied, TrainerLink
from app.node.trainer.memory import memory_limit
from engines.contract import EngineInfo

_DEATHS = 5
"""After this many deaths in a row without any finished work a trainer is not started again."""
_DEATHS_OPENING = 2
"""That limit before this run has ever opened its model: a model that crashes its reader does so every time."""
_MIN_SHARE = 1 / 16
"""Smallest share of the measured memory budget; if a trainer still runs out of memory with it, smaller ones do
not help."""


class Supervisor:
    """Starts and ends the trainer of a node. `link`: connection to the running trainer, None while none is
    running. `engine`: the engine that opened the model."""

    def __init__(
        self, settings: Settings, home: Path, command: Sequence[str], note: Callable[[str], None]
    ) -> None:
        self._settings, self._home, self._command, self._note = settings, home, command, note
        self.link: TrainerLink | None = None
        self.engine: EngineInfo | None = None
        self.effort: Effort | None = None
        """The effort that the rules allow now; a running trainer keeps the one it was started with."""
        self._effort_given: Effort | None = None
        self._engine_before = ""
        self._deaths, self._opened = 0, False
        self._share = 1.0

    @property
    def outdated(self) -> bool:
        """Whether the running trainer was started with a different effort from the one allowed now."""
        return self.link is not None and self.effort != self._effort_given

    async def start(self) -> None:
        """Starts a trainer. Raises NodeError if the engine is missing."""
        if missing := packs.engine_problem():
            raise NodeError(missing)
        self._effort_given = self.effort
        with raising_disk_full(self._home):
            self.link = await TrainerLink.start(
                self._home / "logs" / "trainer.log",
                self._note,
                alone=self._settings.solo,
                command=self._command,
                effort=self.effort,
                engine=self._settings.engine,
                home=self._home,
                share=self._share,
                memory=memory_limit(Preferences(self._home).values["trainer_memory"]),
            )

    async def end(self) -> None:
        """Ends the trainer, if there is one."""
        if self.link is not None:
            await self.link.end()
        self.link = self.engine = None

    async def engine_fault(self) -> str:
        """Returns what is wrong with an installed app's engine, since restarting a broken one does not help.
        Empty if nothing is wrong, and always in a source checkout."""
        if not packs.installed():
            return ""
        from app.install.packs.programs import engine_fault

        return await asyncio.to_thread(engine_fault, packs.folder())

    def record_engine(self, engine: EngineInfo) -> str:
        """Records the engine that opened the model. Returns a sentence if it differs from the last one."""
        self.engine, self._opened = engine, True
        sentence = ""
        if self._engine_before not in ("", engine.name):
            sentence = f"The engine is {engine.name} from now on. It was {self._engine_before} before."
        self._engine_before = engine.name
        return sentence

    def reset_deaths(self) -> None:
        """Resets the count of deaths; to be called when the trainer has finished something."""
        self._deaths = 0

    async def handle_death(self, death: TrainerDied, state: NodeState) -> tuple[str, float]:
        """Handles a trainer's death: returns a sentence, and the seconds to wait before the round after the
        saved `state` is played again. Raises NodeError if another start would not help."""
        self.link = self.engine = None
        self._deaths += 1
        if self._deaths == 1 and not death.of_memory and (fault := await self.engine_fault()):
            raise NodeError(f"{fault} Round {state.round} is safe.")
        if self._deaths >= (_DEATHS if self._opened or death.of_memory else _DEATHS_OPENING):
            raise NodeError(
                f"{death} That happened {self._deaths} times in a row: {death.remedy} "
                f"Round {state.round} is safe."
            )
        sentence = f"{death} It restarts and plays round {state.round + 1} again."
        if death.of_memory and self._share > _MIN_SHARE:
            self._share /= 2
            sentence += f" It uses {100 * self._share:.3g} % of its memory for a step now."
        return sentence, backoff_s(self._deaths, first_s=0.5, longest_s=30.0, growth=4.0)
