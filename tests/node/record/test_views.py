"""What people see: the curve as text, the terminal view at several sizes, plain lines."""

from __future__ import annotations

import io
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from app.common.text import rounded_duration, safe_line
from app.node.record.records import GroupRow, Probe, Round
from app.node.record.snapshot import FamilyView, Phase, Snapshot, SwarmView
from app.node.terminal.chart import ChartKind, chart
from app.node.terminal.terminal import Terminal, draw_view
from app.sapo.questions import Coordinates
from engines.contract import EngineInfo

ENGINE = EngineInfo(
    name="torch", device="CPU", dtype="float32", model="starter", parameters=1, trainable=1, threads=1,
    memory_budget_mb=1,
)  # fmt: skip


def answer(question: str, text: str, reward: int) -> GroupRow:
    return GroupRow(
        round=50, at=0.0, coordinates=Coordinates(family="chain_sum", level=0, seed=1, index=0),
        question=question, completions_G=(text,), rewards_G=(reward,), finished_G=(True,), scores_G=(1.0,),
    )  # fmt: skip


POINTS = tuple(Probe(round=10 * k, share=0.1 + 0.02 * k, stderr=0.02) for k in range(6))
SNAPSHOT = Snapshot(
    model="starter",
    recipe="default",
    home="/home",
    solo=True,
    started_at=0.0,
    engine=ENGINE,
    phase=Phase.SAMPLING,
    round=51,
    last_round=80,
    done=14,
    total=32,
    eta_s=40.0,
    curve=POINTS,
    families=tuple(
        FamilyView(name=f"f{k}", title=f"Family {k}", level=1, levels=5, practised=0.3, first=0.1, latest=0.2)
        for k in range(18)
    ),
    answers=(answer("4 - 1 - 7 =", "4-1=3 3-7=-4 #-4", 1),),
    last=Round(
        round=50, seconds=2.4, informative_own=9, own_groups=16, train_solved=0.31, worked_share=0.63, loss=0.1,
        tokens=3120, sample_s=1.0,
    ),
    safe_round=50,
    safe_at=90.0,
)  # fmt: skip


def text(rows) -> list[str]:
    return ["".join(part for part, _ in row) for row in rows]


def drawn(snapshot: Snapshot, width: int, height: int, now: float = 100.0) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(draw_view(snapshot, width, height, now))
    return console.file.getvalue().splitlines()


probes = st.lists(
    st.builds(Probe, round=st.integers(0, 10**6), share=st.floats(0, 1), stderr=st.floats(0, 0.5)), max_size=30
).map(lambda points: sorted({point.round: point for point in points}.values(), key=lambda point: point.round))


@settings(deadline=None)
@given(points=probes, width=st.integers(24, 200), height=st.integers(4, 60))
def test_a_chart_fills_exactly_its_room(points: list[Probe], width: int, height: int) -> None:
    rows = text(chart(points, width, height))
    assert len(rows) == height
    assert {len(row) for row in rows} == {width}


def test_a_rising_curve_rises_on_the_screen() -> None:
    rows = chart(POINTS, 60, 12)
    heights = {}
    for y, row in enumerate(rows[:-2]):
        x = 0
        for part, kind in row:
            for offset in range(len(part)):
                if kind is ChartKind.LINE:
                    heights.setdefault(x + offset, y)
            x += len(part)
    xs = sorted(heights)
    assert xs[0] == 6 and xs[-1] == 59
    assert heights[xs[-1]] < heights[xs[0]]
    assert all(heights[a] >= heights[b] - 1 for a, b in pairwise(xs))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (200, 60), (60, 20), (40, 14)])
def test_the_view_fits_its_terminal(width: int, height: int) -> None:
    lines = drawn(SNAPSHOT, width, height)
    assert len(lines) <= height and max(map(len, lines)) <= width
    whole = "\n".join(lines)
    assert "Starter" in whole and "20.0 %" in whole and "Round 51 of 80" in whole and "#-4" in whole
    assert "answer 14 of 32, about" in whole and "round 50 saved 10 s ago" in whole
    if width >= 80:
        assert "20.0 % ± 2.0" in whole and "about 40 s" in whole and "taught it something" in whole


SWARM = SwarmView(
    name="brisk-otter-0417", connected=True, relay="relay.example", online=12, ready=6, taken=34, taken_last=6,
    sources=5, given=51, waiting=2, received=40, refused={"stale": 2, "bad_reward": 1},
)  # fmt: skip


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (200, 60), (60, 20), (40, 14)])
def test_the_swarm_has_its_place_at_every_size(width: int, height: int) -> None:
    lines = drawn(msgspec.structs.replace(SNAPSHOT, swarm=SWARM), width, height)
    assert len(lines) <= height and max(map(len, lines)) <= width
    whole = "\n".join(lines)
    assert "swarm brisk-otter-0417" in whole and "● relay.example · 12 peers online" in whole
    assert "learned from 34 of 5 peers" in whole and "20.0 %" in whole and "#-4" in whole
    if width >= 80:
        assert "6 last round · shared 51, 2 waiting" in whole and "6 puzzles of theirs" in whole
        assert "…" not in whole and "alone" not in whole


def test_a_swarm_that_is_away_says_so_in_one_sentence() -> None:
    away = SwarmView(name="brisk-otter-0417", sentence="relay.example cannot be reached.", waiting=3)
    whole = "\n".join(drawn(msgspec.structs.replace(SNAPSHOT, swarm=away), 80, 24))
    assert "○ relay.example cannot be reached." in whole and "shared 0, 3 waiting" in whole


def test_the_view_before_anything_is_known() -> None:
    bare = Snapshot(model="m", recipe="default", home="h", solo=False, started_at=98.0)
    whole = "\n".join(drawn(bare, 80, 24))
    assert "starting … 2 s" in whole and "first measurement comes soon" in whole and "No answers yet" in whole


@settings(deadline=None)
@given(st.text())
def test_nothing_a_terminal_obeys_gets_through(hostile: str) -> None:
    assert all(char.isprintable() for char in safe_line(hostile))


def test_markup_in_a_models_answer_is_only_text() -> None:
    shown = answer("[red]q[/red]", "[bold]a[/] \x1b]0;title\x07", 0)
    lines = drawn(msgspec.structs.replace(SNAPSHOT, answers=(shown,)), 80, 24)
    assert any("[red]q[/red]" in line and "[bold]a[/] ·]0;title·" in line for line in lines)


def test_the_live_view_leaves_the_curve_behind() -> None:
    out = io.StringIO()
    terminal = Terminal(Console(file=out, width=80, height=24, force_terminal=True), lambda: SNAPSHOT)
    terminal.open()
    terminal.refresh()
    terminal.close()
    assert out.getvalue().count("\x1b[?1049h") == out.getvalue().count("\x1b[?1049l") == 1
    assert "new puzzles solved" in out.getvalue().rpartition("\x1b[?1049l")[2]


def test_spans_of_time() -> None:
    assert [rounded_duration(s) for s in (0, 89, 90, 5399, 5400)] == ["0 s", "89 s", "2 min", "90 min", "2 h"]
