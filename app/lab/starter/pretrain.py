"""Trains the starter from scratch, reproducibly from a seed.

Only answers are trained on (the loss skips the question). Every batch has all families: the model did not learn
from batches of one family each. Within a batch, rows are sorted by length into micro-batches, which changes the
padding and not the gradient."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import torch
from tokenizers import AddedToken
from torch.nn.functional import cross_entropy
from transformers import GenerationConfig, Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

from app.lab.starter.corpus import CorpusExample, DataMix, examples

PAD, END = "<pad>", "<end>"

PHRASES = (
    "State the final answer to the following arithmetic problem: ",
    "Calculate ",
    "Find the Greatest Common Divisor (GCD) of these numbers: ",
    ". Give only the GCD as your final answer.",
    "Find the Least Common Multiple (LCM) of these numbers: ",
    "Simplify the fraction ",
    " to its lowest terms. Give only the simplified fraction as your final answer.",
    "Find the value of ",
    " in the equation: ",
    "Solve for ",
    "Determine the value of ",
    " that satisfies: ",
    "Your task is to convert a number between two different bases.\n\nIf the target base is > 10, use "
    "lowercase letters a-z for digits above 9.\n\nNow, convert the ",
    " number ",
    " to ",
    "base-",
    "binary",
    "hexadecimal",
    "Spell this word backward (example: sun -> nus): ",
    "How many 1 bits are there in the binary representation of the number ",
    " + ",
    " - ",
    " * ",
    " = ",
    ", ",
)

CHAT_TEMPLATE = "{{ messages[-1]['content'] + '\\n' }}"
"""The question and a line break; the starter takes no instructions. (A bare line break at the end of a template
is trimmed.)"""


def make_tokenizer() -> Qwen2Tokenizer:
    """Creates the tokenizer: single bytes, single digits, and whole phrases of the puzzles' templates, which
    make a question some ten tokens long, so that a model of this size learns in minutes. Its form is Qwen2's
    byte-level BPE without merges, because transformers gives every Qwen2 model that class. Its decoding is
    exact, so that peers' text re-encodes to the sender's tokens."""
    vocabulary = {token: number for number, token in enumerate([PAD, END, *bytes_to_unicode().values()])}
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary,
        merges=[],
        unk_token=None,  # type: ignore[arg-type]  # every byte is known
        bos_token=None,
        eos_token=END,
        pad_token=PAD,
        model_max_length=192,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in PHRASES])
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def save_tokenizer(folder: Path) -> None:
    """Saves the tokenizer so that transformers' AutoTokenizer opens it."""
    make_tokenizer().save_pretrained(folder)


class PretrainPhase(msgspec.Struct, frozen=True, kw_only=True):
    """One training phase with its own data mix and AdamW."""

    steps: int
    peak_rate: float
    final_rate: float
    horizon: int
    """Steps after which the cosine schedule reaches `final_rate`; if larger than `steps`, the phase stops
    before."""
    warmup: int
    mix: DataMix


class PretrainPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All settings that determine the result, saved beside it.

    The skill phase comes first: half of the answers are worked, so that the steps of the work are learned. The
    habit phase follows: a mix like the web's, mostly guesses, which sets how often work is shown and leaves the
    skill mostly unused."""

    seed: int = 1
    batch: int = 128
    micro_batch: int = 32
    hidden: int = 192
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    feed_forward: int = 512
    context: int = 192
    skill: PretrainPhase = PretrainPhase(
        steps=1500, horizon=2800, peak_rate=2e-3, final_rate=2e-4, warmup=100, mix=DataMix(worked_share=0.5)
    )
    habit: PretrainPhase = PretrainPhase(
        steps=300, horizon=300, peak_rate=1e-3, final_rate=5e-5, warmup=20, mix=DataMix(worked_share=0.2)
    )


def learning_rate(phase: PretrainPhase, step: int) -> float:
    """Linear warm-up, then a cosine from the peak to the final rate at the horizon.

    >>> phase = PretrainPhase(steps=300, horizon=300, warmup=100, peak_rate=2.0, final_rate=1.0, mix=DataMix())
    >>> [learning_rate(phase, step) for step in (49, 100, 200, 300)]
    [1.0, 2.0, 1.5, 1.0]
    """
    if step < phase.warmup:
        return phase.peak_rate * (step + 1) / phase.warmup
    done = (step - phase.warmup) / (phase.horizon - phase.warmup)
    return phase.final_rate + (phase.peak_rate - phase.final_rate) * 0.5 * (1 + math.cos(math.pi * done))


def new_model(plan: PretrainPlan) -> Any:
    """An untrained Qwen2 of the plan's size, initialised from its seed."""
    tokenizer = make_tokenizer()
    torch.manual_seed(plan.seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=plan.hidden,
        num_hidden_layers=plan.layers,
        num_attention_heads=plan.heads,
        num_key_value_heads=plan.kv_heads,
        intermediate_size=plan.feed_forward,
        max_position_embeddings=plan.context,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    model = Qwen2ForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id, do_sample=True
    )
    return model


def train(plan: PretrainPlan, out: Path) -> None:
    """Trains and writes `out/` (a Hugging Face folder) and `out/curve-*.jsonl`. The model between the phases is
    saved in `out/skill`; a later call that finds it there skips the first phase."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer()
    skilled = out / "skill"
    if (skilled / "model.safetensors").exists():
        model = Qwen2ForCausalLM.from_pretrained(skilled, dtype=torch.float32)
        model.train()
    else:
        model = new_model(plan)
        _train_phase(model, tokenizer, plan, plan.skill, plan.seed, out / "curve-skill.jsonl")
        save(model, plan, skilled)
    _train_phase(model, tokenizer, plan, plan.habit, plan.seed + 1, out / "curve-habit.jsonl")
    save(model, plan, out)


def _train_phase(
    model: Any, tokenizer: Any, plan: PretrainPlan, phase: PretrainPhase, seed: int, curve_file: Path
) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=phase.peak_rate, betas=(0.9, 0.95), weight_decay=0.01)
    stream = examples(phase.mix, seed)
    started = time.monotonic()
    with curve_file.open("w") as curve:
        for step in range(phase.steps):
            rows = sorted(_encode(tokenizer, islice(stream, plan.batch)), key=lambda row: len(row[0]))
            tokens = sum(len(ids) - asked for ids, asked in rows)
            loss = 0.0
            optimiser.zero_grad(set_to_none=True)
            for first in range(0, len(rows), plan.micro_batch):
                part = _loss_sum(model, rows[first : first + plan.micro_batch]) / tokens
                part.backward()
                loss += part.item()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimiser.param_groups:
                group["lr"] = learning_rate(phase, step)
            optimiser.step()
            if step % 20 == 0 or step == phase.steps - 1:
                seconds = round(time.monotonic() - started, 1)
                curve.write(json.dumps({"step": step, "loss": round(loss, 4), "seconds": seconds}) + "\n")
                curve.flush()


def save(model: Any, plan: PretrainPlan, folder: Path) -> None:
    """Saves a folder that transformers opens without our code, and the plan that made it."""
    model.save_pretrained(folder)
    save_tokenizer(folder)
    (folder / "recipe.json").write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=1))


def _encode(tokenizer: Any, rows: Iterator[CorpusExample]) -> list[tuple[list[int], int]]:
    encoded = []
    for example in rows:
        asked = tokenizer.encode(example.question + "\n")
        ids = [*asked, *tokenizer.encode(example.completion), tokenizer.eos_token_id]
        encoded.append((ids, len(asked)))
    return encoded


def _loss_sum(model: Any, rows: list[tuple[list[int], int]]) -> torch.Tensor:
    """Summed negative log-likelihood of the answers (nats). Padding is on the right, where causal attention
    never reads it, so no mask is needed."""
    width = max(len(ids) for ids, _ in rows)
    tokens_ST = torch.zeros(len(rows), width, dtype=torch.long)
    targets_ST = torch.full((len(rows), width), -100)
    for place, (ids, asked) in enumerate(rows):
        tokens_ST[place, : len(ids)] = torch.tensor(ids)
        targets_ST[place, asked - 1 : len(ids) - 1] = torch.tensor(ids[asked:])
    logits_STV = model(input_ids=tokens_ST, use_cache=False).logits
    return cross_entropy(logits_STV.flatten(0, 1), targets_ST.flatten(), ignore_index=-100, reduction="sum")
