"""Models to fetch."""

from __future__ import annotations

from tests.engines.conftest import make_model as make_model
