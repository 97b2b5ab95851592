"""`./shoal swarm`: runs a relay and several nodes on this computer, each in its own process, learning from
each other.

Prints a line for each probe and each unexpected end. All processes watch a pipe and end with this one,
however it ends."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

from app.cli._frame import share
from app.common.process.control import detached_popen_kwargs, when_asked_to_stop
from app.common.process.surroundings import child_environment, working_folder
from app.common.text import bounded_integer
from app.node.rules.setting import PROBE_EVERY

SUMMARY = "start a relay and several learners here, and watch them learn from each other"
_PASSED_ON = {
    "families": "puzzle families of all nodes (the model's own setting)",
    "local": "own questions a round",
    "external": "peers' groups a round",
    "recipe": "how groups become weights (default)",
    "probe-every": f"rounds between measurements ({PROBE_EVERY})",
    "rest": "rest F round lengths after each round (0)",
}
"""Options passed to `./shoal run`, where each node checks them."""
_OPENING_S, _STOPPING_S, _LINE = 120.0, 15.0, 2**22


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=bounded_integer(1, 10**6), metavar="N", default=3, help="nodes (3)")
    parser.add_argument(
        "--rounds", type=bounded_integer(1, 10**6), metavar="R", default=30, help="of each node (30)"
    )
    share(parser, "home", json="the summary as JSON on the last line of output")
    parser.add_argument(
        "--models", metavar="A,B", default="starter", help="models, used in turn (starter): names or folders"
    )
    for name, does in _PASSED_ON.items():
        parser.add_argument(f"--{name}", help=does)


def main(args: argparse.Namespace) -> int:
    """Returns 0 when all nodes did their rounds or the user stopped it, 1 if one failed or a group was lost.
    Raises NodeError if the relay does not open."""
    from app.models.shelf import locate
    from app.node.data.home import prepare_data_folder

    models = [model.strip() for model in args.models.split(",") if model.strip()] or ["starter"]
    for model in models:
        locate(model)
    home = prepare_data_folder(args.home) / "swarm" if args.home is None else prepare_data_folder(args.home)
    given = ((name, getattr(args, name.replace("-", "_"))) for name in _PASSED_ON)
    options = [part for name, value in given if value for part in (f"--{name}", value)]
    swarm = LocalSwarm(home, ["--rounds", str(args.rounds), *options])
    failed, summary = asyncio.run(swarm.run([models[n % len(models)] for n in range(args.nodes)]))
    made, stored, lost = (summary[key] for key in ("created", "stored", "lost"))
    _say(f"Puzzles with answers: {made} shared, {stored} stored by the relay, {lost} lost. All is in {home}.")
    if args.json:
        print(json.dumps(summary), flush=True)
    return int(failed or summary["lost"] > 0)


class LocalSwarm:
    """A relay, restarted if it stops on its own, and the nodes, which are not restarted."""

    def __init__(self, place: Path, options: list[str]) -> None:
        self._place, self._options, self._url = place, options, ""
        self._nodes: list[Process] = []
        self._rows: list[dict[str, Any]] = []
        self._ready, self._failed = 0, False

    async def run(self, models: list[str]) -> tuple[bool, dict[str, Any]]:
        """Runs until all nodes have ended. Returns whether one failed, and the summary, whose keys must not
        change. Raises NodeError."""
        self._relay = await self._open_relay("0")
        watch = asyncio.create_task(self._watch_relay())
        try:
            lives = asyncio.gather(*(self._live(n + 1, model) for n, model in enumerate(models)))
            begin = asyncio.create_task(self._begin(len(models)))
            # The second signal ends everything at once: the pipes close with this process.
            when_asked_to_stop(lambda: os._exit(1) if watch.cancelling() else _cancel(watch, lives))
            with contextlib.suppress(asyncio.CancelledError):
                await lives
            _cancel(watch, begin)
            await asyncio.gather(*(_end(node) for node in self._nodes))
            return self._failed, await self._summary()
        finally:
            await _end(self._relay)

    async def _live(self, number: int, model: str) -> None:
        row: dict[str, Any] = {"name": "", "rounds": 0, "informative_peer": 0, "pass_at_1": None}
        self._rows.append(row)
        own = self._place / f"node-{number}"
        where = ["--json", "--hold", "--relay", self._url, "--home", str(own), "--model", model]
        node = await _spawn(["run", *where, *self._options], own / "node.log")
        self._nodes.append(node)
        assert node.stdout is not None
        async for line in node.stdout:
            event = json.loads(line)
            match event["event"]:
                case "identity":
                    row["name"] = event["name"]
                case "holding":
                    self._ready += 1
                case "round":
                    row["rounds"] += 1
                    row["informative_peer"] += event["informative_peer"]
                case "probe":
                    row["pass_at_1"] = share = event["pass_at_1"]
                    _say(
                        f"{row['name'] or own.name}, round {event['round']}: solves {share:.0%} of new puzzles"
                    )
        self._ready += 1
        if await node.wait():
            self._failed = True
            lines = (own / "node.log").read_text(errors="replace").splitlines()
            _say(f"Node {number} ({row['name'] or 'no name yet'}) ended: {lines[-1] if lines else 'killed'}")

    async def _begin(self, nodes: int) -> None:
        """Starts all nodes at once, so that no node finishes before the last has started."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_OPENING_S):
                while self._ready < nodes:
                    await asyncio.sleep(0.1)
        for node in self._nodes:
            if node.stdin is not None and node.returncode is None:
                node.stdin.write(b'{"command":"begin"}\n')

    async def _open_relay(self, port: str) -> Process:
        from app.node.record.errors import NodeError

        where = [
            "--port",
            port,
            "--state",
            str(self._place / "relay"),
            "--until-stdin-closes",
            "--no-limits-here",
        ]
        relay = await _spawn(["relay", *where], self._place / "relay.log")
        assert relay.stdout is not None
        try:
            async with asyncio.timeout(_OPENING_S):
                self._url = json.loads(await relay.stdout.readline())["url"]
        except (TimeoutError, ValueError, KeyError) as error:
            await _end(relay)
            raise NodeError(f"The relay doesn't open: see {self._place / 'relay.log'}.") from error
        return relay

    async def _watch_relay(self) -> None:
        while True:
            await self._relay.wait()
            _say("The relay stopped on its own. It restarts; the nodes keep learning meanwhile.")
            await asyncio.sleep(1.0)
            self._relay = await self._open_relay(self._url.rsplit(":", 1)[1].partition("/")[0])

    async def _summary(self) -> dict[str, Any]:
        """Counts groups in the outboxes of the nodes, which have ended, and asks the relay, which has not."""
        from app.swarm.client.connection import ConnectionEnded, connect
        from app.swarm.client.outbox import Outbox
        from app.swarm.wire.protocol import AskStats, Stats

        created = acknowledged = waiting = 0
        for path in [self._place / f"node-{n + 1}" / "outbox.sqlite" for n in range(len(self._rows))]:
            if path.exists():
                with contextlib.closing(Outbox(path)) as outbox:
                    counts = outbox.counts()
                created, waiting = created + counts.created, waiting + counts.waiting
                acknowledged += counts.accepted + counts.duplicate
        stored = None
        with contextlib.suppress(ConnectionEnded, TimeoutError):
            async with asyncio.timeout(_STOPPING_S):
                connection = await connect(self._url)
                await connection.receive()
                await connection.send(AskStats())
                while not isinstance(message := await connection.receive(), Stats):
                    pass
                stored = message.stored
                await connection.close()
        lost = max(0, created - waiting - (acknowledged if stored is None else stored))
        sums = {"created": created, "acknowledged": acknowledged, "stored": stored, "lost": lost}
        return {"nodes": self._rows, **sums, "waiting": waiting}


async def _spawn(arguments: list[str], log: Path) -> Process:
    from app.node.trainer.process import THREADS_ENV

    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {THREADS_ENV: "1", **child_environment()}
    pipes: dict[str, Any] = {"stdin": PIPE, "stdout": PIPE, "limit": _LINE, **detached_popen_kwargs()}
    command = [sys.executable, "-m", "app.cli", *arguments]
    with log.open("ab") as errors:
        return await asyncio.create_subprocess_exec(
            *command, stderr=errors, env=environment, cwd=working_folder(), **pipes
        )


async def _end(process: Process) -> None:
    """Ends a process as Ctrl-C does, and kills it if that takes too long."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(_STOPPING_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def _cancel(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
