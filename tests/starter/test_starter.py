"""The starter in resources: small, opened by plain transformers, and with headroom where learning begins."""

from __future__ import annotations

from pathlib import Path

import msgspec
import torch

from app.lab.solo import answered
from app.lab.starter.corpus import DataMix
from app.lab.starter.pretrain import PretrainPhase, PretrainPlan, train
from app.lab.statistics import average
from app.models.shelf import locate
from app.sapo.asking import shows_work
from app.sapo.probe import probe_questions
from app.sapo.scoring.sandbox import Sandbox
from engines.models.folder import read_settings
from engines.torch_lora import open_engine

STARTER = locate("starter")


def test_the_starter_is_small_and_plain_transformers_opens_it() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    assert sum(file.stat().st_size for file in STARTER.iterdir()) <= 16 * 2**20
    model = AutoModelForCausalLM.from_pretrained(STARTER)
    assert model.config.vocab_size == len(AutoTokenizer.from_pretrained(STARTER))


def test_the_starter_has_headroom_at_the_levels_where_it_begins(sandbox: Sandbox) -> None:
    settings = read_settings(STARTER)
    asked = probe_questions(settings.families, 63)
    engine = open_engine(STARTER, threads=1)
    groups, scored_P = answered(engine, sandbox, asked, 8, settings.max_tokens, seed=3)
    answers = [
        (one, reward) for _, some_G, rewards_G in groups for one, reward in zip(some_G, rewards_G, strict=True)
    ]
    solved = average([reward for _, reward in answers])
    assert 0.05 <= solved <= 0.40
    assert average([any(scored.rewards_G) for scored in scored_P]) >= 2 * solved
    assert average([one.finished for one, _ in answers]) >= 0.95
    worked, guessed = (
        average([reward for one, reward in answers if shows_work(one.text) is shown]) for shown in (True, False)
    )
    assert worked > guessed


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
