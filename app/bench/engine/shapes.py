"""Makes the model that an engine benchmark runs on, a prompt of a given length and an adapter that is not the
identity. `python -m app.bench.engine.shapes` does so in its own process, so that no measuring process's memory
includes it.

Shapes are random Qwen2 models, stored in bf16 like published ones, with the starter's tokenizer: a model's
speed does not depend on what it has learned. Their tokens are drawn almost uniformly, so an answer rarely ends
early."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from app.bench.harness import BenchError
from app.common.home import home

SHAPES: dict[str, dict[str, int]] = {
    "tiny": dict(hidden=64, layers=2, heads=4, kv=2, inner=128, vocabulary=512),
    "15m": dict(hidden=384, layers=8, heads=6, kv=2, inner=1152, vocabulary=2048),
    "0.5b": dict(hidden=896, layers=24, heads=14, kv=2, inner=4864, vocabulary=151936),
}
"""Model sizes; "0.5b" is Qwen2.5-0.5B's."""

RANK = 16
RATE = 1e-3
"""Learning rate of the single step that makes the adapter differ from the base, so that leaving it out would
show."""

_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
_WORDS = "What is 17 + 25 * 3 - 4? "


def write(name: str, folder: Path) -> None:
    """Writes a model folder of this shape, with the same weights every time."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from app.models.shelf import locate

    shape = SHAPES[name]
    torch.manual_seed(0)
    config = Qwen2Config(
        hidden_size=shape["hidden"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["kv"],
        intermediate_size=shape["inner"],
        vocab_size=shape["vocabulary"],
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    Qwen2ForCausalLM._from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    for file in _TOKENIZER:
        shutil.copyfile(locate("starter") / file, folder / file)


def prepare(model: str, folder: Path, prompt: int, new: int) -> dict[str, Any]:
    """Prepares the model folder, the prompt as messages and as token ids, a PEFT folder after one training
    step, and whether the processor computes in bf16 natively.

    If `prompt` + `new` exceeds the model's context, each is limited to half of it. Raises BenchError if there
    is no model of this name."""
    from app.models.shelf import locate
    from engines.contract import Batch, Row
    from engines.opening import bf16_is_faster, open_engine

    if model in SHAPES:
        write(model, folder / "model")
        path = folder / "model"
    else:
        path = locate(model, home())
    settings = json.loads((path / "config.json").read_text())
    context = int(settings.get("max_position_embeddings", 2048))
    if prompt + new > context:
        prompt, new = min(prompt, context // 2), min(new, context // 2)
    engine = open_engine("torch", path, rank=RANK, threads=1, device="cpu")
    text = ""
    while len(engine.prompt_tokens(messages(text))) < prompt:
        text += _WORDS[len(text) % len(_WORDS)]
    tokens = engine.prompt_tokens(messages(text))
    row = Row(prompt_T=tokens[:4], completion_T=tokens[:4], weights_T=[1.0] * 4)
    engine.step(Batch(rows_S=[row], learning_rate=RATE))
    engine.save(folder / "adapter")
    return {
        "folder": str(path),
        "adapter": str(folder / "adapter"),
        "messages": messages(text),
        "prompt_T": tokens,
        "new": new,
        "parameters": engine.info.parameters,
        "vocabulary": int(settings["vocab_size"]),
        "bf16": bf16_is_faster(),
    }


def messages(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def main(arguments: list[str]) -> int:
    from engines.contract import EngineError

    model, folder, prompt, new = arguments
    try:
        print(json.dumps(prepare(model, Path(folder), int(prompt), int(new))))
    except (BenchError, EngineError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
