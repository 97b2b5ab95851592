"""Optional parts: the sampler of the llama.cpp engine, built here, and on Linux MLX for the tests. Nothing
waits for them and nothing fails without them.

llama.cpp exists as source only, so a first start builds it in a low-priority background process (`python -m
app.install.launcher.optional ROOT`), which a trainer that wants the same core leaves an eighth of it. The build
ends with the Shoal that started it, and may be killed at any moment: the next start compiles what is missing. A
failure is stored with its sentence, which `./shoal doctor` shows, and not retried at every start."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from app.install.launcher import install, mirror, pythons, stamp, system
from app.install.launcher.environment import Environment, setup_lock
from app.install.launcher.install import ProgressLine, say
from app.install.launcher.pythons import SetupError

SAYS = "shoal-llamacpp.says"
"""Name of a file in the environment with one sentence on the progress of the build, read by engines.opening."""

LOG = "shoal-llamacpp.log"

PID = "shoal-llamacpp.pid"
"""Name of a file in the environment with the process id of the background build, from which app.desktop.apps
knows that its load is Shoal's own."""

AWAITED = "shoal-llamacpp.awaited"
"""Name of a file in the environment that ends a background build: somebody waits for llama.cpp and goes on with
what is compiled, on all cores and at normal priority, which a process at low priority cannot return to."""

PROCESSOR = "shoal-llamacpp.processor"
"""Name of a file in the environment with the features of the processor that llama.cpp was built for, as Linux
names them; read by engines.llamacpp.model. Another processor may not run the build."""

DONE = "llama.cpp is built. Shoal uses it from its next start on."

WHEN = "SHOAL_LLAMACPP"
"""Environment variable: "never" builds nothing, "now" builds at full speed and continues when Shoal has
ended."""

COMPILE = "compile.txt"
"""Name of a file beside the sampler's requirements: the packages needed to build it."""
_SOURCE = re.compile(r"(?m)^llama.*(\n[ \t].*)*")
"""Matches the package that comes as source in a requirement list or lock."""

SLIM = {
    # Packs suit many computers. What is built here is for this one alone: see _wheel.
    "GGML_NATIVE": "OFF",
    "LLAVA_BUILD": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_TOOLS": "OFF",
    "LLAMA_BUILD_SERVER": "OFF",
    "LLAMA_OPENSSL": "OFF",
}
"""CMake definitions for the library alone. packaging/requirements/llamacpp.cmake leaves out one more part."""

LOOK_S = 2.0
"""Seconds between two looks whether the Shoal that started the build is still there."""
_AGAIN_S = 7 * 24 * 3600.0
"""Seconds until the next try after a build that failed, or without a compiler."""
_SOON_S = 3600.0
_PASSING = ("could not be reached", "is full", "is not there")
"""Words in messages about temporary problems of a network, a disk, or a folder for temporary files."""
_STEP = re.compile(r"^\s*\[(\d+)/(\d+)\] ")
_COMPLAINT = re.compile(r"(error: |CMake Error|Killed|cannot allocate|No space left)", re.IGNORECASE)


class _Busy(Exception):
    """Another process is already building."""


def wanted() -> bool:
    """Whether to build llama.cpp in the background: unless this computer has an Apple or NVIDIA GPU, or WHEN is
    "never"."""
    return not stamp.APPLE_SILICON and not system.has_nvidia_card() and os.environ.get(WHEN) != "never"


def begin(root: str, variables: dict[str, str], lasting: bool = False) -> None:
    """Starts the background build and returns at once. The build ends with this process, which becomes Shoal,
    unless `lasting` is set or WHEN is "now"; its own end it tells the terminal that it was started in."""
    terminal = ""
    with contextlib.suppress(OSError):  # a terminal may have no name here, as in a chroot
        terminal = os.ttyname(2) if os.name == "posix" and os.isatty(2) else ""
    owner = 0 if lasting or os.environ.get(WHEN) == "now" else os.getpid()
    quiet: dict[str, object] = {"start_new_session": True}
    if os.name == "nt":
        flags = ("IDLE_PRIORITY_CLASS", "CREATE_NO_WINDOW", "CREATE_NEW_PROCESS_GROUP")
        quiet = {"creationflags": sum(getattr(subprocess, flag) for flag in flags)}
    try:
        with open(os.path.join(root, ".venv", LOG), "ab") as log:
            subprocess.Popen(
                [stamp.python_of(root), "-m", "app.install.launcher.optional", root, str(owner), terminal],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **quiet,  # type: ignore[call-overload]
            )
    except OSError:
        pass  # a disk that is full or a folder that is not ours: whatever was asked for will say so


def provide(root: Path, name: str, waiting: Callable[[], None], number: Path | None = None) -> None:
    """Installs `name`, an optional one of stamp.PURPOSES, in the foreground, with progress. Calls `waiting`
    if another process is installing it; what that raises passes through, and a background build of another
    ends if `waiting` returns. Raises SetupError, after recording the failure. The file `number` contains this
    process's id while it works."""
    awaited = root / ".venv" / AWAITED

    def await_it() -> None:
        waiting()
        if name == "llamacpp":
            awaited.touch()

    with setup_lock(root / f".venv-{name}.lock", await_it) as held:
        awaited.unlink(missing_ok=True)
        if stamp.ready(str(root), name):
            return
        try:
            if number is not None:
                number.write_text(str(os.getpid()), encoding="ascii")
            _provide(root, name, held)
        except SetupError as error:
            passes = any(words in str(error) for words in _PASSING)
            stamp.put_off(str(root), name, _SOON_S if passes else _AGAIN_S)
            if name == "llamacpp":
                _says(root, str(error))
            raise
        finally:
            if number is not None:
                number.unlink(missing_ok=True)
        stamp.write(str(root), name)
        if name == "llamacpp":
            (root / ".venv" / SAYS).unlink(missing_ok=True)


def _provide(root: Path, name: str, held: int) -> None:
    folder, python = root / ".venv", Path(stamp.python_of(str(root)))
    ((name_of_list, options),) = stamp.PURPOSES[name]
    requirements = stamp.requirement_file(str(root), name_of_list)
    file, options = stamp.listed(requirements, options)
    with ProgressLine() as progress:
        orders = [["-r", file, *options]]
        if name == "llamacpp":
            pip = install.pip_command(python, pythons.base_python())
            wheel = _wheel(root, pip, Path(requirements), progress, folder / LOG, held)
            beside = folder / "shoal-beside.txt"
            beside.write_text(_SOURCE.sub("", Path(file).read_text(encoding="utf-8")), encoding="utf-8")
            # Files of one that was killed while it put them in place may be cut off, in uv's cache too, for
            # what is in place are links to that.
            orders = [
                [*words, "--reinstall", "--no-cache"]
                for words in (["-r", str(beside), *options], ["--no-index", str(wheel)])
            ]
        with setup_lock(root / ".venv.lock", lambda: None) as also_held:
            installer = Environment(root).installer(also_held)
            for order in orders:
                installer.install(order, progress)


def _wheel(
    root: Path,
    pip: list[str],
    requirements: Path,
    progress: ProgressLine,
    log: Path,
    held: int,
) -> Path:
    """Returns a wheel of llama-cpp-python built for this computer; reuses one built by an earlier start, or by
    a pip that outlived it. Raises SetupError."""
    folder = root / ".venv"
    pin = next(
        line for line in requirements.read_text(encoding="utf-8").splitlines() if line.startswith("llama")
    )
    name, _, version = pin.partition("==")
    unfinished = folder / "shoal-build"
    definitions = SLIM | {"GGML_NATIVE": "ON"}  # half as fast again in 16 bits where there is AVX-512
    flags = requirements.with_suffix(".cmake")
    done = folder / "shoal-wheels" / _made_for(definitions, flags.read_text(encoding="utf-8"))
    done.mkdir(parents=True, exist_ok=True)
    for place in (done, unfinished):
        for wheel in place.glob(f"{name.replace('-', '_')}-{version}-*.whl"):
            kept = wheel.replace(done / wheel.name)
            shutil.rmtree(unfinished, ignore_errors=True)
            return kept
    if missing := system.no_compiler():
        raise SetupError(missing)
    _says(root, _BUILDING.format(where=f"{log} has the progress"))
    work = _work(unfinished, f"{done.name} {version}")
    definitions["CMAKE_PROJECT_llama_cpp_INCLUDE"] = str(work / flags.name)
    progress.step("downloading llama.cpp's source")
    try:
        shutil.copy2(flags, work)
        tools = build_tools(pip, requirements.with_name(COMPILE), work)
        said, code = install.run(
            [
                *pip,
                "wheel",
                *(["--no-build-isolation"] if tools else []),
                "--verbose",
                "--no-cache-dir",  # pip keeps a built wheel by its source alone, whatever it was built for
                "--no-deps",
                "--wheel-dir",
                str(work),
                # not -C, which the pip of Debian 12 (23.0) does not know
                *(f"--config-settings=cmake.define.{name}={value}" for name, value in definitions.items()),
                f"--config-settings=build-dir={work / 'build'}",
                str(source(pip, requirements, work, log, held, bool(tools))),
            ],
            Steps(progress, lambda step: _says(root, _BUILDING.format(where=step))),
            log,
            {**_pip(pip, work), "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs()), **tools},
            held,
        )
        built = next(work.glob("*.whl"), None)
        if code or built is None:
            raise SetupError(explain(said, log))
        (folder / PROCESSOR).write_text(pythons.processor(), encoding="ascii")
        return built.replace(done / built.name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _work(folder: Path, what: str) -> Path:
    """Returns a folder to build `what` in: `folder`, keeping the files of an interrupted build of `what`. If
    its path has square brackets, which CMake misreads, returns a temporary folder with an unpredictable name.
    Raises SetupError."""
    marker = folder / "what"
    try:
        if "[" in str(folder) or "]" in str(folder):
            return Path(tempfile.mkdtemp(prefix="shoal-build-"))
        if not marker.exists() or marker.read_text(encoding="utf-8") != what:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            marker.write_text(what, encoding="utf-8")
    except OSError as error:
        raise SetupError(
            f"llama.cpp could not be built, because a folder for it is not there ({error.strerror}); free some "
            "space, or set TMPDIR to a folder that exists, and start Shoal again."
        ) from error
    return folder


def _pip(pip: list[str], work: Path) -> dict[str, str]:
    return mirror.for_pip(mirror.settings(pip[0]), work)


def _made_for(definitions: Mapping[str, str], flags: str) -> str:
    """A key for a build: one with other definitions or `flags` (llamacpp.cmake), or for another processor, has
    another key."""
    made_for = (sorted(definitions.items()), flags, pythons.processor())
    return hashlib.sha256(repr(made_for).encode()).hexdigest()[:12]


class Steps:
    """Parses pip's output and reports every tenth of the files compiled, to the user and to `elsewhere`."""

    def __init__(self, progress: ProgressLine, elsewhere: Callable[[str], None]) -> None:
        self._progress, self._elsewhere, self._told = progress, elsewhere, -1

    def __call__(self, line: str) -> None:
        if found := _STEP.match(line):
            tenth = 10 * int(found[1]) // max(1, int(found[2]))
            if tenth > self._told:
                self._told = tenth
                self._progress.step(f"building llama.cpp: file {found[1]} of {found[2]}")
                self._elsewhere(f"file {found[1]} of {found[2]}")
        else:
            install.show(line, self._progress)


def explain(said: list[str], log: Path) -> str:
    """Returns a sentence on why llama.cpp could not be built."""
    text = "\n".join(said)
    if install.UNREACHABLE.search(text) or "No space left" in text or "CERTIFICATE_VERIFY" in text:
        return f"llama.cpp could not be built: {install.explain_failure(said, log)}"
    complaints = [line.strip() for line in said if _COMPLAINT.search(line)] or said[-1:] or ["nothing said"]
    return (
        f"llama.cpp could not be built for this computer ({complaints[0][:200]}); look into {log}, and "
        "./shoal setup --engine llamacpp tries again."
    )


def jobs() -> int:
    """Returns how many files to compile at once: one per core and 2 GB of memory; in the background a core
    stays free."""
    polite = hasattr(os, "nice") and os.nice(0) > 0
    cores = (os.cpu_count() or 2) - polite
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        cores = min(cores, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**31)
    return max(1, cores)


_BUILDING = (
    "Building llama.cpp in the background ({where}). Until then, PyTorch does the sampling. "
    "If it is interrupted, the next start continues it."
)


def _says(root: Path, sentence: str) -> None:
    """Writes the sentence in one step: doctor and the window may read it at any moment."""
    fresh = root / ".venv" / f"{SAYS}.new"
    fresh.write_text(sentence + "\n", encoding="utf-8")
    fresh.replace(root / ".venv" / SAYS)


def _leave() -> None:
    raise _Busy


def build_tools(pip: list[str], requirements: Path, work: Path) -> dict[str, str]:
    """Installs the build tools from the lock below `work`, and returns the variables by which Python finds
    them. Without a lock it does nothing; pip then downloads what the source asks for. Raises SetupError."""
    lock = stamp.lock_of(str(requirements))
    if not lock:
        return {}
    if (work / "tools").is_dir():
        return {"PYTHONPATH": str(work / "tools")}
    options = ("--quiet", "--only-binary", ":all:", *stamp.HASHED)
    said, code = install.run(
        [*pip, "install", "--target", str(work / "tools.new"), *options, "-r", lock],
        print,
        work / "tools.log",
        _pip(pip, work),
    )
    if code:
        raise SetupError(install.explain_failure(said, work / "tools.log"))
    (work / "tools.new").rename(work / "tools")
    return {"PYTHONPATH": str(work / "tools")}


def source(pip: list[str], requirements: Path, work: Path, log: Path, held: int | None, alone: bool) -> Path:
    """Downloads and unpacks the package that comes as source, checked by the lock's hash if there is a lock.
    Returns its folder, which is kept so that an interrupted build continues. `alone`: the build tools are
    installed. Raises SetupError."""
    if (work / "source").is_dir():
        return work / "source"
    lock = stamp.lock_of(str(requirements))
    pin = _SOURCE.search(Path(lock or requirements).read_text(encoding="utf-8"))
    assert pin is not None
    only = work / "source.txt"
    only.write_text(pin[0] + "\n", encoding="utf-8")
    hashed = ["--require-hashes"] if lock else []
    isolated = ["--no-build-isolation"] if alone else []
    where = ["--no-deps", "--no-cache-dir", "--no-binary", ":all:", "--dest", str(work / "packed")]
    tools = {"PYTHONPATH": str(work / "tools")} if alone else {}
    said, code = install.run(
        [*pip, "download", *where, *isolated, *hashed, "-r", str(only)],
        lambda line: None,
        log,
        {**_pip(pip, work), **tools},
        held,
    )
    if code:
        raise SetupError(explain(said, log))
    (archive,) = (work / "packed").glob("*.tar.gz")
    shutil.rmtree(work / "unpacked", ignore_errors=True)
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):
            packed.extractall(work / "unpacked", filter="data")
        else:  # Python 3.11.2, which Debian 12 has; the archive's hash was checked above
            packed.extractall(work / "unpacked")
    (folder,) = (work / "unpacked").iterdir()
    return folder.rename(work / "source")


def end_in_time(owner: int, awaited: Path) -> None:
    """Kills this process group once the process `owner` has ended (0: never), or somebody waits for it."""
    while (not owner or os.getppid() == owner) and not awaited.exists():
        time.sleep(LOOK_S)
    os.killpg(0, signal.SIGKILL)


def main(root: str, owner: str = "0", terminal: str = "") -> int:
    """Runs the background process, and says in `terminal` how it ended. Returns 1 after a failure, which it has
    recorded."""
    if hasattr(os, "nice"):
        os.nice(19)
    if os.environ.get(WHEN) != "now":
        # Linux weighs sessions before processes: without this, a session of its own counts like any other.
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
            group.write("19")
    number = Path(root) / ".venv" / PID
    if os.name == "posix" and os.getpgrp() == os.getpid():
        watch = (int(owner), number.with_name(AWAITED))
        threading.Thread(target=end_in_time, args=watch, daemon=True).start()
    code, said = 0, DONE
    try:
        provide(Path(root), "llamacpp", _leave, number)
    except _Busy:
        return 0
    except SetupError as error:
        code, said = 1, str(error)
    say(said)
    with contextlib.suppress(OSError), open(terminal or os.devnull, "w", encoding="utf-8") as screen:
        screen.write(f"\r{said}\r\n")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
