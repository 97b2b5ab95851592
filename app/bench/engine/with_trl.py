"""TRL's GRPOTrainer as a candidate, with the same model, prompt, lengths and LoRA as ours.

Its loss is the default one: `loss_type="sapo"` there is Soft Adaptive Policy Optimization (arXiv 2511.20347),
another method than the swarm's. No KL, one iteration, so that a step is what ours is. Its own default of
computing layers twice is a candidate of its own ("checkpointing"); without it TRL is faster and takes more
memory.
"""

from __future__ import annotations

import random
import tempfile
import time
from typing import Any

import torch

from app.bench import BenchError
from app.bench.engine.apart import INSTALL, ApartTask, Clock, Measured
from app.bench.engine.peers import PROJECTIONS, RATE, loaded, number_format
from app.bench.engine.shapes import RANK

WARM = 2
"""Tokens of the completions in the step before the one that counts."""


def learning(task: ApartTask) -> Measured:
    """The update alone: completions are made up, so generating takes no time."""
    return _trained(task, made_up=True)


def round_(task: ApartTask) -> Measured:
    return _trained(task, made_up=False)


def _trained(task: ApartTask, made_up: bool) -> Measured:
    try:
        from datasets import Dataset
        from peft import LoraConfig
        from transformers import AutoTokenizer, TrainerCallback
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:
        raise BenchError(f"TRL is not installed ({error.name or error}): {INSTALL}.") from error

    drawn = random.Random(3)
    start = time.perf_counter()
    seconds: dict[str, float] = {}
    begun: list[Clock] = []

    class Trainer(GRPOTrainer):  # type: ignore[misc, unused-ignore]
        """Tells how long it generates; may be given completions instead."""

        def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **more: Any) -> Any:
            before = time.perf_counter()
            if made_up:
                length = self.generation_config.max_new_tokens
                rows = [[drawn.randrange(2, task.vocabulary) for _ in range(length)] for _ in prompt_ids]
                return rows, None
            out = super()._generate_single_turn(prompt_ids, *rest, **more)
            seconds["sample_s"] = time.perf_counter() - before
            seconds["tokens"] = sum(map(len, out[0]))
            return out

    class Steps(TrainerCallback):  # type: ignore[misc, unused-ignore]
        """The first step warms up on short completions, the second counts."""

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            trainer.generation_config.max_new_tokens = task.new if begun else WARM
            begun.append(Clock())

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            seconds["all"], seconds["cpu"] = begun[-1].wall(), begun[-1].cpu()

    def reward(completions: Any, **_: Any) -> list[float | None]:
        return [float(index % 2) for index in range(len(completions))]

    model = loaded(task)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-trl-") as folder:
        config = GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=number_format(task) == torch.bfloat16,
            gradient_checkpointing="checkpointing" in task.candidate.split(),
            per_device_train_batch_size=task.rows,
            num_generations=task.rows,
            max_completion_length=task.new,
            max_steps=2,
            learning_rate=RATE,
            beta=0.0,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            shuffle_dataset=False,
        )
        trainer = Trainer(
            model=model,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list([{"prompt": task.messages}] * 2),
            processing_class=AutoTokenizer.from_pretrained(task.folder, local_files_only=True),
            peft_config=LoraConfig(
                r=RANK, lora_alpha=2 * RANK, target_modules=PROJECTIONS, task_type="CAUSAL_LM"
            ),
            callbacks=[Steps()],
        )
        loading = time.perf_counter() - start
        trainer.train()
    total = seconds["all"]
    if made_up:
        return Measured(seconds=total, cpu_s=seconds["cpu"], tokens=task.rows * task.new, load_s=loading)
    sample = seconds["sample_s"]
    return Measured(
        seconds=total,
        cpu_s=seconds["cpu"],
        tokens=int(seconds["tokens"]),
        load_s=loading,
        parts={"sample_s": sample, "step_s": total - sample},
    )
