"""A stand-in for the installed app: a program that is no checkout and has no engine. It runs packaging/frozen's
own entry, so what needs an engine is really handed to the pack's Python; only PyInstaller's bundle is
missing."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec

from app.install.packs import manifest
from app.install.packs.offered import load_manifest

ROOT = Path(__file__).parents[3]
_PROGRAM = """#!/bin/sh
exec "{python}" "{folder}/main.py" "$@"
"""
_MAIN = """
import runpy, sys
sys.frozen, sys._MEIPASS, sys.executable = True, {inside!r}, {program!r}
sys.argv[0] = sys.executable
runpy.run_path({entry!r}, run_name="__main__")
"""


def stand_in(folder: Path, trust: dict[str, Any] | None = None) -> Path:
    """The program, in a folder of its own; `trust` is what its resources/release.json says."""
    source, program = folder / "_internal" / "source", folder / "shoal"
    shutil.copytree(ROOT / "app", source / "app", ignore=shutil.ignore_patterns("__pycache__", "studies"))
    (source / "engines").symlink_to(ROOT / "engines")
    (source / "resources").mkdir()
    for entry in (ROOT / "resources").iterdir():
        (source / "resources" / entry.name).symlink_to(entry)
    if trust is not None:
        (source / "resources" / "release.json").write_text(json.dumps(trust))
    names = {"inside": str(folder / "_internal"), "program": str(program)}
    names["entry"] = str(ROOT / "packaging" / "frozen" / "entry.py")
    (folder / "main.py").write_text(_MAIN.format(**names), encoding="utf-8")
    program.write_text(_PROGRAM.format(python=sys.executable, folder=folder), encoding="utf-8")
    program.chmod(0o755)
    return program


def trusting(key: str, url: str, pack: Path) -> dict[str, Any]:
    """What the build writes for an app whose only pack is at `url`; `pack` is its manifest here."""
    name, offer = pack.stem, manifest.offer(load_manifest(str(pack), (key,)).manifest)
    return {"keys": [key], "manifests": {name: url}, "offers": {name: msgspec.to_builtins(offer)}}
