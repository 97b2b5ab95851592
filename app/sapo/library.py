"""The only importer of reasoning-gym: everything else imports it from here.

Three of the library's imports (pycosat, zss, cellpylib) exist only as source packages and serve tasks that
Shoal does not enable, so placeholders stand in for them: nothing is compiled on the owner's computer, and
matplotlib, which cellpylib would bring along, stays out of the node.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import types
from collections.abc import Iterator
from functools import cache
from typing import Any

VERSION = "0.1.25"


@cache
def gym() -> Any:
    """The reasoning_gym module, imported on first use (0.6 s)."""
    for name, attributes in (("pycosat", ()), ("cellpylib", ()), ("zss", ("Node", "simple_distance"))):
        if name not in sys.modules:
            stand_in = types.ModuleType(name)
            for attribute in attributes:
                setattr(stand_in, attribute, None)
            sys.modules[name] = stand_in
    with silence():
        return importlib.import_module("reasoning_gym")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Swallows prints: the library's `bf` family writes to standard output, which carries our messages."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
