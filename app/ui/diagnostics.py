"""What helps to find a fault: the log, the settings, facts about this computer. No keys, no answers, no names;
the person's own folder is written as ~. Shown before it is saved, and never sent."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import msgspec
import PySide6

from app.ui.model import View

LOG_BYTES = 64_000


def log(home: Path) -> str:
    """The ends of the node's and the trainer's log."""
    parts = []
    for name in ("node.log", "trainer.log"):
        try:
            with (home / "logs" / name).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            continue
        if text.strip():
            parts.append(f"--- {name}\n{text.rstrip()}")
    return "\n\n".join(parts)


def report(view: View) -> str:
    """The whole report as text."""
    home = Path(view.home)
    facts = {
        "system": platform.platform(),
        "python": platform.python_version(),
        "qt": PySide6.__version__,
        "processors": str(os.cpu_count()),
        "session": os.environ.get("XDG_SESSION_TYPE", "") or sys.platform,
        "state": view.state.value,
        "reason": view.reason,
        "model": view.model,
        "recipe": view.recipe,
        "engine": msgspec.json.encode(view.engine).decode() if view.engine else "",
        "rounds": str(view.safe_round),
    }
    if view.curve:
        facts["held-out"] = f"{view.curve[-1].pass_at_1:.4f} ± {view.curve[-1].stderr:.4f}"
    lines = [f"{name}: {value}" for name, value in facts.items() if value]
    for name in ("window.json",):
        try:
            lines.append(f"--- {name}\n{(home / name).read_text(encoding='utf-8').rstrip()}")
        except OSError:
            continue
    return "\n".join([*lines, log(home)]).replace(str(Path.home()), "~")
