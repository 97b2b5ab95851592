"""`./shoal doctor`: this computer, and which engine would run on it, with the reason for every other one."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import msgspec

from app.cli._frame import share
from app.cli._terminal import say
from app.cli.identity import key_location
from app.common import files, home
from app.common.authorities import system_proxy, without_credentials
from app.common.process.surroundings import variables_left_out
from app.desktop import FactRow, Gatherer
from app.install.launcher import system
from app.models.catalogue import title
from app.models.shelf import locate
from app.swarm.identity.identity import IdentityError
from app.swarm.identity.storage import public_identity
from engines import opening
from engines.choice import EngineVerdict, Trial, load_trials, trial_key
from engines.container import memory_left
from engines.facts import (
    ENGINES,
    HardwareFacts,
    gather_facts,
    package_version,
    usable,
)
from engines.facts import PACKAGES as PACKAGES_OF_ENGINES
from engines.models.folder import fingerprint, open_folder

SUMMARY = "check that everything works, and what to do if not"

PACKAGES = (
    *PACKAGES_OF_ENGINES,
    "peft",
    "safetensors",
    "tokenizers",
    "numpy",
    "reasoning-gym",
)

FACTS = {
    "idle_s": "time without input",
    "on_battery": "on battery",
    "saver": "battery saver",
    "full_screen": "full-screen program",
    "cpu_others": "processor used by others",
    "gpu_others": "graphics card used by others",
    "memory_free": "memory free",
    "memory_stalled": "time lost to short memory",
    "temperature_c": "temperature",
    "too_hot": "too hot by the system's word",
}
_SOURCES_S = 3.0
_LITTLE_MB = 1000
"""Free disk space below which doctor warns: less than a small model and its training take."""

MB = 2**20


class DoctorFindings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that doctor reports. Sizes in MB (2**20 bytes). `engine` is empty if none is usable with
    `model`; `dtype` and `needs_mb` (weights alone) are those it would use."""

    model: str
    engine: str
    reason: str
    dtype: str
    needs_mb: int
    engines: list[EngineVerdict]
    trials: dict[str, Trial]
    """Measurements of `./shoal trial` with this model on this computer, by engine."""
    cpu: dict[str, str | int | list[str]]
    gpu: list[dict[str, str | int]]
    driver: str
    memory: dict[str, int]
    disk: dict[str, str | int]
    identity: dict[str, str]
    """Name among other Shoals, and where its key is stored; empty before there is one. Contains no secret."""
    python: dict[str, str]
    left_out: list[str]
    """Environment variables of the user's that Shoal's processes start without."""
    packages: dict[str, str | None]
    proxy: str
    """The proxy without its password; empty if none is set."""
    window: str
    """What the window needs of the system and lacks, with the command that installs it; empty if nothing."""
    sources: list[FactRow]
    """The facts behind the rules of `run --rules`: each fact, its source, and why it is unknown."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    share(parser, "home", "model", "json")


def main(args: argparse.Namespace) -> int:
    """Prints the findings. Returns 1 if no engine can run here, else 0."""
    if not args.json and sys.stderr.isatty():
        say("Looking at this computer and its engines. That takes some seconds.", sys.stderr)
    findings = examine(args.home, args.model)
    if args.json:
        print(msgspec.json.encode(findings).decode())
        if not findings.engine:
            say(f"shoal doctor: {findings.reason}", sys.stderr)
    else:
        _show(findings)
    return 0 if findings.engine else 1


def examine(data: Path | None, model: str) -> DoctorFindings:
    """Collects the findings. Loads every engine's library, which takes seconds and which no other command does.
    Raises EngineError for a missing model."""
    place = home.home(data)
    folder = open_folder(locate(model, home=place))
    facts = gather_facts()
    choice = opening.choice(folder.path, home=place)
    return DoctorFindings(
        model=folder.name,
        engine=choice.way,
        reason=choice.reason,
        dtype=choice.dtype,
        needs_mb=choice.needs_mb,
        engines=list(choice.engines),
        trials=load_trials(place, trial_key(fingerprint(folder), facts)),
        cpu=_cpu(facts),
        gpu=[{"name": card.name, "memory_mb": card.memory_mb, "free_mb": card.free_mb} for card in facts.cards],
        driver=facts.driver,
        memory=_memory(),
        disk=_disk(place),
        identity=_identity(place),
        python={
            "version": platform.python_version(),
            "executable": sys.executable,
            "system": platform.platform(),
        },
        left_out=variables_left_out(),
        packages={name: package_version(name) or None for name in PACKAGES},
        proxy=without_credentials(system_proxy()),
        window=system.without_window(system.lacking_for_window(os.environ)),
        sources=_sources(),
    )


def _cpu(facts: HardwareFacts) -> dict[str, str | int | list[str]]:
    logical = os.cpu_count() or 1
    return {
        "name": facts.cpu,
        "cores": facts.cores,
        "threads": logical,
        "usable_threads": usable(logical),
        "features": list(facts.features),
        "instructions": [
            f"{ENGINES[name].title} computes with {said}" for name, said in opening.instructions().items()
        ],
    }


def _memory() -> dict[str, int]:
    import psutil

    memory = psutil.virtual_memory()
    return {"total_mb": memory.total // MB, "available_mb": min(memory.available, memory_left()) // MB}


def _disk(folder: Path) -> dict[str, str | int]:
    return {"home": str(folder), "free_mb": files.free_bytes(folder) // MB}


def _identity(place: Path) -> dict[str, str]:
    try:
        found = public_identity(place)
    except IdentityError as error:
        return {"name": "", "key": str(error)}
    return {"name": found.name, "key": f"{key_location(found.kept, found.file)}."} if found.name else {}


def _sources() -> list[FactRow]:
    gatherer = Gatherer()
    try:
        gatherer.start(_SOURCES_S)
        return list(gatherer.rows())
    finally:
        gatherer.close()


def fact_line(row: FactRow) -> str:
    """Returns one fact as a line for people.

    >>> fact_line(FactRow(field="idle_s", source="input idle time (X11)", value=12.3, absent=False, why=""))
    '12 s (input idle time (X11))'
    >>> fact_line(FactRow(field="saver", source="battery saver", value=None, absent=False, why="No one."))
    'unknown, so it counts as in use: No one.'
    """
    if row.absent:
        return f"none here ({row.source})"
    if row.value is None:
        return f"unknown, so it counts as in use: {row.why}"
    match row.value:
        case bool():
            said = "yes" if row.value else "no"
        case str():
            said = row.value or "none"
        case _ if row.field == "idle_s":
            said = f"{row.value:.0f} s"
        case _ if row.field == "temperature_c":
            said = f"{row.value:.0f} °C"
        case _:
            said = f"{100 * row.value:.0f} %"
    return f"{said} ({row.source})"


def verdict(findings: DoctorFindings) -> list[str]:
    """Returns lines for people: first whether Shoal can learn here, then what is wrong and how to fix it."""
    if not findings.engine:
        return [f"Not ready: no engine can run {title(findings.model)} here.", findings.reason]
    ready = (
        f"{ENGINES[findings.engine.partition('-')[0]].title} can run {title(findings.model)} on this computer."
    )
    wrong = []
    if (free := int(findings.disk["free_mb"])) < _LITTLE_MB:
        wrong.append(f"Only {free:,} MB of disk space are free at {findings.disk['home']}: free up some.")
    if findings.window:
        wrong.append(findings.window)
    if findings.left_out:
        names = " and ".join(findings.left_out)
        wrong.append(f"Shoal doesn't use your {names}: what is there would replace parts of Shoal.")
    if findings.identity and not findings.identity["name"]:
        wrong.append(findings.identity["key"])
    if unknown := [FACTS.get(row.field, row.field) for row in findings.sources if _unknown(row)]:
        wrong.append(
            f"Shoal can't tell here: {', '.join(unknown)}. "
            "So it only learns when you start it, or with that rule off in the settings."
        )
    if not wrong:
        return [f"Everything is ready: {ready}"]
    return [f"Ready: {ready}", *wrong]


def _unknown(row: FactRow) -> bool:
    return row.value is None and not row.absent


def _told_identity(found: dict[str, str]) -> str:
    if not found:
        return "none yet: made when Shoal first learns with others"
    return f"{found['name']}, its key is {found['key']}" if found["name"] else found["key"]


def _show(findings: DoctorFindings) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from app.common.process.streams import bare

    console = Console(file=bare(sys.stdout))
    first, *wrong = verdict(findings)
    console.print(Text(first, style="bold green" if findings.engine else "bold red"))
    for sentence in wrong:
        console.print(Text(f"- {sentence}", style="yellow"))
    console.print()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    cpu, memory, disk = findings.cpu, findings.memory, findings.disk
    table.add_row("Engine", f"{findings.engine or 'none'} for the model {title(findings.model)}")
    table.add_row("  why", findings.reason)
    for engine in findings.engines:
        table.add_row(f"  {engine.name}", ("usable: " if engine.usable else "not usable: ") + engine.reason)
    for name, found in findings.trials.items():
        table.add_row("  trial", f"{name}: {found.rounds_per_hour:,.0f} rounds an hour, {found.memory_mb:,} MB")
    table.add_row("Processor", f"{cpu['name']}, {cpu['cores']} cores, {cpu['usable_threads']} usable threads")
    for said in (cpu["features"], cpu["instructions"]):
        table.add_row("", ", ".join(said) if isinstance(said, list) else "")
    for card in findings.gpu:
        table.add_row(
            "Graphics",
            f"{card['name']}, {card['free_mb']:,} of {card['memory_mb']:,} MB free, {findings.driver}",
        )
    table.add_row("Memory", f"{memory['available_mb']:,} of {memory['total_mb']:,} MB free")
    table.add_row("Data", f"{disk['home']}, {disk['free_mb']:,} MB free")
    if findings.proxy:
        table.add_row("Proxy", f"{findings.proxy}, for downloads and wss:// relays")
    table.add_row("Identity", _told_identity(findings.identity))
    table.add_row("Python", f"{findings.python['version']} on {findings.python['system']}")
    table.add_row(
        "Packages", ", ".join(f"{name} {version or 'missing'}" for name, version in findings.packages.items())
    )
    for place, row in enumerate(findings.sources):
        table.add_row("Facts" if not place else "", f"{FACTS.get(row.field, row.field)}: {fact_line(row)}")
    console.print(table, highlight=False, markup=False)
