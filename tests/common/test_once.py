"""What every room needs is declared once: who makes it again is found here.

The launcher is free of this: it runs before anything is installed, with the standard library of an old Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FREE = ("app/install/launcher/",)

Finds = Callable[[ast.AST], bool]


def replaces_a_file(node: ast.AST) -> bool:
    """os.replace(a, b), os.rename(a, b), or PATH.replace(to): of one argument, for a text's has two."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    of, name = node.func.value, node.func.attr
    if isinstance(of, ast.Name) and of.id == "os":
        return name in ("replace", "rename")
    return name == "replace" and len(node.args) == 1 and not node.keywords


def locks_a_file(node: ast.AST) -> bool:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(name.partition(".")[0] in ("fcntl", "msvcrt", "filelock", "portalocker") for name in names)


def makes_text_safe(node: ast.AST) -> bool:
    """A walk over characters that keeps those that are printable."""
    return isinstance(node, ast.GeneratorExp | ast.ListComp) and any(
        isinstance(inner, ast.Attribute) and inner.attr == "isprintable" for inner in ast.walk(node)
    )


def waits_longer_each_time(node: ast.AST) -> bool:
    """min(LONGEST, FIRST * GROWTH ** FAILURES), in any order."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "min"
        and any(_grows(argument) for argument in node.args)
    )


def _grows(node: ast.AST) -> bool:
    """Whether a plain number, or a name that says it grows, is raised to something that changes."""
    return any(
        isinstance(inner, ast.BinOp)
        and isinstance(inner.op, ast.Pow)
        and not isinstance(inner.right, ast.Constant)
        and (isinstance(inner.left, ast.Constant) or getattr(inner.left, "id", "") == "growth")
        for inner in ast.walk(node)
    )


def downloads(node: ast.AST) -> bool:
    """Asks a host for the rest of a file."""
    return isinstance(node, ast.Dict) and any(
        isinstance(key, ast.Constant) and str(key.value).lower() == "range" for key in node.keys
    )


def fills_a_bucket(node: ast.AST) -> bool:
    """A class that has tokens taken from it and says how many are left, or what stands in for one."""
    if not isinstance(node, ast.ClassDef):
        return False
    methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    return {"take", "left"} <= methods and bool(methods & {"wait", "wait_s", "refill", "empty"})


PLACES: dict[Finds, set[str]] = {
    replaces_a_file: {"engines/files.py"},
    locks_a_file: {"engines/locks.py", "app/cli/_live.py"},  # which reads keys with msvcrt
    makes_text_safe: {"app/common/text.py"},
    waits_longer_each_time: {"app/common/rate.py"},
    downloads: {"app/common/fetch.py"},
    fills_a_bucket: {"app/common/rate.py", "app/relay/limits.py"},  # which charges a key and an address at once
}
"""What is looked for, and the only files that may have it."""

LOOKED_AT = (ast.Call, ast.Import, ast.ImportFrom, ast.GeneratorExp, ast.ListComp, ast.Dict, ast.ClassDef)


@cache
def places() -> dict[Finds, dict[str, list[int]]]:
    """The lines that have each, by file: every file is read and walked once for all of them."""
    where: dict[Finds, dict[str, list[int]]] = {finds: {} for finds in PLACES}
    for room in ("app", "engines"):
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(FREE):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                for finds in PLACES if isinstance(node, LOOKED_AT) else ():
                    if finds(node):
                        where[finds].setdefault(name, []).append(getattr(node, "lineno", 0))
    return where


@pytest.mark.parametrize("finds", PLACES, ids=lambda finds: finds.__name__)
def test_it_is_declared_in_one_place(finds: Finds) -> None:
    where = places()[finds]
    assert set(where) == PLACES[finds], f"use app.common instead: {where}"
