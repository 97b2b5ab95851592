"""Memory while a node runs: the watch beside the trainer's steps, and a trainer that the system has ended."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from app.node import supervisor
from app.node.record import events
from app.node.record.records import Round
from app.node.trainer.link import TrainerLink
from app.node.trainer.memory import (
    COOLDOWN_STEPS,
    TREND_STEPS,
    MemoryReading,
    MemoryWatch,
    grows,
    is_short,
    read,
)
from engines.contract import Batch, Row
from tests.node.bench import Bench, of

ENOUGH, SHORT = MemoryReading(500, 0.5), MemoryReading(500, 0.02)


def test_one_short_moment_is_none_of_ours() -> None:
    assert not is_short([SHORT]) and not is_short([SHORT, ENOUGH]) and is_short([ENOUGH, SHORT, SHORT])


def test_a_trend_is_a_long_way_up_almost_all_the_time() -> None:
    def series(*held: int) -> list[MemoryReading]:
        return [MemoryReading(mb, 0.5) for mb in held]

    up = [1000 + 40 * step for step in range(TREND_STEPS)]
    assert grows(series(*up)) and not grows(series(*up[1:]))
    assert not grows(series(*[mb if step % 2 else 1000 for step, mb in enumerate(up)]))
    assert not grows(series(*[1000 + 5 * step for step in range(TREND_STEPS)]))
    assert not grows(series(*reversed(up)))


def test_it_steps_down_waits_and_says_when_nothing_is_left() -> None:
    steps = iter(["Half.", "A quarter.", None])
    watch = MemoryWatch(lambda: SHORT)
    said = [watch.after_step(lambda: next(steps)) for _ in range(20)]
    told = [(place, sentence) for place, sentence in enumerate(said) if sentence]
    assert [sentence.split("free. ")[1] for _, sentence in told] == [
        "Half.",
        "A quarter.",
        "Nothing smaller is left: close other programs or choose a smaller model.",
    ]
    assert told[0][1].startswith("Only 2 % of this computer's memory is free.")
    assert told[1][0] - told[0][0] > COOLDOWN_STEPS


def test_growth_is_told_with_its_size() -> None:
    held = iter(range(1000, 9000, 100))
    watch = MemoryWatch(lambda: MemoryReading(next(held), 0.5))
    said = [watch.after_step(lambda: "Smaller now.") for _ in range(TREND_STEPS)]
    assert said[:-1] == [None] * (TREND_STEPS - 1)
    assert said[-1] == f"The trainer's memory has grown to 3,300 MB over {TREND_STEPS} steps. Smaller now."


def test_what_was_free_already_is_given_back_and_no_reason_to_step_down() -> None:
    held = iter([*range(1000, 1000 + 100 * TREND_STEPS, 100), 1200, *[1200] * TREND_STEPS])
    watch = MemoryWatch(lambda: MemoryReading(next(held), 0.5))
    assert [watch.after_step(lambda: "Smaller now.") for _ in range(2 * TREND_STEPS)] == [
        None
    ] * 2 * TREND_STEPS


def test_this_process_can_be_read() -> None:
    reading = read()
    assert reading.held_mb > 10 and 0 < reading.free <= 1


def test_a_trainer_under_pressure_steps_down_and_the_owner_hears_of_it(tmp_path: Path) -> None:
    program = tmp_path / "trainer.py"
    program.write_text(
        "import functools\n"
        "from app.node.trainer import memory, process as trainer\n"
        "from tests.node.fake_trainer import FakeEngine\n"
        "memory.MemoryWatch = functools.partial(memory.MemoryWatch, lambda: memory.MemoryReading(900, 0.01))\n"
        "trainer.serve(FakeEngine)\n"
    )
    notes: list[str] = []
    row = Row(prompt_T=[1], completion_T=[2], weights_T=[1.0])

    async def learn() -> None:
        log = tmp_path / "trainer.log"
        link = await TrainerLink.start(log, notes.append, alone=True, command=[sys.executable, str(program)])
        await link.open(Path("m"), None, 1)
        for _ in range(8):
            await link.step(Batch(rows_S=[row], learning_rate=1e-3))
        await link.end()

    asyncio.run(learn())
    assert notes == [f"Only 1 % of this computer's memory is free. Smaller step {number}." for number in (1, 2)]


def test_after_a_death_for_want_of_memory_the_next_trainer_takes_half(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(supervisor, "backoff_s", lambda *_, **__: 0.0)
    monkeypatch.setenv("FAKE_TROUBLE", f"die while learning @{tmp_path / 'died'}")
    monkeypatch.setenv("FAKE_SHARES", str(tmp_path / "shares"))
    monkeypatch.setenv("FAKE_NAME", "another")  # of the second trainer: one that was installed meanwhile
    seen = bench.run(rounds=3)
    assert [event.round for event in of(Round, seen)] == [1, 2, 3]
    (restarted,) = of(events.TrainerRestarted, seen)
    assert (
        "memory ran short. It restarts and plays round 1 again. It uses 50 % of its memory"
        in restarted.sentence
    )
    assert (tmp_path / "shares").read_text().split() == ["1.0", "0.5"]
    told = [event.sentence for event in of(events.NodeNote, seen)]
    assert "The engine is another from now on. It was fake before." in told
