"""The parts that Shoal can do without: the sampler of the llama.cpp engine, built here, and on Linux MLX for
the tests.

Nothing waits for them and nothing fails without them. llama.cpp exists as source only, so a first start begins
to build it in the background, politely, in a process of its own (`python -m app.install.launcher.optional
ROOT`). It rests while a trainer works on few cores, ends with the Shoal that began it, and may be killed at any
moment: the next start compiles what is missing. A failure is remembered with its sentence, which
`./shoal doctor` shows, and is not repeated at every start.
"""

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
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from app.install.launcher import install, pythons, stamp, system
from app.install.launcher.environment import Environment, setup_lock
from app.install.launcher.install import ProgressLine, say
from app.install.launcher.pythons import SetupError

SAYS = "shoal-llamacpp.says"
"""A file in the environment with one sentence on the progress of the build. engines.opening reads it."""

LOG = "shoal-llamacpp.log"

PID = "shoal-llamacpp.pid"
"""A file in the environment with the process id of the background build, by which app.desktop.apps recognises
its load as ours."""

PROCESSOR = "shoal-llamacpp.processor"
"""In the environment too: what the processor it was built for can do, in Linux's words. Another one may not run
it; engines.llamacpp.model reads this."""

WHEN = "SHOAL_LLAMACPP"
"""Environment variable: "never" builds nothing, "now" builds without giving way to other programs, also when
Shoal has ended."""

COMPILE = "compile.txt"
"""A file beside the list of the sampler: the packages that build it."""
_SOURCE = re.compile(r"(?m)^llama.*(\n[ \t].*)*")
"""In a list or lock, the package that comes as source."""

AVX2_BUILD = "shoal-llamacpp-avx2"
"""In the environment too: llama.cpp's libraries as packs have them, with nothing newer than AVX2, for
measurements (engines.facts.ISA)."""

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
"""CMake's definitions: the library alone. packaging/requirements/llamacpp.cmake leaves out one part more."""

FEW_CORES = 4
"""On a computer with no more, the building rests while a trainer works."""
LOOK_S = 2.0
_AGAIN_S = 7 * 24 * 3600.0
"""Seconds until the next try after a build that failed, or without a compiler."""
_SOON_S = 3600.0
_PASSING = ("could not be reached", "is full", "is not there")
"""Words in messages about temporary problems: a network, a disk, a folder for temporary files."""
_STEP = re.compile(r"^\s*\[(\d+)/(\d+)\] ")
_COMPLAINT = re.compile(r"(error: |CMake Error|Killed|cannot allocate|No space left)", re.IGNORECASE)


class _Busy(Exception):
    """Another process is building already."""


def wanted() -> bool:
    """Whether building llama.cpp in the background is worth it here: not where a better engine runs."""
    return not stamp.APPLE_SILICON and not system.has_nvidia_card() and os.environ.get(WHEN) != "never"


def begin(root: str, variables: dict[str, str], lasting: bool = False) -> None:
    """Starts the building and returns at once. It ends with this process, which becomes Shoal, unless it is to
    be `lasting` or to hurry."""
    owner = 0 if lasting or os.environ.get(WHEN) == "now" else os.getpid()
    quiet: dict[str, object] = {"start_new_session": True}
    if os.name == "nt":
        flags = ("IDLE_PRIORITY_CLASS", "CREATE_NO_WINDOW", "CREATE_NEW_PROCESS_GROUP")
        quiet = {"creationflags": sum(getattr(subprocess, flag) for flag in flags)}
    try:
        with open(os.path.join(root, ".venv", LOG), "ab") as log:
            subprocess.Popen(
                [stamp.python_of(root), "-m", "app.install.launcher.optional", root, str(owner)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **quiet,  # type: ignore[call-overload]
            )
    except OSError:
        pass  # a disk that is full or a folder that is not ours: whatever was asked for will say so


def provide(root: Path, name: str, waiting: Callable[[], None], number: Path | None = None) -> None:
    """Installs one of stamp.PURPOSES that Shoal can do without, in the foreground, with progress. Raises
    SetupError, after remembering it, and whatever `waiting` raises, which is called when another process is
    already at it. The file `number` holds this process's number for as long."""
    with setup_lock(root / f".venv-{name}.lock", waiting) as held:
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
        if name in ("llamacpp", "avx2"):
            (root / ".venv" / SAYS).unlink(missing_ok=True)


def _provide(root: Path, name: str, held: int) -> None:
    folder, python = root / ".venv", Path(stamp.python_of(str(root)))
    ((name_of_list, options),) = stamp.PURPOSES[name]
    requirements = stamp.requirement_file(str(root), name_of_list)
    file, options = stamp.listed(requirements, options)
    with ProgressLine() as progress:
        orders = [["-r", file, *options]]
        if name in ("llamacpp", "avx2"):
            pip = install.pip_of(python, pythons.own())
            wheel = _wheel(root, pip, Path(requirements), progress, folder / LOG, held, name == "llamacpp")
        if name == "avx2":
            _put_beside(wheel, folder / AVX2_BUILD)
            return
        if name == "llamacpp":
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


def _put_beside(wheel: Path, to: Path) -> None:
    """The libraries of a wheel, in place of those that are in that folder."""
    new = to.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            if name.startswith("llama_cpp/lib/") and not name.endswith("/"):
                (new / Path(name).name).write_bytes(packed.read(name))
    shutil.rmtree(to, ignore_errors=True)
    new.rename(to)


def _wheel(
    root: Path,
    pip: list[str],
    requirements: Path,
    progress: ProgressLine,
    log: Path,
    held: int,
    native: bool,
) -> Path:
    """llama-cpp-python built for this computer, for AVX2 where it is not `native`, or the wheel that an earlier
    start, or a pip that outlived one, has built so. Raises SetupError."""
    folder = root / ".venv"
    pin = next(
        line for line in requirements.read_text(encoding="utf-8").splitlines() if line.startswith("llama")
    )
    name, _, version = pin.partition("==")
    unfinished = folder / ("shoal-build" if native else "shoal-build-avx2")
    definitions = dict(SLIM)
    if native:
        definitions["GGML_NATIVE"] = "ON"  # half as fast again in 16 bits where there is AVX-512
    done = folder / "shoal-wheels" / _made_for(definitions)
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
    definitions["CMAKE_PROJECT_llama_cpp_INCLUDE"] = str(work / requirements.with_suffix(".cmake").name)
    try:
        shutil.copy2(requirements.with_suffix(".cmake"), work)
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
                *(word for pair in definitions.items() for word in ("-C", "cmake.define.{}={}".format(*pair))),
                "-C",
                f"build-dir={work / 'build'}",
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
        if native:
            (folder / PROCESSOR).write_text(processor(), encoding="ascii")
        return built.replace(done / built.name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _work(folder: Path, what: str) -> Path:
    """A folder to build `what` in: this one, with what an earlier build of the same has left, or where its path
    has square brackets, which CMake takes for its own, one among the temporary files, under a name that no
    other user knows beforehand. Raises SetupError."""
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
    return install.for_pip(install.pip_settings(pip[0]), work)


def _made_for(definitions: Mapping[str, str]) -> str:
    """A name for what decides a build beside its source: a wheel that was built otherwise, or for another
    processor, does not suit this computer."""
    return hashlib.sha256(repr((sorted(definitions.items()), processor())).encode()).hexdigest()[:12]


class Steps:
    """Takes pip's lines and tells of every tenth of the files compiled, the owner and `elsewhere`."""

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
    """Why it could not be built, as a sentence."""
    text = "\n".join(said)
    if install.UNREACHABLE.search(text) or "No space left" in text or "CERTIFICATE_VERIFY" in text:
        return f"llama.cpp could not be built: {install.explain(said, log)}"
    complaints = [line.strip() for line in said if _COMPLAINT.search(line)] or said[-1:] or ["nothing said"]
    return (
        f"llama.cpp could not be built for this computer ({complaints[0][:200]}); look into {log}, and "
        "./shoal setup --engine llamacpp tries again."
    )


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """What this processor can do, in Linux's words; empty on other systems."""
    try:
        found = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo.read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return ""
    return found[1].strip() if found else ""


def jobs() -> int:
    """Files compiled at once: one for each core and 2 GB of memory; in the background a core stays free."""
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
    (root / ".venv" / SAYS).write_text(sentence + "\n", encoding="utf-8")


def _leave() -> None:
    raise _Busy


def build_tools(pip: list[str], requirements: Path, work: Path) -> dict[str, str]:
    """What builds it, of the hashes in the lock, below `work`; gives the variables by which Python finds it.
    Without a lock nothing: pip then fetches what the source asks for. Raises SetupError."""
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
        raise SetupError(install.explain(said, work / "tools.log"))
    (work / "tools.new").rename(work / "tools")
    return {"PYTHONPATH": str(work / "tools")}


def source(pip: list[str], requirements: Path, work: Path, log: Path, held: int, alone: bool) -> Path:
    """The folder with what is built: the one package that comes as source, of the hash in the lock, where there
    is one. It stays where it is, so that a build that was interrupted continues. `alone`: what builds it is
    there. Raises SetupError."""
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
        packed.extractall(work / "unpacked", filter="data")
    (folder,) = (work / "unpacked").iterdir()
    return folder.rename(work / "source")


def watch(owner: int, trainers: str) -> None:
    """Ends this process and all that it runs when the process `owner` has ended; 0 is none. On few cores, what
    it runs is stopped while a trainer works; `trainers` is the path of the Python that runs trainers, empty for
    none."""
    while True:
        if owner and os.getppid() != owner:
            os.killpg(0, signal.SIGKILL)
        if trainers and (os.cpu_count() or 1) <= FEW_CORES:
            resting = _trainer_works(trainers)
            for pid in _group():  # again each time: the one that was about to start has started by now
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGSTOP if resting else signal.SIGCONT)
        time.sleep(LOOK_S)


def _trainer_works(python: str) -> bool:
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_bytes().split(b"\0")
            if words[0] == os.fsencode(python) and b"app.node.trainer.process" in words:
                return True
    return False


def _group() -> list[int]:
    """The other processes of this one's group, on Linux."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            group = int(file.read_text(errors="replace").rpartition(")")[2].split()[2])
            if group == os.getpgrp() and file.parent.name != str(os.getpid()):
                found.append(int(file.parent.name))
    return found


def main(root: str, owner: str = "0") -> int:
    """The process in the background. Returns 1 after a failure, which it has remembered."""
    if hasattr(os, "nice"):
        os.nice(19)
    if os.environ.get(WHEN) != "now":
        # Linux weighs sessions before processes: without this, a session of its own counts like any other.
        with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
            group.write("19")
    number = Path(root) / ".venv" / PID
    if os.name == "posix" and os.getpgrp() == os.getpid():
        trainer = "" if os.environ.get(WHEN) == "now" else stamp.python_of(root)
        threading.Thread(target=watch, args=(int(owner), trainer), daemon=True).start()
    try:
        provide(Path(root), "llamacpp", _leave, number)
    except _Busy:
        with contextlib.suppress(OSError, ValueError):  # one that rests may have lost who would wake it
            os.killpg(int(number.read_text(encoding="ascii")), signal.SIGCONT)
        return 0
    except SetupError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
