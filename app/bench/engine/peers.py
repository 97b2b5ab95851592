"""Baselines as people write them by hand today: transformers' `generate` and TRL's GRPOTrainer; and llama.cpp's
own limit, a bare loop of batched greedy decoding without adapter and tokenizer."""

from __future__ import annotations

import ctypes
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from app.bench.engine.apart import INSTALL, ApartTask, Clock
from app.bench.engine.shapes import RANK
from app.bench.harness import BenchError, Figures

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
RATE = 1e-5


def loaded(task: ApartTask) -> Any:
    """Loads the base model in transformers, in the number format that the candidate's name contains."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]
    torch.set_num_threads(task.threads)
    model: Any = AutoModelForCausalLM.from_pretrained(
        task.folder, dtype=number_format(task), local_files_only=True
    )
    return model.to(task.device)


def number_format(task: ApartTask) -> torch.dtype:
    return torch.bfloat16 if "bf16" in task.candidate.split() else torch.float32


def sampling(task: ApartTask) -> Figures:
    """Measures the `generate` of transformers with the adapter merged into the weights, its fastest way."""
    from peft import PeftModel

    start = time.perf_counter()
    model: Any = PeftModel.from_pretrained(loaded(task), task.adapter).merge_and_unload().eval()
    loading = time.perf_counter() - start
    prompt = torch.tensor([task.prompt_T], device=task.device)

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
    found = clock.figures(0, load_s=loading, note="adapter merged before")
    return found | {"tokens": int((out[:, prompt.shape[1] :] != 0).sum())}


WARM_UP_TOKENS = 2
"""Tokens of the completions in the warm-up step."""


def learning_with_trl(task: ApartTask) -> Figures:
    """Measures the update of TRL's GRPOTrainer alone, with the same model, prompt, lengths and LoRA as ours:
    completions are random, so generating takes no time. Its default loss, no KL, one iteration, so that a
    step is what ours is; `loss_type="sapo"` there is another method (arXiv 2511.20347). Its default of
    computing layers twice is the candidate "checkpointing"; without it TRL is faster and takes more
    memory."""
    return _trained(task, made_up=True)


def round_(task: ApartTask) -> Figures:
    return _trained(task, made_up=False)


def _trained(task: ApartTask, made_up: bool) -> Figures:
    try:
        from datasets import Dataset
        from peft import LoraConfig
        from transformers import AutoTokenizer, TrainerCallback
        from trl import GRPOConfig, GRPOTrainer
    except ImportError as error:
        raise BenchError(f"TRL is not installed ({error.name or error}): {INSTALL}.") from error

    drawn = random.Random(3)
    start = time.perf_counter()
    found: Figures = {}
    begun: list[Clock] = []
    generated: list[int] = []

    class Trainer(GRPOTrainer):  # type: ignore[misc, unused-ignore]
        """Measures its time for generating; may use random completions instead."""

        def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **more: Any) -> Any:
            before = time.perf_counter()
            if made_up:
                length = self.generation_config.max_new_tokens
                rows = [[drawn.randrange(2, task.vocabulary) for _ in range(length)] for _ in prompt_ids]
                return rows, None
            out = super()._generate_single_turn(prompt_ids, *rest, **more)
            found["sample_s"] = time.perf_counter() - before
            generated.append(sum(map(len, out[0])))
            return out

    class Steps(TrainerCallback):  # type: ignore[misc, unused-ignore]
        """Warms up with short completions in the first step; the second step is measured."""

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            trainer.generation_config.max_new_tokens = task.new if begun else WARM_UP_TOKENS
            begun.append(Clock())

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            found.update(begun[-1].figures(task.rows * task.new))

    def reward(completions: Any, **_: Any) -> list[float | None]:
        return [float(index % 2) for index in range(len(completions))]

    model = loaded(task)
    with tempfile.TemporaryDirectory(prefix="shoal-bench-trl-") as folder:
        config = GRPOConfig(
            output_dir=folder,
            use_cpu=task.device == "cpu",
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
    found["load_s"] = loading
    if not made_up:
        found |= {"tokens": generated[-1], "step_s": found["seconds"] - found["sample_s"]}
    return found


CELL_TOKENS = 256
"""The context length per sequence is a multiple of this."""


def sampling_with_llamacpp(task: ApartTask) -> Figures:
    from engines.models.gguf import gguf
    from engines.opening import why_unavailable

    if reason := why_unavailable("llamacpp"):
        raise BenchError(reason)
    import llama_cpp as api

    start = time.perf_counter()
    silent = api.llama_log_callback(lambda level, text, data: None)
    api.llama_log_set(silent, ctypes.c_void_p(0))
    api.llama_backend_init()
    kind: Any = task.candidate.split()[1]
    file = gguf.cached(Path(task.folder), kind, Path(os.environ["SHOAL_HOME"]) / "cache" / "gguf")
    model = api.llama_model_load_from_file(str(file).encode(), api.llama_model_default_params())
    if not model:
        raise BenchError(f"llama.cpp cannot open {file.name}: convert the model again.")
    prompt, rows = task.prompt_T, task.rows
    settings = api.llama_context_default_params()
    settings.n_seq_max = rows
    settings.n_ctx = rows * -(-(len(prompt) + task.new) // CELL_TOKENS) * CELL_TOKENS
    settings.n_batch = settings.n_ubatch = max(512, len(prompt), rows)
    settings.n_threads = settings.n_threads_batch = task.threads
    settings.kv_unified = False
    context = api.llama_init_from_model(model, settings)
    if not context:
        raise BenchError("llama.cpp finds no memory for the rows: take fewer.")
    memory = api.llama_get_memory(context)
    vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
    batch = api.llama_batch_init(max(len(prompt), rows), 0, 1)
    loading = time.perf_counter() - start

    def decode(tokens: list[int], sequences: list[int], positions: list[int], wanted: list[bool]) -> None:
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = positions[index]
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = sequences[index]
            batch.logits[index] = wanted[index]
        if code := api.llama_decode(context, batch):
            raise BenchError(f"llama.cpp could not decode (code {code}): take fewer rows.")

    def best(count: int) -> list[int]:
        logits = np.ctypeslib.as_array(api.llama_get_logits(context), shape=(count, vocabulary))
        return [int(token) for token in logits.argmax(1)]

    def generate(new: int) -> None:
        api.llama_memory_clear(memory, True)
        last = len(prompt) - 1
        decode(prompt, [0] * len(prompt), list(range(len(prompt))), [at == last for at in range(len(prompt))])
        tokens = best(1) * rows
        for row in range(1, rows):
            api.llama_memory_seq_cp(memory, 0, row, -1, -1)
        for position in range(len(prompt), len(prompt) + new - 1):
            decode(tokens, list(range(rows)), [position] * rows, [True] * rows)
            tokens = best(rows)

    generate(3)
    clock = Clock()
    generate(task.new)
    return clock.figures(rows * task.new, load_s=loading, note="greedy, no adapter")
