"""Nothing that Shoal writes into its data folder is strange to it: else moving and removing would leave it."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from app.node.data.contents import DataKind, kind_of_entry

ROOT = Path(__file__).parents[3]
HOMES = {"home", "_home", "data_folder"}
"""What a data folder is called, as a variable or as the function that finds it."""
ALSO = {
    "app/swarm/identity/storage.py": {"folder"},
    "app/node/swarm/member.py": {"_folder"},
    "app/swarm/membership.py": {"_folder"},
}
"""Where it has another name."""
NOT = {"app/install/packs/place.py": "HOME is the person's"}
LEFT_OUT = ("app/lab", "app/bench")
"""They write only where they are told to."""


def product() -> list[Path]:
    files = [path for room in ("app", "engines") for path in (ROOT / room).rglob("*.py")]
    names = [path.relative_to(ROOT).as_posix() for path in files]
    return sorted(ROOT / name for name in names if not name.startswith(LEFT_OUT) and name not in NOT)


def below_home(source: str, homes: set[str]) -> Iterator[ast.expr]:
    """The first name below the data folder in every path that a source builds from it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_home(node.left, homes):
            yield node.right


def _is_home(node: ast.expr, homes: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in homes
        case ast.Attribute(value=ast.Name(id="Path"), attr="home"):
            return False
        case ast.Attribute(attr=name) if name in homes:
            return True
        case ast.Attribute(value=inner):
            return _is_home(inner, homes)
        case ast.Call(func=ast.Name(id="Path"), args=[one]):
            return _is_home(one, homes)
        case ast.Call(func=ast.Name(id="prepare_data_folder")):
            return True
        case ast.Call(func=function):
            return _is_home(function, homes)
    return False


def spelled(node: ast.expr, module: ModuleType) -> str | None:
    """A name as it is on the disk, each number in it an x; None where only a running program knows it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            found = getattr(module, name, None)
        case ast.Attribute(value=ast.Name(id=one), attr=name):
            found = getattr(getattr(module, one, None), name, None)
        case ast.JoinedStr(values=parts):
            return "".join(spelled(part, module) or "x" for part in parts)
        case ast.FormattedValue(value=inner):
            return spelled(inner, module)
        case _:
            found = None
    return found if isinstance(found, str) else None


def names(path: Path) -> dict[str, str | None]:
    """Every name that a file opens below the data folder, by how it is written there."""
    where = path.relative_to(ROOT)
    found = list(below_home(path.read_text(encoding="utf-8"), HOMES | ALSO.get(where.as_posix(), set())))
    if not found:
        return {}
    module = importlib.import_module(".".join(where.with_suffix("").parts))
    return {ast.unparse(node): spelled(node, module) for node in found}


def test_every_name_that_the_product_opens_in_its_data_folder_is_among_its_contents() -> None:
    opened = {
        f"{path.relative_to(ROOT)}: {text}": name for path in product() for text, name in names(path).items()
    }
    assert [where for where, name in opened.items() if name is None] == []
    assert [where for where, name in opened.items() if name and kind_of_entry(name) is None] == []
    assert set(opened.values()) > {
        "trials.json",
        "identity.json",
        "outbox.sqlite",
        "window.lock",
        "window.socket",
        "hub",
        "swarm",
    }


def test_measurements_can_be_made_again_and_a_swarm_cannot() -> None:
    assert kind_of_entry("trials.json") is kind_of_entry(".trials.json-4711") is DataKind.CACHE
    assert kind_of_entry("swarm") is DataKind.LEARNED
