"""Peers' groups as extra samples of verl: rows for its data set, and the agent loop that answers them.

verl asks an agent loop for every sample and repeats a row `rollout.n` times. A row made by `peer_rows` carries
its group's n answers, and `PeerLoop` returns one of them to each repetition without asking a model, with its
reward and without log-probabilities: so leave `rollout.calculate_log_probs` off. Import this module where agent
loops run.

Made for verl 0.9.1, whose trainers need a graphics card: tried with verl's own classes alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput, register

from app.swarm.library.records import Group

AGENT = "shoal_peer"


def peer_rows(groups: Iterable[Group], tokenizer: Any, longest: int) -> list[dict[str, Any]]:
    """Returns a row of verl's data set for each group that `Sea.sample(count, answers=n)` gave, n being
    `rollout.n`. `tokenizer`: the trained model's. Groups with an empty answer, or one of more than `longest`
    tokens (`rollout.response_length`), are left out."""
    rows = []
    for group in groups:
        ids_G = group.tokens(tokenizer)
        if not all(0 < len(ids) <= longest for ids in ids_G):
            continue
        rows.append(
            {
                "agent_name": AGENT,
                "data_source": "shoal",
                "prompt": group.messages,
                "ability": group.coordinates.family,
                "reward_model": {"style": "rule", "ground_truth": ""},
                "extra_info": {
                    "response_ids": ids_G,
                    "rewards": list(group.rewards),
                    "author": group.author,
                    "coordinates": msgspec.structs.asdict(group.coordinates),
                },
            }
        )
    return rows


@register(AGENT)
class PeerLoop(AgentLoopBase):  # type: ignore[misc]
    """Answers a row with what a peer wrote: its repetitions, which verl numbers through the batch as their
    `priority`, get one answer each."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        info = row["extra_info"]
        at = int(row["priority"]) % len(info["rewards"])
        response_ids = [int(one) for one in info["response_ids"][at]]
        return AgentLoopOutput(
            prompt_ids=await self.ct_build_initial_tokens(list(row["raw_prompt"])),
            response_ids=response_ids,
            response_mask=[1] * len(response_ids),
            reward_score=float(info["rewards"][at]),
            num_turns=2,
            metrics=AgentLoopMetrics(),
            extra_fields={"turn_scores": [], "tool_rewards": []},
        )
