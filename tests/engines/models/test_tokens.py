"""Prompts and completions as token ids, against transformers' tokenizer on the same folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engines.contract import EngineError
from engines.models.folder import open_folder
from engines.models.template import ChatTemplate
from engines.models.tokens import ChatTokenizer, ModelText
from engines.torch_lora import open_engine

ROOT = Path(__file__).parents[3]
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


def test_a_late_system_message_and_a_second_one_are_joined_where_the_template_is_strict(
    tiny: Path, tmp_path: Path
) -> None:
    late = "{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}"
    template = "{% for m in messages %}" + late + "{{ m.content }} {% endfor %}"
    tokens = with_template(tiny, tmp_path / "strict", template)
    turns = [("system", "w1"), ("user", "w2"), ("system", "w3"), ("assistant", "w4"), ("user", "w5")]
    asked = [{"role": role, "content": text} for role, text in turns]
    first = tokens.prompt(asked[:2])
    w1 = tokens.completion("w1", finished=False)[0]
    assert [one - w1 for one in tokens.prompt(asked) if one >= w1] == [0, 2, 1, 3, 4]
    assert tokens.prompt(asked[:2]) == first


def test_several_templates_and_none(tiny: Path, tmp_path: Path) -> None:
    named = [{"name": "tools", "template": "w1"}, {"name": "default", "template": "w2"}]
    tokens = with_template(tiny, tmp_path / "named", named)
    assert tokens.prompt(MESSAGES) == tokens.completion("w2", finished=False)
    plain = with_template(tiny, tmp_path / "none", None)
    assert plain.prompt(MESSAGES) == [5, 6, 7, 2, 8]  # "odd" is not in the vocabulary


def test_without_a_template_a_prompt_opens_as_the_tokenizer_opens_a_text(tiny: Path, tmp_path: Path) -> None:
    """`<ask>`, token 3, stands for a beginning; w5 stands for a token that ends with a blank line."""
    text = [5, 6, 7, 2, 8]
    for number, said in enumerate((True, False)):
        told = with_template(tiny, tmp_path / str(number), None, bos_token="<ask>", add_bos_token=said)
        assert told.prompt(MESSAGES) == ([3, *text] if said else text)
        assert with_template(tiny, tmp_path / f"{number}t", CHATTY, add_bos_token=said).opening == []
    folder = tmp_path / "by itself"
    plain = with_template(tiny, folder, None)
    assert plain.prompt(MESSAGES) == text and plain.blank_line_tokens() == frozenset()
    settings = json.loads((folder / "tokenizer.json").read_text())
    settings["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<ask>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<ask>": {"id": "<ask>", "ids": [3], "tokens": ["<ask>"]}},
    }
    vocabulary = settings["model"]["vocab"]
    vocabulary["w5\n\n"] = vocabulary.pop("w5")
    vocabulary["a"] = vocabulary.pop("w20")
    (folder / "tokenizer.json").write_text(json.dumps(settings))
    model = open_folder(folder)
    assert ChatTokenizer(model).prompt(MESSAGES) == [3, *text]
    found = ModelText(ChatTokenizer(model), "tiny", 256)
    assert found.stops == {1, vocabulary["w5\n\n"]}
    answer = found.completions([[([5, vocabulary["w5\n\n"]], [-1.0, -1.0], True)]])[0][0]
    assert answer.text == "w1" and answer.finished and len(answer.tokens_T) == 2


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


_DOUBLING = "{%% set ns = namespace(s=%s) %%}{%% for i in range(60) %%}%s{%% endfor %%}{{ ns.s | length }}"
BOMBS = {
    "a power": "{{ 10**(10**9) }}",
    "a power in a test": "{% if 10**(10**9) %}{% endif %}",
    "a long text": "{{ 'a'*6000000000 }}",
    "a long list": "{{ ([1]*600000000) | length }}",
    "products": _DOUBLING % ("3", "{% set ns.s = ns.s*ns.s %}"),
    "a wide line": "{{ 'a' | center(10**10) }}",
    "a wide line by a method": "{{ 'a'.center(10000000000) }}",
    "a wide line on a list": "{{ range(99999) | map('center', 9999) | join | length }}",
    "zeros": "{{ 'a'.zfill(10000000000) }}",
    "tabs": "{{ ('\\t'*9999).expandtabs(999999999) }}",
    "bytes": "{{ (5).to_bytes(9999999999, 'big') | length }}",
    "digits": "{{ 5 | round(-10000000000) }}",
    "a wide number": "{{ '%9999999999d' % 1 }}",
    "a width beside it": "{{ '%*d' % (2000000000, 1) }}",
    "a wide number by a filter": "{{ '%(a)2000000000d' | format(a=1) }}",
    "a wide number by a method": "{{ '{:9999999999}'.format(1) }}",
    "a width in a width": "{{ '{:{}}'.format(1, 9999999999) }}",
    "many of one": "{{ ('{0}'*99999).format('a'*99999) | length }}",
    "spaces": "{{ [1] | tojson(indent=10**6) }}",
    "more spaces": "{{ ('a\\n'*999999) | indent(9999) }}",
    "a text between letters": "{{ ('a'*999999).replace('', 'b'*999999) | length }}",
    "a text between texts": "{{ (('a'*999999) | list) | join('b'*999999) | length }}",
    "slices without end": "{{ [] | slice(10**9) | list }}",
    "a batch without end": "{{ [1] | batch(9999999999, 0) | list }}",
    "twice as long": _DOUBLING % ("'a'", "{% set ns.s = ns.s + ns.s %}"),
    "twice as long by a tilde": _DOUBLING % ("'a'", "{% set ns.s = ns.s ~ ns.s %}"),
    "twice as long by a block": _DOUBLING % ("'a'", "{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}"),
    "twice as deep": _DOUBLING % ("[]", "{% set ns.s = [ns.s, ns.s] %}") + "{{ ns.s }}",
    "twice as deep to look up": _DOUBLING % ("()", "{% set ns.s = (ns.s, ns.s) %}") + "{{ {ns.s: 1} }}",
    "twice as deep in names": _DOUBLING % ("{}", "{% set ns.s = dict(a=ns.s, b=ns.s) %}") + "{{ ns.s }}",
    "copies": "{% set ns = namespace(x=[], s='a'*9999999) %}{% for i in range(99999) %}"
    "{% set ns.x = ns.x + [ns.s[1:]] %}{% endfor %}",
    "loops in loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
    "{% endfor %}{% endfor %}{% endfor %}",
    "calls in calls": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
    "{{ f(90) }}",
    "sums of lists": "{{ ([[1]]*999999) | sum(start=[]) | length }}",
    "a prompt of 100 MB": "{% for a in range(99999) %}{{ messages[0].content }}{{ 'a'*1000 }}{% endfor %}",
}


@pytest.mark.skipif(os.name == "nt", reason="Windows sets a process no limits")
def test_a_template_does_a_bounded_amount_of_work(tmp_path: Path) -> None:
    """One line took 5 GB, or hung the process inside one call. They run in a process with 1 GB of memory, each
    with a minute of the processor."""
    code = """
import json, resource, sys
from jinja2 import TemplateError
from engines.models.template import ChatTemplate
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
for name, source in json.load(sys.stdin).items():
    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + 60, resource.RLIM_INFINITY))
    try:
        said = ChatTemplate(source).render(messages=[{"role": "user", "content": "ping"}])
        print(name, "made", len(said), flush=True)
    except TemplateError as error:
        print(name, "is refused", flush=True)
    except BaseException as error:
        print(name, repr(error)[:200], flush=True)
"""
    program = [sys.executable, "-c", code]
    done = subprocess.run(program, cwd=ROOT, input=json.dumps(BOMBS), capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"{name} is refused" for name in BOMBS], done.stderr


def test_a_long_talk_is_no_bomb() -> None:
    """A hundred turns of 5,000 characters each, through what real templates do with every one."""
    source = """{%- set ns = namespace(last=-1) -%}
{%- for message in messages if message.role == 'assistant' %}{% set ns.last = loop.index0 %}{% endfor -%}
{%- set system = messages | selectattr('role', 'equalto', 'system') | list -%}
{%- for message in messages -%}
{%- if '</think>' in message.content and loop.index0 < ns.last -%}
{%- set content = message.content.split('</think>')[-1].lstrip('\n') | replace('<|end|>', '') -%}
{%- else -%}{%- set content = message['content'] | trim -%}{%- endif -%}
{{- '<|' + message.role + '|>' ~ content ~ '%s' % '<|end|>' -}}
{%- if loop.last %}{{ messages[1:] | map(attribute='role') | join(',') | length }}{% endif -%}
{%- endfor -%}"""
    talk = [{"role": "user", "content": "think</think>" + "word " * 1000} for _ in range(100)]
    assert len(ChatTemplate(source).render(messages=talk)) > 500_000


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
