"""Peers' groups through verl's own agent loop. Skipped where verl is missing: it wants ray and a card."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from app.sapo.questions import draw
from app.swarm.library.records import Group

pytest.importorskip("verl.experimental.agent_loop.agent_loop", reason="needs verl: pip install verl==0.9.1")

from omegaconf import OmegaConf
from transformers import AutoTokenizer
from verl.experimental.agent_loop.agent_loop import DictConfigWrap
from verl.utils.dataset.rl_dataset import RLHFDataset

from app.swarm.library.verl import PeerLoop, peer_rows

STARTER = Path(__file__).parents[3] / "resources" / "starter"


def group(wrong: str) -> Group:
    asked = draw("gcd", 0, 5)
    return Group(
        coordinates=asked.coordinates, completions=(wrong, "#7", "#8"), rewards=(0, 1, 0),
        finished=(True, True, False), question=asked.text, author="Ann",
    )  # fmt: skip


def test_each_repetition_of_a_row_gets_one_answer_of_the_group() -> None:
    tokenizer = AutoTokenizer.from_pretrained(STARTER)
    (row,) = peer_rows([group("<end>#1"), group("9" * 99)], tokenizer, longest=32)
    rollout = {"prompt_length": 160, "response_length": 32, "multi_turn": {"tool_config_path": None}}
    config: Any = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})

    async def repeated() -> list[Any]:
        wrapped = DictConfigWrap(config), DictConfigWrap(config.data)
        loop = PeerLoop(wrapped[0], None, tokenizer, None, RLHFDataset, wrapped[1])
        asked = dict(raw_prompt=row["prompt"], extra_info=row["extra_info"])
        return [await loop.run({}, priority=at, **asked) for at in range(3, 6)]

    first, second, third = asyncio.run(repeated())
    assert [one.reward_score for one in (first, second, third)] == [0.0, 1.0, 0.0]
    end = tokenizer.eos_token_id
    assert [one.response_ids.count(end) for one in (first, second, third)] == [1, 1, 0]
    assert tokenizer.decode(second.response_ids, skip_special_tokens=True) == "#7"
    assert first.prompt_ids == second.prompt_ids and first.response_mask == [1] * len(first.response_ids)
