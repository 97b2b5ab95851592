"""How exact a converted model is: llama.cpp on the GGUF file beside transformers on the checkpoint.

Both are given the same tokens, with and without a LoRA adapter; at every position the likeliest token and the
log-probability of the one that follows are compared. The reference computes in fp32 on the stored weights.
llama.cpp runs with keys and values in fp32, so that what differs comes from the file and from its arithmetic.

A random model has hardly any opinion: among 152 thousand almost equal logits the first and the second are close
by chance, and rounding turns some of them around. So the margin between the two is told as well.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from app.bench import BenchError, Tell
from app.bench.engine.shapes import SHAPES

SUMMARY = "converted models: agreement of llama.cpp on a GGUF file with transformers on the checkpoint"
WANTED_PERCENT = 99.5
RANK, ALPHA = 16, 32
STARTER = "starter"
_SEQUENCE = 160
"""Tokens of one sequence; the starter reads 192."""

Array = np.ndarray[Any, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--models",
        default=f"{STARTER},0.5b",
        metavar="A,B",
        help=f"starter, or random models of the shapes {', '.join(SHAPES)} (starter,0.5b)",
    )
    parser.add_argument("--positions", type=int, default=1000, metavar="N", help="compared in each case (1000)")
    parser.add_argument("--kind", choices=("f16", "q8_0", "f32"), default="f16", help="of the GGUF file (f16)")


def run(args: argparse.Namespace, tell: Tell) -> dict[str, Any]:
    """The figures. Raises BenchError where llama.cpp is missing or a model is unknown."""
    api = _llama()
    names = [name.strip() for name in args.models.split(",") if name.strip()]
    unknown = [name for name in names if name != STARTER and name not in SHAPES]
    if unknown or not names or args.positions < 1:
        raise BenchError(f"There is no shape {unknown or names}: choose from starter, {', '.join(SHAPES)}.")
    cases: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as place:
        for name in names:
            cases += _cases(api, name, args.kind, args.positions, Path(place) / name, tell)
    return {
        "cases": cases,
        "kind": args.kind,
        "top_1_percent": min(case["top_1_percent"] for case in cases),
        "budget": {"top_1_percent": WANTED_PERCENT},
    }


def table(figures: Mapping[str, Any]) -> list[str]:
    """For people."""
    columns = ("positions", "same top 1", "log-prob off by", "at most", "median margin", "margin where other")
    lines = [f"{'':<24}" + "".join(f"{column:>20}" for column in columns)]
    for case in figures["cases"]:
        lines.append(
            f"{case['model'] + (' + LoRA' if case['lora'] else ''):<24}{case['positions']:>20}"
            f"{case['top_1_percent']:>18.2f} %{case['logprob_mean']:>20.1e}{case['logprob_most']:>20.1e}"
            f"{case['margin_median']:>20.1e}{case['margin_most_where_other']:>20.1e}"
        )
    lines.append(
        f"GGUF {figures['kind']} in llama.cpp beside the checkpoint in transformers in fp32; log-probs in "
        f"nats, margins between the two likeliest tokens in nats; wanted: {WANTED_PERCENT} % the same."
    )
    return lines


def _cases(api: Any, name: str, kind: Any, positions: int, place: Path, tell: Tell) -> Iterator[dict[str, Any]]:
    import torch

    from app.bench.engine import shapes
    from app.models.shelf import locate
    from engines.models.folder import open_folder
    from engines.models.gguf import gguf
    from engines.models.gguf import tensors as gguf_adapter

    folder = locate(STARTER) if name == STARTER else place / "model"
    if name != STARTER:
        tell(f"A random model of the shape {name} is made ...")
        shapes.write(name, folder)
    tell(f"{name} becomes a GGUF file ({kind}) ...")
    place.mkdir(parents=True, exist_ok=True)
    gguf.write(folder, place / "model.gguf", kind, ids_only=True)
    sequences = list(_sequences(name, folder, positions))
    reference = _reference(folder)
    for lora in (False, True):
        tell(f"{name}{' with an adapter' if lora else ''}: {positions} positions in both ...")
        adapter = None
        if lora:
            reference = _with_adapter(reference, place / "peft")
            adapter = place / "lora.gguf"
            gguf_adapter.write(place / "peft", gguf.architecture(open_folder(folder)), adapter)
        with torch.inference_mode(), _opened(api, place / "model.gguf", adapter) as logits:
            parts = [
                _compared(reference(torch.tensor([tokens])).logits[0].numpy(), logits(tokens), tokens)
                for tokens in sequences
            ]
        yield {"model": name, "lora": lora, **_summed(np.concatenate(parts, 1))}


def _reference(folder: Path) -> Any:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True).eval()


def _with_adapter(model: Any, folder: Path) -> Any:
    """The model with a LoRA adapter whose B is drawn so that leaving it out would show."""
    import torch
    from peft import LoraConfig, get_peft_model

    targets = [f"{part}_proj" for part in ("q", "k", "v", "o", "gate", "up", "down")]
    torch.manual_seed(0)
    wrapped = get_peft_model(
        model, LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets, task_type="CAUSAL_LM")
    )
    for name, parameter in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, 0.0, 0.03)
    wrapped.save_pretrained(str(folder))
    return wrapped.eval()


def _sequences(name: str, folder: Path, positions: int) -> Iterator[list[int]]:
    """Token ids: puzzles with their answers for the starter, random ones for random models."""
    if name == STARTER:
        from app.lab.starter.corpus import DataMix, examples
        from app.sapo.asking import messages
        from engines.models.folder import open_folder
        from engines.models.tokens import ChatTokenizer

        tokenizer = ChatTokenizer(open_folder(folder))
        found = (
            tokenizer.prompt(messages(one.question)) + tokenizer.completion(one.completion, True)
            for one in examples(DataMix(), 7)
        )
        tokens: Iterator[int] = chain.from_iterable(found)
    else:
        generator = np.random.default_rng(0)
        tokens = iter(generator.integers(0, SHAPES[name]["vocabulary"], positions).tolist())
    for first in range(0, positions, _SEQUENCE):
        yield [next(tokens) for _ in range(min(_SEQUENCE, positions - first))]


def _compared(wanted: Array, found: Array, tokens: Sequence[int]) -> Array:
    """Rows of (same top 1, error of the next token's log-prob, reference's margin), one column a position. The
    last position has no next token; its likeliest one stands in."""
    top = wanted.argmax(1)
    following = np.append(np.asarray(tokens[1:]), top[-1])
    rows = np.arange(len(tokens))
    first_two = np.partition(wanted, -2, 1)[:, -2:]
    error = np.abs(_logprobs(wanted)[rows, following] - _logprobs(found)[rows, following])
    return np.stack([found.argmax(1) == top, error, first_two[:, 1] - first_two[:, 0]]).astype(np.float64)


def _logprobs(logits: Array) -> Array:
    shifted = logits.astype(np.float64) - logits.max(1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return result


def _summed(columns: Array) -> dict[str, Any]:
    same, error, margin = columns
    other = margin[same == 0]
    return {
        "positions": len(same),
        "top_1_percent": float(100 * same.mean()),
        "logprob_mean": float(error.mean()),
        "logprob_most": float(error.max()),
        "margin_median": float(np.median(margin)),
        "margin_most_where_other": float(other.max()) if len(other) else 0.0,
    }


def _llama() -> Any:
    from engines.opening import why_unavailable

    if reason := why_unavailable("llamacpp"):
        raise BenchError(reason)
    import llama_cpp

    return llama_cpp


@contextmanager
def _opened(api: Any, file: Path, adapter: Path | None) -> Iterator[Callable[[Sequence[int]], Array]]:
    """A function from tokens to logits, (tokens, vocabulary) fp32."""
    silent = api.llama_log_callback(lambda level, text, data: None)
    api.llama_log_set(silent, ctypes.c_void_p(0))
    model = api.llama_model_load_from_file(str(file).encode(), api.llama_model_default_params())
    if not model:
        raise BenchError(f"llama.cpp cannot open {file.name}: the conversion is wrong.")
    settings = api.llama_context_default_params()
    settings.n_ctx = settings.n_batch = settings.n_ubatch = 256
    settings.n_threads = settings.n_threads_batch = max(1, (os.cpu_count() or 2) // 2)
    settings.type_k = settings.type_v = settings.flash_attn_type = 0
    context = api.llama_init_from_model(model, settings)
    if adapter is not None:
        loaded = api.llama_adapter_lora_init(model, str(adapter).encode())
        if not loaded:
            raise BenchError("llama.cpp cannot open the adapter: the conversion is wrong.")
        held = (api.llama_adapter_lora_p_ctypes * 1)(loaded)
        api.llama_set_adapters_lora(context, held, 1, (ctypes.c_float * 1)(1.0))
    size = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
    batch = api.llama_batch_init(256, 0, 1)

    def logits(tokens: Sequence[int]) -> Array:
        api.llama_memory_clear(api.llama_get_memory(context), True)
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index], batch.pos[index] = token, index
            batch.n_seq_id[index], batch.seq_id[index][0], batch.logits[index] = 1, 0, 1
        if code := api.llama_decode(context, batch):
            raise BenchError(f"llama.cpp could not compute (code {code}): take fewer positions.")
        return np.ctypeslib.as_array(api.llama_get_logits(context), shape=(len(tokens), size)).copy()

    try:
        yield logits
    finally:
        api.llama_batch_free(batch)
        api.llama_free(context)
        api.llama_model_free(model)
