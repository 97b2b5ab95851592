"""The error of a build when it cannot go on."""

from __future__ import annotations


class BuildError(Exception):
    """Says what is missing and what to do, in one sentence."""
