from __future__ import annotations

import json
import time
from typing import Any

import msgspec
import pytest

from app.node.history.history import History
from app.ui.view.learned import LearnedToday
from app.ui.view.reducer import Fold, FoldError, today
from app.ui.view.view import NodeStatus, Step, View
from app.ui.view.words import learned_sentence
from tests.ui import views

NOW = time.mktime((2026, 11, 21, 15, 0, 0, 0, 0, -1))
ENGINE = dict(
    name="torch",
    device="CPU",
    dtype="float32",
    model="m",
    parameters=1,
    trainable=1,
    threads=2,
    memory_budget_mb=1,
)


GROUP = dict(
    round=0,
    at=NOW,
    coordinates=dict(family="gcd", level=0, seed=1, index=0),
    question="2 and 4?",
    completions_G=["2"],
    rewards_G=[1],
    finished_G=[True],
    scores_G=[1.0],
)


def feed(fold: Fold, *events: dict[str, Any], now: float = NOW) -> View:
    for event in events:
        fold.line(json.dumps(event).encode() + b"\n", now)
    return fold.view


def start(**fields: Any) -> dict[str, Any]:
    known = dict(
        event="start",
        model="m",
        engine=ENGINE,
        home="/h",
        round=0,
        recipe="default",
        local=4,
        external=0,
        families={"gcd": 1, "lcm": 0},
        shuffled_rewards=False,
    )
    return {**known, **fields}


def round_(number: int, **fields: Any) -> dict[str, Any]:
    known = dict(
        event="round",
        round=number,
        run=1,
        at=NOW,
        informative_own=3,
        train_solved=0.25,
        seconds=2.5,
        own_groups=4,
        families={"gcd": [1, 4, 16], "lcm": [0, 0, 16]},
        something_new=1,
    )
    return {**known, **fields}


def snapshot(**fields: Any) -> dict[str, Any]:
    known = dict(model="m", recipe="default", home="/h", solo=True, started_at=NOW, engine=ENGINE)
    return dict(event="snapshot", snapshot={**known, **fields})


def probe(number: int, share: float, mark: str = "m") -> dict[str, Any]:
    return dict(
        event="probe",
        questions_mark=mark,
        at=NOW,
        round=number,
        pass_at_1=share,
        stderr=0.03,
        questions=7,
        families={"gcd": share, "lcm": 0.0},
        seconds=1.0,
    )


def test_a_family_that_it_practised_before_a_lesson_was_not_learned_from_others() -> None:
    lesson = dict(lesson=40, lesson_families=["gcd", "dice"], lesson_from=["calm-otter-0417"], families={})
    view = feed(fold := Fold(View()), start(), round_(1), round_(2, **lesson))
    fold.line(json.dumps(dict(event="skill", round=2, family="dice", level=0, sentence="s")).encode(), NOW)
    assert "dice" in {one.name for one in fold.view.families}, "it is shown at once, not after the next round"
    found = {one.name: one.learned_from for one in feed(fold, round_(3)).families}
    assert found == {"gcd": (), "lcm": (), "dice": ("calm-otter-0417",)} and view.state is NodeStatus.LEARNING


def test_before_the_first_measurement_no_kind_is_called_a_skill() -> None:
    """A placement starts with every kind there is."""
    fold = Fold(View())
    view = feed(fold, start(families=dict.fromkeys(("gcd", "lcm", "dice"), 0)))
    fold.recall(History(runs=views.learning().runs))
    assert fold.view.families == () and view.state is NodeStatus.LEARNING
    assert [one.name for one in feed(fold, probe(0, 0.5)).families] == ["dice", "gcd", "lcm"]
    assert not fold.view.lesson and feed(fold, snapshot(lesson=True, phase="learning")).lesson


def test_a_run_from_its_first_line_on() -> None:
    fold = Fold(View(state=NodeStatus.STARTING))
    view = feed(fold, start(), snapshot(), probe(0, 0.2))
    assert (view.state, view.round, view.safe_round, view.model) == (NodeStatus.LEARNING, 1, 0, "m")
    assert [point.share for point in view.curve] == [0.2]
    view = feed(fold, round_(1), round_(2), snapshot(round=3, safe_round=2, safe_at=NOW), probe(2, 0.4))
    assert [row.round for row in view.rounds] == [1, 2]
    assert (view.safe_round, view.round, view.round_s) == (2, 3, 2.5)
    assert (view.today.solved, view.today.answered, view.today.rounds) == (8, 64, 2)
    gcd, lcm = view.families
    assert (gcd.title, gcd.level, gcd.questions, gcd.first, gcd.latest) == (
        "Greatest common divisor",
        1,
        4,
        0.2,
        0.4,
    )
    assert lcm.questions == 3


def test_a_node_that_still_starts_says_nothing_of_where_it_will_go_on() -> None:
    fold = Fold(View(round=41, safe_round=40, model="before"))
    view = feed(fold, snapshot(engine=None))
    assert (view.round, view.safe_round, view.model) == (41, 40, "before")


def test_probes_over_other_questions_begin_another_curve() -> None:
    view = feed(Fold(View()), start(), probe(0, 0.2), probe(2, 0.4), probe(3, 0.1, "other"))
    assert [(point.round, point.share) for point in view.curve] == [(3, 0.1)]


def test_a_round_done_again_replaces_itself() -> None:
    view = feed(
        Fold(View()), start(), round_(1), round_(2), round_(2, train_solved=0.5), probe(2, 0.1), probe(2, 0.3)
    )
    assert [(row.round, row.train_solved) for row in view.rounds] == [(1, 0.25), (2, 0.5)]
    assert [point.share for point in view.curve] == [0.3]


def test_what_was_learned_from_others_counts_every_round_once() -> None:
    fold = Fold(View())
    feed(fold, start(), round_(1, peers={"calm-cod-0001": 3}), round_(2, peers={"brisk-otter-0417": 2}))
    view = feed(fold, round_(2, peers={"brisk-otter-0417": 4}))
    assert view.taken == 7
    fold = Fold(View())
    fold.recall(History(rounds=view.rounds))
    assert fold.view.taken == 7, "also after a restart"


def test_unknown_events_and_fields_are_passed_over() -> None:
    fold = Fold(View())
    before = feed(fold, start())
    assert feed(fold, dict(event="weather", rain=True)) == before


@pytest.mark.parametrize(
    "line", [b"not json\n", b"[1]\n", b"{}\n", b'{"event":"round","round":"x"}\n', b"\n", b"\xff\n"]
)
def test_what_is_no_message_is_refused_and_changes_nothing(line: bytes) -> None:
    fold = Fold(View())
    before = feed(fold, start())
    with pytest.raises(FoldError):
        fold.line(line, NOW)
    assert fold.view == before


def test_a_snapshot_tells_of_progress_and_of_the_swarm() -> None:
    fold = Fold(View(solo=False))
    view = feed(
        fold,
        start(),
        snapshot(
            phase="answering",
            round=1,
            done=14,
            total=32,
            eta_s=40.2,
            something_new=1,
            swarm=dict(
                name="brisk-otter-0417",
                connected=True,
                relay="ws://r",
                online=5,
                given=3,
                taken=2,
                refused={"too old": 1},
                ready=9,
                sources=2,
                messages=[dict(at=1.0, outgoing=True, kind="bye", size=9, text="{}")],
            ),
            answers=[GROUP],
        ),
    )
    assert (view.step, view.done, view.total, view.left_s) == (Step.SAMPLING, 14, 32, 40.2)
    assert view.swarm is not None
    assert (view.swarm.online, view.swarm.given, view.swarm.peers) == (5, 3, ())
    assert view.groups[0].question == "2 and 4?" and view.groups[0].rewards_G == (1,)
    view = feed(fold, snapshot(phase="learning", swarm=dict(name="brisk-otter-0417", waiting=1)))
    assert view.step is Step.LEARNING and view.groups
    assert view.swarm is not None and view.swarm.waiting == 1 and len(view.swarm.messages) == 1
    assert feed(fold, snapshot(phase="saving")).swarm == view.swarm


def test_a_restart_of_the_trainer_is_told() -> None:
    sentence = "The system ended the trainer; it is started again."
    restart = dict(event="trainer_restarted", round=3, sentence=sentence, wait_s=1)
    view = feed(Fold(View()), start(), restart, snapshot(phase="waiting to start the trainer again"))
    assert (
        view.news == sentence and view.happenings[-1].kind == "trainer_restarted" and view.step is Step.WAITING
    )


def test_today_ends_at_midnight_and_bears_a_clock_that_was_set_back() -> None:
    rounds = feed(Fold(View()), start(), round_(1), round_(2)).rounds
    assert today(rounds, NOW).rounds == 2
    assert today(rounds, NOW - 3 * 86400).rounds == 2
    assert today(rounds, NOW + 86400).rounds == 0


def test_a_history_and_what_comes_after_it_join() -> None:
    fold = Fold(View())
    fold.recall(History())
    assert fold.view.families == ()
    view = views.learning(40)
    assert len(view.curve) == 5 and view.safe_round == 40 and len(view.families) == 9


def test_what_others_brought_today_is_claimed_only_with_evidence() -> None:
    none, some = LearnedToday(), LearnedToday(answers=1240, authors=("Ann", "Ben", "Cy"))
    sure = msgspec.structs.replace(some, better=(("gcd", 0.25, 0.75),))
    said = [learned_sentence(one) for one in (none, some, sure)]
    assert said[0] == "" and said[1].startswith("Learned from 1\u2009240 answers of Ann and 2 others today.")
    assert "early" in said[1] and "early" not in said[2] and "25 % → 75 %" in said[2]
