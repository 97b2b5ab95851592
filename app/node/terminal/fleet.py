"""A relay and several nodes on this computer, each a process of its own: started, listened to, ended, counted.

Nothing is hidden: a node that ends by itself stays ended and is shown so, and a relay that ends is started
again at the same place with a sentence. All of them end when this process does, however it ends: they watch a
pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app.common.process.stopping import out_of_reach
from app.common.process.surroundings import surroundings, working_folder
from app.node.record import events
from app.node.record.errors import NodeError
from app.node.record.records import Probe, Round
from app.node.trainer.process import THREADS
from app.swarm.client.connection import ConnectionEnded, connect
from app.swarm.client.outbox import Outbox
from app.swarm.wire.protocol import AskStats, Stats

OPENING_S = 120.0
"""A busy computer may take long to start another process."""
APART_S = 20.0
"""The next node starts when the one before has its model, or after this long: starting is the heaviest part."""
TOGETHER_S = 120.0
"""All begin their first round together, so that none is done before the last is there; no one is waited for
longer than this."""
STOPPING_S = 15.0
RELAY_AGAIN_S = 1.0
STATS_S = 20.0
_LINE = 2**22

Say = Callable[[str], None]
_events: msgspec.json.Decoder[events.Event] = msgspec.json.Decoder(events.Event)


class Member(msgspec.Struct, kw_only=True):
    """One node as its events tell it. Kept current by the fleet; views only read it."""

    number: int
    model: str
    name: str = ""
    state: str = "waiting to start"
    rounds: list[Round] = []
    probes: list[Probe] = []
    connected: bool = False
    acknowledged: int = 0
    waiting: int = 0
    failed: bool = False

    @property
    def taken(self) -> int:
        """Peers' groups trained on."""
        return sum(one.taken for one in self.rounds)

    def hear(self, event: events.Event) -> None:
        """One line of the node's."""
        match event:
            case events.IdentityNamed():
                self.name = event.name
            case events.Started():
                self.state = "measuring"
            case events.Holding():
                self.state = "ready"
            case Round():
                self.rounds.append(event)
                self.state = "learning"
            case Probe():
                self.probes.append(event)
            case events.LinkChanged():
                self.connected = event.state == "connected"
            case events.SwarmDone():
                self.connected = event.connected
                self.acknowledged, self.waiting = event.acknowledged, event.waiting + event.held
            case events.TrainerRestarted():
                self.state = "starting its trainer again"
            case events.NodeEnded():
                self.state = {"rounds": "done", "stopped": "stopped"}.get(event.reason, event.sentence)


class NodeSum(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    rounds: int
    informative_peer: int
    pass_at_1: float | None


class FleetSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The keys are a contract. `created` groups lie in the nodes' outboxes or have left them; `acknowledged`
    are those that the relay said it stored; `stored` is its own count (None when it could not be asked); and
    `lost` are neither stored nor still waiting."""

    nodes: list[NodeSum]
    created: int
    acknowledged: int
    stored: int | None
    lost: int
    waiting: int


class FleetError(NodeError):
    """The relay does not open; nothing was begun."""


class Fleet:
    """`options` go to every node. `models` are dealt out in turn."""

    def __init__(self, home: Path, nodes: int, models: Sequence[str], options: Sequence[str], say: Say) -> None:
        self._home, self._options, self._say = home, tuple(options), say
        self.members = [Member(number=n + 1, model=models[n % len(models)]) for n in range(nodes)]
        self.url = ""
        self.began = time.monotonic()
        self._relay: Process | None = None
        self._processes: dict[int, Process] = {}
        self._stopping = False

    async def run(self) -> None:
        """Until every node has ended. Cancelling it ends them cleanly first. Raises FleetError."""
        try:
            await self._open_relay(0)
            watching = asyncio.create_task(self._watch_relay())
            try:
                await self._sail()
            finally:
                self._stopping = True
                watching.cancel()
        finally:
            await self._end_nodes()

    async def _sail(self) -> None:
        voices = []
        for member in self.members:
            member.state = "starting"
            voices.append(asyncio.create_task(self._live(member)))
            deadline = time.monotonic() + APART_S
            while member.state == "starting" and time.monotonic() < deadline:
                await asyncio.sleep(0.1)
        deadline = time.monotonic() + TOGETHER_S
        while any(one.state in ("starting", "measuring") for one in self.members):
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
        for process in self._processes.values():
            _tell(process, "begin")
        await asyncio.gather(*voices)

    async def _live(self, member: Member) -> None:
        arguments = ["run", "--json", "--hold", "--relay", self.url, "--home", str(self.folder(member))]
        process = await self._spawn(
            ["-m", "app.cli", *arguments, "--model", member.model, *self._options],
            self.folder(member) / "node.log",
        )
        self._processes[member.number] = process
        assert process.stdout is not None
        async for line in process.stdout:
            with contextlib.suppress(msgspec.MsgspecError):  # an event of another version
                member.hear(_events.decode(line))
        code = await process.wait()
        member.connected = False
        if code:
            member.failed = True
            member.state = _last_line(self.folder(member) / "node.log") if code > 0 else "was killed"
            self._say(f"Node {member.number} ({member.name or 'no name yet'}) ended: {member.state}")

    def folder(self, member: Member) -> Path:
        return self._home / f"node-{member.number}"

    async def _open_relay(self, port: int) -> None:
        arguments = ["-m", "app.cli", "relay", "--port", str(port), "--state", str(self._home / "relay")]
        log = self._home / "relay.log"
        process = await self._spawn([*arguments, "--until-stdin-closes"], log)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(OPENING_S):
                line = await process.stdout.readline()
            self.url = json.loads(line)["url"]
        except (TimeoutError, ValueError, KeyError) as error:
            await _end(process)
            raise FleetError(f"The relay does not open: {_last_line(log)}") from error
        self._relay = process

    async def _watch_relay(self) -> None:
        """A relay that ends unasked comes back where it was: its nodes are waiting there."""
        while not self._stopping:
            assert self._relay is not None
            await self._relay.wait()
            self._say("The relay stopped on its own. It restarts; the nodes keep learning meanwhile.")
            await asyncio.sleep(RELAY_AGAIN_S)
            try:
                await self._open_relay(int(self.url.rsplit(":", 1)[1].partition("/")[0]))
            except FleetError as error:
                self._say(str(error))

    async def _end_nodes(self) -> None:
        """As Ctrl-C does, all at once; anyone who takes too long is killed."""
        running = [process for process in self._processes.values() if process.returncode is None]
        for process in running:
            if process.stdin is not None:
                process.stdin.close()
        await asyncio.gather(*(_end(process, STOPPING_S) for process in running))

    async def stored(self) -> int | None:
        """How many groups the relay ever stored, in its own words."""
        try:
            async with asyncio.timeout(STATS_S):
                connection = await connect(self.url)
                try:
                    await connection.receive()
                    await connection.send(AskStats())
                    while True:
                        message = await connection.receive()
                        if isinstance(message, Stats):
                            return message.stored
                finally:
                    await connection.close()
        except (ConnectionEnded, TimeoutError):
            return None

    async def close(self) -> None:
        """Ends the relay."""
        if self._relay is not None and self._relay.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._relay.send_signal(signal.SIGTERM)
            await _end(self._relay, STOPPING_S)

    def summary(self, stored: int | None) -> FleetSummary:
        """Counted from the outboxes, whose nodes have ended."""
        created = acknowledged = waiting = 0
        for member in self.members:
            path = self.folder(member) / "outbox.sqlite"
            if not path.exists():
                continue
            outbox = Outbox(path)
            counts = outbox.counts()
            outbox.close()
            created, waiting = created + counts.created, waiting + counts.waiting
            acknowledged += counts.accepted + counts.duplicate
        known = acknowledged if stored is None else stored
        return FleetSummary(
            nodes=[
                NodeSum(
                    name=member.name,
                    rounds=len(member.rounds),
                    informative_peer=member.taken,
                    pass_at_1=member.probes[-1].share if member.probes else None,
                )
                for member in self.members
            ],
            created=created,
            acknowledged=acknowledged,
            stored=stored,
            lost=max(0, created - waiting - known),
            waiting=waiting,
        )

    async def _spawn(self, arguments: Sequence[str], log: Path) -> Process:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                *arguments,
                stdin=PIPE,
                stdout=PIPE,
                stderr=errors,
                env={THREADS: "1", **surroundings()},
                cwd=working_folder(),
                limit=_LINE,
                **out_of_reach(),
            )


def _tell(process: Process, command: str) -> None:
    if process.stdin is not None and process.returncode is None:
        process.stdin.write(json.dumps({"command": command}).encode() + b"\n")


async def _end(process: Process, patience_s: float = 2.0) -> None:
    try:
        async with asyncio.timeout(patience_s):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _last_line(log: Path) -> str:
    """What a process said last, for people; the beginning of its line names the command."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").splitlines()
        if lines:
            return lines[-1].partition(": ")[2] or lines[-1]
    return f"it said nothing; {log} is empty"
