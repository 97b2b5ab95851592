"""Exports the families as an environment for `verifiers` and prime-rl: a package with the taskset and our
scorers."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

PACKAGE = "shoal_puzzles"
ROOM = "app.sapo"
TASKSET_IMPORTS = (f"{ROOM}.asking", f"{ROOM}.families", f"{ROOM}.questions", f"{ROOM}.seeds")
"""Modules that the taskset imports; everything in ROOM that they import is exported too."""

_ROOT = Path(__file__).parents[2]
_FRAME = _ROOT / "resources" / "verifiers"


class EnvironmentFolderError(ValueError):
    """The folder is not empty; the message says what to do."""


def write(to: Path) -> int:
    """Writes the package into a folder that is empty or does not exist, and returns its number of files. Raises
    EnvironmentFolderError and OSError."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise EnvironmentFolderError(f"{to} is there already: name a folder that does not exist or is empty.")
    package = to / PACKAGE
    package.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md"):
        shutil.copyfile(_FRAME / name, to / name)
    shutil.copyfile(_ROOT / "LICENSE", to / "LICENSE")
    shutil.copyfile(_FRAME / "taskset.py", package / "taskset.py")
    (package / "__init__.py").write_text(
        f'from {PACKAGE}.taskset import PuzzleTaskset\n\n__all__ = ["PuzzleTaskset"]\n',
        encoding="utf-8",
    )
    for source in required_files():
        copy = package / source.relative_to(_ROOT / "app")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(source.read_text(encoding="utf-8").replace(ROOM, f"{PACKAGE}.sapo"), encoding="utf-8")
    return sum(path.is_file() for path in to.rglob("*"))


def required_files() -> set[Path]:
    """The files of ROOM that TASKSET_IMPORTS need. Raises ValueError if one of them imports from another
    room."""
    found: set[Path] = set()
    wanted = [ROOM, *TASKSET_IMPORTS]
    while wanted:
        path = _ROOT / wanted.pop().replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file in found or not file.is_file():  # a name in a module, not a module
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("app"):
                if not node.module.startswith(ROOM):
                    raise ValueError(f"{file} needs {node.module}, which is of another room.")
                wanted += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return found
