"""Compiles a JSON schema to a grammar in GBNF, llama.cpp's notation
(https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md). Every answer the grammar allows is valid
under the schema, with keys in the schema's order. `oneOf` is read as `anyOf`.

Unsupported keywords (such as pattern and minimum) are refused instead of ignored. A schema comes from another
program, so its size is bounded, and so is the number of ways in which one text can be parsed, because llama.cpp
follows all of them at once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

MAX_CHOICES = 256
_MAX_RULES = 1000
_DEEPEST = 24
_LONGEST = 64 * 1024
"""Maximum characters of a grammar."""
_MAX_COUNT = 512
"""Maximum value of minItems, maxItems, minLength and maxLength."""
_MAX_READINGS = 32

_PRIMITIVES = {
    "string": r'"\"" char* "\""',
    "number": r'"-"? whole ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?',
    "integer": '"-"? whole',
    "boolean": '"true" | "false"',
    "null": '"null"',
}
_BASE = {
    "ws": r'| " " | "\n" [ \t]{0,12}',
    "char": r'[^"\\\x00-\x1F\x7F] | "\\" ["\\/bfnrt]',
    "whole": '"0" | [1-9] [0-9]{0,15}',
    "value": "object | array | string | number | boolean | null",
    "object": '"{" ws (pair ("," ws pair)*)? "}"',
    "pair": 'string ":" ws value ws',
    "array": '"[" ws (value ws ("," ws value ws)*)? "]"',
    **_PRIMITIVES,
}
_NOTES = {
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "$schema",
}
_NOTES |= {"$id", "$comment", "$defs", "definitions"}
"""Keywords that do not restrict the value."""
_KNOWN = {"type", "enum", "const", "anyOf", "oneOf", "$ref", "properties", "required", "additionalProperties"}
_KNOWN |= {"items", "minItems", "maxItems", "minLength", "maxLength"}


class SchemaError(Exception):
    """The schema uses something unsupported; one sentence says what."""


def one_of_texts(texts: Sequence[str]) -> str:
    """Returns a grammar that allows only these texts. Raises SchemaError.

    >>> one_of_texts(["yes", "no"])
    'root ::= "yes" | "no"\\n'
    """
    if not 0 < len(texts) <= MAX_CHOICES or not all(texts):
        raise SchemaError(f"A choice has 1 to {MAX_CHOICES} answers, none of them empty.")
    return _written({"root": " | ".join(dict.fromkeys(map(_literal, texts)))})


def any_object() -> str:
    """Returns a grammar that allows any JSON object."""
    return _written({**_BASE, "root": "object"})


def grammar(schema: object) -> str:
    """Compiles a JSON schema to a grammar. Raises SchemaError."""
    made = _Rules(schema)
    root, _ = made.rule(schema, 0)
    if made.refers_to_itself and made.splits:
        raise SchemaError(
            "A schema that refers to itself can't also offer several objects or lists in one place: offer one."
        )
    return _written({**_BASE, **made.rules, "root": root})


def _written(rules: dict[str, str]) -> str:
    text = "".join(f"{name} ::= {rule}\n" for name, rule in rules.items())
    if len(text) > _LONGEST:
        raise SchemaError("The schema is too large: leave something out.")
    return text


def _literal(text: str) -> str:
    """Returns a text as a quoted GBNF literal. Raises SchemaError for control characters; NUL would cut off the
    whole grammar."""
    if any(ord(one) < 32 and one not in "\n\t" for one in text):
        raise SchemaError("An answer can't hold control characters.")
    for plain, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(plain, written)
    return f'"{text}"'


def _json(value: object) -> str:
    try:
        return _literal(json.dumps(value, ensure_ascii=False))
    except RecursionError as error:
        raise SchemaError("A value is nested too deep: leave it out.") from error


Rule = tuple[str, int]
"""A rule's name, and the maximum number of ways in which it can parse a text at once."""


class _Rules:
    """Collects the grammar rules of one schema. `splits`: some place offers several objects or lists."""

    def __init__(self, schema: object) -> None:
        self.rules: dict[str, str] = {}
        self.refers_to_itself = self.splits = False
        self._schema = schema
        self._scalars = {*_PRIMITIVES}
        self._referred: dict[str, Rule] = {}

    def rule(self, schema: object, depth: int) -> Rule:
        """Adds the rules for a (sub)schema and returns its rule. Raises SchemaError."""
        if schema is True:
            return "value", 1
        if not isinstance(schema, dict) or depth > _DEEPEST:
            raise SchemaError(
                f"A schema is nested at most {_DEEPEST} deep." if depth > _DEEPEST else "A schema is an object."
            )
        if unknown := sorted(schema.keys() - _KNOWN - _NOTES):
            raise SchemaError(f"The keyword {unknown[0][:60]} can't be kept here: leave it out.")
        if "$ref" in schema:
            return self._reference(schema["$ref"], depth)
        if "const" in schema:
            return self._scalar(_json(schema["const"])), 1
        if "enum" in schema:
            values = schema["enum"]
            if not isinstance(values, list) or not 0 < len(values) <= MAX_CHOICES:
                raise SchemaError(f"An enum has 1 to {MAX_CHOICES} values.")
            return self._scalar(" | ".join(dict.fromkeys(map(_json, values)))), 1
        if "anyOf" in schema or "oneOf" in schema:
            return self._union(schema.get("anyOf", schema.get("oneOf")), depth)
        kind = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(kind, list):
            return self._union([{**schema, "type": one} for one in kind], depth)
        return self._typed(kind, schema, depth)

    def _typed(self, kind: object, schema: dict[str, Any], depth: int) -> Rule:
        if kind is None:
            return "value", 1
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string" and schema.keys() & {"minLength", "maxLength"}:
            low, high = _bounds(schema, "minLength", "maxLength")
            return self._scalar(rf'"\"" char{{{low},{"" if high is None else high}}} "\""'), 1
        if not isinstance(kind, str) or kind not in _PRIMITIVES:
            raise SchemaError(f"There is no type {str(kind)[:60]}.")
        return kind, 1

    def _add(self, body: str) -> str:
        if len(self.rules) >= _MAX_RULES or len(body) > _LONGEST:
            raise SchemaError("The schema is too large: leave something out.")
        name = f"r{len(self.rules)}"
        self.rules[name] = body
        return name

    def _scalar(self, body: str) -> str:
        name = self._add(body)
        self._scalars.add(name)
        return name

    def _union(self, schemas: object, depth: int) -> Rule:
        if not isinstance(schemas, list) or not 0 < len(schemas) <= MAX_CHOICES:
            raise SchemaError(f"anyOf and type have 1 to {MAX_CHOICES} alternatives.")
        made = dict(self.rule(one, depth + 1) for one in schemas)
        several = made.keys() - self._scalars
        self.splits |= len(several) > 1
        readings = max(1, sum(made[name] for name in several))
        if readings > _MAX_READINGS:
            raise SchemaError("The schema offers too many objects or lists in one place: offer fewer.")
        return self._add(" | ".join(made)), readings

    def _reference(self, reference: object, depth: int) -> Rule:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise SchemaError("A $ref begins with #/: nothing is fetched from elsewhere.")
        if reference not in self._referred:
            target: Any = self._schema
            for part in reference.split("/")[1:]:
                if not isinstance(target, dict) or part not in target:
                    raise SchemaError(f"There is no {reference[:60]} in the schema.")
                target = target[part]
            name = self._add("")
            self._referred[reference] = name, 0  # placeholder until its alternatives are computed
            found, readings = self.rule(target, depth + 1)
            self.rules[name] = found
            self._referred[reference] = name, readings
        name, readings = self._referred[reference]
        self.refers_to_itself |= readings == 0
        return name, max(1, readings)

    def _array(self, schema: dict[str, Any], depth: int) -> Rule:
        item, readings = self.rule(schema.get("items", True), depth + 1)
        low, high = _bounds(schema, "minItems", "maxItems")
        if high == 0:
            return self._add('"[" ws "]"'), 1
        more = f"{{{max(0, low - 1)},{'' if high is None else high - 1}}}"
        items = f'{item} ws ("," ws {item} ws){more}'
        return self._add(f'"[" ws {items if low else f"({items})?"} "]"'), readings

    def _object(self, schema: dict[str, Any], depth: int) -> Rule:
        """Adds the rules of an object. Each property has two rules: `first` if no property precedes it, `next`
        after others."""
        properties, required = schema.get("properties") or {}, schema.get("required") or []
        named = isinstance(required, list) and all(isinstance(name, str) for name in required)
        if not isinstance(properties, dict) or not named:
            raise SchemaError("properties is an object, and required a list of names.")
        if lacking := [name for name in required if name not in properties]:
            raise SchemaError(f"The required property {str(lacking[0])[:60]} is not described.")
        if not properties:
            more = schema.get("additionalProperties", True)
            if more is False:
                return self._add('"{" ws "}"'), 1
            value, readings = self.rule(more, depth + 1)
            pair = f'string ":" ws {value} ws'
            return self._add(f'"{{" ws ({pair} ("," ws {pair})*)? "}}"'), readings
        first, next, most = '""', '""', 1
        for name, one in reversed(properties.items()):
            value, readings = self.rule(one, depth + 1)
            pair, most = self._add(f'{_json(name)} ":" ws {value} ws'), max(most, readings)
            behind = self._add(next)
            if name in required:
                first, next = f"{pair} {behind}", f'"," ws {pair} {behind}'
            else:
                first, next = f"{pair} {behind} | {self._add(first)}", f'("," ws {pair})? {behind}'
        return self._add(f'"{{" ws {self._add(first)} "}}"'), most


def _bounds(schema: dict[str, Any], least: str, most: str) -> tuple[int, int | None]:
    low, high = schema.get(least, 0), schema.get(most)
    for count in (low, high):
        if count is not None and (type(count) is not int or not 0 <= count <= _MAX_COUNT):
            raise SchemaError(f"{least} and {most} are 0 to {_MAX_COUNT}.")
    low = low or 0
    if high is not None and high < low:
        raise SchemaError(f"{most} is less than {least}.")
    return low, high
