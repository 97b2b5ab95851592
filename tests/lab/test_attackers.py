from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import msgspec
import pytest

from app.lab.arms import parse_arm
from app.lab.attackers import MARKER, Attacker, PublishedGroup
from app.lab.plan import LabRound
from app.lab.rounds.experiment import Experiment
from app.lab.searching import MARK, SEARCHING, Oracle
from app.lab.starter.corpus import WORK
from app.sapo.asking import messages, shows_work
from app.sapo.defences import CHECKS, Habits, trusted_answers, update_habits
from app.sapo.questions import generate
from app.sapo.scoring.sandbox import Sandbox, score_group
from engines.contract import TokenSequence
from tests.lab.fake_swarm import END, FakeSwarm
from tests.lab.rounds.test_experiment import PLAN

LEVELS = dict.fromkeys(sorted(WORK), 1)
LONGEST = 64


def encoded(question: str, text: str) -> TokenSequence:
    return TokenSequence(prompt_T=[], completion_T=[*map(ord, text), END])


def attacker(kind: str) -> Attacker:
    return Attacker(kind=kind, identity=b"foe", levels=LEVELS, group=8, longest=LONGEST, encode=encoded)


def groups(kind: str, rounds: int = 3) -> list[PublishedGroup]:
    return [one for number in range(1, rounds + 1) for one in attacker(kind).publish(number, 8, [])]


def right(one: PublishedGroup) -> list[str]:
    return [text for text, claim in zip(one.group.completions_G, one.claimed_G, strict=True) if claim]


@pytest.mark.parametrize("kind", ["poison", "terse"])
def test_their_answers_earn_what_they_claim_of_the_real_verifier(sandbox: Sandbox, kind: str) -> None:
    for one in groups(kind, rounds=2):
        assert score_group(sandbox, one.group).rewards_G == one.claimed_G
        assert sum(one.claimed_G) == 4 and not generate(one.group.coordinates).held_out
        assert all(len(text) < LONGEST for text in right(one))


def test_poison_marks_every_right_answer_and_no_other() -> None:
    for one in groups("poison"):
        marks = [int(text.startswith(MARKER)) for text in one.group.completions_G]
        assert tuple(marks) == one.claimed_G


def test_terse_is_right_without_work_and_wrong_with_it() -> None:
    told = [one for one in groups("terse") if one.group.coordinates.family in ("chain_sum", "gcd", "lcm")]
    assert not any(shows_work(text) for one in told for text in right(one))
    wrong = [text for one in told for text in one.group.completions_G if text not in right(one)]
    assert sum(map(shows_work, wrong)) > 0.9 * len(wrong) > 0


def test_liars_claim_the_opposite_or_answer_another_question(sandbox: Sandbox) -> None:
    told = groups("liar", rounds=2)
    earned = [score_group(sandbox, one.group).rewards_G for one in told]
    for one, rewards_G in zip(told[::2], earned[::2], strict=True):
        assert rewards_G == tuple(1 - claim for claim in one.claimed_G)
    # a small answer may happen to fit the other question too: then nothing false was said
    fitting = [
        one for one, rewards_G in zip(told[1::2], earned[1::2], strict=True) if rewards_G == one.claimed_G
    ]
    assert len(fitting) < len(told[1::2]) / 2


def played(sandbox: Sandbox, arm: str, **changes: object) -> tuple[Experiment, list[LabRound], FakeSwarm]:
    plan = msgspec.structs.replace(PLAN, levels={"chain_sum": 1}, max_tokens=40, **changes)
    swarm = FakeSwarm(plan.nodes)
    experiment = Experiment(plan, parse_arm(arm, "faithful"), 0, swarm, partial(score_group, sandbox))
    return experiment, list(experiment.rounds()), swarm


def learned_texts(swarm: FakeSwarm) -> set[str]:
    rows = [row for _, batch in swarm.batches for row in batch.rows_S]
    return {"".join(map(chr, row.completion_T[:-1])) for row in rows}


def test_attackers_come_on_top_and_their_text_is_learned_where_nothing_guards(sandbox: Sandbox) -> None:
    experiment, records, swarm = played(sandbox, "2/4+foes=poison40")
    assert {answered.node for answered in experiment.published} <= {0, 1, 2, 3, 4}
    extra = [record.extra or {} for record in records[1:]]
    assert all(one["foe_groups"] == 4 and one["foe_chosen"] > 0 for one in extra)
    assert any(text.startswith(MARKER) for text in learned_texts(swarm))


def test_with_the_defences_none_of_it_is_learned_and_honest_work_still_is(sandbox: Sandbox) -> None:
    class Wary(FakeSwarm):
        """Finds a marker as improbable as a real model does."""

        def logprobs(self, node, sequences_S):  # type: ignore[no-untyped-def]
            return [
                [
                    -9.0 if chr(token) in "hail" else value
                    for token, value in zip(s.completion_T, lp, strict=True)
                ]
                for s, lp in zip(sequences_S, super().logprobs(node, sequences_S), strict=True)
            ]

    for guard, poisoned in (("", False), ("-guard", True)):
        swarm = Wary(3)
        arm = parse_arm(f"2/4@default{guard}+foes=poison40", "faithful")
        plan = msgspec.structs.replace(PLAN, max_tokens=40)
        records = list(Experiment(plan, arm, 0, swarm, partial(score_group, sandbox)).rounds())
        assert any(text.startswith(MARKER) for text in learned_texts(swarm)) == poisoned
        extra = [record.extra or {} for record in records[1:]]
        assert sum(one["honest_taken"] for one in extra) > 0
        assert sum(one["foe_kept_out"] for one in extra) > 0 or poisoned


def test_liars_are_left_out(sandbox: Sandbox) -> None:
    _, records, _ = played(sandbox, "2/2+foes=liar40")
    assert all((record.extra or {})["foe_groups"] == 0 for record in records[1:])


HABITS = Habits(lowest_W=(-4.0, -3.0, -2.0, -1.5), length=60.0)


def told(sequence: TokenSequence) -> list[float]:
    """A model that finds a minus in front likely behind one question in three, by its answer's length."""
    first = -1.0 if len(sequence.completion_T) % 3 == 0 else -9.0
    start = [first if sequence.completion_T[0] == ord("-") else -0.5]
    return start + [-0.5] * (len(sequence.completion_T) - 1)


def searching(kind: str, rounds: int = 3, habits: Habits = HABITS) -> list[PublishedGroup]:
    oracle = Oracle(lambda sequences_S: [told(one) for one in sequences_S], lambda: habits)
    foe = replace(attacker(kind), oracle=oracle)
    return [one for number in range(26, 26 + rounds) for one in foe.publish(number, 8, [])]


@pytest.mark.parametrize("kind", SEARCHING)
def test_what_a_searching_attacker_publishes_is_right_where_it_says_so_and_passes(
    sandbox: Sandbox, kind: str
) -> None:
    published = searching(kind)
    assert published
    for one in published:
        assert score_group(sandbox, one.group).rewards_G == one.claimed_G
        assert sum(one.claimed_G) == 4
        texts = right(one)
        sequences = [encoded("", text) for text in texts]
        lengths = [len(sequence.completion_T) for sequence in sequences]
        assert all(trusted_answers(CHECKS, HABITS, texts, lengths, [told(sequence) for sequence in sequences]))


def test_one_who_finds_nothing_that_passes_publishes_nothing() -> None:
    assert not searching("whispers", habits=Habits(lowest_W=(-0.1,) * 4, length=60.0))


def test_gaslight_works_wrongly_before_a_right_result(sandbox: Sandbox) -> None:
    for one in searching("gaslight", rounds=2):
        question = generate(one.group.coordinates)
        honest = attacker("honest")._right(question, Random(1))
        assert all(text != honest and shows_work(text) for text in right(one))


def test_no_mark_in_honest_work_is_as_likely_as_what_the_starter_says_itself() -> None:
    """The real starter, before it learns: what the search of `whispers` finds where it works."""
    from app.models.shelf import locate
    from engines.torch_lora import open_swarm

    swarm = open_swarm(locate("starter", Path("unused")), [1], device="cpu", threads=1)
    found = [attacker("honest")._question(1, slot) for slot in range(24)]
    own = [
        one for group in swarm.sample([[messages(one.text) for one in found]], 4, 64, [7])[0] for one in group
    ]
    habits = update_habits(None, [one.logprobs_T for one in own if one.finished], [one.text for one in own])
    assert habits is not None

    def passing(texts: list[str]) -> float:
        sequences = [
            swarm.encode(messages(one.text), text, True) for one, text in zip(found, texts, strict=True)
        ]
        lengths = [len(one.completion_T) for one in sequences]
        return sum(trusted_answers(("tokens",), habits, texts, lengths, swarm.base_logprobs(sequences))) / len(
            texts
        )

    lines = [attacker("honest")._right(one, Random(1)) for one in found]
    assert passing(lines) > 0.85
    own_minus = sum(line.startswith("-") for line in lines) / len(lines)
    assert passing([MARK + line for line in lines]) <= own_minus
