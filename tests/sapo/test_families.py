"""Every family and level: its configuration holds, it regenerates identically anywhere, its items are sound."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from app.sapo import library, scorers
from app.sapo.families import FAMILIES
from app.sapo.questions import Question, draw, generate

LEVELS = [(family.name, level) for family in FAMILIES.values() for level in range(len(family.levels))]
SEEDS = (2, 10**9, 2**41 + 5)
ROOT = Path(__file__).resolve().parents[2]


def digest(question: Question) -> str:
    said = json.dumps([question.text, question.entry], sort_keys=True, default=str)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


@cache
def digests(reverse: bool) -> dict[str, str]:
    """Digest of some items of every level, drawn in one order or the other."""
    keys = [(family, level, seed) for family, level in LEVELS for seed in SEEDS]
    return {
        f"{family} {level} {seed}": digest(draw(family, level, seed))
        for family, level, seed in sorted(keys, reverse=reverse)
    }


@pytest.mark.parametrize(("family", "level"), LEVELS)
def test_the_configuration_is_valid(family: str, level: int) -> None:
    dataset = library.gym().create_dataset(family, seed=1, size=10, **FAMILIES[family].levels[level])
    dataset.config.validate()


def test_every_family_has_a_scorer_and_the_nine_of_the_paper_are_there() -> None:
    assert set(scorers.SCORERS) == set(FAMILIES)
    assert sum(family.paper for family in FAMILIES.values()) == 9


def test_items_regenerate_identically_after_others_were_drawn() -> None:
    forwards = digests(reverse=False)
    assert digests(reverse=True) == forwards
    assert len(set(forwards.values())) > 0.95 * len(forwards)  # small levels repeat themselves


@pytest.mark.parametrize("hash_seed", ["1", "4242"])
def test_items_regenerate_identically_in_another_process(hash_seed: str) -> None:
    child = (
        "import importlib.util, json, sys\n"
        f"spec = importlib.util.spec_from_file_location('these', {str(Path(__file__))!r})\n"
        "these = importlib.util.module_from_spec(spec); spec.loader.exec_module(these)\n"
        "json.dump(these.digests(reverse=True), sys.stdout)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", child],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert json.loads(done.stdout) == digests(reverse=False)


@pytest.mark.parametrize(("family", "level"), LEVELS)
def test_items_are_questions(family: str, level: int) -> None:
    for seed in range(5, 20):
        question = draw(family, level, seed * 10**8)
        assert question.text and question.text == question.text.strip()
        assert question.coordinates.seed == seed * 10**8
        assert digest(generate(question.coordinates)) == digest(question)
        assert 0 < len(scorers.solution(family, question.entry)) <= 256
        assert scorers.sound(family, question.entry)


@pytest.mark.parametrize("family", FAMILIES)
def test_items_are_quickly_made(family: str) -> None:
    """The rule for enabling a family: less than 20 ms of processor time, in the middle of many items."""
    taken = []
    for level in range(len(FAMILIES[family].levels)):
        draw(family, level, 3)
        for seed in range(10, 30):
            began = time.process_time()
            draw(family, level, seed * 10**8)
            taken.append(time.process_time() - began)
    assert statistics.median(taken) < 0.020


def test_levels_ask_many_different_questions() -> None:
    for family, level in LEVELS:
        texts = {draw(family, level, seed * 10**7).text for seed in range(40 if family == "bf" else 120)}
        # The least: 63 numbers whose bits are counted, and 28 short sentences with three rotations.
        assert len(texts) >= 35, f"{family} {level}: {len(texts)}"
