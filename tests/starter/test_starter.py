"""The starter in resources: small, opened by plain transformers, and with headroom where learning begins."""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch

from app.lab.starter.corpus import DataMix, headroom, measure
from app.lab.starter.pretrain import PretrainPhase, PretrainPlan, train
from app.models.shelf import locate
from app.sapo.groups import GroupRecord
from app.sapo.questions import Coordinates
from engines.models.folder import read_settings
from engines.torch_lora import open_engine

STARTER = locate("starter")


def test_the_starter_is_small_and_plain_transformers_opens_it() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert sum(file.stat().st_size for file in STARTER.iterdir()) <= 16 * 2**20
    model = AutoModelForCausalLM.from_pretrained(STARTER)
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(STARTER))


def test_the_starter_has_headroom_at_the_levels_where_it_begins() -> None:
    settings = read_settings(STARTER)
    engine = open_engine(STARTER, threads=1)
    every = measure(engine, settings.families, 63, settings.max_tokens, seed=3)["all"]
    assert every.questions == 63
    assert 0.05 <= every.pass_at_1 <= 0.40
    assert every.pass_at_8 >= 2 * every.pass_at_1
    assert every.finished >= 0.95
    assert every.worked_right > every.guessed_right


def test_headroom_counts_by_hand() -> None:
    groups = [
        _scored(("3-1=2 #2", "#3"), (1, 0)),
        _scored(("#4", "#5"), (0, 0), finished=(True, False)),
    ]
    found = headroom(groups)
    assert (found.questions, found.pass_at_1, found.pass_at_8, found.finished) == (2, 0.25, 0.5, 0.75)
    assert (found.worked, found.worked_right, found.guessed_right) == (0.25, 1.0, 0.0)


def test_training_is_repeatable_and_goes_on_from_the_first_phase(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    phase = PretrainPhase(steps=3, horizon=3, warmup=1, peak_rate=1e-3, final_rate=1e-4, mix=DataMix())
    plan = PretrainPlan(
        batch=8,
        micro_batch=4,
        hidden=32,
        layers=1,
        heads=2,
        kv_heads=1,
        feed_forward=48,
        skill=phase,
        habit=phase,
    )
    for name in ("one", "two", "two"):  # the last call finds the first phase done
        train(plan, tmp_path / name)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
    assert one != (tmp_path / "one" / "skill" / "model.safetensors").read_bytes()
    assert msgspec.json.decode((tmp_path / "one" / "recipe.json").read_bytes(), type=PretrainPlan) == plan


def _scored(texts: tuple[str, ...], rewards: tuple[int, ...], finished: tuple[bool, ...] = ()) -> GroupRecord:
    return GroupRecord(
        coordinates=Coordinates(family="chain_sum", level=1, seed=1, index=0),
        completions_G=texts,
        finished_G=finished or (True,) * len(texts),
        model="starter",
    ).with_scores(tuple(float(reward) for reward in rewards), rewards)
