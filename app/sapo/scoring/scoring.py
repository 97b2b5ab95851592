"""From completions to rewards: the answer is taken out, scored in the sandbox and made binary."""

from __future__ import annotations

from app.sapo.asking import extract_answer
from app.sapo.groups import Group, ScoredGroup, binary_rewards
from app.sapo.scoring.sandbox import Sandbox


def score_group(sandbox: Sandbox, group: Group) -> ScoredGroup:
    """A group, own or peer's, with this node's verdicts. Nothing the sender claimed is used. Blocking: from
    asyncio call it through `asyncio.to_thread`. Raises QuestionError, and ValueError when the group is not
    whole."""
    if len(group.completions_G) != len(group.finished_G):
        raise ValueError(
            f"This group has {len(group.completions_G)} completions, but {len(group.finished_G)} marks of "
            "having ended: leave it out."
        )
    answers_G = [extract_answer(completion) for completion in group.completions_G]
    scores_G = tuple(sandbox.score(group.coordinates, answers_G))
    return ScoredGroup(group=group, scores_G=scores_G, rewards_G=binary_rewards(scores_G, group.finished_G))
