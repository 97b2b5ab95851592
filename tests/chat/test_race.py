"""The race: which puzzles, how they are counted, and what is said of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat import messages
from app.chat.messages import ChatFailed, Lap, RaceScore
from app.chat.puzzles import draw_several
from app.chat.skills import OpenEngine
from app.chat.talking import Chat
from app.node.record.state import NodeState
from app.sapo import curriculum, questions
from engines.contract import Completion, EngineInfo, Messages

LEVELS = {"chain_sum": 0, "gcd": 1, "spell_backward": 0}


class Sampler:
    """Knows the answer to every sum with its adapter, and nothing without."""

    info = EngineInfo(
        name="sums", device="none", dtype="none", model="sums", parameters=0, trainable=0, threads=0,
        memory_budget_mb=0,
    )  # fmt: skip

    def __init__(self) -> None:
        self.seeds: list[tuple[bool, int]] = []

    def sample(
        self, prompts: Sequence[Messages], n: int, max_tokens: int, seed: int, *, plain: bool = False
    ) -> list[list[Completion]]:
        self.seeds.append((plain, seed))
        asked = [prompt[-1]["content"].partition(":")[2].strip().rstrip("= ") for prompt in prompts]
        answers = ["no idea" if plain else f"#{total(text)}" for text in asked]
        return [[Completion(tokens_T=[1], logprobs_T=[], finished=True, text=one)] for one in answers]


def total(text: str) -> int:
    """Of "4 + 3 - 2"."""
    words = text.split()
    return int(words[0]) + sum(int(f"{sign}{one}") for sign, one in zip(words[1::2], words[2::2], strict=True))


def test_the_puzzles_are_new_and_dealt_out_evenly_and_the_same_for_the_same_seed() -> None:
    found = draw_several(LEVELS, 20, random.Random(3))
    assert len(found) == 20 == len({puzzle.text for puzzle in found})
    assert all(questions.generate(puzzle.question.coordinates).held_out for puzzle in found)
    counts = [sum(puzzle.family == family for puzzle in found) for family in LEVELS]
    assert max(counts) - min(counts) <= 2, counts
    assert [puzzle.text for puzzle in draw_several(LEVELS, 20, random.Random(3))] == [one.text for one in found]
    assert [puzzle.text for puzzle in draw_several(LEVELS, 20, random.Random(4))] != [one.text for one in found]


def test_a_race_asks_both_sides_the_same_with_the_same_luck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Sampler()
    chat = Chat("starter", tmp_path, cast(OpenEngine, lambda *_: engine))
    monkeypatch.setattr(chat, "_refresh", lambda: None)
    try:
        (refused, *_) = chat.handle(messages.Race(number=1), lambda side, text: True)
        assert isinstance(refused, ChatFailed) and "nothing to race yet" in refused.sentence

        chat._state = NodeState(curriculum=curriculum.start({"chain_sum": 0}), round=4, identity="")
        heard: list[str] = []

        def go_on(side: str, text: str) -> bool:
            heard.append(side)
            return len(heard) < 2

        ended = list(chat.handle(messages.Race(number=2, puzzles=12, seed=7), go_on))
        laps = [one for one in ended if isinstance(one, Lap)]
        assert [lap.place for lap in laps] == list(range(10)), "it stopped after the second five"
        assert all(lap.after.solved and not lap.before.solved for lap in laps)
        assert all(questions.generate(lap.coordinates).text == lap.text for lap in laps)
        assert engine.seeds == [(True, 7), (False, 7), (True, 12), (False, 12)]
    finally:
        chat.close()


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
def test_a_result_counts_what_happened_and_its_error_is_that_of_a_sum(laps: list[tuple[bool, bool]]) -> None:
    result = RaceScore()
    for before, after in laps:
        result = result.plus(before, after)
    assert result.puzzles == len(laps) and result.lead == result.won - result.lost
    assert 0 <= result.p_value <= 1
    differences = [after - before for before, after in laps]
    mean = sum(differences) / max(1, len(laps))
    assert result.standard_error**2 == pytest.approx(sum((one - mean) ** 2 for one in differences), abs=1e-9)


def test_only_a_lead_beyond_chance_is_called_sure() -> None:
    assert RaceScore(puzzles=20, before=3, after=9, won=6, lost=0).is_significant
    assert not RaceScore(puzzles=20, before=3, after=8, won=5, lost=0).is_significant
    assert not RaceScore(puzzles=20, before=5, after=9, won=6, lost=2).is_significant
