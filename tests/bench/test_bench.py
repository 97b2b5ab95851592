"""Every benchmark runs with small numbers and gives its keys; what it cannot measure it says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.bench import BenchError
from app.bench.relay.joining import SWARM, publish_frames
from app.bench.relay.loading import LoadCounts, LoadResult, compile_generator
from app.bench.runs import poison
from app.swarm.wire.body import unseal
from app.swarm.wire.frames import from_client
from app.swarm.wire.protocol import Pub
from tests import inside

if sys.platform == "win32":
    pytest.skip("sockets are handed to another program", allow_module_level=True)

ROOT = Path(__file__).parents[2]
SMALL = (
    "--connections=12", "--rate=40", "--seconds=1", "--rounds=60", "--busy=12", "--fill=120", "--repeats=1",
    "--sizes=10",
)  # fmt: skip

compiled = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason="the load generator is compiled with a C compiler on Linux",
)


def bench(home: Path, *arguments: str, patience_s: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", "bench", *arguments],
        cwd=ROOT,
        env={**os.environ, "SHOAL_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=patience_s,
    )


@compiled
def test_the_load_generator_compiles_without_a_warning(tmp_path: Path) -> None:
    program = compile_generator(tmp_path)
    assert os.access(program, os.X_OK) and compile_generator(tmp_path) == program
    source = ROOT / "app" / "bench" / "relay" / "load.c"
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    done = subprocess.run(
        [compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)], capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.long
def test_without_a_compiler_it_is_said_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    done = bench(tmp_path, "relay", "--json", *SMALL)
    assert (done.returncode, done.stdout) == (1, "") and "C compiler" in done.stderr


@pytest.mark.long
@compiled
def test_the_relay_is_measured(tmp_path: Path) -> None:
    done = bench(tmp_path, "relay", "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    figures: dict[str, Any] = json.loads(lines[0])
    for key in (
        "cpu_us_per_round",
        "own_cpu_us_per_round",
        "kb_per_connection",
        "sample_p99_ms",
        "raw_sample_p99_ms",
        "descriptor_limit",
    ):
        assert isinstance(figures[key], int | float), key
    assert figures["connections"] == 12 and figures["sample_p99_ms"] >= figures["sample_p50_ms"] > 0
    assert set(figures["traffic"]) == {"10"}
    for size in figures["traffic"].values():
        # eight groups down and one up, of about 4.2 KB each
        assert 30 < size["kb_per_round"] < 50 and size["items_per_batch"] > 7.4


def test_wrong_numbers_are_refused() -> None:
    done = inside.shoal("bench", "relay", "--rate", "0")
    assert (done.returncode, done.stdout) == (2, "")


def test_groups_of_the_bench_are_whole_and_their_authors_take_turns() -> None:
    pubs = [from_client(frame) for frame in publish_frames(3, 7, 5)]
    bodies = [unseal(pub, SWARM) for pub in pubs if isinstance(pub, Pub)]
    assert [body.key_seq for body in bodies] == [5, 5, 5, 6, 6, 6, 7]
    assert len({pub.pk for pub in pubs if isinstance(pub, Pub)}) == 3
    assert all(3_600 < len(pub.body) < 4_200 for pub in pubs if isinstance(pub, Pub))


def load(**changed: Any) -> LoadResult:
    counts = dict(
        accepted=10, batches=10, counted=10, items=80, unanswered=0, dead=0, overrun=0, bytes_in=1, bytes_out=1,
        seconds=1.0, cpu_s=0.1, published=10, sampled=10, late=0, others={},
    )  # fmt: skip
    none: Any = []
    return LoadResult(LoadCounts(**(counts | changed)), none, none, none)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (dict(accepted=9, others={"rate-limited": 1}), "rate-limited"),
        (dict(unanswered=1), "no answer"),
        (dict(dead=1), "lost"),
        (dict(overrun=1), "could not be sent"),
        (dict(items=40), "4.00 groups"),
    ],
)
def test_a_load_that_met_refusals_is_no_measurement(changed: dict[str, Any], word: str) -> None:
    load(others={"stats": 3}).check(10, 7.5)
    with pytest.raises(BenchError, match=word):
        load(**changed).check(10, 7.5)


def told(shares: list[float], **more: Any) -> dict[str, Any]:
    return {"curve": dict(zip((0, 10), shares, strict=True)), "worked": 1.0, "taken": 3, "kept_out": 1, **more}


def test_attackers_are_held_against_the_same_seeds_alone() -> None:
    alone = [told([0.2, 0.5], pass_at_1=0.5), told([0.2, 0.4], pass_at_1=0.4)]
    beside = [told([0.2, 0.46], pass_at_1=0.49), told([0.2, 0.42], pass_at_1=0.41)]
    one = poison._compared(beside, alone)
    assert (one["apart"], one["worst"], one["end"], one["kept_out"]) == (0.0, -4.0, 45.0, 2)
    assert one["low"] < -1.0 and one["high"] > 1.0, "two seeds say little"
    (*_, row) = poison.table({"runs": {"10terse": one}})
    assert row.startswith("| 10terse | 0: 20.0, 10: 44.0 | 45.0 (1.00) | +0.0 [-") and "2 of 8" in row


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_node_learns_beside_an_attackers_key_and_its_runs_are_kept(tmp_path: Path) -> None:
    words = ["poison", "--out", str(tmp_path / "out"), "--arms", "1terse", "--keys", "2", "--rounds", "2"]
    words += ["--after", "1", "--seeds", "1", "--questions", "16", "--json"]
    done = bench(tmp_path, *words, patience_s=1500)
    assert done.returncode == 0, done.stderr[-2000:]
    figures = json.loads(done.stdout)["runs"]
    assert list(figures) == ["alone", "1terse", "alone+", "1terse+"]
    assert all(0.0 < one["end"] < 100.0 and one["curve"] for one in figures.values())
    again = bench(tmp_path, *words)
    assert json.loads(again.stdout)["runs"] == figures and "seed" not in again.stderr, "nothing is left to play"
    assert bench(tmp_path, *words[:4], "3terse", *words[5:]).returncode == 1


@pytest.mark.long
def test_a_skill_is_asked_rows_that_nobody_taught_after_a_lesson_and_others_beside(tmp_path: Path) -> None:
    (tmp_path / "parity.csv").write_text(
        "question,answer\n" + "".join(f"{n},{('even', 'odd')[n % 2]}\n" for n in range(40))
    )
    words = ("skill", "--tables", str(tmp_path), "--out", str(tmp_path / "out"), "--model", "starter")
    words += ("--arms", "shuffled,letters", "--seeds", "1,2", "--seconds", "0.5,1", "--json")
    arms = json.loads(bench(tmp_path, *words).stdout)["tables"]["parity"]
    found = {arm: set(times) for arm, times in arms.items()}
    assert found["letters"] == {""} and {"0.5 s", "1 s"} <= found["shuffled"]
    last = arms["shuffled"]["1 s"]
    assert last["low"] < last["share"] < last["high"] and len(last["seeds"]) == 2 and last["processor_s"] >= 1
    again = bench(tmp_path, *words)
    assert json.loads(again.stdout)["tables"]["parity"] == arms, "what is done isn't done again"
