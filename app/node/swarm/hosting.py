"""Hosts a relay on this computer, for a node that found no other: a child process that ends with the node.

The child's standard input is a pipe that only the node holds. However the node ends, the system closes it, and
the relay says goodbye to its clients and exits. HOME/relay/SWARM/ holds what the relay stores, including its
port, so that it reopens at the same address.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import urllib.parse
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from pathlib import Path
from random import random

import msgspec

from app.common import files
from app.common.process.control import detached_popen_kwargs
from app.common.process.surroundings import child_environment, without_secrets, working_folder
from app.common.rate import Backoff
from app.node.record.errors import NodeError
from app.swarm.invite.invite import Invite, parse
from app.swarm.invite.private import PrivateSwarm
from app.swarm.wire.protocol import SOCKET_PATH

DEFAULT_PORT = 8777
SWARM = "shoal"
OPENING_S = 90.0
"""Maximum seconds that a hosted relay may take to open: a busy computer is slow to start a process."""
_CLOSING_S = 1.0
_LIVED_S = 60.0
"""A relay that ran for this many seconds had started properly, so the backoff between restarts is reset."""
_TRIES = 4  # the usual port three times, then any free one

Say = Callable[[str], None]


class HostingError(NodeError):
    """This computer cannot host a relay. The message says why and what to do."""


class _HostedRelay(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of HOME/relay/SWARM/hosted.json."""

    port: int
    relay: str


class Hosting:
    """A running relay. `own`: the address for this node. `invite`: the one for others on the network. Neither
    `invite` nor `sentence` contains the secret of a private swarm."""

    def __init__(self, home: Path, private: PrivateSwarm | None, lan: bool, say: Say) -> None:
        swarm = SWARM if private is None else private.swarm
        self._private, self._lan, self._say = private, lan, say
        self._folder = home / "relay" / swarm
        self._log = home / "logs" / "relay.log"
        self._process: Process | None = None
        self._began = 0.0
        self.own: Invite
        self.invite: Invite
        self.sentence = ""

    @classmethod
    async def start(
        cls, home: Path, *, private: PrivateSwarm | None = None, lan: bool = True, say: Say = lambda _: None
    ) -> Hosting:
        """Opens the relay at its last port, else at 8777, else at any. `lan` opens it to others on the network
        and announces it; without it only this computer can connect. Raises HostingError."""
        hosting = cls(home, private, lan, say)
        try:
            await hosting._open_somewhere()
        except BaseException:
            await hosting.close()
            raise
        return hosting

    @property
    def pid(self) -> int | None:
        """The relay's process id, None if it is not running."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def watch(self) -> None:
        """Restarts the relay at the same port when it ends; runs until cancelled."""
        pace = Backoff()
        while True:
            if self._process is not None:
                await self._process.wait()
            if time.monotonic() - self._began > _LIVED_S:
                pace = Backoff()
            pace = pace.after_failure(time.monotonic(), random())
            wait = pace.wait_s(time.monotonic())
            self._say(f"The relay on this computer stopped on its own; it starts again in {wait:.0f} seconds.")
            await asyncio.sleep(wait)
            with contextlib.suppress(HostingError):
                await self._open(urllib.parse.urlsplit(self.own.url).port or DEFAULT_PORT)

    async def close(self) -> None:
        """Ends the relay, which says goodbye to its clients; waits at most a second for that."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(process.wait()), _CLOSING_S)

    async def _open_somewhere(self) -> None:
        kept = kept_port(self._folder)
        for attempt in range(_TRIES):
            last = attempt == _TRIES - 1
            try:
                return await self._open(0 if last else kept or DEFAULT_PORT)
            except HostingError:
                if last:
                    raise
                # the relay before it may still be closing
                await asyncio.sleep(1.0 if kept else 0.0)
                if kept is None:
                    return await self._open(0)

    async def _open(self, port: int) -> None:
        """Starts the process once. Raises HostingError if the relay is not open within OPENING_S."""
        self._began = time.monotonic()
        mark = self._log.stat().st_size if self._log.exists() else 0
        self._process = process = await self._spawn(port)
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), OPENING_S)
            said = json.loads(line)
            self._settle(urllib.parse.urlsplit(said["url"]).port or DEFAULT_PORT, parse(said["invite"]))
        except (TimeoutError, ValueError, KeyError, TypeError) as error:
            await self.close()
            raise HostingError(self._why(mark)) from error

    async def _spawn(self, port: int) -> Process:
        command = [sys.executable, "-m", "app.cli", "relay", "--port", str(port), "--state", str(self._folder)]
        command += ["--until-stdin-closes", *(["--lan"] if self._lan else [])]
        command += ["--private"] if self._private is not None else []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with files.prepare_log(self._log).open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=log,
                    env=child_environment(without_secrets()),
                    cwd=working_folder(),
                    **detached_popen_kwargs(),
                )
            if self._private is not None and process.stdin is not None:
                process.stdin.write(self._private.token.encode() + b"\n")
            return process
        except OSError as error:
            raise HostingError(
                f"A relay can't be started on this computer ({error.strerror}): name another one with --relay."
            ) from error

    def _settle(self, port: int, invite: Invite) -> None:
        token = None if self._private is None else self._private.token
        self.own = Invite(
            url=f"ws://127.0.0.1:{port}{SOCKET_PATH}", swarm=invite.swarm, relay=invite.relay, token=token
        )
        self.invite = invite
        self.sentence = _sentence(invite, port, self._lan, self._private is not None)
        with contextlib.suppress(OSError):
            files.write_json(self._folder / "hosted.json", _HostedRelay(port=port, relay=invite.relay or ""))

    def _why(self, mark: int) -> str:
        """Returns the relay's error message from its log, starting at byte `mark`, or a general sentence."""
        with contextlib.suppress(OSError), self._log.open("rb") as log:
            log.seek(mark)
            for line in log.read(4096).decode("utf-8", "replace").splitlines():
                if line.startswith(("shoal relay: ", "shoal: ")):
                    return line.partition(": ")[2]
        return f"The relay didn't open on this computer ({self._log} says more): name another with --relay."


def kept_port(folder: Path) -> int | None:
    """Returns the port at which the relay of this folder was last open; None if unknown."""
    kept = _kept(folder)
    return None if kept is None or not 0 < kept.port < 65_536 else kept.port


def own_relays(home: Path) -> frozenset[str]:
    """Returns the ids of all relays that this data folder has hosted; no other computer's relay can have one of
    these."""
    found = (_kept(folder) for folder in (home / "relay").glob("*"))
    return frozenset(one.relay for one in found if one is not None)


def address_for_others(url: str) -> str:
    """Returns the address of a relay hosted here as seen from other computers on the network. Unchanged if
    there is no network.

    >>> address_for_others("ws://10.0.0.7:8777/v1/ws")
    'ws://10.0.0.7:8777/v1/ws'
    """
    from app.swarm.invite.discovery import lan_address

    parts = urllib.parse.urlsplit(url)
    if parts.hostname != "127.0.0.1" or (address := lan_address()) is None:
        return url
    return parts._replace(netloc=f"{address}:{parts.port}").geturl()


def _kept(folder: Path) -> _HostedRelay | None:
    return files.read_json(folder / "hosted.json", _HostedRelay)


def _sentence(invite: Invite, port: int, lan: bool, private: bool) -> str:
    if not lan:
        return f"No swarm was found, so Shoal started one for this computer alone, at port {port}."
    words = "They also need the six words." if private else "They need nothing else."
    return (
        f"No swarm was found, so Shoal started one that computers on this network can find. {words} "
        f"Port {port} of this computer is open to them, unencrypted, while it learns with others. "
        f"Invite others with {invite.link()}"
    )
