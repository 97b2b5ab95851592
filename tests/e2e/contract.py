"""What programs outside may read of `--json`: every key and its type, as json_keys.json beside this has them.

A shape is the name of a type, several joined by "|", a list with the shape of its items, {"*": shape} for a map
with free keys, or an object whose keys are exactly those.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SHAPES: dict[str, Any] = json.loads(Path(__file__).with_name("json_keys.json").read_text())
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def misfits(value: object, shape: Any, where: str) -> list[str]:
    """What does not fit, in words; nothing where all does.

    >>> misfits({"a": 1, "b": [2, "x"]}, {"a": "integer|null", "b": ["number"]}, "it")
    ['it.b[1] is str, not number']
    >>> misfits({"a": True}, {"a": "integer", "c": "string"}, "it")
    ["it has ['a'], not ['a', 'c']", 'it.a is bool, not integer']
    """
    if isinstance(shape, str):
        fits = any(_fits(value, name) for name in shape.split("|"))
        return [] if fits else [f"{where} is {type(value).__name__}, not {shape}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [one for at, item in enumerate(value) for one in misfits(item, shape[0], f"{where}[{at}]")]
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    if "*" in shape:
        return [one for key, item in value.items() for one in misfits(item, shape["*"], f"{where}.{key}")]
    found = [] if set(value) == set(shape) else [f"{where} has {sorted(value)}, not {sorted(shape)}"]
    return found + [
        one for key in shape if key in value for one in misfits(value[key], shape[key], f"{where}.{key}")
    ]


def _fits(value: object, name: str) -> bool:
    if name == "any":
        return True
    if name == "boolean" or isinstance(value, bool):
        return name == "boolean" and isinstance(value, bool)
    return isinstance(value, _TYPES[name])


def event_misfits(event: dict[str, Any]) -> list[str]:
    """Of one line of `./shoal run --json`."""
    kind = str(event.get("event"))
    return misfits(event, SHAPES["run"][kind], kind) if kind in SHAPES["run"] else [f"{kind} is unknown"]
