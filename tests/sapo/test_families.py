"""What every family has to hold. `-k NAME` runs the checks of one alone."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from app.bench.runs.puzzles import MAX_SHORTCUT_SHARE, best_constant, best_shortcut, generate_questions
from app.sapo import library
from app.sapo.asking import extract_answer, shows_work
from app.sapo.families import FAMILIES
from app.sapo.families.family import LONGEST_EXAMPLE, Entry, Family, FamilyKind
from app.sapo.questions import MAX_INDEX, Question, _dataset, draw, generate
from tests.sapo.levels import LEVELS, spread

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


@cache
def digests_elsewhere() -> dict[str, str]:
    """The same from a process of its own, which hashes otherwise."""
    child = (
        "import importlib.util, json, sys\n"
        f"spec = importlib.util.spec_from_file_location('these', {str(Path(__file__))!r})\n"
        "these = importlib.util.module_from_spec(spec); spec.loader.exec_module(these)\n"
        "json.dump(these.digests(reverse=True), sys.stdout)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", child],
        env={**os.environ, "PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return dict(json.loads(done.stdout))


def test_the_table_names_every_record() -> None:
    files = [path.stem for path in (ROOT / "app/sapo/families").glob("*.py") if path.stem != "__init__"]
    modules = [importlib.import_module(f"app.sapo.families.{name}") for name in files]
    records = {name for one in modules for name, held in vars(one).items() if isinstance(held, Family)}
    assert {name.upper() for name in FAMILIES} == records
    assert list(FAMILIES) == [family.name for family in FAMILIES.values()]
    assert all(isinstance(family.kind, FamilyKind) and family.title for family in FAMILIES.values())
    assert len({family.title for family in FAMILIES.values()}) == len(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_levels_are_settings_of_the_library_that_never_get_easier(family: str) -> None:
    levels = FAMILIES[family].levels
    for level in levels if FAMILIES[family].opened is None else ():
        library.gym().create_dataset(family, seed=1, size=10, **level)  # refuses what is out of range
    for below, above in itertools.pairwise(levels):
        assert below != above
        for name in below.keys() & above.keys():
            if name.startswith("max_") or name == "difficulty":
                assert below[name] <= above[name], f"{family}: {name}"


def library_items(family: str, level: int, count: int) -> Iterator[Entry]:
    dataset = _dataset(family, level)
    for item in range(count):
        dataset.seed = 3 * 10**9 + item * MAX_INDEX
        with contextlib.suppress(RuntimeError):  # no maze of this size has such a way
            yield dataset[0]


@spread(0, [(one.name, level) for one in FAMILIES.values() for level in range(len(one.thinned))])
def test_a_thinned_solution_is_rarer_and_the_text_alone_says_which_items_stay(family: str, level: int) -> None:
    record = FAMILIES[family]
    kept: dict[str, dict[str, bool]] = {}
    for entry in filter(record.sound, library_items(family, level, 400)):
        stays = record.accepts(level, entry)
        assert stays == record.accepts(level, {**entry, "question": f" {entry['question']}\n"})
        kept.setdefault((record.sort or record.solution)(entry), {})[entry["question"].strip()] = stays
    for solution, texts in kept.items():
        share = record.thinned[level].get(solution, 1.0)
        assert abs(sum(texts.values()) / len(texts) - share) < 0.01 + 2 / len(texts) ** 0.5, solution


@pytest.mark.parametrize("family", FAMILIES)
def test_items_regenerate_identically_after_others_and_in_other_processes(family: str) -> None:
    def of(digests: dict[str, str]) -> dict[str, str]:
        return {key: value for key, value in digests.items() if key.startswith(f"{family} ")}

    assert of(digests(reverse=True)) == of(digests(reverse=False))
    assert of(digests_elsewhere()) == of(digests(reverse=False))


def test_items_differ() -> None:
    different = set(digests(reverse=False).values())
    assert len(different) > 0.95 * len(LEVELS) * len(SEEDS)  # small levels repeat themselves


@spread(0)
def test_items_are_questions_with_a_short_solution(family: str, level: int) -> None:
    record = FAMILIES[family]
    longest = 256 if level > 1 else 200 if record.kind == FamilyKind.GRIDS else 64
    for seed in range(5, 20):
        question = draw(family, level, seed * 10**8)
        assert question.text and question.text == question.text.strip()
        assert question.coordinates.seed == seed * 10**8
        assert digest(generate(question.coordinates)) == digest(question)
        assert record.accepts(level, question.entry)
        solution = record.solution(question.entry)
        assert 0 < len(solution) <= longest, solution
        assert record.judge(solution, question.entry) == record.score(solution, question.entry) == 1.0


@spread(1)
def test_no_constant_answer_and_no_shortcut_pays(family: str, level: int) -> None:
    questions, tried, _ = generate_questions(family, level, 250)
    assert len(questions) >= tried / 8, "few of the library's items are questions"
    # Two standard errors of 250 questions: the bench shows the figure itself.
    assert best_constant(FAMILIES[family], questions)[0] <= FAMILIES[family].guess_rate + 0.05
    share, name = best_shortcut(FAMILIES[family], questions)
    assert share <= max(MAX_SHORTCUT_SHARE, FAMILIES[family].guess_rate) + 0.055, name


@pytest.mark.long
@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.guess[1]])
def test_what_guessing_solves_is_what_the_family_says(family: str) -> None:
    record, shares = FAMILIES[family], []
    for level in range(len(record.levels)):
        questions, _, _ = generate_questions(family, level, 200)
        shares += [best_constant(record, questions)[0], best_shortcut(record, questions)[0]]
    # Three standard errors of 200 questions, and the best of several levels.
    assert record.guess[0] >= 0.2 and abs(max(shares) - record.guess[0]) < 0.09


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.work])
def test_a_worked_example_is_right_and_short(family: str) -> None:
    for level in range(min(3, len(FAMILIES[family].levels))):
        for seed in range(10):
            question = draw(family, level, 2**45 + seed * 2**22)
            text = FAMILIES[family].worked(question.entry)
            if text:
                answer = extract_answer(text)
                assert answer is not None, text
                assert FAMILIES[family].judge(answer, question.entry) == 1.0, text
                assert shows_work(text) and len(text) <= LONGEST_EXAMPLE
        assert text or level, f"{family} has no example at its first level"


def test_a_family_without_work_has_no_example() -> None:
    assert FAMILIES["number_sorting"].worked(draw("number_sorting", 0, 2**45).entry) == ""


@spread(2)
def test_a_level_asks_many_different_questions(family: str, level: int) -> None:
    texts = {draw(family, level, seed * 10**7).text for seed in range(120)}
    # The least: 63 numbers whose bits are counted, and 28 short sentences with three rotations.
    assert len(texts) >= 35, len(texts)
