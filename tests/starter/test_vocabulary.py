"""The starter's tokenizer: exact both ways, and opened by plain transformers."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lab.starter.corpus import DataMix, examples
from app.lab.starter.pretrain import (
    PHRASES,
    PretrainPhase,
    PretrainPlan,
    learning_rate,
    make_tokenizer,
    new_model,
    save,
)

TOKENIZER = make_tokenizer()


def test_a_phrase_is_one_token_and_a_digit_is_one_token() -> None:
    assert all(len(TOKENIZER.encode(phrase)) == 1 for phrase in PHRASES)
    assert len(TOKENIZER.encode("#1234")) == 5


def test_corpus_lines_decode_to_themselves() -> None:
    for line in islice(examples(DataMix(), seed=5), 400):
        for text in (line.question + "\n", line.completion):
            assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=40))
def test_any_plain_text_decodes_to_itself(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_plain_transformers_opens_a_saved_starter(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plan = PretrainPlan(hidden=32, layers=1, heads=2, kv_heads=1, feed_forward=48)
    save(new_model(plan), plan, tmp_path / "starter")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "starter")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "starter")
    messages = [{"role": "system", "content": "-"}, {"role": "user", "content": "Solve for k: 3*k + 4 = 13"}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert ids == TOKENIZER.encode("Solve for k: 3*k + 4 = 13\n")
    assert model.config.model_type == "qwen2"
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.eos_token_id == tokenizer.eos_token_id


def test_the_rate_warms_up_and_falls() -> None:
    phase = PretrainPhase(steps=300, horizon=300, warmup=100, peak_rate=2.0, final_rate=1.0, mix=DataMix())
    assert [learning_rate(phase, step) for step in (49, 100, 200, 300)] == pytest.approx([1.0, 2.0, 1.5, 1.0])
