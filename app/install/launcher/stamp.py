"""Checks in about a millisecond whether the environment is ready; every start of Shoal does so first.

A stamp is written at the end of a successful installation. It contains the requirement files used and the
interpreter's real path, so comparing needs no hashing, parsing or subprocess. Imports are few on purpose: each
one would delay every command."""

from __future__ import annotations

import os
import sys
import time

from app.install.launcher.pythons import SetupError

Parts = tuple[tuple[str, tuple[str, ...]], ...]

_MLX: Parts = (("mlx.txt", ("--only-binary", ":all:")),)
_LLAMACPP: Parts = (("llamacpp.txt", ("--only-binary", ":all:", "--no-deps")),)
_NATS: Parts = (("nats.txt", ("--only-binary", ":all:")),)

APPLE_SILICON = sys.platform == "darwin" and os.uname().machine == "arm64"

PURPOSES: dict[str, Parts] = {
    "run": (
        ("base.txt", ("--only-binary", ":all:")),
        # reasoning-gym names three source-only packages that Shoal never uses: its own list is not followed.
        ("gym.txt", ("--no-deps",)),
        *(_MLX if APPLE_SILICON else ()),
    ),
    "test": (("test.txt", ("--only-binary", ":all:")), *_NATS),
    # What follows Shoal can do without; see app.install.launcher.optional.
    "llamacpp": _LLAMACPP,
    "mlx": _MLX,
    "bench": (("bench.txt", ("--only-binary", ":all:")),),
    "nats": _NATS,
}
"""Requirement files and pip's options for them, in the order of installation, by purpose."""

OPTIONAL_ENGINES = ("llamacpp", "mlx")
"""Engines with requirements of their own, by their names in PURPOSES and in engines.facts, which the launcher
cannot read."""

UNFINISHED = "shoal-unfinished"
"""Name of a file that marks an environment that is being made or filled."""


def python_of(root: str) -> str:
    """Returns the interpreter of this copy's environment."""
    return os.path.join(
        root, ".venv", "Scripts" if os.name == "nt" else "bin", "python" + ".exe" * (os.name == "nt")
    )


HASHED = ("--require-hashes", "--no-deps")
"""pip's options for a lock: only files with these hashes, and no others."""


def lock_of(file: str) -> str:
    """Returns the path of a requirement file's lock, which pins versions and hashes (written by
    packaging/requirements/lock), or "" if it has none."""
    return _beside(file, ".lock")


def _beside(file: str, suffix: str) -> str:
    path = os.path.splitext(file)[0] + suffix
    return path if os.path.isfile(path) else ""


def listed(file: str, options: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Returns a requirement file's lock and pip's options for it; without a lock, the file itself."""
    lock = lock_of(file)
    return (lock, (*options, *HASHED)) if lock else (file, options)


def requirement_file(root: str, name: str) -> str:
    """Returns the path of a requirement file. Raises SetupError if it is missing."""
    path = os.path.join(root, "packaging", "requirements", name)
    if not os.path.isfile(path):
        raise SetupError(
            f"Shoal's own file {path} is missing, so it is not known what to install; get a complete copy of "
            "Shoal and start that."
        )
    return path


def ready(root: str, purpose: str) -> bool:
    """Whether everything for the purpose is installed, by the interpreter that is there now."""
    environment = os.path.join(root, ".venv")
    expected = _content(root, purpose)
    try:
        with open(_path(root, purpose), encoding="utf-8") as stamp:
            as_stamped = stamp.read() == expected
    except (OSError, ValueError):
        return False
    return (
        as_stamped
        and os.path.exists(python_of(root))
        and not os.path.exists(os.path.join(environment, UNFINISHED))
    )


def write(root: str, purpose: str) -> None:
    """Records that everything for the purpose is installed."""
    path = _path(root, purpose)
    with open(path + ".new", "w", encoding="utf-8") as stamp:
        stamp.write(_content(root, purpose))
    os.replace(path + ".new", path)


def remove(root: str, purpose: str) -> None:
    """Removes the record that `write` made."""
    if os.path.exists(_path(root, purpose)):
        os.unlink(_path(root, purpose))


def put_off(root: str, purpose: str, seconds: float) -> None:
    """Records that installing something optional failed, and for how long not to retry it."""
    with open(_path(root, purpose) + ".failed", "w", encoding="utf-8") as failed:
        failed.write(f"{time.time() + seconds:.0f}\n{_content(root, purpose)}")


def is_put_off(root: str, purpose: str) -> bool:
    """Whether `put_off` forbids a retry now, for the current requirements and interpreter."""
    try:
        with open(_path(root, purpose) + ".failed", encoding="utf-8") as failed:
            until, _, content = failed.read().partition("\n")
        return time.time() < float(until) and content == _content(root, purpose)
    except (OSError, ValueError, SetupError):
        return False


def _path(root: str, purpose: str) -> str:
    return os.path.join(root, ".venv", f"shoal-{purpose}.stamp")


def _content(root: str, purpose: str) -> str:
    parts = [os.path.realpath(python_of(root))]
    for name, options in PURPOSES[purpose]:
        listed = requirement_file(root, name)
        for path in filter(None, (listed, lock_of(listed), _beside(listed, ".cmake"))):
            with open(path, encoding="utf-8") as file:
                parts += [f"{os.path.basename(path)} {' '.join(options)}", file.read()]
    return "\n".join(parts)
