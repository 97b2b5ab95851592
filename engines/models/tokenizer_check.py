"""Tries a model's tokenizer.json in a process of its own before this one reads it.

The file is a program for a library that trusts it: a regular expression, replacements that feed on each other,
padding to any length. It may end the process that reads it, or fill the memory. So a process with limits of
memory and time reads it first, and some texts with it; how that ends becomes one sentence. Windows and macOS
keep no limit of memory. What only a rare text sets off is found where it shows in the file (replacements), not
in a regular expression, which then ends the trainer.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

_SECONDS, _PATIENCE_S = 20, 120.0
"""Of the processor, and in all: a busy computer is slower. A vocabulary of 256,000 words takes 2."""
_BYTES, _EXPANSION = 2**30, 40
"""Memory for it, or this times its size if that is more."""
_LONGEST_FILE = 256 * 2**20
_GROWTH = 64
"""Maximum characters that all its replacements together make of one. Usual files: 1."""
_TOKENS_PER_BYTE, _MORE = 4, 64
"""Maximum tokens of a text for each of its bytes, and in addition."""
_BEGINS = ">"
"""Written before the file is read, so that a process that doesn't start isn't blamed on the file."""
_TEXTS = (
    "".join(map(chr, range(32, 127))),
    "The number 12345 is odd.\n\n  def f(x):\treturn x ** 2\n" * 40,
    "a" * 2000,
    " " * 500 + "\n" * 100,
    "Größe, café, Ωμέγα, Привет, 你好, 日本語, 한국어, नमस्ते, مرحبا, 👋🏽 ½ e\u0301",
)


@lru_cache(maxsize=64)
def _fault(file: str, size: int, changed: int) -> str:
    """Returns why a tokenizer.json can't be used, in some words; empty if it can."""
    command = (sys.executable, "-P", "-m", "engines.models.tokenizer_check", file)
    own = {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}
    own |= {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            creationflags=flags,
            env={**os.environ, **own},
        )
    except subprocess.TimeoutExpired as error:  # perhaps the computer is busy: not remembered
        raise ChildProcessError("A model's tokenizer.json takes too long to read. Try again.") from error
    _, began, said = done.stdout.decode("utf-8", "replace").partition(_BEGINS)
    if not began:
        raise ChildProcessError("The process that tries a model's files doesn't start. Restart Shoal.")
    return said if done.returncode == 0 else said or "it needs too much time or memory, or ends what reads it"


def tokenizer_fault(file: Path) -> str:
    """Returns why a tokenizer.json can't be used, in some words; empty if it can. Raises OSError,
    also if there can't be a process."""
    found = file.stat()
    if found.st_size > _LONGEST_FILE:
        return f"it is larger than {_LONGEST_FILE // 2**20} MB"
    return _fault(str(file.resolve()), found.st_size, found.st_mtime_ns)


def growth(part: object) -> float:
    """Returns how many characters all replacements in a tokenizer.json together can make of one.

    >>> growth({"type": "Replace", "pattern": {"String": " "}, "content": "\\u2581"})
    1.0
    >>> growth([{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 9}] * 3)
    729.0
    """
    if isinstance(part, dict):
        own = 1.0
        if part.get("type") == "Replace" and isinstance(content := part.get("content"), str):
            pattern = part.get("pattern")
            plain = pattern.get("String") if isinstance(pattern, dict) else None
            own = max(1.0, len(content) / max(1, len(plain) if isinstance(plain, str) else 1))
        return own * math.prod(map(growth, part.values()))
    return math.prod(map(growth, part)) if isinstance(part, list) else 1.0


def _limit(size: int) -> None:
    if sys.platform != "win32":
        import resource

        used = 0
        with contextlib.suppress(OSError):
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        most = used + max(_BYTES, _EXPANSION * size)
        wanted = {resource.RLIMIT_AS: most, resource.RLIMIT_CPU: _SECONDS, resource.RLIMIT_CORE: 0}
        for kind, limit in wanted.items():
            hard = resource.getrlimit(kind)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            with contextlib.suppress(OSError, ValueError):  # macOS knows some of them by name alone
                resource.setrlimit(kind, (limit, limit))


def _try(file: Path) -> str:
    from tokenizers import Tokenizer

    print(_BEGINS, end="", flush=True)
    content = file.read_bytes()
    _limit(len(content))
    whole = json.loads(content)
    parts = {name: part for name, part in whole.items() if name not in ("model", "added_tokens")}
    if growth(parts) > _GROWTH:
        return "its replacements make long texts of short ones"
    opened = Tokenizer.from_str(content.decode())
    opened.no_padding()
    opened.no_truncation()
    for text in _TEXTS:
        for special in (False, True):
            ids = opened.encode(text, add_special_tokens=special).ids
            if len(ids) > _TOKENS_PER_BYTE * len(text.encode()) + _MORE:
                return f"it makes {len(ids)} tokens of {len(text)} characters"
        opened.decode(ids)
    return ""


def main() -> None:
    try:
        said = _try(Path(sys.argv[1]))
    except BaseException as error:  # the library panics, which is no Exception
        said = f"it is damaged: {' '.join(str(error).split())[:120].rstrip('.: ') or type(error).__name__}"
    sys.stdout.buffer.write(said.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
