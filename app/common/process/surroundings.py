"""Builds a clean environment for child processes: this copy of Shoal on the import path, nothing else that
Python would import, an existing working directory, and open standard streams.

A `numpy.py` on the user's PYTHONPATH shadows the library of that name, and an odd libstdc++ on LD_LIBRARY_PATH
the system's: either crashes a trainer with an error that names neither. Standard library only and compatible
with Python 3.7, because the launcher uses it before anything is installed.

A secret never goes to another process as an argument, which everybody on the computer reads. Other
programs of the owner can read the environment of every process, so our own processes get them by a pipe, and a
process that needs none has none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
LEFT_OUT = "SHOAL_LEFT_OUT"
"""Environment variable: names of the user's variables that were removed, separated by commas."""
PYTHONS_OWN = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONINSPECT", "PYTHONSTARTUP"),
    "PYTHONWARNINGS",
)
"""Variables that change what Python imports, keep a process from ending, or make a library's warning end it."""
_BUNDLES = (
    *("LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"),
    *("QT_PLUGIN_PATH", "QML2_IMPORT_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH"),
)
"""Variables that PyInstaller sets for its own program."""
_CLASHING = ("libstdc++.so", "libgcc_s.so", "libgomp.so", "libiomp5.so", "libmkl_", "libc10.so", "libtorch")
"""Name prefixes of libraries that torch, NumPy and Qt bring along or take from the system."""
_SYSTEMS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib")


def child_environment(environment: Mapping[str, str] = os.environ, root: str = ROOT) -> dict[str, str]:
    """Returns the environment variables for a child process, derived from `environment`.

    >>> own = {"HOME": "/home/a", "PYTHONPATH": "/home/a/own", "PYTHONHOME": "/opt"}
    >>> made = child_environment(own, "/shoal")
    >>> made["HOME"], made["PYTHONPATH"], made["SHOAL_LEFT_OUT"]
    ('/home/a', '/shoal', 'PYTHONPATH,PYTHONHOME')
    """
    kept = {name: value for name, value in environment.items() if name not in PYTHONS_OWN}
    names = variables_left_out(environment, root)
    if names:
        kept[LEFT_OUT] = ",".join(names)
    if "LD_LIBRARY_PATH" in names:
        del kept["LD_LIBRARY_PATH"]  # an empty one would mean the working directory
        libraries = without_clashing(environment["LD_LIBRARY_PATH"])
        if libraries:
            kept["LD_LIBRARY_PATH"] = libraries
    return {**kept, "PYTHONPATH": root, "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}


def environment_outside_app(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the environment for a program outside the installed app: without the variables that PyInstaller
    set, which would make it load the app's libraries, and with the original LD_LIBRARY_PATH.

    >>> own = {"LD_LIBRARY_PATH": "/app", "LD_LIBRARY_PATH_ORIG": "/own", "QT_PLUGIN_PATH": "/app", "A": "b"}
    >>> environment_outside_app(own)
    {'A': 'b', 'LD_LIBRARY_PATH': '/own'}
    """
    kept = {
        name: value
        for name, value in environment.items()
        if name not in _BUNDLES and not name.endswith("_ORIG") and "_PYI_" not in name
    }
    before = environment.get("LD_LIBRARY_PATH_ORIG")
    return {**kept, "LD_LIBRARY_PATH": before} if before else kept


def variables_left_out(environment: Mapping[str, str] = os.environ, root: str = ROOT) -> list[str]:
    """Returns the names of the user's variables that are not passed on, or only in part."""
    names = [name for name in environment.get(LEFT_OUT, "").split(",") if name]
    names += [name for name in PYTHONS_OWN if environment.get(name) and environment[name] != root]
    libraries = environment.get("LD_LIBRARY_PATH", "")
    if libraries and not getattr(sys, "frozen", False) and without_clashing(libraries) != libraries:
        names.append("LD_LIBRARY_PATH")  # PyInstaller's own folder stays
    return list(dict.fromkeys(names))


def without_clashing(
    paths: str, names_in: Callable[[str], list[str]] = os.listdir, systems: Sequence[str] = _SYSTEMS
) -> str:
    """Returns LD_LIBRARY_PATH without the folders that hold a library in `_CLASHING`, if the system has its own
    libstdc++. Where it has none (NixOS), the path is needed to find it and is returned unchanged."""

    def clashing(place: str) -> list[str]:
        try:
            return [name for name in names_in(place) if name.startswith(_CLASHING)]
        except OSError:
            return []

    if not any(name.startswith("libstdc++.so") for place in systems for name in clashing(place)):
        return paths
    return ":".join(place for place in paths.split(":") if place in systems or not clashing(place))


def working_folder() -> str:
    """Returns a working directory for a child process: the current one, or Shoal's own folder if that was
    deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ROOT


def repair_folder_and_streams() -> None:
    """Leaves a deleted working directory, and opens standard streams that were closed (`>&-`). Otherwise the
    next opened file would get a stream's descriptor and receive what is printed."""
    os.chdir(working_folder())
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # takes the lowest number, which is this one
            os.set_inheritable(opened, True)
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(number, mode, closefd=False))


PRIVATE_WORDS = "SHOAL_PRIVATE"
"""Environment variable with the six words of a private swarm."""
FROM_STDIN = "-"
"""Command-line placeholder for a secret that is read from the next line of standard input."""
_LONGEST = 4096  # bytes; no secret is longer


def read_stdin_line(descriptor: int = 0) -> str:
    """Reads one line from `descriptor` without its line end, and no byte beyond it; "" at the end of input.
    Lines of more than 4,096 bytes are cut."""
    line = bytearray()
    while len(line) < _LONGEST:
        byte = os.read(descriptor, 1)
        if byte in (b"", b"\n"):
            break
        line += byte
    return line.decode("utf-8", "replace").strip()


def without_secrets(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the environment without secrets, for child processes that need none.

    >>> without_secrets({"HOME": "/home/a", "SHOAL_PRIVATE": "six words"})
    {'HOME': '/home/a'}
    """
    return {name: value for name, value in environment.items() if name != PRIVATE_WORDS}
