"""People's answers as lessons. A group of one right answer has no contrast, so the learner is asked the same
question: where all its own answers are wrong, they are the rest of the group, and the person's answer is what
they lacked. Where one of them is right there is nothing to learn. From there on it is a peer's group like any
other, with every defence and cap.
"""

from __future__ import annotations

import msgspec

from app.sapo.groups import ScoredGroup


def whole(person: ScoredGroup, own: ScoredGroup) -> ScoredGroup | None:
    """A person's answer with the learner's own failures at the same question; None where it did not fail.
    Raises ValueError for groups of two questions."""
    if person.group.coordinates != own.group.coordinates:
        raise ValueError("Both must answer the same question.")
    if any(own.rewards_G):
        return None
    group = msgspec.structs.replace(
        person.group,
        completions_G=person.group.completions_G + own.group.completions_G,
        finished_G=person.group.finished_G + own.group.finished_G,
    )
    return ScoredGroup(
        group=group, scores_G=person.scores_G + own.scores_G, rewards_G=person.rewards_G + own.rewards_G
    )
