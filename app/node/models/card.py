"""Writes the model card of an export: what the model is, what it was trained on, how well it does, how to load
it. It states only what was measured or recorded; everything else is called unknown."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from app.common.text import rounded_duration, safe_line
from app.node.models.trained import TrainedModel
from app.sapo import asking
from app.skills.skill import Skill


class BaseModel(msgspec.Struct, frozen=True, kw_only=True):
    """The model that was trained: its name, and its licence where that is known."""

    name: str
    licence: str = ""
    licence_url: str = ""
    on_hub: bool = False


_SHORT = 200
"""Characters of a row that suits as an example."""
_TOKENS = 256
"""Maximum tokens of an answer in the examples, where the model has no limit of its own."""


class ExportFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format of exports: the library that hubs show, what is in the folder, and how it is asked. In `asking`,
    BASE stands for the base model, CHAT for the messages as Python, SYSTEM and TEXT for their contents as words
    of a shell, TOKENS for the longest answer."""

    library: str
    files: str
    asking: str


_GENERATE = """chat = CHAT
asked = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
reply = model.generate(**asked, max_new_tokens=TOKENS, do_sample=False)
print(tokenizer.decode(reply[0, asked["input_ids"].shape[1]:], skip_special_tokens=True))
```"""
_COMPLETE = """chat = CHAT
reply = model.create_chat_completion(chat, temperature=0, repeat_penalty=1, max_tokens=TOKENS)
print(reply["choices"][0]["message"]["content"])
```"""
FORMATS = {
    "ollama": ExportFormat(
        library="gguf",
        files="the whole model for Ollama, llama.cpp and LM Studio, with what it learned in its weights",
        asking=f"""With Ollama, in this folder:

```
ollama create my-model -f Modelfile
ollama run my-model TEXT
```

With llama-cpp-python:

```python
from llama_cpp import Llama

model = Llama("THIS_FOLDER/model.gguf", n_ctx=0, verbose=False)
{_COMPLETE}""",
    ),
    "gguf": ExportFormat(
        library="gguf",
        files="the LoRA adapter for llama.cpp; it needs the base model as GGUF",
        asking=f"""With llama-cpp-python:

```python
from llama_cpp import Llama

model = Llama("BASE_MODEL.gguf", lora_path="THIS_FOLDER/adapter.gguf", n_ctx=0, verbose=False)
{_COMPLETE}""",
    ),
    "peft": ExportFormat(
        library="peft",
        files="the LoRA adapter in PEFT's files; it needs the base model",
        asking=f"""```python
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("BASE")
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained("BASE"), "THIS_FOLDER")
{_GENERATE}""",
    ),
    "mlx": ExportFormat(
        library="mlx",
        files="the LoRA adapter for mlx-lm; it needs the base model",
        asking="""```
mlx_lm.generate --model BASE --adapter-path THIS_FOLDER --temp 0 --system-prompt SYSTEM --prompt TEXT
```""",
    ),
    "merged": ExportFormat(
        library="transformers",
        files="the whole model for transformers and programs like it, with what it learned in its weights",
        asking=f"""```python
from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("THIS_FOLDER")
model = AutoModelForCausalLM.from_pretrained("THIS_FOLDER")
{_GENERATE}

The weights have the number format of the base, so what was learned is rounded to it.""",
    ),
}


def write(format: str, base: BaseModel, trained: TrainedModel, made_at: str, skill: Skill | None = None) -> str:
    """Returns the card as Markdown with the YAML header that model hubs read. `made_at` is a date; without a
    skill, it is a model of puzzles."""
    state = trained.state
    source = [
        "Generated puzzles whose answers a program checks, by reinforcement learning with a LoRA adapter "
        "(SAPO, arXiv 2509.08721). No text of people was used.",
        "",
        *_families(trained),
    ]
    if skill is not None:
        source = [
            f"The rows of its owner's table “{safe_line(skill.name)}”, as a LoRA adapter: first their answers, "
            "then rounds of reinforcement learning. What stands in them may show in its answers; one is the "
            "example below."
        ]
    lines = [
        *_header(format, base),
        f"# {base.name}, trained with Shoal",
        "",
        f"In this folder: {FORMATS[format].files}.",
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
        *_scores(trained, skill),
        "",
        "## Asking it",
        "",
        "It was trained with this system line, and answers as it learned to only with it:",
        "",
        f"> {state.way.system}",
        "",
        *_asking(format, base, trained, skill),
    ]
    return "\n".join(lines) + "\n"


def _asking(format: str, base: BaseModel, trained: TrainedModel, skill: Skill | None) -> list[str]:
    """Returns how to ask it, to copy: a skill with a row of its table, puzzles with a product."""
    way, text, lines = trained.state.way, "Calculate 7 * 8.", []
    if skill is not None and skill.made.rows:
        row = next((row for row in skill.made.rows if len(row.question) <= _SHORT), skill.made.rows[0])
        text, true = row.question, json.dumps(row.answer, ensure_ascii=False)
        lines = [f"For example a row of the table, where its answer is {true}:", ""]
    if way.reads:
        lines = [f"Of a text it reads the first {way.reads} characters: send no more of it.", "", *lines]
    chat = asking.messages(text, way)
    named = base.name if base.on_hub else "FOLDER_OF_THE_BASE_MODEL"
    words = {
        "CHAT": json.dumps(chat, ensure_ascii=False, indent=4),
        "SYSTEM": shlex.quote(" ".join(way.system.split())),
        "TEXT": shlex.quote(" ".join(text.split())),
        "TOKENS": str(way.token_limit(_TOKENS)),
        '"BASE"': json.dumps(named),
        "BASE": shlex.quote(named),
    }
    sought = r'"BASE"|\b(?:CHAT|SYSTEM|TEXT|TOKENS|BASE)\b'
    return [*lines, re.sub(sought, lambda one: words[one[0]], FORMATS[format].asking)]


def _header(format: str, base: BaseModel) -> list[str]:
    fields = ["---", f"library_name: {FORMATS[format].library}", "tags: [shoal, sapo, reinforcement-learning]"]
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
        f"({state.tokens} tokens), {rounded_duration(state.seconds)} of work",
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


def _scores(trained: TrainedModel, skill: Skill | None) -> list[str]:
    """Returns the results on held-out questions, which are never trained on. pass@1 is the share solved at the
    first try at temperature 1, or with a skill's likeliest answer, beside what one constant answer gets."""
    first, last = trained.first, trained.last
    if first is None or last is None:
        return ["It was not measured: no held-out questions were asked up to this round."]
    how = "the likeliest answer"
    if skill is None:
        how = "one answer each at temperature 1; the likeliest answer, at 0, is usually right more often"
    lines = [f"{last.questions} held-out questions, never trained on, {how}.", ""]
    lines += ["| | solved at the first try |", "|---|---|"]
    if first.round < last.round:
        before = "before training" if first.round == 0 else f"after round {first.round}"
        lines.append(f"| {before} | {first} |")
    lines += [f"| **after round {last.round}** | **{last}** |"]
    if skill is not None:
        share, always = skill.made.constant_share()
        lines += [f"| always saying {json.dumps(always, ensure_ascii=False)} | {_percent(share)} |"]
    else:
        lines += [f"| {family} | {_percent(score)} |" for family, score in sorted(last.families.items())]
    lines += ["", "± is one standard error. Other kinds of questions were not measured."]
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def card_metadata(base: BaseModel, trained: TrainedModel, skill: Skill | None = None) -> Mapping[str, Any]:
    """Returns a short description and the licence as values for a GGUF header."""
    on = f"its owner's table {safe_line(skill.name)}" if skill else "generated puzzles"
    found = {
        "general.description": f"{base.name}, trained with Shoal on {on} for {trained.state.round} rounds",
    }
    if base.licence:
        found["general.license"] = base.licence
    return found
