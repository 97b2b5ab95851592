"""Peers' right answers imitated in the rounds of a whole node around a fake engine: a family opens by doing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.node.history import checkpoint
from app.node.record import events
from app.node.record.records import Probe, Round
from app.node.round import placing
from app.sapo.groups import GroupRecord
from app.sapo.questions import draw
from tests.e2e.contract import event_misfits
from tests.node.bench import Bench, of, rows
from tests.node.round.test_peers import Shelf
from tests.node.round.test_placing import kept

FAMILIES = {"chain_sum": 0, "basic_arithmetic": 0, "gcd": 0}
AUTHORS = ("brisk-otter-0001", "calm-crane-0002")


@pytest.fixture(autouse=True)
def _pupil(monkeypatch: pytest.MonkeyPatch) -> None:
    """It can add; arithmetic, which is worded otherwise, only once it was taught."""
    monkeypatch.setenv("FAKE_TAUGHT", "Calculate")
    monkeypatch.setattr(placing.placement, "MAX_STARTING_FAMILIES", 1)


def waiting(family: str, count: int = 30) -> list[GroupRecord]:
    """Groups of two authors with one right answer and a wrong one each."""
    groups = []
    for number in range(count):
        question = draw(family, 0, 2**42 + number)
        group = GroupRecord(
            coordinates=question.coordinates,
            completions_G=(f"#{question.entry['answer']}", "#"),
            finished_G=(True, True),
            model="other",
        )
        author = AUTHORS[number % 2]
        groups.append(
            msgspec.structs.replace(
                group.with_scores((1.0, 0.0), (1, 0)),
                id=f"{family}{number}",
                key=author,
                author=author,
                question=question.text,
                worked=f"#{question.entry['answer']}",
            )
        )
    return groups


def shelf(*families: str) -> Shelf:
    """A swarm with waiting groups of these families."""
    swarm = Shelf([])
    swarm.waiting = [one for family in families or FAMILIES for one in waiting(family)]
    return swarm


def test_a_family_that_peers_can_solve_is_imitated_and_opens_with_a_right_answer(bench: Bench) -> None:
    swarm = shelf()
    seen = bench.run(rounds=8, place=True, families=FAMILIES, swarm=swarm, external=2)
    (placed,) = of(events.PlacementDone, seen)
    (learned,) = of(events.SkillLearned, seen)
    assert set(placed.families) == {"chain_sum"} and learned.family == "basic_arithmetic"
    assert set(learned.authors) == set(AUTHORS) and learned.answers > 0 and learned.level == 0
    assert learned.before < learned.after and learned.after >= 2 / 8 and learned.answer.startswith("#")
    told = msgspec.json.decode(msgspec.json.encode(learned))
    assert event_misfits(told) == [] and told["from"] == list(learned.authors)
    played = [one for one in of(Round, seen) if one.own_groups]
    assert played[0].imitated == 40, "ten for each own question"
    assert set(played[0].lesson_families) == set(FAMILIES) - set(placed.families)
    assert set(played[0].lesson_from) == set(AUTHORS) and not played[0].taken
    assert learned.family in played[-1].families and swarm.thanked == [learned.family]
    assert kept(bench).joined == {learned.family: 0} and learned.family in swarm.wanted, "it is weak yet"
    assert learned.family not in swarm.practised and swarm.times_taught.total() > 100
    ((sentence,),) = rows(bench, "SELECT sentence FROM events WHERE kind = 'skill'")
    assert sentence.endswith(f" and 1 more. It began with “{learned.answer}”.")
    asked = {family for (family,) in rows(bench, "SELECT DISTINCT family FROM groups WHERE source = 'own'")}
    assert asked == set(FAMILIES), "what waits is asked a question, too"


def test_a_round_that_was_lost_is_played_again_with_the_same_answers(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"place": True, "families": FAMILIES, "external": 2}
    (tmp_path / "cut").mkdir()
    cut = Bench(tmp_path / "cut")
    first = bench.run(rounds=4, swarm=shelf("gcd"), **options)
    seen = [
        one
        for count in (2, 2)  # a node that is ended goes on with what it knew of each family
        for one in cut.run(rounds=count, swarm=shelf("gcd"), **options)
    ]
    whole, again = ([(one.round, one.imitated) for one in of(Round, some)] for some in (first, seen))
    assert whole == again and [one for _, one in whole][1:] == [30] * 3
    assert bench.steps(3) == cut.steps(3)


def test_a_model_that_names_its_families_is_taught_others_and_keeps_its_curve(bench: Bench) -> None:
    """As the starter does, which has no first look."""
    swarm, named, others = shelf(), {"chain_sum": 0}, {"basic_arithmetic": 0, "gcd": 0}
    seen = bench.run(rounds=6, families=named, others=others, swarm=swarm, external=2)
    (learned,) = of(events.SkillLearned, seen)
    assert learned.family == "basic_arithmetic" and not of(events.PlacementDone, seen)
    assert "chain_sum" in swarm.practised and "gcd" in swarm.wanted
    again = bench.run(rounds=1, families=named, others=others, swarm=Shelf([]))
    assert set(of(events.Started, again)[0].families) == {"chain_sum", "basic_arithmetic"}
    (mark,) = {one.questions_mark for one in of(Probe, [*seen, *again])}
    assert mark and kept(bench).families == named


def test_questions_that_a_model_cannot_read_end_no_node(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TOO_LONG", "Sort these numbers")
    swarm = shelf("basic_arithmetic", "number_sorting")
    others = {"basic_arithmetic": 0, "number_sorting": 0}
    seen = bench.run(rounds=6, families={"chain_sum": 0}, others=others, swarm=swarm)
    assert [one.family for one in of(events.SkillLearned, seen)] == ["basic_arithmetic"]
    assert [one.round for one in of(Round, seen)][-1] == 6


def test_a_node_that_ignores_peers_and_the_control_imitate_nobody(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    control = Bench(tmp_path / "control")
    seen = control.run(rounds=2, place=True, families=FAMILIES, swarm=shelf(), shuffled_rewards=True)
    assert not any(one.imitated for one in of(Round, seen)) and not of(events.SkillLearned, seen)
    alone = bench.run(rounds=2, place=True, families=FAMILIES, swarm=None)
    assert not any(one.imitated for one in of(Round, alone))


def test_everyday_language_that_rounds_cost_is_brought_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "forgets to speak")  # each step makes its replies less likely
    seen = bench.run(rounds=6, families={"chain_sum": 0}, others={"gcd": 0}, swarm=shelf("gcd"))
    (fifth, sixth) = (
        msgspec.json.decode((folder / "adapter.json").read_bytes())["steps"]
        for folder in sorted(checkpoint.newest_first(bench.checkpoints))[-2:]
    )
    before, last = (one for one in of(Round, seen) if one.round in (5, 6))
    assert before.imitated == last.imitated == 30 and sixth - fifth < 12, "the sixth has no steps besides"
    assert fifth > 5 * (sixth - fifth) + 20, "24 of small talk alone were added to the fifth"
