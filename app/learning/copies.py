"""Copycats: keys that answer with each other's work count as one.

On a common question two honest models now and then say the same, word for word, and the likelier an answer is
the oftener: the untrained starter in 7 of 100 answers, and in 3 of 100 that show work (LOG.md). So a share of
answers in common does not tell copies from chance. Each answer is weighed instead by how likely it is that
another's G answers hold it, against a key of whose answers SHARE are copied, and the evidence of every pair is
summed up from where it last spoke for chance (Page 1954, Biometrika 41, "Continuous inspection schemes").
Pure but for what it remembers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from math import exp, log

SHARE = 0.05
"""The share of a key's answers copied from another key, from which on the two count as one."""
SURE = 14.0
"""Nats of evidence: two honest keys are taken for one after e^14 answers to common questions, or later."""
FLAT = 0.8
"""An answer's log-prob under this learner, times this, stands for that under another model of the swarm: what
is unlikely here need not be there."""
_PAIRS = 5000


def evidence(held: bool, logprob: float, answers: int) -> float:
    """Nats that one answer speaks for copying; `logprob` is that of the whole answer under this learner, `held`
    whether it is word for word among `answers` of the other key's to the same question.

    >>> [round(evidence(*one, 8), 2) for one in ((True, -10.0), (True, -2.0), (False, -10.0))]
    [2.97, 0.0, -0.05]
    """
    chance = min(1.0, answers * exp(FLAT * min(0.0, logprob)))
    if chance >= 1.0:
        return 0.0
    return log((SHARE + (1.0 - SHARE) * chance) / chance) if held else log(1.0 - SHARE)


class Copies:
    """Which keys count as one, by what this learner read of them."""

    def __init__(self) -> None:
        self._evidence: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._same: dict[str, str] = {}

    def name(self, peer: str) -> str:
        """The key that this one counts as: itself, unless it was found to be another's copy."""
        while peer in self._same:
            peer = self._same[peer]
        return peer

    def compare(
        self, peer: str, answers: Sequence[tuple[str, float]], others: Mapping[str, Collection[str]]
    ) -> None:
        """After a group of `peer`'s: its answers with the log-probs of each, and what other keys answered to
        the same question."""
        for other, texts in others.items():
            one, two = sorted((self.name(peer), self.name(other)))
            if one == two:
                continue
            total = self._evidence.pop((one, two), 0.0)
            for text, logprob in answers:
                total = max(0.0, total + evidence(text in texts, logprob, len(texts)))
            if total >= SURE:
                self._same[two] = one
                continue
            self._evidence[one, two] = total
            if len(self._evidence) > _PAIRS:
                self._evidence.popitem(last=False)
