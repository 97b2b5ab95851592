"""Measures the server for other programs beside llama-cpp-python's own: equal GGUF weights, llama.cpp build and
puzzles at temperature 0, in turns, so that other load affects both.

Each client sends its next request as soon as it has its answer. "cpu ms" is a server's processor time per
request, which is more reliable if other programs were busy. `--peer` names a Python that has
llama-cpp-python[server]."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import numpy as np
import psutil

from app.bench.harness import (
    PATIENCE_S,
    BenchError,
    Figures,
    Tell,
    child_environment,
    command,
    machine,
    running,
    warn_if_busy,
)
from app.chat.puzzles import draw_several
from app.common.text import bounded_integer
from app.models.catalogue import full_name
from app.models.shelf import locate
from app.sapo import asking
from engines.choice import sampler_kind
from engines.contract import EngineError
from engines.models.folder import count_parameters, open_folder, read_settings
from engines.models.gguf import gguf

SUMMARY = "the server for other programs: requests a second beside llama-cpp-python's own server"
TARGETS = {"ratio": 1.0, "ratio_at_8": 1.5, "errors": 0}
"""What the figures should reach."""
OURS, THEIRS = "shoal", "llama-cpp-python"
_PUZZLES = 48
_FAMILIES = {"chain_sum": 1, "basic_arithmetic": 1}
_WARM = 3
_SLICES = 2
"""Turns of each server in one setting."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", default="starter", help="starter, the name of a downloaded model, or a folder")
    add("--clients", type=_counts, default=[1, 8, 16], metavar="N,N", help="that ask at once (1,8,16)")
    add(
        "--seconds",
        type=bounded_integer(1),
        default=60,
        metavar="S",
        help="of each server in each setting (60)",
    )
    add("--tokens", type=bounded_integer(1), default=48, metavar="N", help="the most of an answer (48)")
    add("--threads", type=bounded_integer(1), metavar="N", help="for both (all physical cores)")
    add("--peer", type=Path, metavar="PYTHON", help="one that has llama-cpp-python[server]")
    add("--home", type=Path, metavar="DIR", help="where the model lies (also: SHOAL_HOME)")


def _counts(text: str) -> list[int]:
    return [bounded_integer(1, 64)(part) for part in text.split(",")]


class Server:
    """One of the two servers, running: its URL, and the memory and processor time of its processes."""

    def __init__(self, process: subprocess.Popen[Any], url: str, token: str, model: str) -> None:
        self.process, self.url, self.model = process, url, model
        self.headers = {"Authorization": f"Bearer {token}"}

    def processes(self) -> list[psutil.Process]:
        one = psutil.Process(self.process.pid)
        return [one, *one.children(recursive=True)]

    def memory_mb(self) -> float:
        return sum(one.memory_info().rss for one in self.processes()) / 2**20

    def cpu_s(self) -> float:
        return sum(times.user + times.system for one in self.processes() for times in [one.cpu_times()])


class ClientResults:
    """Totals of the clients of one server: seconds of each request, answer tokens, errors, time used."""

    def __init__(self) -> None:
        self.seconds_R: list[float] = []
        self.tokens = self.errors = 0
        self.wall_s = self.cpu_s = 0.0

    def figures(self) -> dict[str, float]:
        p50, p99 = np.percentile(self.seconds_R or [0.0], [50, 99])
        return {
            "requests_per_s": round(len(self.seconds_R) / self.wall_s, 3),
            "tokens_per_s": round(self.tokens / self.wall_s, 1),
            "cpu_ms": round(1000 * self.cpu_s / max(1, len(self.seconds_R)), 2),
            "p50_s": round(float(p50), 3),
            "p99_s": round(float(p99), 3),
            "requests": len(self.seconds_R),
            "errors": self.errors,
        }


def run(args: argparse.Namespace, tell: Tell) -> Figures:
    """Runs the benchmark; returns the figures. Raises BenchError if nothing can be measured."""
    load = warn_if_busy(tell)
    threads = args.threads or psutil.cpu_count(logical=False) or 1
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name, contextlib.ExitStack() as stack:
        place = Path(name)
        model, folder = _found(args)
        environment = {**child_environment(threads, place / "home"), "SHOAL_THREADS": str(threads)}
        servers = {OURS: stack.enter_context(_ours(place / "home", str(folder), environment))}
        missing = ""
        try:
            file, kind = _file(folder, place, tell)
            if args.peer is None:
                raise BenchError("name a Python that has it with --peer.")
            servers[THEIRS] = stack.enter_context(_theirs(args.peer, file, threads, environment, place))
        except BenchError as error:
            missing = str(error)
            tell(f"llama-cpp-python's server can't be measured: {missing}")
        asked = _asked(folder, args.tokens)
        rows, growth = _measured(servers, asked, args, tell)
    about = f"{model}, {threads} threads, up to {args.tokens} tokens an answer, {args.seconds} s each in turns"
    return {
        "rows": rows,
        **_ratios(rows),
        "errors": sum(row.get(OURS, {}).get("errors", 0) for row in rows.values()),
        **growth,
        "kind": "" if missing else kind,
        "peer_missing": missing,
        "about": f"{about}; {machine(load)}",
        "budget": TARGETS,
    }


def table(figures: Mapping[str, Any]) -> list[str]:
    columns = (("requests/s", 11), ("tokens/s", 10), ("cpu ms", 9), ("p50 s", 8), ("p99 s", 8), ("errors", 8))
    lines = [f"{'clients':<8}{'server':<18}" + "".join(f"{name:>{width}}" for name, width in columns)]
    for clients, row in figures["rows"].items():
        for name, one in row.items():
            lines.append(
                f"{clients:<8}{name:<18}{one['requests_per_s']:>11.2f}{one['tokens_per_s']:>10.1f}{one['cpu_ms']:>9.1f}"
                f"{one['p50_s']:>8.2f}{one['p99_s']:>8.2f}{one['errors']:>8}"
            )
    for clients, ratio in figures["ratios"].items():
        lines.append(
            f"{clients} clients: {ratio:.2f} times as many requests (budget {TARGETS['ratio']}, at 8 1.5)"
        )
    lines.append(
        f"Memory {figures['memory_mb']:.0f} MB, {figures['memory_growth_mb']:+.0f} MB since the first setting."
    )
    if figures["peer_missing"]:
        lines.append(f"llama-cpp-python's server was not measured: {figures['peer_missing']}")
    return [*lines, figures["about"]]


def _ratios(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    both = {clients: row for clients, row in rows.items() if THEIRS in row and row[THEIRS]["requests"]}
    ratios = {
        clients: round(row[OURS]["requests_per_s"] / row[THEIRS]["requests_per_s"], 2)
        for clients, row in both.items()
    }
    cpu = {clients: round(row[THEIRS]["cpu_ms"] / row[OURS]["cpu_ms"], 2) for clients, row in both.items()}
    return {
        "ratios": ratios,
        "cpu_ratios": cpu,
        "ratio": min(ratios.values(), default=None),
        "ratio_at_8": ratios.get("8"),
    }


def _found(args: argparse.Namespace) -> tuple[str, Path]:
    from app.common.home import home

    try:
        name = full_name(args.model)
        folder = locate(name, home(args.home))
    except EngineError as error:
        raise BenchError(str(error)) from error
    return folder.name, folder


def _file(folder: Path, place: Path, tell: Tell) -> tuple[Path, str]:
    """Converts the untrained model to a GGUF file in the number format that the engine samples in."""
    kind = sampler_kind(count_parameters(open_folder(folder)))
    tell(f"The model becomes a GGUF file ({kind}) ...")
    try:
        gguf.write(folder, place / "model.gguf", kind)
    except EngineError as error:
        raise BenchError(str(error)) from error
    return place / "model.gguf", kind


def _asked(folder: Path, tokens: int) -> list[dict[str, Any]]:
    levels = dict(read_settings(folder).families) or _FAMILIES
    return [
        {"messages": list(asking.messages(puzzle.text, asking.TAGGED)), "temperature": 0, "max_tokens": tokens}
        for puzzle in draw_several(levels, _PUZZLES, Random(7))
    ]


@contextlib.contextmanager
def _ours(home: Path, model: str, environment: Mapping[str, str]) -> Iterator[Server]:
    home.mkdir()
    words = command("serve", "--json", "--port", "0", "--home", home, "--model", model)
    with running(words, home / "serve.err", env=dict(environment), text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise BenchError(_last(home / "serve.err"))
        told = json.loads(line)
        yield Server(process, told["url"], told["token"], told["models"][0])


@contextlib.contextmanager
def _theirs(
    python: Path, file: Path, threads: int, environment: Mapping[str, str], place: Path
) -> Iterator[Server]:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    settings = {
        "model": file,
        "model_alias": "peer",
        "host": "127.0.0.1",
        "port": port,
        "n_ctx": 1024,
        "n_threads": threads,
        "n_threads_batch": threads,
        "interrupt_requests": False,
        "verbose": False,
    }
    words: list[str | Path] = [python, "-m", "llama_cpp.server"]
    words += [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    plain = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    with running(words, place / "peer.err", env=plain, stdout=subprocess.DEVNULL) as process:
        yield Server(process, f"http://127.0.0.1:{port}/v1", "none", "peer")


def _last(log: Path) -> str:
    said = log.read_text("utf-8", "replace").strip().splitlines()
    return said[-1] if said else "It ended and said nothing."


def _measured(
    servers: Mapping[str, Server], asked: Sequence[dict[str, Any]], args: argparse.Namespace, tell: Tell
) -> tuple[dict[str, dict[str, Any]], dict[str, float]]:
    for name, server in servers.items():
        asyncio.run(_ready(server))
        asyncio.run(_load(server, asked, max(args.clients), _WARM, ClientResults()))
        tell(f"{name}: ready")
    rows: dict[str, dict[str, Any]] = {}
    before = 0.0
    for clients in args.clients:
        found = {name: ClientResults() for name in servers}
        for _ in range(_SLICES):
            for name, server in servers.items():
                asyncio.run(_load(server, asked, clients, args.seconds / _SLICES, found[name]))
        rows[str(clients)] = {name: one.figures() for name, one in found.items()}
        before = before or servers[OURS].memory_mb()
        for name, one in rows[str(clients)].items():
            tell(f"{clients} clients, {name}: {one['requests_per_s']} requests/s, p99 {one['p99_s']} s")
    after = servers[OURS].memory_mb()
    return rows, {"memory_mb": round(after, 1), "memory_growth_mb": round(after - before, 1)}


async def _ready(server: Server) -> None:
    """Waits until the server listens. Raises BenchError if it ends instead."""
    async with aiohttp.ClientSession() as session:
        while True:
            if server.process.poll() is not None:
                raise BenchError(f"A server ended at its start with code {server.process.returncode}.")
            try:
                async with session.get(f"{server.url}/models", headers=server.headers):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.2)


async def _load(
    server: Server, asked: Sequence[dict[str, Any]], clients: int, seconds: float, load: ClientResults
) -> None:
    """Runs `clients` clients at once, each with one request after another until the time is over; adds what
    they met to `load`."""
    began, spent = time.monotonic(), server.cpu_s()

    async def client(first: int) -> None:
        at = first * 5
        while time.monotonic() - began < seconds:
            body, sent = {**asked[at % len(asked)], "model": server.model}, time.monotonic()
            at += 1
            try:
                async with session.post(f"{server.url}/chat/completions", json=body) as response:
                    told = await response.json()
                    response.raise_for_status()
            except (aiohttp.ClientError, TimeoutError, ValueError):
                load.errors += 1
                await asyncio.sleep(0.1)
                continue
            load.seconds_R.append(time.monotonic() - sent)
            load.tokens += told["usage"]["completion_tokens"]

    limits = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with aiohttp.ClientSession(headers=server.headers, timeout=limits) as session:
        await asyncio.gather(*map(client, range(clients)))
    load.wall_s += time.monotonic() - began
    load.cpu_s += server.cpu_s() - spent
