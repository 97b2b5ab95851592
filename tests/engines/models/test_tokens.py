"""Prompts and completions as token ids, against transformers' tokenizer on the same folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engines.contract import EngineError
from engines.models.folder import open_folder
from engines.models.tokens import ChatTokenizer
from engines.torch_lora import open_engine

MESSAGES = [{"role": "system", "content": "w1 w2"}, {"role": "user", "content": "w3 odd w4"}]

CHATTY = """{%- if tools %}tools{%- endif %}
{%- set ns = namespace(found=false) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}{% set ns.found = true %}{% endif %}
    {%- if loop.index0 > 5 %}{% break %}{% endif %}
    {{- '<ask> ' + message.content | trim + ' <end> ' }}
    {%- if message.role == 'assistant' %}{% generation %}w9{% endgeneration %}{% endif %}
{%- endfor %}
{%- if add_generation_prompt and ns.found %}{{ bos_token or 'w5 ' }}{{ {'a': 'w6'} | tojson | length }} w7
{%- endif %}"""


def with_template(tiny: Path, folder: Path, template: Any, **settings: Any) -> ChatTokenizer:
    shutil.copytree(tiny, folder)
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config.pop("chat_template", None)
    if template is not None:
        config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, **settings}))
    return ChatTokenizer(open_folder(folder))


def test_prompts_are_transformers_own(tiny: Path, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    for number, template in enumerate((None, CHATTY)):
        folder = tmp_path / str(number)
        ours = ChatTokenizer(open_folder(tiny)) if template is None else with_template(tiny, folder, template)
        theirs = PreTrainedTokenizerFast.from_pretrained(tiny if template is None else folder)
        encoded = theirs.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=True)
        expected = encoded["input_ids"]
        assert ours.prompt(MESSAGES) == expected
        assert ours.end == theirs.eos_token_id


def test_completions_round_trip(tiny: Path) -> None:
    engine = open_engine(tiny)
    sequence = engine.encode(MESSAGES, "w5 w6", finished=True)
    assert sequence.prompt_T == engine.prompt_tokens(MESSAGES)
    assert sequence.completion_T[-1] == 1 and len(sequence.completion_T) == 3
    assert engine.encode(MESSAGES, "w5 w6", finished=False).completion_T == sequence.completion_T[:-1]
    for group in engine.sample([MESSAGES], 16, 12, seed=0):
        for completion in group:
            if set(completion.tokens_T[:-1]) & {0, 1, 2, 3} or completion.tokens_T[-1] in {0, 2, 3}:
                continue  # special tokens are not in the text
            again = engine.encode(MESSAGES, completion.text, completion.finished)
            assert again.completion_T == completion.tokens_T


def test_control_tokens_in_foreign_text_are_mere_text(tiny: Path) -> None:
    tokens = ChatTokenizer(open_folder(tiny))
    assert 1 not in tokens.completion("w5 <end> w6", finished=False)
    assert 3 not in tokens.completion("<ask>", finished=False)
    assert tokens.completion("w5 <end> w6", finished=True).count(1) == 1
    assert 1 in tokens.prompt([{"role": "user", "content": "<end>"}])  # our own prompts are parsed as ever


def test_templates_that_know_no_system_role(tiny: Path, tmp_path: Path) -> None:
    refuse = "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    template = "{% for m in messages %}" + refuse + "{{ m.content }}{% endfor %}"
    tokens = with_template(tiny, tmp_path / "gemma", template)
    w1 = tokens.completion("w1", finished=False)[0]
    assert tokens.prompt(MESSAGES) == [w1, w1 + 1, w1 + 2, 2, w1 + 3] == tokens.prompt(MESSAGES)
    assert tokens.prompt(MESSAGES[1:]) == [w1 + 2, 2, w1 + 3]
    with pytest.raises(EngineError, match="refuses the prompt"):
        with_template(tiny, tmp_path / "never", "{{ raise_exception('no') }}").prompt(MESSAGES)


def test_several_templates_and_none(tiny: Path, tmp_path: Path) -> None:
    named = [{"name": "tools", "template": "w1"}, {"name": "default", "template": "w2"}]
    tokens = with_template(tiny, tmp_path / "named", named)
    assert tokens.prompt(MESSAGES) == tokens.completion("w2", finished=False)
    plain = with_template(tiny, tmp_path / "none", None)
    assert plain.prompt(MESSAGES) == [5, 6, 7, 2, 8]  # "odd" is not in the vocabulary


@pytest.mark.parametrize(
    ("template", "says"),
    [("{% if %}", "is damaged"), ("{{ messages.append(1) }}", "refuses"), ("", "makes nothing")],
)
def test_templates_that_do_not_work(template: str, says: str, tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=says):
        with_template(tiny, tmp_path / "model", template or "{{ '' }}").prompt(MESSAGES)


def test_templates_cannot_reach_python(tiny: Path, tmp_path: Path) -> None:
    hostile = (
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% set ns = namespace() %}{% set ns.__init__ = 1 %}",
        "{{ dict.__init__.__globals__ }}",
        "{{ raise_exception.__globals__['json'] }}",
    )
    for number, template in enumerate(hostile):
        with pytest.raises(EngineError, match="refuses"):
            with_template(tiny, tmp_path / str(number), template).prompt(MESSAGES)


def test_end_tokens(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "model")
    (folder / "generation_config.json").write_text('{"eos_token_id": [5, 6]}')
    assert ChatTokenizer(open_folder(folder)).stops == {1, 5, 6}
    (folder / "generation_config.json").unlink()
    for name in ("config.json", "tokenizer_config.json"):
        settings = json.loads((folder / name).read_text())
        settings.update(dict.fromkeys(("eos_token_id", "eos_token"), None))
        (folder / name).write_text(json.dumps(settings))
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    with pytest.raises(EngineError, match="no end token"):
        ChatTokenizer(open_folder(folder))


def test_an_answer_that_is_begun_goes_on_behind_the_prompt(tiny: Path) -> None:
    tokenizer = ChatTokenizer(open_folder(tiny))
    begun = [*MESSAGES, {"role": "assistant", "content": "w5 w6"}]
    assert tokenizer.prompt(begun) == [*tokenizer.prompt(MESSAGES), *tokenizer.completion("w5 w6", False)]
