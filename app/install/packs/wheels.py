"""A pack's wheels: fetched, copied from beside their manifest, or found in a folder that the owner names; and
put in place by several processes. Where each file goes is decided and checked before anything is written. The
form of wheels: https://packaging.python.org/specifications/binary-distribution-format."""

from __future__ import annotations

import csv
import heapq
import io
import json
import os
import stat
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

import msgspec
import psutil

from app.common import fetch
from app.common.connection import Fault
from app.common.rate import RetryLimit
from app.install import InstallError, pack_disk_error
from app.install.packs import programs
from app.install.packs.manifest import PackManifest, Wheel, plain
from app.install.packs.programs import Interpreter
from app.install.signed import is_address

Tell = Callable[[int, str], None]
"""Bytes that are here, of all wheels, and the file they belong to."""


def fetch_wheels(
    manifest: PackManifest,
    wheels: tuple[Wheel, ...],
    base: str,
    to: Path,
    tell: Tell,
    waiting: fetch.Waiting,
    patience: RetryLimit | None = None,
) -> None:
    """Downloads all `wheels` into `to`, complete and correct. Raises InstallError; what has arrived is kept."""
    have = 0

    def heard(piece: fetch.Piece, count: int) -> None:
        tell(have + count, piece.file)

    def came(piece: fetch.Piece) -> None:
        nonlocal have
        have += piece.size

    try:
        to.mkdir(parents=True, exist_ok=True)
        for wheel in wheels:
            if not is_address(base) and not is_address(wheel.url) and not fetch.right(to / wheel.file, wheel):
                fetch.copy(_beside(Path(base), wheel.url), wheel, to)
        orders = [fetch.PieceOrder(wheel, wheel.addresses(base, manifest.mirrors)) for wheel in wheels]
        fetch.bring(orders, to, heard, waiting, patience, came=came)
    except Fault as caught:
        raise InstallError(str(caught)) from caught
    except OSError as error:
        raise pack_disk_error(error, to) from error


def check_wheels(wheels: tuple[Wheel, ...], folder: Path, tell: Tell) -> None:
    """Checks that a folder, as an offline installer brings it, has all wheels undamaged, and reports their
    bytes. Raises InstallError."""
    have = 0
    for wheel in wheels:
        path = _beside(folder, wheel.file)
        if not fetch.right(path, wheel):
            raise InstallError(
                f"{path} is damaged or another file than the manifest names: copy it there again."
            )
        have += wheel.size
        tell(have, wheel.file)


def _beside(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise InstallError(f"{name} isn't in {folder}: copy all files of the pack there, then try again.")
    return folder / name


FILE_COST = 60_000
"""Bytes whose unpacking takes about as long as creating one file."""
_LARGE = 2**24
"""Maximum bytes of a RECORD."""


class UnpackTask(msgspec.Struct, frozen=True, kw_only=True):
    """What app.install.packs.unpacker does with one wheel. `sizes` are those of `members`, in bytes."""

    path: str
    sha256: str
    members: list[tuple[str, str]]
    sizes: list[int]
    records: dict[str, str]

    @property
    def cost(self) -> int:
        return sum(self.sizes) + FILE_COST * len(self.sizes)


def plan_unpacking(
    wheels: Sequence[Wheel], files: Path, environment: Path, python: str, skip: Sequence[str] = ()
) -> list[UnpackTask]:
    """Where the files of `wheels` go in an environment of that Python ("3.11"), but for those that a pattern of
    `skip` names. Raises InstallError for a malformed wheel, and for one that writes where another does."""
    inside = environment / "Lib" if os.name == "nt" else environment / "lib" / f"python{python}"
    tasks, taken = [], dict[str, tuple[int, int]]()
    for wheel in wheels:
        path = files / wheel.file
        try:
            with zipfile.ZipFile(path) as archive:
                tasks.append(_task(wheel, path, archive, inside / "site-packages", environment, skip, taken))
        except (zipfile.BadZipFile, NotImplementedError, KeyError, UnicodeDecodeError, csv.Error) as error:
            raise InstallError(f"{path} is damaged: copy or download it again.") from error
    return tasks


def shares(tasks: Sequence[UnpackTask], count: int) -> list[list[UnpackTask]]:
    """The same work in `count` parts of about equal duration. Only a wheel that outweighs the others is split,
    since each part of one checks the whole file."""
    most = sum(task.cost for task in tasks) / (2 * count)
    units: list[tuple[int, UnpackTask, list[int]]] = []
    for task in tasks:
        if task.cost > most and count > 1:
            units += [(size + FILE_COST, task, [at]) for at, size in enumerate(task.sizes)]
        else:
            units.append((task.cost, task, list(range(len(task.sizes)))))
    parts: list[dict[str, tuple[UnpackTask, list[int]]]] = [{} for _ in range(count)]
    heap = [(0, number) for number in range(count)]
    for cost, task, chosen in sorted(units, key=lambda unit: -unit[0]):
        weight, number = heapq.heappop(heap)
        parts[number].setdefault(task.path, (task, []))[1].extend(chosen)
        heapq.heappush(heap, (weight + cost, number))
    return [[_some(task, chosen) for task, chosen in part.values()] for part in parts if part]


def _some(task: UnpackTask, chosen: list[int]) -> UnpackTask:
    members = [task.members[at] for at in chosen]
    records = {name: text for name, text in task.records.items() if any(name == one for one, _ in members)}
    sizes = [task.sizes[at] for at in chosen]
    return msgspec.structs.replace(task, members=members, sizes=sizes, records=records)


def _task(
    wheel: Wheel,
    path: Path,
    archive: zipfile.ZipFile,
    packages: Path,
    environment: Path,
    skip: Sequence[str],
    taken: dict[str, tuple[int, int]],
) -> UnpackTask:
    """The task of one wheel. `taken` has the paths used by earlier wheels, with the files' lengths and
    checksums."""
    infos = {info.filename: info for info in archive.infolist() if not info.is_dir()}
    info_folder = _info_folder(wheel, archive, infos)
    data_folder = info_folder.replace(".dist-info", ".data")
    members, sizes, gone = [], [], set()
    moved: dict[str, str] = {}
    for name, info in infos.items():
        if _is_strange(name, info):
            raise InstallError(
                f"{wheel.file} holds a file that no wheel may hold ({name[:100]!r}): don't use it."
            )
        to = _place(name, data_folder, packages, environment)
        needed = name.startswith(f"{info_folder}/") or not any(fnmatchcase(name, one) for one in skip)
        if to is None or not needed:
            gone.add(name)
            continue
        moved[name] = os.path.relpath(to, packages).replace(os.sep, "/")
        key, sum_of_it = os.path.normcase(to).casefold(), (info.file_size, info.CRC)
        if taken.setdefault(key, sum_of_it) != sum_of_it:
            raise InstallError(
                f"{wheel.file} would write over {name[:100]} of another package: report this pack."
            )
        members.append((name, _extended(to)))
        sizes.append(info.file_size)
    record = f"{info_folder}/RECORD"
    return UnpackTask(
        path=str(path),
        sha256=wheel.sha256,
        members=members,
        sizes=sizes,
        records={record: _record(archive, record, gone, moved)},
    )


def _info_folder(wheel: Wheel, archive: zipfile.ZipFile, names: dict[str, zipfile.ZipInfo]) -> str:
    """The folder with what the wheel says about itself, which must be what the manifest says."""
    found = {name.partition("/")[0] for name in names if name.partition("/")[0].endswith(".dist-info")}
    for folder in found:
        name, _, version = folder.removesuffix(".dist-info").partition("-")
        if len(found) == 1 and plain(name) == plain(wheel.name) and version == wheel.version:
            with archive.open(f"{folder}/WHEEL") as file:
                said = file.read(2**16).decode("utf-8")
            if any(line.startswith("Wheel-Version: 1.") for line in said.splitlines()):
                return folder
    raise InstallError(f"{wheel.file} isn't what its name says: copy or download it again.")


def _is_strange(name: str, info: zipfile.ZipInfo) -> bool:
    parts = name.split("/")
    return (
        any(part in ("", ".", "..") for part in parts)
        or any(letter in name for letter in ':\\\0*?"<>|')
        or stat.S_ISLNK(info.external_attr >> 16)
        or bool(info.flag_bits & 1)  # encrypted
    )


def _place(name: str, data_folder: str, packages: Path, environment: Path) -> str | None:
    """Where a file goes; None for programs and headers, which are not used in a pack."""
    folder, _, rest = name.partition("/")
    if folder != data_folder:
        return os.path.join(packages, *name.split("/"))
    kind, _, rest = rest.partition("/")
    below = {"purelib": packages, "platlib": packages, "data": environment}.get(kind)
    return os.path.join(below, *rest.split("/")) if below is not None and rest else None


def _extended(path: str) -> str:
    """The form in which Windows accepts paths of more than 260 characters."""
    return f"\\\\?\\{path}" if os.name == "nt" else path


def _record(archive: zipfile.ZipFile, record: str, gone: set[str], moved: dict[str, str]) -> str:
    """The wheel's list of its files, without those that are left out."""
    with archive.open(record) as file:
        text = file.read(_LARGE + 1).decode("utf-8")
    if len(text) > _LARGE:
        raise zipfile.BadZipFile
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in csv.reader(io.StringIO(text)):
        if row and row[0] not in gone:
            writer.writerow([moved.get(row[0], row[0]), *row[1:]])
    return out.getvalue()


# Filling a pack's environment: wheels are put in place by as many processes as there are processors.

UNPACKER = Path(__file__).with_name("unpacker.py")
MOST = 4
"""Maximum processes that unpack: more would only wait for the disk."""


def fill_environment(
    tasks: Sequence[UnpackTask], python: Interpreter, work: Path, keep_open: int, heard: Callable[[int], None]
) -> None:
    """Unpacks everything and reports the bytes written. Raises InstallError; the environment is then
    incomplete."""
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
    """Reads the unpacker's output until it ends. Raises InstallError."""
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


def _refused(said: dict[str, object]) -> InstallError:
    if "damaged" in said:
        return InstallError(
            f"{said['damaged']} is damaged or another file than the manifest names: copy or download it again."
        )
    number = said.get("errno")
    error = OSError(number if isinstance(number, int) else 0, str(said.get("strerror")))
    return pack_disk_error(error, Path(str(said.get("path"))).parent)


def _processors() -> int:
    """Number of processors that this process may use."""
    try:
        return len(psutil.Process().cpu_affinity()) or 1
    except (AttributeError, OSError, psutil.Error):
        return os.cpu_count() or 1
