"""A LoRA adapter as llama.cpp reads it, from PEFT's folder or straight from the tensors.

llama.cpp scales by `alpha / rank`. Of Llama models, B of queries and keys has the rows of its base (see
gguf_tensors).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

from engines.contract import EngineError
from engines.models import lora
from engines.models.architecture import Architecture
from engines.models.gguf.tensors import Array, interleaved, linears


def write(peft: Path, architecture: Architecture, to: Path, *, half: bool = False) -> None:
    """PEFT's folder to a GGUF LoRA file. Raises AdapterError for what llama.cpp could not apply."""
    state, alpha = lora.read_state(peft)
    write_state(state, alpha=alpha, architecture=architecture, to=to, half=half)


def write_state(
    state: Mapping[str, Array], *, alpha: float, architecture: Architecture, to: Path, half: bool = False
) -> None:
    """A and B of every layer under PEFT's names, (rank, in) and (out, rank) fp32, to a GGUF LoRA file.

    `half` writes fp16, half the size. Raises AdapterError for layers that the architecture does not have, and
    EngineError when the file cannot be written."""
    layers = linears(architecture)
    adapter = lora.Lora(lora.pairs(state), alpha)
    adapter.check({name: base.shape for name, base in layers.items()})
    writer = gguf.GGUFWriter(to, architecture.family)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for layer, pair in adapter.pairs.items():
        base = layers[layer]
        for suffix, matrix in (("lora_a", pair.a), ("lora_b", interleaved(pair.b, base.heads))):
            writer.add_tensor(
                f"{base.target}.{suffix}", np.ascontiguousarray(matrix, np.float16 if half else np.float32)
            )
    try:
        try:
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
        finally:
            writer.close()
    except OSError as error:
        raise EngineError(
            f"The adapter couldn't be written to {to} ({error.strerror}): free some space."
        ) from error
