"""The diagnostics tell how far another sampler is from the learner."""

from __future__ import annotations

from app.node.record.records import Round
from app.ui.settings.diagnostics import ROUNDS, sampler
from app.ui.view.view import View


def test_the_last_rounds_of_another_sampler() -> None:
    before = Round(round=1, seconds=1.0, informative_own=0, train_solved=0.0)
    assert sampler(View()) == sampler(View(rounds=(before,))) == ""
    others = (
        Round(round=at, seconds=1.0, informative_own=1, train_solved=0.5, mismatch=0.0123, capped=0.004)
        for at in range(2, 60)
    )
    lines = sampler(View(rounds=(before, *others))).splitlines()
    assert len(lines) == ROUNDS
    assert lines[0] == "round 59: mismatch 1.23e-02 nats, 0.40 % of the tokens at the cap"
