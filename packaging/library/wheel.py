#!/usr/bin/env python3
"""Builds the wheel of `shoal-swarm`: `packaging/library/wheel.py DIR`, or pip, for which this is the backend.

The library is `app.swarm.library` with every module that its imports reach. In the wheel,
`app.swarm.library.X` is `shoal_swarm.X`, each other `app.X` is `shoal_swarm.X`, and `engines.X` is
`shoal_swarm.engines.X`: nobody's own `app` is in the way. Needs the standard library alone."""

from __future__ import annotations

import ast
import base64
import hashlib
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOP, LIBRARY = "shoal_swarm", "app.swarm.library"
CHILDREN = ("app.sapo.scoring.child",)
"""Modules that are started with -m, which no import shows."""
NAMED = re.compile(r"(?<![\w./])(?:app|engines)(?:\.\w+)+|(?<=from )(?:app|engines)(?= import )")
WHEN = (1980, 1, 1, 0, 0, 0)  # the same source gives the same bytes


def main() -> int:
    if len(sys.argv) != 2:
        print(f"usage: packaging/library/wheel.py DIR\n\n{__doc__}")
        return 2
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    made = out / build_wheel(str(out))
    print(f"{made} {made.stat().st_size / 1e3:.0f} kB")
    return 0


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """Writes the wheel into a folder and returns its file name, as PEP 517 asks of a backend."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    base = f"{TOP}-{version}"
    info = f"{base}.dist-info"
    files = package(closure())
    files[f"{info}/METADATA"] = metadata(project, version)
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: shoal\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    rows = [f"{name},sha256={digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    name = f"{base}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(zipfile.ZipInfo(path, WHEN), content, zipfile.ZIP_DEFLATED)
    return name


def closure() -> dict[str, Path]:
    """Returns the library's modules and all that they import of this repository, by name, in order."""
    library = [f"{LIBRARY}.{path.stem}" for path in ROOT.joinpath(*LIBRARY.split(".")).glob("[a-z]*.py")]
    found: dict[str, Path] = {}
    left = [LIBRARY, *library, *CHILDREN]
    while left:
        name = left.pop()
        path = file_of(name)
        if name in found or path is None:
            continue
        found[name] = path
        left += imported(path)
        left += [name.rpartition(".")[0]] if "." in name else []
    return dict(sorted(found.items()))


def file_of(name: str) -> Path | None:
    """Returns a module's file in this repository; None for what is no module of ours."""
    if name.partition(".")[0] not in ("app", "engines"):
        return None
    path = ROOT.joinpath(*name.split("."))
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next((one for one in files if one.is_file()), None)


def imported(path: Path) -> Iterable[str]:
    """Yields every name that a file imports when it runs, also inside functions."""
    left: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            left += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: imports are absolute here"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        left += ast.iter_child_nodes(node)


def package(modules: Mapping[str, Path]) -> dict[str, bytes]:
    """Returns the wheel's files, by path: each module at its new place, with the new names in it."""
    files = {}
    for name, path in modules.items():
        if name == "app":
            continue  # the library's own __init__ is the package's
        folder = renamed(name).replace(".", "/")
        place = f"{folder}/__init__.py" if path.name == "__init__.py" else f"{folder}.py"
        text = path.read_text(encoding="utf-8")
        files[place] = NAMED.sub(lambda found: translated(found[0], modules), text).encode()
    files[f"{TOP}/py.typed"] = b""
    return dict(sorted(files.items()))


def renamed(module: str) -> str:
    """Returns a module's name in the wheel."""
    if module == LIBRARY or module.startswith(f"{LIBRARY}."):
        return TOP + module.removeprefix(LIBRARY)
    return TOP + module.removeprefix("app") if module.startswith("app") else f"{TOP}.{module}"


def translated(name: str, modules: Mapping[str, Path]) -> str:
    """Returns a dotted name with its module renamed; unchanged if the wheel has no such module."""
    module, attributes = name, ""
    while module not in modules:
        module, dot, last = module.rpartition(".")
        if not dot:
            return name
        attributes = f".{last}{attributes}"
    return name if module == "app" else renamed(module) + attributes


def metadata(project: Mapping[str, Any], version: str) -> bytes:
    """Returns the wheel's METADATA, with the library's docstring as its description."""
    about = ast.get_docstring(ast.parse((file_of(LIBRARY) or HERE).read_text(encoding="utf-8"))) or ""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        *(f"Requires-Dist: {one}" for one in project["dependencies"]),
    ]
    for extra, wanted in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {one} ; extra == '{extra}'" for one in wanted]
    lines += ["Description-Content-Type: text/plain", "", about, ""]
    return "\n".join(lines).encode()


def digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    sys.exit(main())
