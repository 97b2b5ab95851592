"""A pack's wheels: downloaded, copied from beside their manifest, or found in a folder that the owner names;
then unpacked. Where each file goes is decided and checked before anything is written. The format of wheels:
https://packaging.python.org/specifications/binary-distribution-format."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

import msgspec

from app.common import fetch
from app.common.connection import Fault
from app.common.rate import RetryLimit
from app.install import InstallError, pack_disk_error
from app.install.packs.manifest import PackManifest, Wheel, normalise_name
from app.install.signed import is_address

Tell = Callable[[int, str], None]
"""Called with the bytes of all wheels that are here, and the file being downloaded."""


def fetch_wheels(
    manifest: PackManifest,
    wheels: tuple[Wheel, ...],
    base: str,
    to: Path,
    tell: Tell,
    waiting: fetch.Waiting,
    patience: RetryLimit | None = None,
) -> None:
    """Downloads or copies all `wheels` into `to` and verifies them. Raises InstallError; what has arrived is
    kept."""
    have = 0

    def heard(piece: fetch.Piece, count: int) -> None:
        tell(have + count, piece.file)

    def came(piece: fetch.Piece) -> None:
        nonlocal have
        have += piece.size

    try:
        to.mkdir(parents=True, exist_ok=True)
        for wheel in wheels:
            if (
                not is_address(base)
                and not is_address(wheel.url)
                and not fetch.is_intact(to / wheel.file, wheel)
            ):
                fetch.copy(_beside(Path(base), wheel.url), wheel, to)
        orders = [fetch.PieceOrder(wheel, wheel.addresses(base, manifest.mirrors)) for wheel in wheels]
        fetch.download(orders, to, heard, waiting, patience, came=came)
    except Fault as caught:
        raise InstallError(str(caught)) from caught
    except OSError as error:
        raise pack_disk_error(error, to) from error


def check_wheels(wheels: tuple[Wheel, ...], folder: Path, tell: Tell) -> None:
    """Checks that a folder, such as an offline installer's, has all wheels undamaged, and reports their
    bytes. Raises InstallError."""
    have = 0
    for wheel in wheels:
        path = _beside(folder, wheel.file)
        if not fetch.is_intact(path, wheel):
            raise InstallError(
                f"{path} is damaged or another file than the manifest names: copy it there again."
            )
        have += wheel.size
        tell(have, wheel.file)


def _beside(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise InstallError(f"{name} isn't in {folder}: copy all files of the pack there, then try again.")
    return folder / name


_LARGE = 2**24
"""Maximum bytes of a RECORD."""
AT_ONCE = 4
"""Files unpacked in parallel: more would only wait for the disk."""
_PIECE = 2**18
"""Bytes unpacked between two reports."""


class UnpackTask(msgspec.Struct, frozen=True, kw_only=True):
    """How to unpack one wheel: the file to write for each of its members, with the members' sizes in bytes. The
    member `record` is written with the content `record_text`."""

    path: Path
    sha256: str
    members: list[tuple[str, str]]
    sizes: list[int]
    record: str
    record_text: str


def plan_unpacking(
    wheels: Sequence[Wheel], files: Path, environment: Path, python: str, skip: Sequence[str] = ()
) -> list[UnpackTask]:
    """Decides where the files of `wheels` go in an environment of that Python ("3.11"), leaving out those that
    match a pattern of `skip`. Raises InstallError for a malformed wheel, and if two wheels write the same
    file."""
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


def _task(
    wheel: Wheel,
    path: Path,
    archive: zipfile.ZipFile,
    packages: Path,
    environment: Path,
    skip: Sequence[str],
    taken: dict[str, tuple[int, int]],
) -> UnpackTask:
    """The task of one wheel. `taken`: the paths used by earlier wheels, with the files' lengths and
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
        path=path,
        sha256=wheel.sha256,
        members=members,
        sizes=sizes,
        record=record,
        record_text=_record(archive, record, gone, moved),
    )


def _info_folder(wheel: Wheel, archive: zipfile.ZipFile, names: dict[str, zipfile.ZipInfo]) -> str:
    """The wheel's .dist-info folder after checking that its name and version agree with the manifest."""
    found = {name.partition("/")[0] for name in names if name.partition("/")[0].endswith(".dist-info")}
    for folder in found:
        name, _, version = folder.removesuffix(".dist-info").partition("-")
        if len(found) == 1 and normalise_name(name) == normalise_name(wheel.name) and version == wheel.version:
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
    """Returns where to write a file; None for programs and headers, which a pack does not use."""
    folder, _, rest = name.partition("/")
    if folder != data_folder:
        return os.path.join(packages, *name.split("/"))
    kind, _, rest = rest.partition("/")
    below = {"purelib": packages, "platlib": packages, "data": environment}.get(kind)
    return os.path.join(below, *rest.split("/")) if below is not None and rest else None


def _extended(path: str) -> str:
    """Returns the path in the form in which Windows accepts more than 260 characters."""
    return f"\\\\?\\{path}" if os.name == "nt" else path


def _record(archive: zipfile.ZipFile, record: str, gone: set[str], moved: dict[str, str]) -> str:
    """Returns the wheel's RECORD without the files that are left out."""
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


def unpack(tasks: Sequence[UnpackTask], heard: Callable[[int], None]) -> None:
    """Writes every file, several in parallel, and reports the bytes written so far. Threads suffice: zlib and
    disk access release Python's lock. Raises OSError, and InstallError for a damaged wheel: before writing if
    its digest is wrong, else with incomplete files left behind."""
    have, gate = 0, Lock()

    def more(count: int) -> None:
        nonlocal have
        with gate:
            have += count
            heard(have)

    with ExitStack() as opened:
        archives = [opened.enter_context(_verified(task)) for task in tasks]
        pool = ThreadPoolExecutor(AT_ONCE)
        opened.callback(pool.shutdown, cancel_futures=True)  # one that failed ends all
        doing = [
            pool.submit(_write, archive, task, name, to, more)
            for archive, task in zip(archives, tasks, strict=True)
            for name, to in task.members
        ]
        for one in as_completed(doing):
            one.result()


@contextmanager
def _verified(task: UnpackTask) -> Iterator[zipfile.ZipFile]:
    """Opens the wheel and checks the digest of that open file once more."""
    with task.path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != task.sha256:
            raise _damaged(task)
        with zipfile.ZipFile(file) as archive:
            yield archive


def _write(archive: zipfile.ZipFile, task: UnpackTask, name: str, to: str, more: Callable[[int], None]) -> None:
    """Unpacks one member to the path `to`."""
    info = archive.getinfo(name)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    if name == task.record:
        Path(to).write_bytes(task.record_text.encode())
        more(info.file_size)
        return
    try:
        with archive.open(info) as member, open(to, "wb") as out:
            while piece := member.read(_PIECE):
                out.write(piece)
                more(len(piece))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise _damaged(task) from error
    if info.external_attr >> 16 & 0o111:
        os.chmod(to, 0o755)


def _damaged(task: UnpackTask) -> InstallError:
    return InstallError(
        f"{task.path} is damaged or another file than the manifest names: copy or download it again."
    )
