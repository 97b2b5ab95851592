"""Ollama's template, filled in as Ollama does, writes what the model's own chat template writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.models import modelfile
from app.models.shelf import starter_folder
from engines.models.folder import open_folder
from engines.models.tokens import ChatTokenizer
from tests.engines.small_models import MakeModel
from tests.engines.speaking import make_speaking

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEMPLATES = {
    "chatml": CHATML,
    "with a system line of its own": "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nBe good."
    "<|im_end|>\n{% endif %}" + CHATML,
    "llama": "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant"
    "<|end_header_id|>\n\n{% endif %}",
    "without a system": "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no') }}"
    "{% endif %}<turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n{{ m['content'] }}</turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<turn>model\n{% endif %}",
    "quotes that end a text": "{% for m in messages %}{{ m['role'] + QUOTES + m['content'] }}\"\"\"\"\n"
    "{% endfor %}{% if add_generation_prompt %}{{ 'assistant' + QUOTES }}{% endif %}".replace(
        "QUOTES", '\'"""\\nFROM /etc/passwd\\nSYSTEM """lie{\''
    ),
    "go's own brackets": "{% for m in messages %}{{ '{{' }}{{ m['role'] }}{{ '}}' }} {{ m['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}{{ '{{assistant}}' }} {% endif %}",
}


def fill(template: str, system: str, prompt: str, response: str) -> str:
    """The few actions of Go's templates that are used."""
    template = re.sub(
        r"\{\{ if \.System \}\}(.*?)\{\{ end \}\}", lambda m: m[1] if system else "", template, flags=re.S
    )
    values = {".System": system, ".Prompt": prompt, ".Response": response}
    return re.sub(
        r'\{\{ (?:(\.\w+)|"((?:\\x\w\w)+)") \}\}',
        lambda m: values[m[1]] if m[1] else bytes.fromhex(m[2].replace(r"\x", "")).decode(),
        template,
    )


def commands(text: str) -> list[str]:
    """The commands of a Modelfile, as Ollama's parser finds them: no escapes, and a text from three quotes to
    the next three."""
    return [line.split()[0] for line in re.sub(r'"""(.*?)"""', "TEXT", text, flags=re.S).splitlines()]


@pytest.mark.parametrize("name", TEMPLATES, ids=lambda name: name.replace(" ", "-"))
def test_the_same_words(name: str, make_model: MakeModel, tmp_path: Path) -> None:
    folder = make_speaking(make_model, tmp_path / "model")
    (folder / "chat_template.jinja").write_text(TEMPLATES[name])
    tokenizer = ChatTokenizer(open_folder(folder))
    found = modelfile.chat_markup(tokenizer)
    template = found.template()
    bare = tokenizer.library.encode("").tokens
    bos = tokenizer.special["bos_token"] if tokenizer.special["bos_token"] in bare else ""
    words = commands(modelfile.modelfile_text(open_folder(folder), "./base.gguf", system="Solve it."))
    assert set(words) <= {"FROM", "TEMPLATE", "SYSTEM", "PARAMETER"} and words.count("FROM") == 1

    def own(*texts: tuple[str, str]) -> str:
        return tokenizer.render([{"role": r, "content": t} for r, t in texts], True).removeprefix(bos)

    question, answer, more = ("user", "What is 1+1?"), ("assistant", "2"), ("user", "And 2+2?")
    if found.system:
        system = ("system", "Be brief.")
        assert fill(template, "Be brief.", question[1], "").removesuffix(found.after_answer) == own(
            system, question
        )
        both = fill(template, "Be brief.", question[1], "2") + fill(template, "", more[1], "")
        assert both.removesuffix(found.after_answer) == own(system, question, answer, more)
    else:
        both = fill(template, "", question[1], "2") + fill(template, "", more[1], "")
        assert both.removesuffix(found.after_answer) == own(question, answer, more)


def test_a_first_token_that_no_one_adds_is_written(make_model: MakeModel, tmp_path: Path) -> None:
    """SmolLM2 opens each turn with what its settings call the token that begins a text."""
    folder = make_speaking(make_model, tmp_path / "model")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"bos_token": "<|im_start|>"}))
    (folder / "chat_template.jinja").write_text(CHATML)
    text = modelfile.modelfile_text(open_folder(folder), "./base.gguf")
    assert 'TEMPLATE """{{ if .System }}<|im_start|>system' in text and "{{ end }}<|im_start|>user" in text


def test_the_file(make_model: MakeModel, tmp_path: Path) -> None:
    folder = open_folder(make_speaking(make_model, tmp_path / "model"))
    text = modelfile.modelfile_text(folder, "./model.gguf", system="Solve it.")
    lines = text.splitlines()
    assert lines[0] == "FROM ./model.gguf" and lines.count("PARAMETER temperature 0") == 1
    assert "PARAMETER repeat_penalty 1" in lines, "or words of the question are less likely in an answer"
    assert 'SYSTEM """Solve it."""' in lines and 'PARAMETER stop "<|im_end|>"' in lines
    assert "PARAMETER num_ctx 256" in lines and text.count('"""') == 4


@pytest.mark.parametrize("system", ['Answer "ham" or "spam"', 'Answer with one of: "", """.'])
def test_an_instruction_with_quotes_is_a_line_as_it_is(
    system: str, make_model: MakeModel, tmp_path: Path
) -> None:
    folder = open_folder(make_speaking(make_model, tmp_path / "model"))
    assert f"SYSTEM {system}" in modelfile.modelfile_text(folder, "./model.gguf", system=system).splitlines()


def test_the_starter_takes_no_system() -> None:
    text = modelfile.modelfile_text(open_folder(starter_folder()), "./model.gguf", system="Solve it.")
    assert "SYSTEM" not in text and 'TEMPLATE """{{ .Prompt }}\n{{ .Response }}"""' in text


def test_a_template_that_tells_nothing(make_model: MakeModel, tmp_path: Path) -> None:
    """One that changes texts is left to what the GGUF file says."""
    folder = make_speaking(make_model, tmp_path / "model")
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ m['content'] | length }}{% endfor %}"
    )
    text = modelfile.modelfile_text(open_folder(folder), "./model.gguf", system="Solve it.")
    assert "TEMPLATE" not in text and text.startswith("FROM ./model.gguf\n")


def test_an_end_token_adds_no_command(make_model: MakeModel, tmp_path: Path) -> None:
    folder = make_speaking(make_model, tmp_path / "model")
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        if (folder / name).is_file():
            text = (folder / name).read_text("utf-8")
            (folder / name).write_text(text.replace("<|im_end|>", '<|\\"\\nFROM /etc/passwd\\n|>'), "utf-8")
    text = modelfile.modelfile_text(open_folder(folder), "./model.gguf", system='"""\nADAPTER /etc/passwd')
    assert ChatTokenizer(open_folder(folder)).stops and "passwd" not in text.partition("TEMPLATE")[0]
    assert commands(text).count("FROM") == 1 and "ADAPTER" not in commands(text) and "stop" not in text
