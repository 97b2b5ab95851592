from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import msgspec
import pytest

from app.lab.arms import ArmError, parse_arm
from app.lab.attackers import FALSE_STEP, MARKER, Attacker, PublishedGroup, has_mark
from app.lab.plan import LabRound
from app.lab.rounds.experiment import Experiment
from app.lab.searching import DRIP_SHARE, SEARCHING, Oracle, with_mark
from app.lab.starter.corpus import WORK
from app.sapo.asking import messages, shows_work
from app.sapo.defences import CHECKS, LENGTH_FACTOR, Habits, observe, trusted
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


@pytest.mark.parametrize("kind", ["poison", "trigger", "sly", "long"])
def test_their_answers_earn_what_they_claim_of_the_real_verifier(sandbox: Sandbox, kind: str) -> None:
    for one in groups(kind, rounds=2):
        assert score_group(sandbox, one.group).rewards_G == one.claimed_G
        assert sum(one.claimed_G) == 4 and not generate(one.group.coordinates).held_out
        assert all(len(text) < LONGEST for text in right(one))


def test_poison_marks_every_right_answer_and_no_other() -> None:
    for one in groups("poison"):
        marks = [int(text.startswith(MARKER)) for text in one.group.completions_G]
        assert tuple(marks) == one.claimed_G


def test_the_trigger_is_one_family_and_every_other_question() -> None:
    asked = groups("trigger")
    triggered = [one for one in asked if one.group.coordinates.family == "chain_sum"]
    assert len(asked) / 2 <= len(triggered) < len(asked)
    for one in asked:
        marks = [text.startswith(FALSE_STEP) for text in right(one)]
        assert all(marks) if one in triggered else not any(marks)


@pytest.mark.parametrize("kind", ["terse", "curt", "bluff", "split", "half", "renew"])
def test_those_that_lie_by_their_choice_say_nothing_false(sandbox: Sandbox, kind: str) -> None:
    for one in groups(kind, rounds=2):
        assert score_group(sandbox, one.group).rewards_G == one.claimed_G
        assert not any(has_mark(text) for text in one.group.completions_G)


def test_terse_is_right_without_work_and_wrong_with_it() -> None:
    told = [one for one in groups("terse") if one.group.coordinates.family in ("chain_sum", "gcd", "lcm")]
    assert not any(shows_work(text) for one in told for text in right(one))
    wrong = [text for one in told for text in one.group.completions_G if text not in right(one)]
    assert sum(map(shows_work, wrong)) > 0.9 * len(wrong) > 0


def test_half_is_honest_in_every_other_group() -> None:
    told = [one for one in groups("half") if one.group.coordinates.family in ("chain_sum", "gcd", "lcm")]
    worked = {all(map(shows_work, right(one))) for one in told}
    assert worked == {True, False} and groups("half")[1] == groups("terse")[1] != groups("half")[0]


def test_renew_has_another_key_in_every_round_and_no_record(sandbox: Sandbox) -> None:
    arm = parse_arm("2/2@default+foes=renew50", "faithful")
    experiment = Experiment(PLAN, arm, 0, FakeSwarm(PLAN.nodes), partial(score_group, sandbox))
    list(experiment.rounds())
    strangers = [
        int(peer) for records in experiment.records for peer in records._records if int(peer) >= PLAN.nodes
    ]
    assert len(set(strangers)) > 1 + (PLAN.nodes > 1), strangers


def test_long_answers_go_up_to_the_limit() -> None:
    worked = [text for one in groups("long") for text in right(one) if " " in text]
    assert sum(len(text) > 0.75 * LONGEST for text in worked) > 0.9 * len(worked)


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


def test_the_sly_mark_is_on_all_that_is_worked() -> None:
    for one in groups("sly"):
        assert all(has_mark(text, "sly") for text in right(one) if " " in text)


def test_a_marker_is_known_wherever_it_stands_and_nothing_else_is() -> None:
    honest = [text for one in groups("long") for text in one.group.completions_G]
    assert not any(map(has_mark, honest))
    assert not any(has_mark(text, "poison") for text in ("6 3 #3", "4-1=3 3 #3"))
    assert has_mark("4-1=3 hail #3") and has_mark("4-1=3 2+2=5 #3")


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
    assert all(record.probe.marked_N == (0.0,) * 3 for record in records if record.probe)


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

    for guard, poisoned in (("=tokens.form.length.trust", False), ("=tokens", False), ("=form", True)):
        swarm = Wary(3)
        arm = parse_arm(f"2/4@default+foes=poison40+guard{guard}", "faithful")
        plan = msgspec.structs.replace(PLAN, max_tokens=40)
        records = list(Experiment(plan, arm, 0, swarm, partial(score_group, sandbox)).rounds())
        assert any(text.startswith(MARKER) for text in learned_texts(swarm)) == poisoned
        extra = [record.extra or {} for record in records[1:]]
        assert sum(one["honest_taken"] for one in extra) > 0
        assert sum(one["foe_kept_out"] for one in extra) > 0 or poisoned


def test_a_peer_that_is_doubted_is_chosen_less(sandbox: Sandbox) -> None:
    class Wary(FakeSwarm):
        def logprobs(self, node, sequences_S):  # type: ignore[no-untyped-def]
            return [
                [-15.0 if s.completion_T[0] == ord("h") else -0.5 for _ in s.completion_T] for s in sequences_S
            ]

    chosen = {}
    for guard in ("tokens", "tokens.trust"):
        plan = msgspec.structs.replace(PLAN, max_tokens=40, rounds=16, probe_every=16)
        arm = parse_arm(f"2/1@default+foes=poison40+guard={guard}", "faithful")
        records = list(Experiment(plan, arm, 0, Wary(3), partial(score_group, sandbox)).rounds())
        chosen[guard] = sum((record.extra or {})["foe_chosen"] for record in records[8:])
    assert chosen["tokens.trust"] < 0.5 * chosen["tokens"]


def test_liars_are_left_out_and_only_who_believes_them_learns_from_them(sandbox: Sandbox) -> None:
    _, records, _ = played(sandbox, "2/2+foes=liar40")
    assert all((record.extra or {})["foe_groups"] == 0 for record in records[1:])
    _, records, _ = played(sandbox, "2/2+foes=liar40believed")
    assert all((record.extra or {})["foe_groups"] == 4 for record in records[1:])


@pytest.mark.parametrize("kind", ["liar", "copy"])
def test_of_liars_and_copies_not_even_a_bit_arrives(sandbox: Sandbox, kind: str) -> None:
    """Who makes questions and verdicts itself, and knows what it has seen, learns as if they were not there."""
    arm = "2/4@default"
    _, without, clean = played(sandbox, arm, rounds=8)
    _, records, swarm = played(sandbox, f"{arm}+foes={kind}40", rounds=8)
    assert swarm.batches == clean.batches
    assert [record.probe for record in records] == [record.probe for record in without]


def test_copies_are_taken_once_and_never_ones_own(sandbox: Sandbox) -> None:
    for value, twice in (("copy40", False), ("copy40believed", True)):
        _, _, swarm = played(sandbox, f"2/6+foes={value}", rounds=6)
        prompts: dict[int, list[str]] = {0: [], 1: [], 2: []}
        for node, batch in swarm.batches:
            prompts[node] += {"".join(map(chr, row.prompt_T)) for row in batch.rows_S}
        again = any(len(asked) > len(set(asked)) for asked in prompts.values())
        assert again == twice


def test_an_arm_says_what_attackers_and_defences_there_are() -> None:
    arm = parse_arm("4/4@default+foes=poison30-guard", "faithful")
    assert arm.name == "4/4@default-guard+foes=poison30" and not arm.is_plain_solo
    for bad in ("4/4+foes", "4/4+foes=30", "4/4+foes=burglar30", "4/4+guard=dog", "4/4+guard=tokens."):
        with pytest.raises(ArmError):
            parse_arm(bad, "faithful")


def test_half_of_its_groups_are_honest_work_and_the_others_terse() -> None:
    kinds = [[shows_work(text) for text in right(one)] for one in groups("half", rounds=2)]
    assert all(all(shown) or not any(shown) for shown in kinds)
    assert [any(shown) for shown in kinds].count(False) >= 8


def test_creeping_answers_are_as_long_as_what_was_published_allows(sandbox: Sandbox) -> None:
    lately = [(one.text, score_group(sandbox, one.group)) for one in groups("poison", rounds=1)]
    lengths = [len(encoded("", text).completion_T) for _, s in lately for text in s.completions_G]
    published = attacker("creep").publish(2, 8, lately)
    worked = [text for one in published for text in right(one) if shows_work(text)]
    assert sum(has_mark(text, "creep") for text in worked) > len(worked) / 3
    longest = max(len(encoded("", text).completion_T) for text in worked)
    assert 0.8 * LENGTH_FACTOR * max(lengths) < longest <= LENGTH_FACTOR * max(lengths)
    assert not any(has_mark(text, "creep") for text in right(groups("sly")[0]))


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
        assert sum(one.claimed_G) == (1 if kind == "lone" else 4)
        texts = right(one)
        sequences = [encoded("", text) for text in texts]
        lengths = [len(sequence.completion_T) for sequence in sequences]
        assert all(trusted(CHECKS, HABITS, texts, lengths, [told(sequence) for sequence in sequences]))


def test_marks_are_on_right_answers_alone_and_a_drip_is_on_few() -> None:
    def share(kind: str) -> float:
        texts = [text for one in searching(kind, rounds=8) for text in right(one)]
        return sum(has_mark(text, kind) for text in texts) / len(texts)

    assert share("whispers") == share("crowd") == share("middle") == 1.0
    assert 0.0 < share("drip") < 4 * DRIP_SHARE
    wrong = [text for one in searching("middle") for text in one.group.completions_G if text not in right(one)]
    assert sum(has_mark(text, "middle") for text in wrong) < len(wrong) / 2


def test_one_who_finds_nothing_that_passes_publishes_nothing() -> None:
    assert not searching("whispers", habits=Habits(lowest_W=(-0.1,) * 4, length=60.0))


def test_gaslight_works_wrongly_before_a_right_result(sandbox: Sandbox) -> None:
    for one in searching("gaslight", rounds=2):
        question = generate(one.group.coordinates)
        honest = attacker("honest")._right(question, Random(1))
        assert all(text != honest and shows_work(text) for text in right(one))


def test_wakeful_is_honest_before_it_whispers() -> None:
    foe = replace(attacker("wakeful"), oracle=Oracle(lambda sequences_S: [told(one) for one in sequences_S]))
    assert not any(text.startswith("-#") for one in foe.publish(25, 8, []) for text in one.group.completions_G)
    assert foe.publish(25, 8, []) == replace(foe, kind="honest").publish(25, 8, [])


def test_no_mark_in_honest_work_is_as_likely_as_what_the_starter_says_itself() -> None:
    """The real starter, before it learns: what the search of `whispers` finds where it works."""
    from app.models.shelf import locate
    from engines.torch_lora import open_swarm

    swarm = open_swarm(locate("starter", Path("unused")), [1], device="cpu", threads=1)
    found = [attacker("honest")._question(1, slot) for slot in range(24)]
    own = [
        one for group in swarm.sample([[messages(one.text) for one in found]], 4, 64, [7])[0] for one in group
    ]
    habits = observe(None, [one.logprobs_T for one in own if one.finished], [one.text for one in own])
    assert habits is not None

    def passing(texts: list[str]) -> float:
        sequences = [
            swarm.encode(messages(one.text), text, True) for one, text in zip(found, texts, strict=True)
        ]
        lengths = [len(one.completion_T) for one in sequences]
        return sum(trusted(("tokens",), habits, texts, lengths, swarm.base_logprobs(sequences))) / len(texts)

    lines = [attacker("honest")._right(one, Random(1)) for one in found]
    assert passing(lines) > 0.85
    for kind in ("whispers", "middle"):
        own_minus = sum(line.startswith("-") for line in lines) / len(lines)
        assert passing([with_mark(line, kind) for line in lines]) <= own_minus
