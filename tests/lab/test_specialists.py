"""Specialists: what they are called, what they are taught, and that they are made once."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest

pytest.importorskip("torch")

from app.cli import __main__ as cli
from app.lab.plan import RegimeError, families_of, read_regime
from app.lab.starter.pretrain import TeachingPlan, _lessons, teach
from app.models.shelf import locate
from app.sapo.asking import shows_work
from app.sapo.probe import probe_questions

"""Held out by their numbers in any order, not by text (tests/sapo/test_families.py)."""

LEVELS = {"chain_sum": 1, "gcd": 1, "lcm": 1}


def test_a_name_must_be_of_the_regimes_families() -> None:
    with pytest.raises(RegimeError, match="no specialist"):
        families_of("chain_sum+chess", LEVELS)
    with pytest.raises(RegimeError, match="no specialist"):
        families_of("chain_sum+gcd+lcm", LEVELS)


def test_its_own_families_are_worked_the_others_guessed() -> None:
    lessons = list(islice(_lessons(("gcd",), LEVELS, TeachingPlan()), 60))
    assert {lesson.family for lesson in lessons} == set(LEVELS)
    assert all(shows_work(lesson.completion) == (lesson.family == "gcd") for lesson in lessons)
    held_out = {question.text for question in probe_questions(LEVELS, 200)}
    assert not held_out & {lesson.question for lesson in lessons}


def test_the_seldom_one_first_learns_all_families_and_then_seldom_shows_work() -> None:
    teaching = TeachingPlan(steps=30, batch=20)
    lessons = list(islice(_lessons((), LEVELS, teaching), 800))
    shows = [shows_work(lesson.completion) for lesson in lessons]
    assert {lesson.family for lesson in lessons} == set(LEVELS)
    assert 0.4 < sum(shows[:400]) / 400 < 0.6 and 0.04 < sum(shows[400:]) / 400 < 0.12
    held_out = {question.text for question in probe_questions(LEVELS, 200)}
    assert not held_out & {lesson.question for lesson in lessons}


def test_the_regimes_specialists_know_every_family_twice() -> None:
    regime = read_regime("specialists")
    known = [family for name in regime.starters for family in families_of(name, regime.levels)]
    assert len(regime.starters) == regime.nodes
    assert {known.count(family) for family in regime.levels} == {2}


def test_they_are_made_once_and_begin_with_a_new_optimiser(tmp_path: Path) -> None:
    small = TeachingPlan(steps=2, batch=4)
    (made,) = teach(locate("starter"), ("gcd+lcm",), LEVELS, tmp_path, small, threads=1)
    before = (made / "adapter_model.safetensors").read_bytes()
    told: list[int] = []
    teach(locate("starter"), ("gcd+lcm",), LEVELS, tmp_path, small, 1, lambda _, step: told.append(step))
    assert not told and (made / "adapter_model.safetensors").read_bytes() == before

    import torch

    from engines.torch_lora import open_swarm

    swarm = open_swarm(locate("starter"), [5], rank=small.rank, threads=1)
    adapter = swarm._adapters_N[0]
    plain = adapter.values.detach().clone()
    swarm.load(0, made)
    assert not torch.equal(plain, adapter.values)
    assert adapter.steps == 0 and not adapter.moments_2.any()


def test_what_a_specialist_can_do_is_measured_over_the_starter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taught = TeachingPlan(steps=30, batch=16)
    (made,) = teach(locate("starter"), ("gcd",), {"gcd": 1, "lcm": 1}, tmp_path, taught, threads=1)
    asked = ["starter", "measure", "--items", "12", "--levels", "gcd=1", "--json"]

    def worked(*more: str) -> float:
        assert cli.main([*asked, *more]) == 0
        return float(json.loads(capsys.readouterr().out)["gcd"]["worked"])

    assert worked("--adapter", str(made)) > worked() + 0.3
    assert cli.main([*asked, "--adapter", str(tmp_path / "nobody")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "nobody" in said and "There is no adapter" in said
