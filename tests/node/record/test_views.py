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
from app.node.record import events
from app.node.record.records import GroupRow, Probe, Round
from app.node.record.snapshot import FamilyView, Phase, Snapshot, SwarmView, curve_sentence, progress_line
from app.node.terminal.chart import ChartKind, chart, top_of_axis
from app.node.terminal.lines import log_line
from app.node.terminal.terminal import Terminal, closing_sentence, draw_view
from app.sapo.families import FAMILIES
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
    st.builds(
        Probe,
        round=st.integers(0, 10**6),
        share=st.floats(0, 1),
        stderr=st.floats(0, 0.5),
    ),
    max_size=30,
).map(lambda points: sorted({point.round: point for point in points}.values(), key=lambda point: point.round))


@settings(deadline=None)
@given(points=probes, width=st.integers(24, 200), height=st.integers(4, 60))
def test_a_chart_fills_exactly_its_room(points: list[Probe], width: int, height: int) -> None:
    rows = text(chart(points, width, height))
    assert len(rows) == height
    assert {len(row) for row in rows} == {width}


def test_round_numbers_too_long_for_both_ends_name_the_last() -> None:
    points = [Probe(round=100_000, share=0.0, stderr=0.0), Probe(round=1_000_000, share=0.0, stderr=0.0)]
    assert text(chart(points, 24, 4))[-1] == f"{'1000000':>24}"


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


def test_axes_name_their_ends() -> None:
    rows = text(chart(POINTS, 60, 12))
    assert rows[0].startswith("  30%┤") and rows[-2].startswith("   0%└") and rows[-1].rstrip().endswith("50")
    assert "round 0" in rows[-1]


def test_the_error_bar_is_drawn_around_the_point() -> None:
    (low,), (high,) = ([Probe(round=0, share=0.2, stderr=e)] for e in (0.0, 0.1))
    dots = [
        sum(ch not in " " for row in chart([p], 60, 12)[:-2] for part, k in row[1:] for ch in part)
        for p in (low, high)
    ]
    assert dots[0] == 1 and dots[1] > 3


@pytest.mark.parametrize(
    ("values", "top"), [([], 0.1), ([0.05], 0.1), ([0.1], 0.1), ([0.41], 0.5), ([1.2], 1.0)]
)
def test_the_axis_ends_at_a_round_number(values: list[float], top: float) -> None:
    assert top_of_axis(values) == top


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (200, 60), (60, 20), (40, 14)])
def test_the_view_fits_its_terminal(width: int, height: int) -> None:
    lines = drawn(SNAPSHOT, width, height)
    assert len(lines) <= height and max(map(len, lines)) <= width
    whole = "\n".join(lines)
    assert "starter" in whole and "20.0 %" in whole and "Round 51 of 80" in whole and "#-4" in whole
    assert "answer 14 of 32, about" in whole and "round 50 saved 10 s ago" in whole
    if width >= 80:
        assert "20.0 % ± 2.0" in whole and "about 40 s" in whole and "taught it something" in whole
        assert "…" not in whole


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
        assert "refused 3 of 40: bad reward 1, stale 2" in whole
        assert "…" not in whole and "alone" not in whole


def test_a_swarm_that_is_away_says_so_in_one_sentence() -> None:
    away = SwarmView(name="brisk-otter-0417", sentence="relay.example cannot be reached.", waiting=3)
    whole = "\n".join(drawn(msgspec.structs.replace(SNAPSHOT, swarm=away), 80, 24))
    assert "○ relay.example cannot be reached." in whole and "shared 0, 3 waiting" in whole


def test_names_of_families_are_whole_where_there_is_room() -> None:
    longest = max((family.title for family in FAMILIES.values()), key=len)
    families = (msgspec.structs.replace(SNAPSHOT.families[0], title=longest),)
    for width, whole in ((80, False), (100, True), (140, True)):
        shown = "\n".join(drawn(msgspec.structs.replace(SNAPSHOT, families=families), width, 30))
        assert (longest in shown) is whole and (f"{longest[:8]}" in shown)


def test_the_view_before_anything_is_known() -> None:
    bare = Snapshot(model="m", recipe="default", home="h", solo=False, started_at=98.0)
    whole = "\n".join(drawn(bare, 80, 24))
    assert "starting … 2 s" in whole and "first measurement comes soon" in whole and "No answers yet" in whole


def test_many_families_are_counted() -> None:
    shown = "\n".join(drawn(SNAPSHOT, 80, 24))
    assert f"and {18 - shown.count('Family ')} more" in shown


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


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (dict(phase=Phase.SAMPLING, done=0, total=0), "answering"),
        (dict(phase=Phase.SAMPLING, done=0, total=32, eta_s=None), "answer 0 of 32"),
        (dict(phase=Phase.SAMPLING, done=31, total=32, eta_s=0.4), "answer 31 of 32"),
        (
            dict(phase=Phase.PROBING, done=5, total=9, eta_s=3.0),
            "measuring on new puzzles: answer 5 of 9, about 3 s",
        ),
        (dict(phase=Phase.LEARNING), "learning"),
        (dict(phase=Phase.LEARNING, lesson=True, eta_s=9.0), "learning from other models' answers, about 9 s"),
        (
            dict(phase=Phase.PLACING, lesson=True, safe_round=3, done=2, total=9),
            "testing what a lesson from others changes, kind 2 of 9",
        ),
        (dict(phase=Phase.PLACING, done=0, total=47), "finding out what this model can begin with"),
        (
            dict(phase=Phase.PLACING, safe_round=0, done=8, total=47),
            "finding out what this model can begin with, kind 8 of 47",
        ),
        (dict(phase=Phase.PLACING, safe_round=1, total=0), "trying other kinds of puzzles"),
    ],
)
def test_phases_as_lines(change: dict[str, object], line: str) -> None:
    assert progress_line(msgspec.structs.replace(SNAPSHOT, **change)) == line


def test_spans_of_time() -> None:
    assert [rounded_duration(s) for s in (0, 89, 90, 5399, 5400)] == ["0 s", "89 s", "2 min", "90 min", "2 h"]


def test_where_the_curve_stands() -> None:
    assert curve_sentence(()) == "It hasn't been measured yet."
    now, then = "20.0 % ± 2.0 after round 50", "10.0 % ± 2.0 at round 0"
    assert closing_sentence(SNAPSHOT).startswith(f"New puzzles solved: {now}, {then}.")
    assert "Round 50 is saved in /home." in closing_sentence(SNAPSHOT)


def test_plain_lines_say_what_happened() -> None:
    probe = Probe(round=10, share=0.25, stderr=0.027, questions=256)
    assert log_line(probe) == "New puzzles solved after round 10: 25.0 % ± 2.7 of 256."
    assert log_line(events.CheckpointSaved(round=1, folder="f")) is None
    assert log_line(events.NodeNote(round=1, sentence="Look.")) == "Look."
