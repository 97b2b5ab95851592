"""Writes the model card of an export: what the model is, what it was trained on, how well it does, how to load
it. It states only what was measured or recorded; everything else is called unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from app.common.text import safe_line, span
from app.node.models.trained import TrainedModel
from engines import remedy


class BaseModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model that was trained: its name, and its licence where that is known."""

    name: str
    licence: str = ""
    licence_url: str = ""
    on_hub: bool = False


_LIBRARIES = {"peft": "peft", "gguf": "gguf", "mlx": "mlx", "merged": "transformers", "merged-gguf": "gguf"}
_FILES = {
    "peft": "A LoRA adapter in PEFT's files. It needs the base model.",
    "gguf": "A LoRA adapter for llama.cpp and Ollama (`adapter.gguf`). It needs the base model as GGUF.",
    "mlx": "A LoRA adapter for mlx-lm (`adapters.safetensors`). It needs the base model.",
    "merged": "The whole model with what it learned in its weights, for transformers and programs like it.",
    "merged-gguf": "The whole model with what it learned in its weights, for llama.cpp and Ollama.",
}
_LOADING = {
    "peft": """```python
from peft import PeftModel
from transformers import AutoModelForCausalLM
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("{base}"), "THIS_FOLDER")
```""",
    "gguf": """```
llama-cli -m base.gguf --lora adapter.gguf
ollama create my-model -f Modelfile
```

`base.gguf` is the base model as GGUF: `{shoal} export --format gguf --with-base OUT` puts it here, or name
another one in the first line of `Modelfile`.""",
    "mlx": """```
mlx_lm.generate --model {base} --adapter-path THIS_FOLDER --prompt "..."
```""",
    "merged": """```python
from transformers import AutoModelForCausalLM, AutoTokenizer
model, tokenizer = (kind.from_pretrained("THIS_FOLDER") for kind in (AutoModelForCausalLM, AutoTokenizer))
```

The weights have the number format of the base, so what was learned is rounded to it.""",
    "merged-gguf": """```
llama-cli -m model.gguf
ollama create my-model -f Modelfile
```""",
}


def write(format: str, base: BaseModel, trained: TrainedModel, made_at: str, skill: str = "") -> str:
    """Returns the card as Markdown with the YAML header that model hubs read. `made_at` is a date, `skill` the
    name of a skill; without one, it is a model of puzzles."""
    state = trained.state
    source = [
        "Generated puzzles whose answers a program checks, by reinforcement learning with a LoRA adapter "
        "(SAPO, arXiv 2509.08721). No text of people was used.",
        "",
        *_families(trained),
    ]
    if skill:
        source = [
            f"The rows of its owner's table “{safe_line(skill)}”, as a LoRA adapter: first their answers, then "
            "rounds of reinforcement learning. What stands in them may show in its answers."
        ]
    lines = [
        *_header(format, base),
        f"# {base.name}, trained with Shoal",
        "",
        _FILES[format],
        "",
        f"Made on {made_at} from the safe point after round {state.round}.",
        "",
        "## Base model",
        "",
        f"{base.name}. Licence: {_licence(base)}.",
        "",
        "## What it was trained on",
        "",
        *source,
        "",
        *_amounts(trained),
        "",
        "## How well it does",
        "",
        *_scores(trained, bool(skill)),
        "",
        "## Asking it",
        "",
        "It was trained with this system line, and answers as it learned to only with it:",
        "",
        f"> {state.way.system}",
        "",
        "## Loading it",
        "",
        _LOADING[format]
        .replace("{base}", base.name if base.on_hub else "FOLDER_OF_THE_BASE_MODEL")
        .replace("{shoal}", remedy.short_command()),
    ]
    return "\n".join(lines) + "\n"


def _header(format: str, base: BaseModel) -> list[str]:
    fields = ["---", f"library_name: {_LIBRARIES[format]}", "tags: [shoal, sapo, reinforcement-learning]"]
    if base.on_hub:
        fields.append(f"base_model: {base.name}")
    if base.licence:
        fields.append(f"license: {base.licence.lower()}")
    return [*fields, "---", ""]


def _licence(base: BaseModel) -> str:
    if not base.licence:
        return "unknown here; ask whoever made it before giving this away"
    return f"{base.licence} ({base.licence_url})" if base.licence_url else base.licence


def _families(trained: TrainedModel) -> list[str]:
    """Returns a table of the families and the levels reached."""
    rows = [f"| {family} | {level} |" for family, level in sorted(trained.state.curriculum.levels.items())]
    return ["| family of puzzles | level reached, from 0 |", "|---|---|", *rows]


def _amounts(trained: TrainedModel) -> list[str]:
    state = trained.state
    lines = [
        f"- {state.round} rounds, {state.steps} optimiser steps, {state.completions} answers of its own "
        f"({state.tokens} tokens), {span(state.seconds)} of work",
    ]
    if trained.own_groups or trained.peer_groups:
        lines.append(
            f"- learned from {trained.own_groups} groups of its own answers and {trained.peer_groups} of peers'"
        )
    for name, values in (
        ("recipe", trained.recipes),
        ("learning rate", trained.learning_rates),
        ("engine", trained.engines),
    ):
        if values:
            lines.append(f"- {name}: {', '.join(str(value) for value in values)}")
    return lines


def _scores(trained: TrainedModel, greedy: bool = False) -> list[str]:
    """Returns the results on held-out questions, which are never trained on. pass@1 is the share solved at the
    first try at temperature 1, or with the likeliest answer (`greedy`)."""
    first, last = trained.first, trained.last
    if first is None or last is None:
        return ["It was not measured: no held-out questions were asked up to this round."]
    how = "the likeliest answer" if greedy else "one answer each at temperature 1"
    lines = [f"{last.questions} held-out questions, never trained on, {how}.", ""]
    lines += ["| | solved at the first try |", "|---|---|"]
    if first.round < last.round:
        before = "before training" if first.round == 0 else f"after round {first.round}"
        lines.append(f"| {before} | {first} |")
    lines += [f"| **after round {last.round}** | **{last}** |"]
    if not greedy:
        lines += [f"| {family} | {_percent(score)} |" for family, score in sorted(last.families.items())]
    lines += ["", "± is one standard error. Other kinds of questions were not measured."]
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def about(base: BaseModel, trained: TrainedModel, skill: str = "") -> Mapping[str, Any]:
    """Returns a short description and the licence as values for a GGUF header."""
    on = f"its owner's table {safe_line(skill)}" if skill else "generated puzzles"
    found = {
        "general.description": f"{base.name}, trained with Shoal on {on} for {trained.state.round} rounds",
    }
    if base.licence:
        found["general.license"] = base.licence
    return found
