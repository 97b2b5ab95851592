"""Everyday language: what is read for its perplexity, and what is said of it."""

from __future__ import annotations

import asyncio
import doctest
import math
from typing import Any, cast

import pytest

from app.node import everyday, records
from app.node.link import Link
from app.node.messages import Foreign, Reading
from app.node.records import Probe
from app.node.snapshot import Snapshot
from app.node.terminal import closing
from engines.contract import TokenSequence


@pytest.mark.parametrize("module", [everyday, records])
def test_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_forty_different_replies() -> None:
    talks = everyday.talks()
    assert len(talks) == len({one.said for one in talks}) == len({one.reply for one in talks}) == 40


class Reader:
    """Finds every token of every reply but the first to be one in four, and the end unlikely."""

    async def read(self, groups_P: list[Foreign], max_tokens: int, *, logprobs: bool) -> list[Reading | None]:
        assert logprobs and all(group.prompt[-1]["role"] == "user" for group in groups_P)
        found: list[Reading | None] = []
        for group in groups_P:
            (reply,), (finished,) = group.completions_G, group.finished_G
            assert finished
            tokens = [*map(ord, reply)]
            assert len(tokens) < max_tokens
            found.append(
                Reading(
                    sequences_G=[TokenSequence(prompt_T=[1], completion_T=[*tokens, 0])],
                    logprobs_GT=[[math.log(0.25)] * len(tokens) + [-9.0]],
                )
            )
        return [None, *found[1:]]


def test_perplexity_is_of_the_replies_alone() -> None:
    found = asyncio.run(everyday.perplexity(cast(Link, Reader())))
    assert found == pytest.approx(4.0)


def probe(round: int, **what: Any) -> Probe:
    return Probe(round=round, share=0.5, stderr=0.1, **what)


def test_the_closing_line_says_how_it_speaks() -> None:
    def said(*curve: Probe) -> str:
        return closing(
            Snapshot(model="m", recipe="r", home="h", solo=True, started_at=0.0, safe_round=9, curve=curve)
        )

    assert "speaks" not in said(probe(0), probe(9)), "a model that does not talk"
    assert "speaks" not in said(probe(0, everyday=8.0))
    assert "as well as before. Everyday replies surprise it 4 % more" in said(
        probe(9, everyday=8.32, everyday_before=8.0)
    )
    assert "a little worse than before" in said(probe(9, everyday=9.0, everyday_before=8.0))
    assert "losing everyday language" in said(probe(9, everyday=19.0, everyday_before=8.0))
    told = probe(9, everyday=8.32, everyday_before=8.0).told()
    assert (told["everyday"], told["everyday_before"], told["everyday_rise"]) == (8.32, 8.0, 0.04)
