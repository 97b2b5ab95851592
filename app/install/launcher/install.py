"""Installs packages: pip downloads uv, checked by the hash in its lock, and uv installs the rest. Turns their
output into progress, and their errors into one sentence."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from app.install.launcher import mirror, stamp
from app.install.launcher.pythons import SetupError


def say(sentence: str) -> None:
    """Prints a line for the user on standard error; standard output may carry the command's JSON."""
    print(sentence, file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Formats seconds as minutes and seconds: 75 s is "1:15"."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class ProgressLine:
    """Shows the current step. On a terminal one line is rewritten with the elapsed time; otherwise each step is
    a line, repeated every half minute."""

    def __init__(self) -> None:
        self._doing = "looking at what is there"
        self._began = time.monotonic()
        self._last = self._began
        self._moving = sys.stderr.isatty()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> ProgressLine:
        self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._ticker.join()
        if self._moving:
            sys.stderr.write("\r\033[K")
        if error is None:
            self._doing = "done"
            self._line()

    def step(self, doing: str) -> None:
        """Starts showing another step, named in a few words."""
        self._doing = doing
        if not self._moving:
            self._line()

    def _line(self) -> None:
        self._last = time.monotonic()
        say(f"  {clock(self._last - self._began)}  {self._doing}")

    def _tick(self) -> None:
        while not self._over.wait(0.2):
            if self._moving:
                text = f"  {clock(time.monotonic() - self._began)}  {self._doing}"
                sys.stderr.write("\r\033[K" + text[: shutil.get_terminal_size().columns - 1])
                sys.stderr.flush()
            elif time.monotonic() - self._last > 30:
                self._line()


UNREACHABLE = re.compile(
    r"Retrying \(Retry|Max retries exceeded|Failed to establish a new connection|Temporary failure in name|"
    r"Name or service not known|getaddrinfo failed|nodename nor servname|Network is unreachable|"
    r"Connection refused|Connection reset|Read timed out|ReadTimeoutError|IncompleteRead|ProxyError|"
    r"error sending request|dns error|Could not connect|operation timed out|network connectivity is disabled|"
    r"HTTP status server error"
)
_NO_LINKS = re.compile(r"Could not persist temporary file .*\s*cause: .*\(os error (?:1|38|95)\)")
OUT_OF_ORDER = re.compile(r"HTTP status server error \((\d+)")
WRONG_DATE = re.compile(r"certificate (?:has )?expired|certificate (?:is )?not (?:yet )?valid")
GARBLED = re.compile(
    r"DO NOT MATCH THE HASHES|Hash mismatch for|Failed to extract archive|Bad CRC|invalid Zip archive"
)
"""A file that came isn't the one in the lock."""
_FILE = re.compile(r"(?:mismatch for|Failed to download) `(\S+?)`|^ *(\S+==\S+) from ", re.MULTILINE)
_HASHES = re.compile(
    r"Expected:?\s+sha256[: ]([0-9a-f]{64}).*?(?:Computed:|Got)\s+(?:sha256:)?([0-9a-f]{64})", re.DOTALL
)
UNAVAILABLE = re.compile(
    r"No matching distribution found for (\S+)|no wheels with a matching|"
    r"(?:there is no version of|Because) (\S+?)(?:,| and| was not found| has no)"
)
DOWNLOADING = re.compile(r"^\s*Downloading (?P<name>\S+?)(?:-\d\S*)? \((?P<size>[^)]+)\)")
_MEGA = re.compile(r"[MG]i?B")


def has_pip(python: str) -> bool:
    """Whether this interpreter can run pip."""
    done = subprocess.run([python, "-I", "-c", "import pip"], stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode == 0


def pip_command(python: Path, outer: str) -> list[str]:
    """Returns the command that installs into the environment of `python`: its own pip, or that of the `outer`
    interpreter, from which the environment was made. Raises SetupError if neither has one."""
    if has_pip(str(python)):
        return [str(python), "-m", "pip"]
    if has_pip(outer):
        return [outer, "-m", "pip", "--python", str(python)]
    raise SetupError(
        f"The Python environment {python.parent.parent} has no pip, and neither has {outer}; delete that "
        "folder, install pip with the system's package manager and start Shoal again."
    )


class Installer:
    """Installs into one environment from locks with hashes. `folder` has uv, its cache and temporary files."""

    def __init__(self, root: str, python: Path, outer: str, folder: Path, log: Path, held: int | None) -> None:
        self._root, self._python, self._outer = root, python, outer
        self.folder, self._log, self._held = folder, log, held
        (folder / "tmp").mkdir(parents=True, exist_ok=True)
        self.settings = mirror.settings(outer if has_pip(outer) else str(python))

    def install(self, arguments: Sequence[str], progress: ProgressLine, **variables: str) -> None:
        """Runs `uv pip install ARGUMENTS`. Raises SetupError."""
        said, code = self._uv(arguments, progress, variables)
        if code:
            raise SetupError(explain_failure(said, self._log))

    def can_install(self, arguments: Sequence[str], progress: ProgressLine, **variables: str) -> bool:
        """Whether all requested packages can be found. Raises SetupError if the user's own index cannot be
        reached; other indexes may be unreachable."""
        said, code = self._uv(["--dry-run", *arguments], progress, variables)
        if code and not variables and UNREACHABLE.search("\n".join(said)):
            raise SetupError(explain_failure(said, self._log))
        return code == 0

    def _uv(
        self, arguments: Sequence[str], progress: ProgressLine, variables: Mapping[str, str]
    ) -> tuple[list[str], int]:
        alone = self.settings.get("no-index", "").lower() in ("1", "true", "yes", "on")
        no_index = ["--no-index"] if alone and "--no-index" not in arguments else []
        command = [str(self.program(progress)), "pip", "install", "--python", str(self._python)]
        return run(
            [*command, "--no-deps", *no_index, *(word for word in arguments if word != "--no-deps")],
            lambda line: show(line, progress),
            self._log,
            {**mirror.for_uv(self.settings, self.folder), **variables},
            self._held,
        )

    def program(self, progress: ProgressLine) -> Path:
        """Returns the path of uv, after installing the pinned version with pip if needed."""
        lock = stamp.lock_of(stamp.requirement_file(self._root, "uv.txt"))
        version = re.search(r"(?m)^uv==(\S+)", Path(lock).read_text(encoding="utf-8"))
        assert version is not None
        place = self.folder / f"uv-{version[1]}"
        program = place / "bin" / ("uv.exe" if os.name == "nt" else "uv")
        if not program.exists():
            progress.step("downloading the installer")
            options = ["--only-binary", ":all:", *stamp.HASHED, "--target", str(place), "--upgrade"]
            said, code = run(
                [
                    *pip_command(self._python, self._outer),
                    "install",
                    "--progress-bar",
                    "off",
                    *options,
                    "-r",
                    lock,
                ],
                lambda line: None,
                self._log,
                mirror.for_pip(self.settings, self.folder / "tmp"),
                self._held,
            )
            if code:
                raise SetupError(explain_failure(said, self._log))
        return program


def run(
    command: Sequence[str],
    tell: Callable[[str], None],
    log: Path,
    variables: Mapping[str, str],
    keep_open: int | None = None,
) -> tuple[list[str], int]:
    """Runs a command that installs or builds, and once more if a file came garbled; returns its output lines
    and exit code. The output is also written to `log`. The child inherits the descriptor `keep_open` (see
    setup_lock). Raises SetupError if it does not start."""
    said, code = _run(command, tell, log, variables, keep_open)
    if code and GARBLED.search("\n".join(said)):
        return _run(command, tell, log, variables, keep_open)
    return said, code


def _run(
    command: Sequence[str],
    tell: Callable[[str], None],
    log: Path,
    variables: Mapping[str, str],
    keep_open: int | None,
) -> tuple[list[str], int]:
    try:
        with log.open("a", encoding="utf-8") as kept:
            kept.write(" ".join(command) + "\n")
            child = subprocess.Popen(
                command,
                env=dict(variables),
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                pass_fds=() if keep_open is None or os.name == "nt" else (keep_open,),
            )
            said = []
            with child:
                for line in child.stdout or ():
                    kept.write(line)
                    said.append(line.rstrip())
                    tell(said[-1])
    except OSError as error:
        raise SetupError(
            f"Shoal could not install its packages ({error.strerror or error}); free some space or make "
            f"{log.parent} writable, then start it again: it continues from here."
        ) from error
    return said, child.returncode


def show(line: str, progress: ProgressLine) -> None:
    """Turns a line of uv's output into progress: names and sizes of large downloads, counts of packages."""
    if (found := DOWNLOADING.match(line)) and _MEGA.search(found["size"]):
        progress.step(f"downloading {found['name']} ({found['size']})")
    elif found := re.match(r"^Prepared (\d+) packages?", line):
        progress.step(f"putting {found[1]} package{'s' * (found[1] != '1')} in place")


def explain_failure(said: Sequence[str], log: Path) -> str:
    """Returns the output of pip or uv as one sentence for the user: what failed, why, what to do."""
    text = "\n".join(said)
    again = "start Shoal again: it continues from here"
    if "No space left on device" in text or "not enough space on the disk" in text or "os error 28" in text:
        return (
            f"Shoal could not install its packages because the disk of {log.parent} is full; free some space "
            f"and {again}."
        )
    if _NO_LINKS.search(text):
        return (
            f"Shoal could not install its packages because the disk of {log.parent} knows no links (FAT and "
            f"exFAT, as on sticks, don't); move Shoal's folder to another disk, and {again}."
        )
    if WRONG_DATE.search(text):
        return (
            "Shoal could not download its packages because the package server's certificate is not valid on "
            f"{time.strftime('%Y-%m-%d')}, which is today by this computer's clock; set the clock and {again}. "
            "If it is right, try later."
        )
    if re.search(r"CERTIFICATE_VERIFY_FAILED|invalid peer certificate|UnknownIssuer", text):
        return (
            "Shoal could not download its packages because the package server's certificate was not accepted; "
            f"behind a company's proxy set PIP_CERT to its certificate file, and {again}."
        )
    if GARBLED.search(text):
        name, hashes = _FILE.search(text), _HASHES.search(text)
        what = (name[1] or name[2] if name else "one of its packages").replace("==", " ")
        which = f" (sha256 {hashes[2][:12]}..., not {hashes[1][:12]}...)" if hashes else ""
        return (
            f"Shoal could not install its packages because {what} came garbled, twice{which}; try another "
            f"network or index, and {again}."
        )
    if found := OUT_OF_ORDER.search(text):
        return (
            f"Shoal could not download its packages because the package server is out of order (it answers "
            f"{found[1]}); wait some minutes and {again}."
        )
    if UNREACHABLE.search(text):
        return (
            f"Shoal could not download its packages because {_server(text)} could not be reached; check the "
            "network connection, or name a mirror in PIP_INDEX_URL or UV_DEFAULT_INDEX and a proxy in "
            f"HTTPS_PROXY, and {again}."
        )
    if found := UNAVAILABLE.search(text):
        wanted = (found[1] or found[2] or "one of its packages").rstrip(",").replace("==", " ")
        here = (
            f"{platform.system()} {platform.machine()} with Python {sys.version_info[0]}.{sys.version_info[1]}"
        )
        or_else = ", or the package server is out of order" if "(from versions: none)" in text else ""
        return (
            f"Shoal found no ready-made build of {wanted} for {here}{or_else}; use 64-bit Linux, Windows or a "
            "Mac with Apple Silicon, check the network and a mirror's settings (PIP_*, UV_*, uv.toml), and "
            f"{again}."
        )
    errors = [line for line in said if line.lower().startswith("error:")]
    reason = (errors or list(said) or ["nothing said"])[-1][:200]
    return f"Shoal could not install its packages: it stopped ({reason}); look into {log}, and {again}."


def _server(text: str) -> str:
    """Returns the first server that pip or uv named; "the package server" if they named none."""
    found = re.search(r"host='([\w.-]+)', port=(\d+)|https?://(?:[^/\s@]*@)?([\w.:-]+)", text)
    if not found:
        return "the package server"
    return found[3] or f"{found[1]}:{found[2]}".removesuffix(":443")
