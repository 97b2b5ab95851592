"""Solo runs as a picture: read from the events, refused with a sentence when they are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.lab.report import plot
from app.lab.report.plot import CurveError, draw_curve, read_run

LINES = (
    '{"event":"start","shuffled_rewards":false,"model":"starter"}\n'
    '{"event":"probe","round":0,"pass_at_1":0.2,"stderr":0.02,"families":{"gcd":0.2}}\n'
    '{"event":"round","round":1,"worked_share":0.25,"seconds":1.0}\n'
    '{"event":"probe","round":1,"pass_at_1":0.5,"stderr":0.03}\n'
)


def test_a_run_is_read_from_its_events(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text(LINES)
    run = read_run(file)
    assert run.probes == [(0, 0.2, 0.02), (1, 0.5, 0.03)]
    assert run.worked == [(1, 0.25)]
    assert not run.control
    assert draw_curve([run]).startswith(b"\x89PNG")


@pytest.mark.parametrize("content", ["", "hello\n", '{"event":"start"}\n'])
def test_what_holds_no_run_is_refused_with_a_sentence(tmp_path: Path, content: str) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text(content)
    with pytest.raises(CurveError, match=r"run\.jsonl"):
        read_run(file)


def test_a_file_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(CurveError, match="can't be read: No such file"):
        read_run(tmp_path / "run.jsonl")


def test_runs_of_several_engines_are_told_apart(tmp_path: Path) -> None:
    runs = []
    for engine in ("torch", "mlx", "torch"):
        file = tmp_path / "run.jsonl"
        file.write_text(LINES.replace('"shuffled_rewards":false', f'"engine":{{"name":"{engine}"}}'))
        runs.append(read_run(file))
    assert plot._kinds(runs) == ["torch", "mlx", "torch"]
    assert plot._kinds(runs[:1]) == ["learning"]
    assert draw_curve(runs).startswith(b"\x89PNG")
