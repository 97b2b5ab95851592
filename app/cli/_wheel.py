"""Downloads a Python package's wheel with pip, as set-up does: same index, mirror or folder, proxy and
certificates."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from app.install.launcher import install, mirror, pythons
from app.install.launcher.pythons import SetupError
from app.models.catalogue import Package
from engines import remedy
from engines.contract import EngineError

_LOOK_S = 0.25


def fetch(package: Package, folder: Path, tell: Callable[[int], None]) -> Path:
    """Downloads a wheel into `folder` (see app.models.catalogue.Fetch). pip refuses one with another digest."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    wanted = work / "wanted.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.wheel_sha256}\n", "utf-8")
    arguments = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir"]
    try:
        pip = install.pip_command(Path(sys.executable), pythons.base_python())
        with _told(work, tell):
            said, code = install.run(
                [
                    *pip,
                    "download",
                    "--progress-bar",
                    "off",
                    *arguments,
                    "--dest",
                    str(folder),
                    "-r",
                    str(wanted),
                ],
                lambda line: None,
                folder / "pip.log",
                {
                    **mirror.for_pip(mirror.settings(pip[0]), work),
                    **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(work)),
                },
            )
    except SetupError as error:
        raise EngineError(str(error)) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    found = next(folder.glob(f"{package.name.replace('-', '_')}-{package.version}-*.whl"), None)
    if code or found is None:
        raise EngineError(_why(package, "\n".join(said)))
    return found


def available() -> bool:
    """Whether packages can be downloaded here: an installed app has no pip."""
    return not remedy.installed()


@contextlib.contextmanager
def _told(work: Path, tell: Callable[[int], None]) -> Iterator[None]:
    """Reports how many bytes have arrived, from the size of pip's temporary files."""
    done = threading.Event()

    def watch() -> None:
        most = 0
        while not done.wait(_LOOK_S):
            with contextlib.suppress(OSError):
                most = max([most, *(file.stat().st_size for file in work.rglob("*.whl"))])
            tell(most)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _why(package: Package, said: str) -> str:
    if "DO NOT MATCH THE HASHES" in said:
        return (
            f"The package {package.name} on offer is not the one that Shoal's catalogue names, so it was not "
            "taken: try again later, or from another network."
        )
    if "No space left on device" in said or "not enough space on the disk" in said:
        return (
            f"The disk is full, so {package.name} couldn't be downloaded: free up some space, then try again."
        )
    if "CERTIFICATE_VERIFY_FAILED" in said:
        return (
            "The certificate of the package index is not accepted: behind a company's proxy set PIP_CERT to "
            "its certificate file, then try again."
        )
    if install.UNREACHABLE.search(said):
        return "The download can't be reached: check your network connection, then try again."
    return (
        f"The package index that pip is set up for does not have {package.name} {package.version}: check pip's "
        "settings (PIP_*), then try again."
    )
