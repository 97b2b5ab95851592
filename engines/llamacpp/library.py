"""llama.cpp itself, through llama-cpp-python's low-level functions, loaded when it is first wanted.

Its functions report failure by a pointer that is NULL yet not None, so every pointer is tested as a bool.
What it says while it fails is kept for the log.
"""

from __future__ import annotations

import functools
import importlib
import platform
import sys
from pathlib import Path
from typing import Any

from engines.facts import FEATURES, features
from engines.remedy import command, installed, packed, repair

PROCESSOR = "shoal-llamacpp.processor"
"""In the environment: what app.install.launcher.optional found that the processor can do when it built
llama.cpp."""

_ERROR = 4
"""Log level of failures; 5 is the continuation of any line, 1 to 3 are for developers."""


def available() -> str:
    """Empty where llama.cpp can run, else one sentence: why not, and what to do. An engine pack's was built for
    AVX2; in a checkout it was built for the very processor, and the checkout may have moved."""
    built_for_avx2 = packed() and platform.machine().lower() in ("x86_64", "amd64")
    if built_for_avx2 and "avx2" not in features():  # its first such instruction would end this process
        return "llama.cpp needs a processor with AVX2 (2013 and later), and this one has none: PyTorch samples."
    if lacking := sorted(_built_for() - set(features())):
        return (
            f"llama.cpp was built for another processor, with {' and '.join(lacking)}: build it for this one "
            f"with {command('setup --engine llamacpp')}. PyTorch samples."
        )
    try:
        library()
    except ImportError:
        how = repair("llamacpp", ", which needs a C++ compiler")
        return f"llama.cpp isn't installed: {how}, or choose the torch engine."
    except (OSError, RuntimeError, FileNotFoundError, AttributeError) as error:
        said = " ".join(str(error).split())[:200]
        how = command("pack repair" if installed() else "setup --engine llamacpp")
        return f"llama.cpp doesn't load here ({said}): install it again with {how}."
    return ""


def computes_bf16() -> bool:
    """Whether this llama.cpp was built with the processor's own bf16 products; without them it is slow."""
    return b"AVX512_BF16 = 1" in library().llama_print_system_info()


def _built_for() -> set[str]:
    """Abilities that a build of this checkout may use."""
    try:
        return set(FEATURES) & set((Path(sys.prefix) / PROCESSOR).read_text(encoding="ascii").split())
    except (OSError, UnicodeDecodeError):
        return set()


@functools.cache
def library() -> Any:
    """The module with llama.cpp's functions. Raises ImportError or OSError where it cannot be loaded."""
    loaded: Any = importlib.import_module("llama_cpp.llama_cpp")
    loaded.llama_log_set(_log(loaded), None)
    loaded.llama_backend_init()
    return loaded


@functools.cache
def _log(loaded: Any) -> Any:
    """Failures go to standard error, the rest nowhere. Cached, because llama.cpp keeps only a bare pointer."""

    @loaded.llama_log_callback  # type: ignore[untyped-decorator]
    def hear(level: int, text: bytes, _: Any) -> None:
        if level == _ERROR:
            sys.stderr.write(text.decode("utf-8", "replace"))

    return hear
