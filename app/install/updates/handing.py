"""Downloads an update and hands the verified file to the system's own installer. Shoal itself never runs as
root: where root is needed, the system asks for permission (polkit), and its package manager installs the file
after verifying it once more. A one-file Shoal is replaced by a rename; the old file stays beside it as
NAME.previous."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import msgspec

from app.common import fetch, files
from app.common.connection import Fault
from app.common.process.surroundings import outside_bundle
from app.common.rate import RetryLimit
from app.common.text import in_bytes, safe_line
from app.install import InstallError, disk_error
from app.install.signed import is_address
from app.install.updates import asking
from app.install.updates.feed import Feed, ReleaseFile

# Fetching the new version's file into HOME/updates, as engine packs are fetched: continued where it stopped,
# counted to the byte, believed by its digest, which stands in the signed list.

SPARE = 64 * 2**20
Heard = Callable[[int], None]


def fetch_update(
    home: Path,
    feed: Feed,
    file: ReleaseFile,
    where: str,
    heard: Heard,
    waiting: fetch.Waiting,
    patience: RetryLimit | None = None,
) -> Path:
    """Downloads the file, verified, and returns its path. `where` is the list's own address or path. Raises
    InstallError; a partial download is kept, files of other versions are deleted."""
    folder = home / asking.FOLDER
    try:
        clear_fetched(home, file)
        if fetch.is_intact(folder / file.file, file):
            heard(file.size)
            return folder / file.file
        _check_room(folder, file)
        if not is_address(where) and not is_address(file.url):
            return fetch.copy(Path(where).parent / file.file, file, folder)
        order = fetch.PieceOrder(file, file.addresses(where, feed.mirrors))
        fetch.download([order], folder, lambda _, count: heard(count), waiting, patience)
        return folder / file.file
    except Fault as caught:
        if caught.gone:
            sentence = f"{file.file} isn't there any more: look for new versions again, then download it."
            raise InstallError(sentence) from caught
        raise InstallError(str(caught)) from caught
    except FileNotFoundError as error:
        raise InstallError(
            f"{error.filename} isn't there: copy all files of the release beside the list."
        ) from error
    except OSError as error:
        raise disk_error(error, folder) from error


def fetched_file(home: Path, file: ReleaseFile) -> Path | None:
    """Returns the path of the downloaded file if it is complete and has the right digest; else None."""
    path = home / asking.FOLDER / file.file
    with contextlib.suppress(OSError):
        if fetch.is_intact(path, file):
            return path
    return None


def clear_fetched(home: Path, keep: ReleaseFile | None = None) -> None:
    """Deletes downloads except for `keep` and its partial file, as far as possible."""
    asking.clear_folder(
        home, () if keep is None else (keep.file, fetch.part_of(home / asking.FOLDER, keep).name)
    )


def _check_room(folder: Path, file: ReleaseFile) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    part = fetch.part_of(folder, file)
    missing = file.size - (part.stat().st_size if part.exists() else 0)
    if (free := files.free_bytes(folder)) < missing + SPARE:
        raise InstallError(
            f"The disk that holds {folder} has {in_bytes(free)} free, and {in_bytes(missing + SPARE)} "
            "are needed: free up some space, then try again."
        )


PKEXEC, APT = "/usr/bin/pkexec", "/usr/bin/apt-get"
_DISMISSED, _REFUSED = 126, 127
"""Exit codes of pkexec if the user refused, and if the user could not be asked."""

INSTALLER_LOG = "installer.log"
_INSTALL = """
said=$1 asker=$2 program=$3 home=$4
shift 4
"$@" >"$said" 2>&1
code=$?
if [ "$code" = 0 ] && [ -n "$program" ] && ! kill -0 "$asker" 2>/dev/null; then
    exec "$program" window ${home:+--home "$home"}
fi
exit "$code"
"""

_CHANGED = 61
_AS_ROOT = f"""
kept=$(mktemp -d /var/tmp/shoal-update.XXXXXXXX) || exit
trap 'rm -rf "$kept"' EXIT
head -c "$2" -- "$1" >"$kept/shoal.deb" || exit
echo "$3  $kept/shoal.deb" | sha256sum --check --status || exit {_CHANGED}
chmod 755 "$kept" && chmod 644 "$kept/shoal.deb" || exit
"$4" install --yes -- "$kept/shoal.deb"
"""
"""Shell script that root runs. Other programs may have changed the user's file since it was verified, so root
copies it to a place that nobody else can write, and verifies and installs the copy."""

Say = Callable[[str], None]


class NextStep(Enum):
    """What Shoal does after the installer was started."""

    RESTART = "restart"
    QUIT = "quit"
    STAY = "stay"


class HandOver(msgspec.Struct, frozen=True, kw_only=True):
    """The result of handing over an update. `command`: what the user must type if nothing could be started."""

    then: NextStep
    sentence: str
    command: str = ""


class SystemInstaller(msgspec.Struct, frozen=True, kw_only=True):
    """The system's programs for an update; `show` opens a file on the desktop. `reopen` is the program that
    opens the window of the data folder `home` again after the package manager has ended it."""

    pkexec: str = PKEXEC
    apt: str = APT
    reopen: str = ""
    home: str = ""
    show: tuple[str, ...] = ("/usr/bin/open",) if sys.platform == "darwin" else ("xdg-open",)


def hand_over_update(
    path: Path, file: ReleaseFile, program: Path, say: Say, system: SystemInstaller | None = None
) -> HandOver:
    """Verifies the digest again and hands the file to the installer; `program` is running. Raises
    InstallError."""
    system = system or SystemInstaller()
    try:
        if not fetch.is_intact(path, file):
            raise InstallError(f"{path} isn't what was downloaded any more: download it again.")
        match file.form:
            case "deb":
                return _debian(path, file, say, system)
            case "elf":
                return _replaced(path, file, program, say)
            case "nsis":
                return _windows(path)
            case "dmg":
                _run([*system.show, str(path)])
                return HandOver(
                    then=NextStep.QUIT,
                    sentence="Drag Shoal into the folder Applications, then open it from there.",
                )
    except OSError as error:
        raise disk_error(error, path) from error


def _debian(path: Path, file: ReleaseFile, say: Say, system: SystemInstaller) -> HandOver:
    """Runs apt-get through pkexec, which asks for the password in a window of the system's. A shell waits for
    it: the package ends every running Shoal, so none of them could open the new one."""
    command = f"sudo apt install {shlex.quote(str(path))}"
    by_hand = HandOver(
        then=NextStep.STAY,
        sentence=f"This system doesn't let Shoal ask for its owner's password: install it with {command}",
        command=command,
    )
    if os.geteuid() == 0:
        return msgspec.structs.replace(
            by_hand, sentence=f"Shoal installs nothing as root: install it yourself with {command}"
        )
    if not (os.access(system.pkexec, os.X_OK) and os.access(system.apt, os.X_OK)):
        return by_hand
    say("The system asks for your password, then installs it.")
    said = path.with_name(INSTALLER_LOG)
    words = ["/bin/sh", "-c", _INSTALL, "shoal", str(said), str(os.getpid()), system.reopen, system.home]
    words += [
        system.pkexec,
        "/bin/sh",
        "-c",
        _AS_ROOT,
        "shoal",
        str(path),
        str(file.size),
        file.sha256,
        system.apt,
    ]
    running = subprocess.Popen(
        words,
        stdin=None if sys.stdin.isatty() else subprocess.DEVNULL,  # pkexec asks there where no desktop does
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=outside_bundle(),
        start_new_session=not sys.stdin.isatty(),
    )
    code = running.wait()
    if code == 0:
        return HandOver(then=NextStep.RESTART, sentence="It is installed.")
    if code == _DISMISSED:
        raise InstallError("Nothing was installed: the system's question for the password wasn't answered.")
    if code == _REFUSED:
        return by_hand
    if code == _CHANGED:
        raise InstallError(
            f"Nothing was installed: {path} was changed after it was checked. Download it again."
        )
    last = _last_line(said.read_bytes()) or code
    raise InstallError(f"The system's package manager refused ({last}): try {command} in a terminal.")


def _replaced(path: Path, file: ReleaseFile, program: Path, say: Say) -> HandOver:
    """Replaces the old file by the new one in one step, so that there is always a complete file."""
    say("The new version takes the place of this one.")
    program = program.resolve()
    if fetch.is_intact(program, file):
        return HandOver(then=NextStep.RESTART, sentence="It is installed already.")
    previous = program.with_name(f"{program.name}.previous")
    try:
        with files.staged(program) as fresh:
            shutil.copyfile(path, fresh)
            if not fetch.is_intact(fresh, file):
                raise InstallError(f"{fresh} couldn't be written as it should: try again.")
            fresh.chmod(program.stat().st_mode | 0o500)
            shutil.copy2(program, previous)
    except OSError as error:
        raise disk_error(error, program.parent) from error
    return HandOver(
        then=NextStep.RESTART, sentence=f"It is installed; the version before is kept as {previous}."
    )


def _windows(path: Path) -> HandOver:
    """Starts the installer. Shoal must then end, because its files are replaced."""
    if sys.platform == "win32":
        os.startfile(path)
    else:
        raise InstallError(f"{path} is for Windows: open it there.")
    return HandOver(
        then=NextStep.QUIT, sentence="The installer opens; Shoal ends, and the installer starts it again."
    )


def _run(command: list[str]) -> tuple[int, str]:
    """Runs a command; returns its exit code and last line of output. Raises InstallError if it can't start."""
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, env=outside_bundle(), check=False
        )
    except OSError as error:
        raise InstallError(
            f"{command[0]} can't be started ({error.strerror}): open the file yourself, {command[-1]}."
        ) from error
    return done.returncode, _last_line(done.stderr or done.stdout)


def _last_line(said: bytes) -> str:
    """Returns the last line of output that is no warning."""
    lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("W:")] or [""]
    return safe_line(lines[-1], 300)
