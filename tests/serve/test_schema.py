"""JSON schemas as grammars: what llama.cpp lets through is what the schema allows, and nothing more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.models.shelf import locate
from app.serve import schema
from app.serve.schema import SchemaError, grammar, one_of_texts
from engines.llamacpp.grammar import Grammars
from engines.llamacpp.model import why_unavailable
from engines.models.folder import open_folder
from engines.models.tokens import ChatTokenizer

TOKENIZER = ChatTokenizer(open_folder(locate("starter")))
NODE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["value", "next"],
}
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 4},
        "age": {"type": ["integer", "null"]},
        "likes": {"type": "array", "items": {"enum": ["tea", 7]}, "minItems": 1, "maxItems": 2},
        "more": {"$ref": "#/$defs/more"},
    },
    "required": ["age"],
    "additionalProperties": False,
    "$defs": {"more": {"type": "object", "additionalProperties": {"type": "boolean"}}},
}


@pytest.fixture(scope="module")
def grammars() -> Grammars:
    if why := why_unavailable():
        pytest.skip(why)
    return Grammars(locate("starter"))


def follows(grammars: Grammars, text: str, rules: str) -> bool:
    """Whether a grammar lets this whole text through, token by token, to its end."""
    begun = grammars.begin(rules)
    for token in TOKENIZER.library.encode(text, add_special_tokens=False).ids:
        if not begun.allows(token):
            return False
        begun.accept(token)
    return begun.allows(TOKENIZER.end)


@pytest.mark.parametrize(
    ("wanted", "good", "bad"),
    [
        (
            PERSON,
            [{"age": 3}, {"name": "Al", "age": None}, {"age": -12, "likes": [7, "tea"]}],
            [{}, {"name": "A"}],
        ),
        (
            PERSON,
            [{"age": 1, "more": {}}, {"age": 1, "more": {"a": True, "b": False}}],
            [{"age": 1, "more": {"a": 1}}],
        ),
        (
            PERSON,
            [{"name": "Alan", "age": 0}],
            [{"name": "", "age": 0}, {"name": "Alans", "age": 0}, {"age": "1"}],
        ),
        (
            PERSON,
            [],
            [{"age": 1, "likes": []}, {"age": 1, "likes": [7, 7, 7]}, {"age": 1, "other": 1}, {"age": 1.5}],
        ),
        (NODE, [{"value": 1, "next": {"value": 2, "next": None}}], [{"value": 1, "next": {}}]),
        ({"enum": ['a"b', "c\\d"]}, ['a"b', "c\\d"], ["a", "c"]),
        ({"const": "a b"}, ["a b"], ["a", "a  b"]),
        ({"type": "number"}, [0, -1.5, 1e-05, 10], ["1", None]),
        ({"type": "array", "items": {"type": "array", "items": {"type": "null"}}}, [[], [[None], []]], [[1]]),
        ({"type": "array", "maxItems": 0}, [[]], [[1]]),
        ({"type": "object"}, [{}, {"a": [1, {"b": None}]}], [[], 1]),
        (True, [1, "x", {"a": []}], []),
    ],
)
def test_what_fits_the_schema_passes_and_what_does_not_is_stopped(
    grammars: Grammars, wanted: Any, good: list[Any], bad: list[Any]
) -> None:
    rules = grammar(wanted)
    for value in good:
        for indent in (None, 1):
            assert follows(grammars, json.dumps(value, indent=indent), rules), value
    for value in bad:
        assert not follows(grammars, json.dumps(value), rules), value


def test_json_is_an_object_and_a_choice_is_one_of_its_texts(grammars: Grammars) -> None:
    assert follows(grammars, '{"a": [1, "b"]}', schema.any_object())
    assert not follows(grammars, "[1]", schema.any_object()) and not follows(
        grammars, '{"a"}', schema.any_object()
    )
    rules = one_of_texts(['say "no"\\', "yes", "yes\n"])
    assert all(follows(grammars, text, rules) for text in ('say "no"\\', "yes", "yes\n"))
    assert not any(follows(grammars, text, rules) for text in ("say", "yesyes", "no", ""))


DEEP: Any = {}
for _ in range(40):
    DEEP = {"type": "array", "items": DEEP}
NESTED: Any = []
for _ in range(2000):
    NESTED = [NESTED]
WIDE = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(2000)}}
LISTS = {"anyOf": [{"type": "array", "items": {"const": n}} for n in range(9)]}
MANY = {"anyOf": [{"type": "array", "items": {**LISTS}} for _ in range(4)]}
TANGLED = {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"const": 1}}]}


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "string", "pattern": "(a*)*b"},
        {"type": "integer", "minimum": 3},
        {"type": "strange"},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/$defs/none"},
        {"enum": []},
        {"enum": [str(n) for n in range(1000)]},
        {"type": "array", "minItems": 10**9},
        {"type": "array", "minItems": 3, "maxItems": 2},
        {"type": "string", "maxLength": True},
        {"required": ["a"], "type": "object", "properties": {"b": True}},
        {"anyOf": []},
        {"required": [["a"]], "properties": {"a": True}},
        {"const": NESTED},
        {"properties": [1]},
        {"type": "object", "properties": {"a": 5}},
        DEEP,
        WIDE,
        MANY,
        TANGLED,
    ],
)
def test_what_cannot_be_kept_is_refused_in_a_sentence(wanted: Any) -> None:
    with pytest.raises(SchemaError, match=r"^\w.*\.$"):
        grammar(wanted)


@pytest.mark.parametrize("texts", [[], [""], ["a"] * 300, ["a\0b"]])
def test_a_choice_that_is_none_is_refused(texts: list[str]) -> None:
    with pytest.raises(SchemaError):
        one_of_texts(texts)
