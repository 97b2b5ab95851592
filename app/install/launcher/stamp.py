"""Whether the environment is ready, told in about a millisecond: every start of Shoal asks this first.

A stamp is written last, after an installation that went through. It holds the very requirement files it was
made from and the interpreter's real path, so nothing is hashed, parsed or started to compare. Few imports, on
purpose: each one would delay every command.
"""

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
    "avx2": _LLAMACPP,  # built otherwise
    "mlx": _MLX,
    "bench": (("bench.txt", ("--only-binary", ":all:")),),
    "nats": _NATS,
    "ray": (("ray.txt", ("--only-binary", ":all:")),),
}
"""What is installed for which purpose, in this order: the requirement file and pip's options for it."""

OPTIONAL_ENGINES = ("llamacpp", "mlx")
"""Engines with requirements of their own, by their names in PURPOSES and in engines.facts, which the launcher
cannot read."""

UNFINISHED = "shoal-unfinished"
"""Marks an environment that is being made or filled."""


def python_of(root: str) -> str:
    """The interpreter of the environment in this copy of the project."""
    return os.path.join(
        root, ".venv", "Scripts" if os.name == "nt" else "bin", "python" + ".exe" * (os.name == "nt")
    )


HASHED = ("--require-hashes", "--no-deps")
"""pip's options with a lock: only files of these hashes, and nothing else."""


def lock_of(file: str) -> str:
    """The lock beside a requirement file (packaging/requirements/lock writes it); "" where a copy of the
    project has none."""
    lock = os.path.splitext(file)[0] + ".lock"
    return lock if os.path.isfile(lock) else ""


def listed(file: str, options: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The lock of a requirement file with the options that pip gets for it; without a lock, the file itself."""
    lock = lock_of(file)
    return (lock, (*options, *HASHED)) if lock else (file, options)


def requirement_file(root: str, name: str) -> str:
    """Its path. Raises SetupError when it is not there."""
    path = os.path.join(root, "packaging", "requirements", name)
    if not os.path.isfile(path):
        raise SetupError(
            f"Shoal's own file {path} is missing, so it is not known what to install; get a complete copy of "
            "Shoal and start that."
        )
    return path


def ready(root: str, purpose: str) -> bool:
    """Whether everything for the purpose is installed and was installed by the interpreter that is there
    now."""
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
    """Removes that record."""
    if os.path.exists(_path(root, purpose)):
        os.unlink(_path(root, purpose))


def put_off(root: str, purpose: str, seconds: float) -> None:
    """Records that installing something optional failed, and for how long it should not be tried again."""
    with open(_path(root, purpose) + ".failed", "w", encoding="utf-8") as failed:
        failed.write(f"{time.time() + seconds:.0f}\n{_content(root, purpose)}")


def is_put_off(root: str, purpose: str) -> bool:
    """Whether that was recorded not too long ago, for the present requirements and interpreter."""
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
        for path in filter(None, (listed, lock_of(listed))):
            with open(path, encoding="utf-8") as file:
                parts += [f"{os.path.basename(path)} {' '.join(options)}", file.read()]
    return "\n".join(parts)
