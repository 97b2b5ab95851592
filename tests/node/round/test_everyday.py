"""Everyday language: what is read for its perplexity, and what is said of it."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
import pytest

from app.learning.language import ROUND_RETENTION
from app.node.record.records import Probe
from app.node.record.snapshot import Snapshot
from app.node.round import language
from app.node.round import language as everyday
from app.node.terminal.terminal import closing_sentence
from app.node.trainer.link import TrainerLink
from app.node.trainer.messages import GroupTokens, PeerTexts
from engines.contract import Batch, TokenSequence


def test_forty_different_replies() -> None:
    talks = everyday.talks()
    assert len(talks) == len({one.said for one in talks}) == len({one.reply for one in talks}) == 40


class Reader:
    """Finds every token of every reply but the first to be one in four, and the end unlikely."""

    async def read(
        self, groups_P: list[PeerTexts], max_tokens: int, *, logprobs: bool
    ) -> list[GroupTokens | None]:
        assert logprobs and all(group.prompt[-1]["role"] == "user" for group in groups_P)
        found: list[GroupTokens | None] = []
        for group in groups_P:
            (reply,), (finished,) = group.completions_G, group.finished_G
            assert finished
            tokens = [*map(ord, reply)]
            assert len(tokens) < max_tokens
            found.append(
                GroupTokens(
                    sequences_G=[TokenSequence(prompt_T=[1], completion_T=[*tokens, 0])],
                    logprobs_GT=[[math.log(0.25)] * len(tokens) + [-9.0]],
                )
            )
        return [None, *found[1:]]


def test_perplexity_is_of_the_replies_alone() -> None:
    found = asyncio.run(everyday.perplexity(cast(TrainerLink, Reader())))
    assert found == pytest.approx(4.0)


def probe(round: int, **what: Any) -> Probe:
    return Probe(round=round, share=0.5, stderr=0.1, **what)


def test_the_closing_line_says_how_it_speaks() -> None:
    def said(*curve: Probe) -> str:
        return closing_sentence(
            Snapshot(model="m", recipe="r", home="h", solo=True, started_at=0.0, safe_round=9, curve=curve)
        )

    assert "speaks" not in said(probe(0), probe(9)), "a model that does not talk"
    assert "speaks" not in said(probe(0, everyday=8.0))
    assert "as well as before. Everyday replies surprise it 4 % more" in said(
        probe(9, everyday=8.32, everyday_before=8.0)
    )
    assert "a little worse than before" in said(probe(9, everyday=9.0, everyday_before=8.0))
    assert "losing everyday language" in said(probe(9, everyday=19.0, everyday_before=8.0))
    told = probe(9, everyday=8.32, everyday_before=8.0).event_fields()
    assert (told["everyday"], told["everyday_before"], told["everyday_rise"]) == (8.32, 8.0, 0.04)


def test_what_is_held_is_never_what_is_measured() -> None:
    measured, held = everyday.talks(), everyday.talks(language.FILE)
    assert len({one.said for one in held}) == len({one.reply for one in held}) == len(held) == 64
    for part in ("said", "reply"):
        assert not {getattr(one, part) for one in measured} & {getattr(one, part) for one in held}


def test_a_step_carries_the_difference_to_what_replies_were_before(tmp_path: Path) -> None:
    link = cast(TrainerLink, Reader())
    remembered = asyncio.run(language.measure_reference(link))
    assert len(remembered) == 63  # the first does not fit
    language.write(tmp_path, remembered)
    assert tuple(language.read(tmp_path)) == remembered
    likelier = [
        msgspec.structs.replace(one, logprobs_T=[value + 0.5 for value in one.logprobs_T]) for one in remembered
    ]
    step = Batch(rows_S=[], learning_rate=1e-4)
    (same,) = asyncio.run(language.add_small_talk(link, remembered, [step], Random(1)))
    (pulled,) = asyncio.run(language.add_small_talk(link, likelier, [step], Random(1)))
    assert not any(weight for row in same.rows_S for weight in row.weights_T)
    assert all(set(row.weights_T[:-1]) == {max(row.weights_T)} for row in pulled.rows_S)
    tokens = sum(len(row.weights_T) for row in pulled.rows_S)
    assert max(pulled.rows_S[0].weights_T) * tokens == pytest.approx(0.5 * ROUND_RETENTION.strength)


def test_a_damaged_file_holds_nothing(tmp_path: Path) -> None:
    assert language.read(tmp_path) == ()
    (tmp_path / language.FILE).write_text('[{"talk": 1}]')
    assert language.read(tmp_path) == ()
    assert asyncio.run(language.add_small_talk(cast(TrainerLink, Reader()), (), [], Random(1))) == []
