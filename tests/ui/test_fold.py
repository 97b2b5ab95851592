from __future__ import annotations

import json
import time
from typing import Any

import pytest

from app.ui.fold import Fold, FoldError, today
from app.ui.model import State, Step, View
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
        informative_own=3,
        informative_peer=0,
        train_solved=0.25,
        seconds=2.5,
        own_groups=4,
        tokens_per_s=100.0,
        families={"gcd": [1, 4, 16], "lcm": [0, 0, 16]},
        something_new=1,
    )
    return {**known, **fields}


def probe(number: int, share: float) -> dict[str, Any]:
    return dict(
        event="probe",
        round=number,
        pass_at_1=share,
        stderr=0.03,
        questions=7,
        families={"gcd": share, "lcm": 0.0},
        seconds=1.0,
    )


def test_a_run_from_its_first_line_on() -> None:
    fold = Fold(View(state=State.STARTING))
    view = feed(fold, start(), probe(0, 0.2))
    assert (view.state, view.round, view.safe_round, view.model) == (State.LEARNING, 1, 0, "m")
    assert [point.pass_at_1 for point in view.curve] == [0.2]
    view = feed(fold, round_(1), dict(event="checkpoint", round=1, folder="/x"), round_(2), probe(2, 0.4))
    assert [row.round for row in view.rounds] == [1, 2]
    assert (view.safe_round, view.round, view.round_s) == (1, 3, 2.5)
    assert (view.today.solved, view.today.answered, view.today.rounds) == (8, 64, 2)
    gcd, lcm = view.families
    assert (gcd.title, gcd.level, gcd.questions, gcd.first, gcd.latest) == (
        "Greatest common divisor",
        1,
        4,
        0.2,
        0.4,
    )
    assert (lcm.questions, lcm.solved, lcm.answered) == (3, 0, 32)
    assert [stone.level for stone in gcd.milestones] == [-1] and lcm.milestones == ()


def test_a_round_done_again_replaces_itself() -> None:
    view = feed(
        Fold(View()), start(), round_(1), round_(2), round_(2, train_solved=0.5), probe(2, 0.1), probe(2, 0.3)
    )
    assert [(row.round, row.train_solved) for row in view.rounds] == [(1, 0.25), (2, 0.5)]
    assert [point.pass_at_1 for point in view.curve] == [0.3]


def test_a_new_level_is_a_milestone() -> None:
    fold = Fold(View())
    feed(fold, start(), round_(1))
    view = feed(fold, round_(2, families={"gcd": [2, 1, 8]}), now=NOW + 60)
    assert [(stone.level, stone.at) for stone in view.families[0].milestones] == [(-1, NOW), (2, NOW + 60)]


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
    fold = Fold(View())
    view = feed(
        fold,
        start(),
        dict(
            event="snapshot",
            snapshot=dict(
                phase="answering",
                round=1,
                done=14,
                total=32,
                eta_s=40.2,
                swarm=dict(
                    name="brisk-otter-0417",
                    connected=True,
                    relay="ws://r",
                    peers=5,
                    given=3,
                    taken=2,
                    refused={"too old": 1},
                    ready=9,
                    sources=2,
                ),
                answers=[dict(family="gcd", question="2 and 4?", completion="2", solved=True)],
            ),
        ),
    )
    assert (view.step, view.done, view.total, view.left_s) == (Step.SAMPLING, 14, 32, 40.2)
    assert view.swarm is not None
    assert (view.swarm.online, view.swarm.given, view.swarm.peers) == (5, 3, ())
    assert view.groups[0].question == "2 and 4?" and view.groups[0].answers[0].solved
    view = feed(fold, dict(event="snapshot", snapshot=dict(phase="learning")))
    assert view.step is Step.LEARNING and view.swarm is not None and view.groups


def test_a_restart_of_the_trainer_is_told() -> None:
    sentence = "The system ended the trainer; it is started again."
    view = feed(Fold(View()), start(), dict(event="trainer_restarted", round=3, sentence=sentence, wait_s=1))
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
    fold.recall(views.past.Past())
    assert fold.view.families == ()
    view = views.learning(40)
    assert len(view.curve) == 5 and view.safe_round == 40 and len(view.families) == 9


def test_a_swarm_from_the_events_of_the_node() -> None:
    fold = Fold(View())
    feed(
        fold,
        dict(event="identity", name="brisk-otter-0417", public_key="00", kept="keyring"),
        start(external=2),
    )
    feed(
        fold,
        dict(
            event="link",
            state="connected",
            url="ws://r/v1",
            relay="r",
            swarm="s",
            sentence="Joined.",
            retry_s=None,
        ),
    )
    view = feed(
        fold,
        round_(1, informative_peer=3, peers={"calm-cod-0001": 2, "keen-kiwi-0002": 1}),
        dict(
            event="swarm",
            round=1,
            connected=True,
            published=4,
            received=9,
            accepted=7,
            refused={"too old": 2},
            ready=4,
            created=8,
            acknowledged=6,
            waiting=2,
            held=0,
            dropped=0,
            peers=11,
            window=300,
            stored=900,
        ),
        round_(2, informative_peer=1, peers={"calm-cod-0001": 1}),
    )
    swarm = view.swarm
    assert swarm is not None
    assert (swarm.name, swarm.connected, swarm.relay) == ("brisk-otter-0417", True, "ws://r/v1")
    assert (swarm.online, swarm.given, swarm.waiting, swarm.taken) == (11, 6, 2, 4)
    assert {peer.name: peer.groups for peer in swarm.peers} == {"calm-cod-0001": 3, "keen-kiwi-0002": 1}
    view = feed(
        fold,
        dict(event="link", state="lost", url="ws://r/v1", relay="r", swarm="s", sentence="Gone.", retry_s=3.0),
    )
    assert view.swarm is not None and not view.swarm.connected and view.swarm.sentence == "Gone."
