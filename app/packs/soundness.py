"""Whether the engine in use still works: its Python starts, and what it promises can be imported. Writes
nothing, so it can be asked at any time, also where packs cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from app.common.files import read_json
from app.packs import place, programs
from app.packs.errors import PackError
from app.packs.manifest import Manifest


def fault(root: Path) -> str:
    """A sentence where the engine in use cannot compute; else empty. Takes some seconds."""
    used = place.current(root).current
    if not used or not place.interpreter(root / used).exists():
        return place.lacking()
    made_of = read_json(root / f"{used}.json", Manifest)
    if made_of is None:
        return "The engine is damaged: repair it, or install it again."
    with tempfile.TemporaryDirectory() as work, open(os.devnull, "rb") as nothing:
        try:
            programs.check(root / used, made_of.imports, Path(work), nothing.fileno())
        except PackError as error:
            return str(error)
    return ""
