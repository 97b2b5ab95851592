"""A node under rules: it gives way, goes on where it was, and does what its owner orders."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.common import files
from app.node import governing
from app.node import node as node_module
from app.node.governing import FactsFile
from app.node.record import commands, events
from app.node.record.reasons import EFFORTS, Dial, Effort
from app.node.record.snapshot import Phase, progress_line
from app.node.rules.orders import Orders, Snooze
from app.node.rules.preferences import DEFAULTS
from app.node.trainer.process import EFFORT_ENV, DutyCycle
from app.sapo.questions import Coordinates
from app.sapo.scoring.sandbox import Sandbox
from tests.node.bench import Bench, rows
from tests.node.round.test_peers import Shelf, peer_group
from tests.node.ruled import CALM, IN_USE, PATIENCE_S, ruled, trainers


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governing, "PERIOD_S", 0.02)


@pytest.fixture
def hasty(bench: Bench) -> Bench:
    """Starts again a second after the owner has left."""
    files.write_json(bench.home / "settings.json", {"idle_s": 1})
    return bench


def orders(bench: Bench) -> Orders:
    found, complaint = files.read_or_set_aside(bench.home / "orders.json", Orders)
    assert not complaint
    return found or Orders()


def numbers(bench: Bench) -> list[int]:
    return [number for (number,) in rows(bench, "SELECT round FROM rounds ORDER BY round")]


def test_an_owner_who_insists_is_obeyed_in_use_and_priority_falls_afterwards(
    hasty: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(governing, "FIRST_ORDERS_S", 0.0)
    lowered: list[bool] = []

    async def script() -> None:
        async with ruled(hasty, IN_USE) as run:
            run.governor._step_back = lambda: lowered.append(True)
            run.governor.do(commands.Insist(seconds=600.0))
            await run.another_round()
            ruling = run.node.snapshot.ruling
            assert (ruling.run, ruling.reason) == (True, "anyway") and not lowered
            assert orders(hasty).insisted is not None
            run.governor.do(commands.Resume())
            assert orders(hasty).insisted is not None, "going on takes nothing back"
            run.governor.do(commands.Pause())
            await run.paused()
            assert orders(hasty) == Orders(paused=True) and lowered == [True]

    asyncio.run(script())


def test_it_gives_way_to_its_owner_and_goes_on_with_the_next_round(hasty: Bench) -> None:
    async def script() -> None:
        async with ruled(hasty) as run:
            await run.another_round()
            (trainer,) = trainers()
            run.facts.facts = IN_USE
            await run.paused()
            assert not trainer.is_running()
            ruling = run.node.snapshot.ruling
            assert (ruling.run, ruling.reason, ruling.idle_need_s) == (False, "in_use", 1.0)
            assert progress_line(run.node.snapshot) == ruling.short == "idle 0:00 of 0:01"
            safe = run.node.snapshot.safe_round
            await asyncio.sleep(0.1)
            assert run.node.snapshot.safe_round == safe
            run.facts.facts = CALM
            await run.another_round()
            assert run.rounds == list(range(1, len(run.rounds) + 1))
            decided = [(event.run, event.reason) for event in run.of(events.RulingChanged)]
            assert decided == [(True, "running"), (False, "in_use"), (True, "running")]
            assert run.node.snapshot.ruling.idle_s is None

    asyncio.run(script())
    assert numbers(hasty) == list(range(1, len(numbers(hasty)) + 1))
    assert rows(hasty, "SELECT count(*) FROM events WHERE kind = 'decision'") == [(3,)]


def test_a_pause_leaves_no_scoring_child_whoever_still_asks_for_one(
    bench: Bench, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoring = threading.Event()
    make = node_module.Sandbox

    def slow(**how: bool) -> Sandbox:
        made = make(**how)
        score = made.score

        def slowly(coordinates: Coordinates, answers: Sequence[str | None]) -> list[float]:
            if not scoring.is_set():
                scoring.set()
                time.sleep(0.5)  # the round is abandoned meanwhile, and this thread goes on
            return score(coordinates, answers)

        made.score = slowly
        return made

    monkeypatch.setattr(node_module, "Sandbox", slow)

    async def script() -> None:
        async with ruled(bench) as run:
            await run.until(scoring.is_set)
            run.governor.do(commands.Pause())
            await run.paused()
            for _ in range(20):
                assert sandbox.pid is None
                await asyncio.sleep(0.05)
            run.governor.do(commands.Resume())
            await run.another_round()
            assert sandbox.pid is not None

    asyncio.run(script())


def test_however_often_it_is_paused_no_round_is_lost_or_played_twice(bench: Bench) -> None:
    random_ = random.Random(3)

    async def script() -> None:
        async with ruled(bench, probe_every=3) as run:
            for _ in range(12):
                await asyncio.sleep(random_.uniform(0.0, 0.6))
                run.governor.do(commands.Pause())
                await run.paused()
                run.governor.do(commands.Resume())
            await run.another_round()
            assert run.rounds == list(range(1, len(run.rounds) + 1))
            assert len(run.rounds) == len(run.of(events.CheckpointSaved))
            assert not run.of(events.TrainerRestarted)

    asyncio.run(script())
    assert numbers(bench) == list(range(1, len(numbers(bench)) + 1))
    assert rows(bench, "SELECT DISTINCT count(*) FROM groups GROUP BY round") == [(4,)]
    assert not list(bench.checkpoints.glob(".*"))
    measured = [number for (number,) in rows(bench, "SELECT round FROM probes")]
    assert len(measured) == len(set(measured))


def test_a_round_that_is_being_saved_is_saved(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "slow to save")

    async def script() -> None:
        async with ruled(bench, probe_every=100) as run:
            for _ in range(2):
                await run.until(lambda: run.phase is Phase.SAMPLING)
                await run.until(lambda: run.phase is Phase.SAVING)
                saving = run.node.snapshot.round
                run.governor.do(commands.Pause())
                await run.paused()
                assert run.node.snapshot.safe_round == saving == run.rounds[-1]
                run.governor.do(commands.Resume())

    asyncio.run(script())


def test_a_pause_outlives_any_end_and_needs_no_trainer(bench: Bench) -> None:
    async def first() -> None:
        async with ruled(bench) as run:
            await run.another_round()
            run.governor.do(commands.Pause())
            await run.paused()

    async def second() -> None:
        async with ruled(bench, swarm=shelf) as run:
            await run.paused()
            assert run.node.snapshot.ruling.sentence == "Paused by you."
            assert shelf.diary == ["rest"], "no connection, and no port of this computer, before it is resumed"
            assert run.node.snapshot.safe_round == numbers(bench)[-1]
            assert not run.of(events.Started)
            run.governor.do(commands.Resume())
            await run.another_round()
            assert run.rounds[0] == done + 1 and "open" in shelf.diary

    shelf = Shelf([])
    asyncio.run(first())
    done = numbers(bench)[-1]
    assert orders(bench).paused
    asyncio.run(second())
    assert orders(bench) == Orders()


def test_finish_ends_after_the_round_and_then_it_is_paused(bench: Bench) -> None:
    async def script() -> None:
        async with ruled(bench) as run:
            await run.another_round()
            await run.until(lambda: run.phase is Phase.SAMPLING)
            last = run.node.snapshot.round
            run.governor.do(commands.Finish())
            assert run.node.snapshot.ruling.reason == "finishing" and orders(bench).finish
            await run.paused()
            assert run.rounds[-1] == last and orders(bench) == Orders(paused=True)
            reasons = [event.reason for event in run.of(events.RulingChanged)]
            assert reasons == ["running", "finishing", "paused"]

    asyncio.run(script())


def test_a_snooze_ends_by_itself_and_is_kept_over_a_restart(bench: Bench) -> None:
    async def first() -> None:
        async with ruled(bench) as run:
            await run.another_round()
            run.governor.do(commands.SnoozeFor(seconds=3600.0))
            await run.paused()
            assert run.node.snapshot.ruling.until == pytest.approx(time.time() + 3600, abs=30)

    async def second() -> None:
        async with ruled(bench) as run:
            await run.paused()
            assert run.node.snapshot.ruling.reason == "snoozed"
            assert run.node.snapshot.ruling.until == pytest.approx(kept.until, abs=2)

    async def third() -> None:
        async with ruled(bench) as run:
            await run.another_round()

    asyncio.run(first())
    kept = orders(bench).snooze
    asyncio.run(second())
    assert orders(bench).snooze == kept
    now = time.time()
    files.write_json(bench.home / "orders.json", Orders(snooze=Snooze(now - 3600, now + 1)))
    asyncio.run(third())
    assert orders(bench) == Orders()


def test_settings_hold_at_once_and_bad_ones_change_nothing(hasty: Bench) -> None:
    async def script() -> None:
        async with ruled(hasty, IN_USE) as run:
            await run.paused()
            for wrong in ({"idle_s": 0}, {"on_battery": True, "volume": 11}, {"dial": "loud"}):
                with pytest.raises(ValueError, match=r"\.$"):
                    run.governor.do(commands.ChangeSettings(changed=wrong))
            for wrong_s in (0.0, -5.0, 1e9):
                with pytest.raises(ValueError, match="snooze"):
                    run.governor.do(commands.SnoozeFor(seconds=wrong_s))
            assert run.of(events.SettingsNow)[-1].values == DEFAULTS | {"idle_s": 1}
            run.governor.do(commands.WhenIdle(on=False))
            assert run.of(events.SettingsNow)[-1].values["contribute_when_idle"] is False
            await run.another_round()

    asyncio.run(script())
    assert json.loads((hasty.home / "settings.json").read_text()) == {
        "contribute_when_idle": False,
        "idle_s": 1,
    }


def test_the_dial_reaches_the_trainer(bench: Bench) -> None:
    async def script() -> None:
        async with ruled(bench) as run:
            await run.another_round()
            for dial in (Dial.QUIET, Dial.FULL):
                run.governor.do(commands.SetDial(to=dial.value))
                await run.another_round()
                await run.another_round()
                (trainer,) = trainers()
                assert json.loads(trainer.environ()[EFFORT_ENV]) == {
                    name: getattr(EFFORTS[dial], name) for name in Effort.__struct_fields__
                }
                assert run.node.snapshot.ruling.dial == dial.value
            assert run.rounds == list(range(1, len(run.rounds) + 1))

    asyncio.run(script())


def test_between_pieces_of_work_it_rests_as_long_as_the_effort_says() -> None:
    slept: list[float] = []
    rest = DutyCycle(EFFORTS[Dial.BALANCED], slept.append)
    rest.after(2.0)
    rest.after(100.0)
    assert slept == [0.5, 5.0]
    for none in (None, EFFORTS[Dial.FULL]):
        DutyCycle(none, slept.append).after(3.0)
    assert len(slept) == 2


def test_the_swarm_rests_with_the_node_and_gets_back_what_was_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_TROUBLE", "slow")
    shelf = Shelf([peer_group(number) for number in range(3)])

    async def script() -> None:
        async with ruled(bench, external=3, swarm=shelf) as run:
            await run.until(lambda: run.phase is Phase.SAMPLING)
            run.governor.do(commands.Pause())
            await run.paused()
            assert "rest" in shelf.diary and "give back" not in shelf.diary
            run.governor.do(commands.Resume())
            await run.another_round()
            assert len(shelf.used) == 3

    asyncio.run(script())
    assert shelf.diary[:4] == ["open", "give back without blame", "rest", "wake"]


def test_a_paused_node_that_leaves_its_swarm_ends_at_once(bench: Bench) -> None:
    shelf = Shelf([])

    async def script() -> None:
        async with ruled(bench, swarm=shelf) as run:
            await run.another_round()
            run.governor.do(commands.Pause())
            await run.paused()
            run.node.leave()
            _, unfinished = await asyncio.wait({run.task}, timeout=PATIENCE_S)
            assert not unfinished and run.seen[-1].reason == "stopped"

    asyncio.run(script())
    assert shelf.diary.count("close") == 1


def test_orders_that_cannot_be_read_or_saved_are_told_and_hold_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.home / "orders.json").write_text('{"paused": "perhaps"}')

    def full(path: Path, content: object) -> None:
        raise OSError(28, "No space left on device")

    async def script() -> None:
        async with ruled(bench) as run:
            await run.another_round()
            assert "orders.json can't be read" in run.of(events.NodeNote)[0].sentence
            monkeypatch.setattr(files, "write_json", full)
            run.governor.do(commands.Pause())
            await run.paused()
            assert "can't be saved (No space left" in run.of(events.NodeNote)[-1].sentence

    asyncio.run(script())


def test_who_starts_it_by_hand_wants_it_to_run(bench: Bench) -> None:
    files.write_json(bench.home / "orders.json", Orders(paused=True))
    told: list[events.Event] = []

    async def script() -> None:
        facts = FactsFile(bench.home / "facts.json")
        governor = governing.Governor(
            bench.home, lambda say: facts, lambda ruling: None, told.append, by_hand=True
        )
        task = asyncio.create_task(governor.run())
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(script())
    assert orders(bench) == Orders()
    assert isinstance(told[0], events.NodeNote) and "by hand" in told[0].sentence
    assert isinstance(told[-1], events.RulingChanged) and told[-1].reason.endswith("unknown")


def test_a_file_of_facts_is_read_anew_and_what_is_missing_is_unknown(tmp_path: Path) -> None:
    file = FactsFile(tmp_path / "facts.json")
    assert file.gather().unknown("idle_s")
    (tmp_path / "facts.json").write_text('{"idle_s": 7, "absent": ["on_battery"]}')
    found = file.gather()
    assert found.idle_s == 7 and not found.unknown("on_battery") and found.unknown("saver")
    for spoiled in (b"{", b'{"idle_s": "long"}', b"\xff"):
        (tmp_path / "facts.json").write_bytes(spoiled)
        assert file.gather().unknown("idle_s")
