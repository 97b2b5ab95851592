"""PROTOCOL.md: every word and number of the code is on it; its examples are those of test_conformance.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from app.swarm.wire import limits, protocol
from app.swarm.wire.body import Body, WireTask
from app.swarm.wire.limits import Code

PAGE = (Path(protocol.__file__).parents[1] / "PROTOCOL.md").read_text(encoding="utf-8")


def test_every_field_and_code_is_on_the_page() -> None:
    structs = [*get_args(protocol.FromClient), *get_args(protocol.FromRelay), protocol.Info, Body, WireTask]
    structs += [limits.RelayLimits, limits.Quotas]
    words = set(re.findall(r"`([a-z0-9_-]+)`", PAGE))
    for one in structs:
        assert set(one.__struct_fields__) - words == set(), one.__name__
    for code in Code:
        (row,) = [line for line in PAGE.splitlines() if line.startswith("|") and f"`{code.value}`" in line]
        assert row.split("|")[2].strip() == ("yes" if code.final else "no"), code


def test_every_limit_is_on_the_page() -> None:
    for number in (
        limits.FRAME_BYTES, limits.BATCH_FRAME, limits.BATCH_BYTES, limits.MAX_BODY_BYTES,
        limits.MAX_COMPLETION_CHARS, limits.MAX_AHEAD_S, limits.STALE_AFTER_S // 60, limits.MAX_SAMPLE_GROUPS,
        limits.MAX_COMPLETIONS,
    ):  # fmt: skip
        assert re.search(rf"(?<![\d,]){number:,}(?![\d,])", PAGE), number
