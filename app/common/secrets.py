"""Secrets that come by the environment, and the environment without them: other programs of the owner can read
that of every process, so only a process that needs a secret has it."""

from __future__ import annotations

import os
from collections.abc import Mapping

PRIVATE = "SHOAL_PRIVATE"
"""The six words of a private swarm."""
PASSPHRASE = "SHOAL_PASSPHRASE"
"""Of the key, where no keyring keeps it."""


def without(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """For a process that works for this one and needs no secret.

    >>> without({"HOME": "/home/a", "SHOAL_PRIVATE": "six words", "SHOAL_PASSPHRASE": "x"})
    {'HOME': '/home/a'}
    """
    return {name: value for name, value in environment.items() if name not in (PRIVATE, PASSPHRASE)}
