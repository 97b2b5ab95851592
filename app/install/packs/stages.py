"""Installs a pack in steps that can be repeated: check the disk, fetch, make, fill, check the imports,
switch. Only the switch changes what is in use; it replaces one file as a whole.

After an interruption the next run continues from what is on the disk: complete files are not fetched again,
an environment without its mark is made again, and one with its mark is used."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from app.common import files
from app.common.job import Progress, Tell, Waiting
from app.common.rate import RetryLimit, TransferSpeed
from app.common.text import in_bytes
from app.install import InstallError, pack_disk_error
from app.install.packs import manifest, offered, place, programs
from app.install.packs.manifest import PackManifest, SignedManifest, Wheel
from app.install.packs.place import MARK, Current, Pack, PackDone, PackStage
from app.install.packs.programs import Interpreter, damaged_file
from app.install.packs.wheels import check_wheels, fetch_wheels, plan_unpacking, unpack
from engines import remedy

SPARE = 200 * 2**20
"""Bytes that are always left free on the disk."""
TELL_S = 0.2
"""Minimum seconds between reports of bytes alone."""
EARLIER_S = 900.0
"""Seconds that an earlier installation may take to end."""


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    pack: str
    python: str
    version: str
    """Python's version, as "3.11"."""


@dataclass
class PackInstaller:
    """Installs, repairs and removes packs in `root`. `keys` are the public keys whose repairs are trusted."""

    root: Path
    tell: Tell
    keys: tuple[str, ...] = ()
    patience: RetryLimit = field(default_factory=RetryLimit)
    free: Callable[[Path], int] = files.free_bytes
    wait_s: float = EARLIER_S
    oldest: Mapping[str, int] | None = None
    """Release times known to this version of Shoal, by name (see offered.py); None skips the check."""
    older: bool = False
    _percent: int = 0
    _told: float = 0.0
    _speed: TransferSpeed = field(default_factory=TransferSpeed)

    def install(self, signed: SignedManifest, offline: Path | None = None) -> str:
        """Installs a pack, unless it is complete already, switches to it and returns its folder's name.
        `offline` is a folder with the wheels, used instead of a network. Raises InstallError; what has
        arrived is kept."""
        manifest.check_here(signed.manifest)
        with self._alone() as lock:
            self._check_age(signed.manifest)
            wanted = signed.manifest.folder
            before = place.current(self.root)
            for name in self._made_of(signed):
                if self._mark(name) is None or not place.interpreter(self.root / name).exists():
                    continue
                return self._switch(name, before)
            if self._mark(wanted) is not None:  # the same version, made from another manifest
                wanted = self._fresh(wanted)
            return self._build(signed, wanted, offline, before, lock)

    def repair(self, offline: Path | None = None, signed: SignedManifest | None = None) -> str:
        """Checks the pack in use; if it is damaged, makes it again in a new folder and switches to that.
        Raises InstallError."""
        with self._alone() as lock:
            before = place.current(self.root)
            if not before.current:
                raise InstallError(
                    f"There is no engine to repair: install one with {remedy.command('pack install')}."
                )
            self._say(PackStage.DISK, "Looking at the engine that is installed.")
            fault = self._fault(before.current, lock)
            if not fault:
                return self._done(before.current, "The engine is whole; nothing had to be repaired.")
            if signed is not None:
                manifest.check_here(signed.manifest)
                self._check_age(signed.manifest)
            signed = signed or self._kept(before.current)
            name = self._fresh(before.current)
            return self._build(signed, name, offline, Current(previous=before.previous), lock, repaired=True)

    def rollback(self) -> str:
        """Returns to the previous pack; a second call undoes that. Raises InstallError."""
        with self._alone() as lock:
            before = place.current(self.root)
            if not before.previous:
                raise InstallError("There is no earlier engine to go back to: only one was installed so far.")
            if fault := self._fault(before.previous, lock, files=False):
                raise InstallError(
                    f"The engine before this one can't be used ({fault}): repair the one in use instead."
                )
            self._use(Current(current=before.previous, previous=before.current))
            return self._done(before.previous, f"{self._title(before.previous)} is in use again.")

    def installed_packs(self) -> list[Pack]:
        used = place.current(self.root)
        rows = []
        for pack in place.packs(self.root):
            name, version, _ = place.parts(pack)
            use = "current" if pack == used.current else "previous" if pack == used.previous else ""
            mark = self._mark(pack)
            rows.append(
                Pack(
                    pack=pack,
                    name=name,
                    version=version,
                    title=self._title(pack),
                    use=use,
                    whole=mark is not None,
                    bytes=files.size_on_disk(self.root / pack),
                    python=mark.version if mark is not None else "",
                )
            )
        return rows

    def remove(self, pack: str = "") -> int:
        """Removes one pack, or all of them and their downloads, and returns the bytes freed. If it was in use,
        the previous one replaces it. Raises InstallError."""
        with self._alone():
            if pack and pack not in place.packs(self.root):
                listed = remedy.command("pack list")
                raise InstallError(f"There is no engine {pack[:60]!r} here: {listed} names those that are.")
            gone = [pack] if pack else place.packs(self.root)
            freed = sum(files.size_on_disk(self.root / name) for name in gone)
            try:
                before = place.current(self.root)
                left = [name for name in (before.current, before.previous) if name and name not in gone]
                self._use(Current(current=left[0] if left else "", previous=left[1] if len(left) > 1 else ""))
                for name in gone:
                    self._drop(name)
                if not pack:
                    freed += files.size_on_disk(self.root / ".work")
                    shutil.rmtree(self.root / ".work", ignore_errors=True)
                    for name in ("current.json", offered.SEEN):
                        (self.root / name).unlink(missing_ok=True)
            except OSError as error:
                raise self._disk(error) from error
        return freed

    def _build(
        self,
        signed: SignedManifest,
        name: str,
        offline: Path | None,
        before: Current,
        lock: int,
        repaired: bool = False,
    ) -> str:
        wanted = signed.manifest
        work = self.root / ".work" / wanted.folder
        wheels_in = offline or work / "wheels"
        environment = self.root / name
        try:
            python = programs.find(wanted)
            wheels = wanted.wheels_for(python.version)
            total = sum(wheel.size for wheel in wheels)
            self._check_disk(wanted, name, total, work / "wheels", offline)
            work.mkdir(parents=True, exist_ok=True)
            self._fetch(signed, wheels, total, wheels_in, offline)
            self._say(PackStage.MAKE, f"Making an environment with Python {python.version}.")
            files.discard(environment)
            programs.make(python, environment, work, lock)
            self._fill(environment, python, wanted, wheels_in)
            self._say(PackStage.CHECK, "Checking that the engine loads.")
            programs.check(environment, wanted.imports, work, lock)
            self._say(PackStage.SWITCH, "Taking the engine into use.")
            files.write(self.root / f"{name}.json.sig", signed.signature)
            files.write(self.root / f"{name}.json.from", signed.base.encode())
            files.write(self.root / f"{name}.json", signed.content)
            mark = _Mark(pack=wanted.folder, python=str(python.path), version=python.version)
            files.write(environment / MARK, msgspec.json.encode(mark))
            if self.oldest is not None:
                offered.remember_release(self.root, wanted)
            return self._switch(name, before, repaired=repaired)
        except OSError as error:
            raise self._disk(error) from error

    def _check_disk(
        self, wanted: PackManifest, name: str, total: int, wheels: Path, offline: Path | None
    ) -> None:
        """Checks that the disk has room, counting what has arrived already. Raises InstallError."""
        self._say(PackStage.DISK, "Looking whether there is room on the disk.")
        here = total if offline else sum(path.stat().st_size for path in wheels.glob("*") if path.is_file())
        missing = max(wanted.disk - min(here, total) - files.size_on_disk(self.root / name), 0) + SPARE
        there = self.free(self.root)
        if missing > there:
            raise InstallError(
                f"{wanted.title} needs {in_bytes(missing)} on the disk that holds {self.root}, and "
                f"{in_bytes(there)} are free: "
                "free up some space, or name another folder with SHOAL_PACKS, then try again."
            )

    def _fetch(
        self, signed: SignedManifest, wheels: tuple[Wheel, ...], total: int, files: Path, offline: Path | None
    ) -> None:
        self._say(PackStage.FETCH, "Looking at what is here already.", 0, total)

        def heard(have: int, file: str) -> None:
            package = file.partition("-")[0]
            self._say(PackStage.FETCH, f"{'Reading' if offline else 'Fetching'} {package}.", have, total)

        if offline:
            check_wheels(wheels, offline, heard)
            return

        def waiting(sentence: str, seconds: float) -> None:
            self.tell(Waiting(sentence=sentence, seconds=seconds))
            self._speed.restart()

        fetch_wheels(signed.manifest, wheels, signed.base, files, heard, waiting, self.patience)

    def _fill(self, environment: Path, python: Interpreter, wanted: PackManifest, files: Path) -> None:
        """Unpacks the wheels into the environment. Raises InstallError and OSError."""
        tasks = plan_unpacking(
            wanted.wheels_for(python.version), files, environment, python.version, wanted.skip
        )
        total = sum(sum(task.sizes) for task in tasks)
        missing, there = total + SPARE, self.free(self.root)
        if missing > there:
            raise InstallError(
                f"The engine needs {in_bytes(missing)} more on the disk that holds {self.root}, and "
                f"{in_bytes(there)} are free: free up some space, then try again. Nothing is lost."
            )

        def heard(have: int) -> None:
            self._say(PackStage.FILL, "Unpacking the engine.", min(have, total), total)

        heard(0)
        unpack(tasks, heard)
        self._say(PackStage.FILL, "The engine is unpacked.", total, total)

    def _check_age(self, wanted: PackManifest) -> None:
        if self.oldest is not None:
            offered.check_not_older(self.root, wanted, self.oldest, self.older)

    def _switch(self, name: str, before: Current, repaired: bool = False) -> str:
        """Makes `name` the pack in use; the one before is kept, older ones are deleted."""
        previous = before.previous if name == before.current or repaired else before.current
        used = Current(current=name, previous="" if previous == name else previous)
        try:
            if used != place.current(self.root):
                self._use(used)
        except OSError as error:
            raise self._disk(error) from error
        self._done(name, f"{self._title(name)} is in use.")
        for old in [pack for pack in place.packs(self.root) if pack not in (used.current, used.previous)]:
            with contextlib.suppress(OSError):  # a process still runs it: it goes the next time
                self._drop(old)
        with contextlib.suppress(OSError):
            files.discard(self.root / ".work")
        return name

    def _use(self, used: Current) -> None:
        files.write(self.root / "current.json", msgspec.json.encode(used))

    def _drop(self, name: str) -> None:
        (self.root / name / MARK).unlink(missing_ok=True)
        files.discard(self.root / name)
        for suffix in (".json", ".json.sig", ".json.from"):
            (self.root / f"{name}{suffix}").unlink(missing_ok=True)

    def _fault(self, name: str, lock: int, files: bool = True) -> str:
        """What is wrong with a pack, else empty. `files`: also compare every file with its record."""
        if self._mark(name) is None:
            return "its installation was not finished"
        if not place.interpreter(self.root / name).exists():
            return "its Python is gone"
        try:
            self._say(PackStage.CHECK, "Checking that the engine loads.")
            programs.check(self.root / name, self._kept(name).manifest.imports, self.root / ".work", lock)
        except InstallError as error:
            return str(error).rstrip(".")
        return damaged_file(self.root / name) if files else ""

    def _made_of(self, signed: SignedManifest) -> list[str]:
        """Returns the installed packs made from this manifest, the one in use first."""
        used = place.current(self.root).current
        found = []
        for name in sorted(place.packs(self.root), key=lambda name: name != used):
            with contextlib.suppress(OSError):
                if (self.root / f"{name}.json").read_bytes() == signed.content:
                    found.append(name)
        return found

    def _kept(self, name: str) -> SignedManifest:
        """Returns the manifest that a pack was made from. Raises InstallError."""
        found = offered.load_manifest(str(self.root / f"{name}.json"), self.keys)
        with contextlib.suppress(OSError):
            base = (self.root / f"{name}.json.from").read_text(encoding="utf-8")
            return msgspec.structs.replace(found, base=base)
        return found

    def _fresh(self, name: str) -> str:
        return _again(name, [pack for pack in place.packs(self.root) if self._mark(pack) is not None])

    def _mark(self, name: str) -> _Mark | None:
        return files.read_json(self.root / name / MARK, _Mark)

    def _title(self, name: str) -> str:
        found = files.read_json(self.root / f"{name}.json", PackManifest)
        return found.title if found else name

    def _done(self, name: str, sentence: str) -> str:
        self._percent = 100
        self.tell(PackDone(pack=name, python=str(place.interpreter(self.root / name)), sentence=sentence))
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
            place.sweep(self.root)
            yield lock

    def _disk(self, error: OSError) -> InstallError:
        return pack_disk_error(error, self.root)


def _again(name: str, taken: list[str]) -> str:
    """Returns a name for a repaired pack that is not in `taken`.

    >>> _again("cpu-1.0", []), _again("cpu-1.0-r1", ["cpu-1.0-r1", "cpu-1.0-r2"])
    ('cpu-1.0-r1', 'cpu-1.0-r3')
    """
    base, version, count = place.parts(name)
    while (fresh := f"{base}-{version}-r{count + 1}") in taken:
        count += 1
    return fresh
