"""Applies the rules: gathers facts, calls `decide` every second, and passes changed rulings to the node.

The node knows nothing about idle times and batteries, and the rules know nothing about trainers; a Ruling is
all that passes between them. The owner's orders are stored in HOME/orders.json, so a pause or a snooze survives
a restart or a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from app.common import files
from app.desktop.energy import PowerEstimate
from app.desktop.facts import DesktopFacts
from app.node.data.contents import GB, delete_old_data
from app.node.record import commands, events
from app.node.record.reasons import EFFORTS, Dial, Reason
from app.node.record.snapshot import Ruling
from app.node.rules.orders import Moment, Orders, serving, snooze_for, snooze_until_tomorrow
from app.node.rules.preferences import Preferences
from app.node.rules.rules import Decision, decide

ORDERS_FILE = "orders.json"
PERIOD_S = 1.0  # seconds between two decisions
_LOOKS = 4  # looks at running programs in each period
FIRST_ORDERS_S = 5.0
"""Seconds that a node waits for its window's first orders before it lowers its priority."""
THINNING_S = 1800.0  # seconds; a folder grows slowly
POWER_S = 5.0
"""Seconds between two readings of the power."""


class Provider(Protocol):
    """Supplies the facts about the desktop; implemented by app.desktop.Gatherer and FactsFile."""

    def start(self) -> None:
        """Gathers the facts for the first time. Blocks briefly."""
        ...

    def gather(self) -> DesktopFacts:
        """Returns the facts known so far; never blocks."""
        ...

    def close(self) -> None: ...


class Governor:
    """Decides when one node runs; lives in the node's event loop.

    `open_facts` gets a thread-safe function that shows the owner a sentence, and returns the source of facts.
    `obey` gets every ruling that differs from the last one, `tell` the events. `by_hand`: a person started this
    node without a window that could resume it, which counts as an order to run. `step_back` lowers the
    process's priority permanently; it is called once it is clear that the owner does not insist.
    """

    def __init__(
        self,
        home: Path,
        open_facts: Callable[[Callable[[str], None]], Provider],
        obey: Callable[[Ruling], None],
        tell: Callable[[events.Event], None],
        by_hand: bool = False,
        step_back: Callable[[], None] | None = None,
    ) -> None:
        self._home, self._orders_path = home, home / ORDERS_FILE
        self._open_facts, self._obey, self._tell = open_facts, obey, tell
        self._facts: Provider | None = None
        self._preferences = Preferences(home)
        found, complaint = files.read_or_set_aside(self._orders_path, Orders)
        self._orders = found or Orders()
        self._news = [sentence for sentence in (self._preferences.complaint, complaint) if sentence]
        if by_hand and self._orders != Orders():
            self._orders = Orders()
            self._news.append("Started by hand, so the pause that was ordered before is over.")
        self._cap_changed = asyncio.Event()
        self._class_paused = self._serving = False
        self._watts = 0.0
        self._step_back, self._began = step_back, Moment.now().steady
        self._decision: Decision | None = None
        self._ruling: Ruling | None = None

    async def run(self) -> None:
        """Decides once a second until it is cancelled."""
        for sentence in self._news:
            self._say(sentence)
        self._keep_orders()
        self._tell_settings()
        loop = asyncio.get_running_loop()
        facts = self._open_facts(lambda sentence: _soon(loop, self._say, sentence))
        self._facts = facts
        try:
            await asyncio.to_thread(facts.start)
            thinning = asyncio.create_task(self._keep_small())
            metering = asyncio.create_task(self._meter())
            try:
                while True:
                    self._decide(facts.gather())
                    await self._next()
            finally:
                thinning.cancel()
                metering.cancel()
        finally:
            facts.close()

    async def _next(self) -> None:
        """Waits until the next decision is due: after PERIOD_S, or as soon as another program starts or stops
        using the model."""
        for _ in range(_LOOKS):
            await asyncio.sleep(PERIOD_S / _LOOKS)
            if serving(self._home) is not self._serving:
                return

    async def _meter(self) -> None:
        """Estimates the power that this node and its trainer draw."""
        power = await asyncio.to_thread(PowerEstimate)
        while True:
            await asyncio.sleep(POWER_S)
            self._watts = await asyncio.to_thread(power.read)

    async def _keep_small(self) -> None:
        """Keeps the data folder within its limit: checks at the start, then every THINNING_S."""
        said = ""
        while True:
            cap = self._preferences.values["disk_cap_gb"] * GB
            sentence = (await asyncio.to_thread(delete_old_data, self._home, cap)).sentence
            if sentence and sentence != said:
                self._say(sentence)
            said = sentence
            self._cap_changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(THINNING_S):
                    await self._cap_changed.wait()

    def do(self, command: commands.Command) -> None:
        """Executes a command. Raises ValueError with a sentence if it cannot be executed."""
        match command:
            case commands.Pause():
                self._order(Orders(paused=True))
            case commands.Resume():
                self._order(Orders(insisted=self._orders.insisted))
            case commands.Insist():
                self._order(Orders(insisted=snooze_for(command.seconds, Moment.now())))
            case commands.Finish():
                self._order(msgspec.structs.replace(self._orders, finish=True))
            case commands.SnoozeFor(seconds=None):
                self._order(Orders(snooze=snooze_until_tomorrow(Moment.now())))
            case commands.SnoozeFor(seconds=float(seconds)):
                self._order(Orders(snooze=snooze_for(seconds, Moment.now())))
            case commands.WhenIdle():
                self._change({"contribute_when_idle": command.on})
            case commands.SetDial():
                self._change({"dial": command.to})
            case commands.ChangeSettings():
                self._change(command.changed)
            case _:
                raise ValueError(f"The rules know no command {commands.name(command)}.")

    def set_class_paused(self, paused: bool) -> None:
        """Applies a pause or resume by the teacher of the class. The owner may insist on learning anyway."""
        self._class_paused = paused
        self._decide_now()

    def round_finished(self) -> None:
        """Completes an order to finish; to be called when no round is in flight."""
        if self._orders.finish:
            self._order(self._orders.round_finished())

    def _order(self, orders: Orders) -> None:
        self._orders = orders
        self._keep_orders()
        self._decide_now()

    def _change(self, changed: dict[str, object]) -> None:
        try:
            self._preferences.change(changed)
        except OSError as error:
            self._say(f"The settings can't be saved ({error.strerror}): they hold until Shoal ends.")
        if "disk_cap_gb" in changed:
            self._cap_changed.set()
        self._tell_settings()
        self._decide_now()

    def _decide_now(self) -> None:
        if (
            self._facts is not None and self._decision is not None
        ):  # otherwise the first facts have not arrived yet
            self._decide(self._facts.gather())

    def _decide(self, facts: DesktopFacts) -> None:
        now = Moment.now()
        self._serving = serving(self._home)
        settings = self._preferences.rules(self._orders, self._class_paused, self._serving)
        decision = self._decision = decide(now, facts, settings, self._decision)
        insisted = decision.orders.insisted is not None
        if self._step_back is not None and not insisted and now.steady - self._began > FIRST_ORDERS_S:
            self._step_back()
            self._step_back = None
        if decision.orders != self._orders:
            self._orders = decision.orders
            self._keep_orders()
        before = self._ruling
        ruling = to_ruling(decision, settings.idle_s, settings.dial.value, self._watts)
        if ruling == before:
            return
        self._ruling = ruling
        self._obey(ruling)
        if before is None or ruling.reason != before.reason:
            self._tell(ruling_event(ruling))

    def _keep_orders(self) -> None:
        try:
            if self._orders != Orders() or self._orders_path.exists():
                files.write_json(self._orders_path, self._orders)
        except OSError as error:
            self._say(f"What you ordered can't be saved ({error.strerror}): it holds until Shoal ends.")

    def _tell_settings(self) -> None:
        self._tell(events.SettingsNow(round=0, values=self._preferences.values))

    def _say(self, sentence: str) -> None:
        self._tell(events.NodeNote(round=0, sentence=sentence))


def _soon(loop: asyncio.AbstractEventLoop, say: Callable[[str], None], sentence: str) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(say, sentence)


def ruling_event(ruling: Ruling) -> events.RulingChanged:
    return events.RulingChanged(
        round=0,
        run=ruling.run,
        reason=ruling.reason,
        sentence=ruling.sentence,
        short=ruling.short,
        values=ruling.values,
        until=ruling.until,
    )


def ruling_without_rules(paused: bool, why: Reason = Reason.PAUSED) -> Ruling:
    """Returns the ruling of a node without rules: paused by its owner or a teacher, or running at full
    effort.
    """
    reason = why if paused else Reason.RUNNING
    return Ruling(
        run=not paused,
        reason=reason.value,
        sentence=reason.sentence,
        short=reason.short,
        dial=Dial.FULL.value,
        effort=EFFORTS[Dial.FULL],
    )


def to_ruling(decision: Decision, idle_need_s: float, dial: str, watts: float = 0.0) -> Ruling:
    """Converts a decision to the form that views show. `until` is rounded to whole seconds, so that the display
    does not jitter."""
    used = decision.reason is Reason.IN_USE
    memory = decision.memory
    return Ruling(
        run=decision.run,
        reason=decision.reason.value,
        sentence=decision.sentence,
        short=decision.short,
        values=dict(decision.values),
        until=None if decision.until is None else float(round(decision.until)),
        idle_s=float(int(memory.at - memory.input_at)) if used else None,
        idle_need_s=idle_need_s if used else None,
        dial=dial,
        effort=decision.effort,
        watts=watts,
    )


_LONGEST = 65_536  # bytes of a facts file


class FactsFile:
    """Reads facts that another program writes to a file, instead of this computer's own: for tests, and for
    programs that know better than the system when a machine is free.

    Used by `run --rules --facts FILE`. FILE has one JSON object whose keys are the fields of DesktopFacts, such
    as {"idle_s": 600, "absent": ["on_battery"]}. A missing key is unknown, and so is everything while the file
    cannot be read; unknown counts as in use. The file is read again for every decision.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def start(self) -> None:
        pass

    def gather(self) -> DesktopFacts:
        try:
            with self._path.open("rb") as file:
                return msgspec.json.decode(file.read(_LONGEST), type=DesktopFacts)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return DesktopFacts()

    def close(self) -> None:
        pass
