"""Small JSON files that are read and replaced as a whole: kill -9 leaves the old one or the new one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

import msgspec

from app.replacing import replace

Content = TypeVar("Content")


def read(path: Path, kind: type[Content]) -> tuple[Content | None, str]:
    """The content, and a sentence about a damaged file, which is moved aside. None where there is nothing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind), ""
    except FileNotFoundError:
        return None, ""
    except (OSError, msgspec.MsgspecError) as error:
        aside = path.with_name(f"damaged-{path.name}-{token_hex(2)}")
        kept = ""
        with contextlib.suppress(OSError):
            path.rename(aside)
            kept = f" and is kept as {aside.name}"
        why = str(error).rstrip(".")
        return None, f"{path.name} cannot be read ({why}){kept}: what was in it is as at the first start."


def write(path: Path, content: object) -> None:
    """Raises OSError; then the old content is still there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        replace(fresh, path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
