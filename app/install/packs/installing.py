"""Installs a pack: downloads its wheels, makes an environment of them with uv in a new folder, checks that it
loads, and switches. Only the switch changes what is in use; it replaces one file as a whole, and the folder of
the engine before goes afterwards.

After an interruption the next run begins with the files that have arrived; a folder that is not in use is
deleted."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from app.common import fetch, files
from app.common.connection import Fault
from app.common.job import Progress, Tell, Waiting
from app.common.rate import RetryLimit, TransferSpeed
from app.common.text import in_bytes
from app.install import InstallError, disk_error
from app.install.packs import manifest, offered, place, programs
from app.install.packs.manifest import PackManifest, SignedManifest, Wheel
from app.install.packs.place import MARK, Current, Pack, PackDone, PackStage
from app.install.signed import is_address
from engines import remedy

SPARE = 200 * 2**20
"""Bytes that are always left free on the disk."""
TELL_S = 0.2
"""Minimum seconds between reports of bytes alone."""
EARLIER_S = 900.0
"""Seconds that an earlier installation may take to end."""


@dataclass
class PackInstaller:
    """Installs and removes packs in `root`."""

    root: Path
    tell: Tell
    patience: RetryLimit = field(default_factory=RetryLimit)
    free: Callable[[Path], int] = files.free_bytes
    wait_s: float = EARLIER_S
    oldest: Mapping[str, int] | None = None
    """Release times known to this version of Shoal, by name (see offered.py); None skips the check."""
    older: bool = False
    _percent: int = 0
    _told: float = 0.0
    _speed: TransferSpeed = field(default_factory=TransferSpeed)

    def install(self, signed: SignedManifest, offline: Path | None = None, again: bool = False) -> str:
        """Installs a pack, switches to it and returns its folder's name. The one in use stays if it is made of
        this manifest and its Python is there, unless `again`. `offline` is a folder with the wheels, used
        instead of a network. Raises InstallError; what has arrived is kept."""
        wanted = signed.manifest
        manifest.check_here(wanted)
        with self._alone() as lock:
            if self.oldest is not None:
                offered.check_not_older(self.root, wanted, self.oldest, self.older)
            used = place.current(self.root).current
            if used and not again and self._is_made_of(used, signed):
                return self._done(used, wanted.title)
            name, count = wanted.folder, 0
            while (self.root / name).exists():
                count += 1
                name = f"{wanted.folder}-r{count}"
            try:
                python = self._build(signed, name, offline, lock)
                files.write(self.root / name / MARK, signed.content)
                if self.oldest is not None:
                    offered.remember_release(self.root, wanted)
                self._use(Current(current=name, python=python))
            except OSError as error:
                raise disk_error(error, self.root) from error
            self._sweep()
            with contextlib.suppress(OSError):
                files.discard(self.root / ".work")
            return self._done(name, wanted.title)

    def installed_packs(self) -> list[Pack]:
        used = place.current(self.root)
        if not used.current:
            return []
        name, version, _ = place.parts(used.current)
        told = files.read_json(self.root / used.current / MARK, PackManifest)
        return [
            Pack(
                pack=used.current,
                name=name,
                version=version,
                title=told.title if told else used.current,
                bytes=files.size_on_disk(self.root / used.current),
                python=used.python,
            )
        ]

    def remove(self, pack: str = "") -> int:
        """Removes the pack in use and all downloads; returns the bytes freed. Raises InstallError if `pack` is
        another one."""
        with self._alone():
            if pack and pack != place.current(self.root).current:
                listed = remedy.command("pack list")
                raise InstallError(f"There is no engine {pack[:60]!r} here: {listed} names the one that is.")
            freed = sum(files.size_on_disk(self.root / name) for name in (*place.packs(self.root), ".work"))
            try:
                self._use(Current())
                self._sweep()
                shutil.rmtree(self.root / ".work", ignore_errors=True)
                for name in ("current.json", offered.SEEN):
                    (self.root / name).unlink(missing_ok=True)
            except OSError as error:
                raise disk_error(error, self.root) from error
            if left := place.packs(self.root):
                raise InstallError(
                    f"{self.root / left[0]} can't be deleted: quit what uses it, then try again."
                )
        return freed

    def _build(self, signed: SignedManifest, name: str, offline: Path | None, lock: int) -> str:
        """Makes the environment in the folder `name`; returns Python's version. Raises InstallError and
        OSError."""
        wanted, environment = signed.manifest, self.root / name
        work = self.root / ".work" / wanted.folder
        wheels = work / "wheels"
        self._check_disk(wanted, wheels)
        wheels.mkdir(parents=True, exist_ok=True)
        self._fetch(signed, [wanted.uv], wheels, offline)
        uv = programs.Uv(programs.unpack_uv(wheels / wanted.uv.file, work), work, lock)
        python = uv.make(wanted, environment)
        packages = [wheel for wheel in wanted.wheels_for(python) if wheel != wanted.uv]
        self._fetch(signed, packages, wheels, offline, wanted.uv.size)
        self._say(PackStage.MAKE, "Setting up the engine.")
        uv.sync(environment, wheels, packages)
        self._say(PackStage.CHECK, "Checking that the engine loads.")
        programs.check(environment, wanted.imports, work, lock)
        return python

    def _check_disk(self, wanted: PackManifest, wheels: Path) -> None:
        """Checks that the disk has room, counting what has arrived already. Raises InstallError."""
        missing = max(wanted.disk - files.size_on_disk(wheels), 0) + SPARE
        there = self.free(self.root)
        if missing > there:
            raise InstallError(
                f"{wanted.title} needs {in_bytes(missing)} on the disk that holds {self.root}, and "
                f"{in_bytes(there)} are free: "
                "free up some space, then try again."
            )

    def _fetch(
        self, signed: SignedManifest, wanted: list[Wheel], to: Path, offline: Path | None, have: int = 0
    ) -> None:
        """Downloads or copies wheels and verifies them. `have`: bytes of those that are here. Raises
        InstallError and OSError."""
        total, done = manifest.offer(signed.manifest).bytes, have

        def heard(piece: fetch.Piece, count: int) -> None:
            self._say(PackStage.FETCH, f"Fetching {piece.file.partition('-')[0]}.", done + count, total)

        def came(piece: fetch.Piece) -> None:
            nonlocal done
            done += piece.size

        def waiting(sentence: str, seconds: float) -> None:
            self.tell(Waiting(sentence=sentence, seconds=seconds))
            self._speed.restart()

        beside = offline or (None if is_address(signed.base) else Path(signed.base))
        try:
            for wheel in wanted:
                local = offline or not is_address(wheel.url)
                if beside is not None and local and not fetch.is_intact(to / wheel.file, wheel):
                    if not (beside / wheel.file).is_file():
                        raise InstallError(
                            f"{wheel.file} isn't in {beside}: copy all files of the pack there, then try again."
                        )
                    fetch.copy_piece(beside / wheel.file, wheel, to)
            mirrors = signed.manifest.mirrors
            orders = [fetch.PieceOrder(wheel, wheel.addresses(signed.base, mirrors)) for wheel in wanted]
            fetch.download(orders, to, heard, waiting, self.patience, came=came)
        except Fault as caught:
            raise InstallError(str(caught)) from caught

    def _is_made_of(self, name: str, signed: SignedManifest) -> bool:
        try:
            same = (self.root / name / MARK).read_bytes() == signed.content
        except OSError:
            return False
        return same and place.interpreter(self.root / name).exists()

    def _use(self, used: Current) -> None:
        files.write(self.root / "current.json", msgspec.json.encode(used))

    def _sweep(self) -> None:
        """Deletes every pack but the one in use, as far as no process runs it, and leftovers of writing."""
        used = place.current(self.root).current
        for name in place.packs(self.root):
            if name != used:
                with contextlib.suppress(OSError):
                    files.discard(self.root / name)
        for left in [*self.root.glob(f"{files.REMOVING_PREFIX}*"), *self.root.glob(".*.json-*")]:
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)

    def _done(self, name: str, title: str) -> str:
        python = str(place.interpreter(self.root / name))
        self.tell(PackDone(pack=name, python=python, sentence=f"{title} is in use."))
        return name

    def _say(self, stage: PackStage, sentence: str, have: int = 0, total: int = 0) -> None:
        """Reports progress; the percentage never decreases."""
        share = have / total if total else 0.0
        percent = max(self._percent, int(stage.value + share * (stage.end - stage.value)))
        now = time.monotonic()
        if percent == self._percent and 0 < have < total and now - self._told < TELL_S:
            return
        self._percent, self._told = percent, now
        per_second, left_s = self._speed.record(have, total) if stage is PackStage.FETCH else (None, None)
        self.tell(
            Progress(
                stage=stage.name.lower(),
                percent=percent,
                have=have,
                total=total,
                sentence=sentence,
                per_second=per_second,
                left_s=left_s,
            )
        )

    @contextlib.contextmanager
    def _alone(self) -> Iterator[int]:
        def waiting() -> None:
            self.tell(
                Waiting(sentence="An earlier installation is still coming to its end.", seconds=self.wait_s)
            )

        self._percent = 0
        with place.alone(self.root, waiting, self.wait_s) as lock:
            self._sweep()
            yield lock
