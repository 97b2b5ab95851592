"""The baselines that people write by hand today: transformers' `generate`, and a plain LoRA step with peft."""

from __future__ import annotations

import random
import time
from typing import Any

import torch

from app.bench.engine.apart import ApartTask, Clock, Measured
from app.bench.engine.shapes import RANK

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
RATE = 1e-5


def loaded(task: ApartTask) -> Any:
    """The base model in transformers, in the number format that the candidate's name ends with."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    torch.set_num_threads(task.threads)
    return AutoModelForCausalLM.from_pretrained(task.folder, dtype=number_format(task), local_files_only=True)


def number_format(task: ApartTask) -> torch.dtype:
    return torch.bfloat16 if "bf16" in task.candidate.split() else torch.float32


def sampling(task: ApartTask) -> Measured:
    """`generate` with the adapter merged into the weights, which is as fast as transformers samples."""
    from peft import PeftModel

    start = time.perf_counter()
    model: Any = PeftModel.from_pretrained(loaded(task), task.adapter).merge_and_unload().eval()
    loading = time.perf_counter() - start
    prompt = torch.tensor([task.prompt_T])

    def generate(new: int) -> Any:
        with torch.inference_mode():
            return model.generate(
                input_ids=prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                num_return_sequences=task.rows,
                max_new_tokens=new,
                pad_token_id=0,
            )

    generate(2)
    clock = Clock()
    out = generate(task.new)
    seconds, cpu = clock.wall(), clock.cpu()
    tokens = int((out[:, prompt.shape[1] :] != 0).sum())
    return Measured(seconds=seconds, cpu_s=cpu, tokens=tokens, load_s=loading, note="adapter merged before")


def learning(task: ApartTask) -> Measured:
    """All logits at once, log-softmax, torch's AdamW."""
    from peft import LoraConfig, get_peft_model

    start = time.perf_counter()
    config = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=PROJECTIONS, task_type="CAUSAL_LM")
    model: Any = get_peft_model(loaded(task), config)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE)
    loading = time.perf_counter() - start
    drawn = random.Random(3)
    completions = [[drawn.randrange(task.vocabulary) for _ in range(task.new)] for _ in range(task.rows)]

    def step(rows: list[list[int]]) -> None:
        tokens = torch.tensor([task.prompt_T + row for row in rows])
        logps = model(input_ids=tokens).logits.float().log_softmax(-1)[:, len(task.prompt_T) - 1 : -1]
        chosen = logps.gather(-1, tokens[:, len(task.prompt_T) :, None])[..., 0]
        signs = torch.tensor([1.0 if index % 2 else -1.0 for index in range(len(rows))])
        (-(signs[:, None] * chosen).sum() / chosen.numel()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    step([row[:4] for row in completions[:2]])
    clock = Clock()
    step(completions)
    return Measured(seconds=clock.wall(), cpu_s=clock.cpu(), tokens=task.rows * task.new, load_s=loading)
