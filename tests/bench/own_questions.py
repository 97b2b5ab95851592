"""The same question set learned by TRL's GRPO, for as much processor time: a figure beside the app's own.

    python -m tests.bench.own_questions FILE MODEL --seconds 600

TRL gets the same questions, split, prompt, check, LoRA rank and answer length, and eight answers to each of
two questions a step. It does what it does by itself: no lesson before it, no answer key, no placement. The last
line of standard output is JSON. `./shoal setup --bench` installs TRL."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from app.bench.engine.peers import PROJECTIONS
from app.sapo.asking import BRIEF, extract_answer, messages
from app.sapo.probe import score
from app.sapo.sets.checks import asked, right
from app.sapo.sets.question_set import QuestionSet, Row, family, near
from app.sapo.sets.tables import read

RANK, LENGTH, AT_ONCE = 8, 48, 20


def split(made: QuestionSet) -> tuple[list[Row], list[Row]]:
    """Rows that are trained on, and the fifth that is held out."""
    one = family(made)
    sides: tuple[list[Row], list[Row]] = [], []
    for row in made.rows:
        entry = {"question": row.question, "answer": row.answer, "metadata": {"content": near(row.question)}}
        sides[one.holds_out(one.content_hash(entry))].append(row)
    return sides


def solved(made: QuestionSet, completion: str, truth: str) -> int:
    answer = extract_answer(completion)
    return int(answer is not None and right(made.rule, answer, truth) == 1.0)


def measured(model: Any, tokenizer: Any, made: QuestionSet, rows: list[Row]) -> list[int]:
    """One answer to each question, at temperature 1."""
    found: list[int] = []
    torch.manual_seed(0)
    for first in range(0, len(rows), AT_ONCE):
        some = rows[first : first + AT_ONCE]
        texts = [
            tokenizer.apply_chat_template(
                messages(asked(made.rule, row.question), BRIEF), tokenize=False, add_generation_prompt=True
            )
            for row in some
        ]
        given = tokenizer(texts, return_tensors="pt", padding=True, padding_side="left")
        with torch.inference_mode():
            out = model.generate(**given, do_sample=True, top_k=0, top_p=1.0, max_new_tokens=LENGTH)
        said = tokenizer.batch_decode(out[:, given["input_ids"].shape[1] :], skip_special_tokens=True)
        found += [solved(made, text, row.answer) for text, row in zip(said, some, strict=True)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0, help="of processor time, loading left out")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    made = read(args.file.read_bytes(), args.file.stem).made
    trained, held_out = split(made)
    tokenizer = AutoTokenizer.from_pretrained(args.model, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16, local_files_only=True)
    before = score(measured(model, tokenizer, made, held_out))
    begun = time.process_time()

    class Clock(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args_: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = time.process_time() - begun > args.seconds

    def reward(completions: Any, truth: Any, **_: Any) -> list[float]:
        texts = [one[-1]["content"] for one in completions]
        return [float(solved(made, text, true)) for text, true in zip(texts, truth, strict=True)]

    rows = [{"prompt": messages(asked(made.rule, row.question), BRIEF), "truth": row.answer} for row in trained]
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder, use_cpu=True, bf16=True, seed=args.seed, per_device_train_batch_size=16,
            num_generations=8, max_completion_length=LENGTH, max_steps=100_000, learning_rate=5e-4, beta=0.0,
            report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
            gradient_checkpointing=False,
        )  # fmt: skip
        lora = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=PROJECTIONS, task_type="CAUSAL_LM")
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            peft_config=lora,
            callbacks=[Clock()],
        )
        trainer.train()
    seconds = time.process_time() - begun
    after = score(measured(trainer.model.eval(), tokenizer, made, held_out))
    said = {"before": str(before), "after": str(after), "steps": trainer.state.global_step}
    print(json.dumps(said | {"held_out": len(held_out), "cpu_s": round(seconds)}), flush=True)


if __name__ == "__main__":
    main()
