"""Filling a pack's environment: wheels are put in place by as many processes as there are processors."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock

import msgspec
import psutil

from app.install.packs import programs
from app.install.packs.contents import UnpackTask, shares
from app.install.packs.errors import PackError, disk
from app.install.packs.programs import Interpreter

UNPACKER = Path(__file__).with_name("unpacker.py")
MOST = 4
"""More processes would wait for the disk."""


def fill(
    tasks: Sequence[UnpackTask], python: Interpreter, work: Path, keep_open: int, heard: Callable[[int], None]
) -> None:
    """Unpacks everything and tells the bytes that are in place. Raises PackError; what is there then is not
    whole."""
    parts = shares(tasks, min(MOST, _processors()))
    have, gate = 0, Lock()

    def more(count: int) -> None:
        nonlocal have
        with gate:
            have += count
            heard(have)

    children: list[subprocess.Popen[str]] = []
    with ThreadPoolExecutor(len(parts)) as pool:
        try:
            for part in parts:
                children.append(_start(part, python, work, keep_open))
            for one in as_completed([pool.submit(_listen, child, work, more) for child in children]):
                one.result()
        finally:  # one that failed ends all
            for child in children:
                child.kill()


def _start(
    part: Sequence[UnpackTask], python: Interpreter, work: Path, keep_open: int
) -> subprocess.Popen[str]:
    with tempfile.TemporaryFile(dir=work) as order:
        order.write(msgspec.json.encode({"wheels": part}))
        order.seek(0)
        return programs.start([python.path, "-I", "-S", UNPACKER], work, keep_open, order)


def _listen(child: subprocess.Popen[str], work: Path, more: Callable[[int], None]) -> None:
    """Until it ends. Raises PackError."""
    said = []
    with child:
        for line in child.stdout or ():
            found = _read(line)
            if isinstance(found, int):
                more(found)
            elif isinstance(found, dict):
                raise _refused(found)
            else:
                said.append(line.strip())
    if child.returncode:
        raise programs.failed("The engine's packages could not be installed", said, work)


def _read(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return line


def _refused(said: dict[str, object]) -> PackError:
    if "damaged" in said:
        return PackError(
            f"{said['damaged']} is damaged or another file than the manifest names: copy or download it again."
        )
    number = said.get("errno")
    error = OSError(number if isinstance(number, int) else 0, str(said.get("strerror")))
    return disk(error, Path(str(said.get("path"))).parent)


def _processors() -> int:
    """Those that this process may use."""
    try:
        return len(psutil.Process().cpu_affinity()) or 1
    except (AttributeError, OSError, psutil.Error):
        return os.cpu_count() or 1
