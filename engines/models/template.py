"""Renders a model's chat template: untrusted code, run in jinja's sandbox with a bounded amount of work.

The sandbox keeps a template from Python's internals. It does not keep one line from using all memory (`'a' *
6000000000`), or all time inside one call that no other thread can interrupt. So everything that makes strings
or lists longer, or iterates over them, is charged before it runs: operators, filters, methods, loops, slices
and comparisons. A prompt has a fixed budget. The same holds while jinja evaluates constants, which it already
does when it compiles."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, KeysView, Mapping, ValuesView
from collections.abc import ItemsView as Items
from datetime import datetime
from itertools import islice
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.parser
import jinja2.sandbox
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.visitor import NodeTransformer

_WORK = 2**26
"""Budget of one prompt: a character of a string costs 1, an item of a list `_ITEM`, a call `_CALL`. A long
conversation of 500,000 characters uses a hundredth of it on each pass."""
_ITEM, _CALL = 64, 256
_LONGEST_SOURCE = 2**18
"""Maximum characters of a template: the longest known has 20,000."""
_LONGEST_TEXT = 2**22
"""Maximum characters of a prompt, and of every part that is assembled: a million tokens."""
_WIDEST = 10_000
"""Largest number that a filter or a method accepts."""
_MAX_BITS = 4096
_PLAIN = "{% for message in messages %}{{ message['content'] }}\n\n{% endfor %}"
"""Template for base models that have none: the texts one after another."""
_LEFT_OUT = ("pprint", "striptags", "urlize", "wordwrap", "xmlattr")
"""Removed filters: no chat template needs them, and their regular expressions are slow on long strings."""
_ON_ITEMS = {
    *("attr", "count", "d", "default", "first", "items", "last", "length", "list", "map"),
    *("reject", "rejectattr", "reverse", "select", "selectattr"),
}
"""Filters that read a list's items but not their contents."""
_MULTIPLY = {
    *("center", "expandtabs", "indent", "join", "ljust", "replace"),
    *("rjust", "sum", "tojson", "translate", "zfill"),
}
"""Filters and methods whose result can be as long as one argument times another."""


class ChatTemplate:
    """Compiled Jinja chat template of a model; renders messages to a prompt. Raises jinja2.TemplateError or
    SyntaxError (also RecursionError, ValueError, MemoryError) if the template does not compile."""

    def __init__(self, source: str | None) -> None:
        if len(source or "") > _LONGEST_SOURCE:
            raise SecurityError("it is too long")
        self._environment = _Environment()
        self._template = self._environment.from_string(source or _PLAIN)

    def render(self, **values: Any) -> str:
        """Renders the template. Raises jinja2.TemplateError, SecurityError if it exceeds the budget, and
        whatever the template's own mistakes raise."""
        self._environment.left = _WORK
        return self._template.render(**values)


class _Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(("**", "*", "%", "+"))

    def __init__(self) -> None:
        self.left = _WORK
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, jinja2.ext.loopcontrols],
            finalize=self._all,
        )
        self.concat = self._joined  # type: ignore[method-assign]
        self.filters["tojson"] = _to_json
        for name in _LEFT_OUT:
            del self.filters[name]
        self.filters = {name: self._paid(name, one) for name, one in self.filters.items()}
        self.filters["shoal_items"], self.filters["shoal_whole"] = self._items, self._all
        self.tests = {name: self._tested(one) for name, one in self.tests.items()}
        del self.globals["lipsum"]
        self.globals["raise_exception"] = _raise
        self.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self.globals["namespace"] = _Namespace
        self.globals["dict"] = lambda *args, **kwargs: self._all(dict(*args, **kwargs))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Paying().visit(super()._parse(source, name, filename))
        tree.set_environment(self)
        return tree

    def spend(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise SecurityError("it does more than a prompt needs")

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        whole = isinstance(left, int) and isinstance(right, int)
        if operator == "**" or (whole and left.bit_length() + right.bit_length() > _MAX_BITS):
            raise SecurityError("it computes with numbers that are too large")
        if operator == "%" and isinstance(left, str | bytes):
            self._format(str(left), right)
        elif operator == "*" and not whole:
            times = right if isinstance(right, int) else left
            self.spend(self._size(left) * self._size(right) * (abs(times) if isinstance(times, int) else 1))
        elif operator == "+":
            self.spend(_length(left) + _length(right))
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str | bytes | int | float):
            args = tuple(map(__self._whole, args))
            __self._pay(__obj.__name__, owner, [*args, *kwargs.values()])
        __self.spend(_CALL + sum(__self._size(one) for one in args if isinstance(one, tuple)))
        return super().call(__context, __obj, *args, **kwargs)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, tuple):
            self._all(argument)
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> Any:
        form = super().wrap_str_format(value)
        if form is None:
            return None

        def paid(*args: Any, **kwargs: Any) -> str:
            self._format(str(value.__self__), (args, kwargs))
            return str(form(*args, **kwargs))

        return paid

    def _paid(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        first = int(hasattr(work, "jinja_pass_arg"))

        @functools.wraps(work)
        def paid(*args: Any, **kwargs: Any) -> Any:
            args = (*args[:first], *map(self._whole, args[first:]))
            if name == "format":
                self._format(str(args[first]), (args[first + 1 :], kwargs))
            elif args[first:]:
                self._pay(name, args[first], [*args[first + 1 :], *kwargs.values()])
            self.spend(_CALL)
            return work(*args, **kwargs)

        return paid

    def _tested(self, test: Any) -> Any:
        @functools.wraps(test)
        def paid(*args: Any, **kwargs: Any) -> Any:
            return test(*map(self._all, args), **kwargs)

        return paid

    def _pay(self, name: str, value: Any, others: Collection[Any]) -> None:
        if name in _ON_ITEMS:
            self.spend(_length(value))
            return
        if any(isinstance(one, int) and abs(one) > _WIDEST for one in others):
            raise SecurityError(f"it asks {name} for more than {_WIDEST}")
        if name == "replace" and len(others) >= 2 and (old := next(iter(others))):
            others = [one for one in others if one is not old]
        cost = self._size(value)
        for one in others:
            size = abs(one) if isinstance(one, int) else self._size(one)
            cost = (cost + 1) * (size + 1) if name in _MULTIPLY else cost + size
        self.spend(cost * _length(value) if name == "sum" else cost)

    def _format(self, text: str, values: Any) -> None:
        """Charges for widths in a format string, which are in the text or among the values."""
        numbers = [int(found) for found in re.findall(r"\d+", text)]
        if re.search(r"%[^%a-zA-Z]*\*|\{[^}]*\{", text):
            numbers += [abs(one) for one in _flat(values, self.left) if isinstance(one, int)]
        self.spend((len(text) + 1) * (self._size(values) + 1) + sum(numbers))

    def _size(self, value: Any) -> int:
        """Returns the cost of iterating over all of a value, parts counted as often as they occur."""
        total = 0
        for one in _flat(value, self.left):
            total += _length(one)
            if total > self.left:
                break
        return total

    def _whole(self, value: Any) -> Any:
        """Returns a list in place of an iterator, which could be read only once."""
        return list(islice(value, _WORK // _ITEM)) if isinstance(value, Iterator) else value

    def _items(self, value: Any) -> Any:
        """Charges for the items of a loop or a slice."""
        value = self._whole(value)
        self.spend(_length(value))
        return value

    def _all(self, value: Any) -> Any:
        """Charges for a value that is compared, looked up, shown or put into a list: a few lines, each
        containing the previous one twice, grow exponentially."""
        self.spend(1 if isinstance(value, str | bytes) else self._size(value))
        return value

    def _joined(self, parts: Iterable[str]) -> str:
        made, length = [], 0
        for part in parts:
            length += len(part)
            self.spend(len(part) + 1)
            if length > _LONGEST_TEXT:
                raise SecurityError("it makes too long a prompt")
            made.append(part)
        return "".join(made)


def _length(value: Any) -> int:
    """Returns the cost of a value without its contents."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, range):
        return len(value)
    return 1 + _ITEM * len(value) if isinstance(value, Collection) else 1


def _flat(value: Any, most: int) -> Iterator[Any]:
    """Yields a value and everything in it, at most `most` objects."""
    waiting = [value]
    while waiting and most > 0:
        one = waiting.pop()
        yield one
        if isinstance(one, jinja2.utils.Namespace):
            one = one._Namespace__attrs
        if isinstance(one, Mapping):
            one = [*one.keys(), *one.values()]
        if isinstance(one, list | tuple | set | frozenset | KeysView | ValuesView | Items):
            waiting.extend(islice(one, most))
        most -= 1


class _Paying(NodeTransformer):
    """Routes operations that jinja would compile to plain Python through filters that charge for them."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        """Replaces `a ~ b` by `[a, b] | join`."""
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "join")

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "shoal_items")
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "shoal_items") if isinstance(node.arg, nodes.Slice) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _filtered(node.expr, "shoal_whole")
        for operand in node.ops:
            operand.expr = _filtered(operand.expr, "shoal_whole")
        return node

    def _literal(self, node: Any) -> nodes.Node:
        self.generic_visit(node)
        stored = isinstance(node, nodes.Tuple) and node.ctx == "store"
        return node if stored else _filtered(node, "shoal_whole")

    visit_Dict = visit_List = visit_Tuple = _literal


def _filtered(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks the model's own words in some templates; here it renders what is inside."""

    tags = {"generation"}  # noqa: RUF012 - jinja's own interface

    def parse(self, parser: jinja2.parser.Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Namespace(jinja2.utils.Namespace):
    """A namespace that refuses names with a leading underscore, by which a template could reach Python's
    internals."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        values = dict(*args[1:], **kwargs)
        for name in values:
            _refuse_private(name)
        jinja2.utils.Namespace.__init__(args[0], values)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_private(name)
        super().__setitem__(name, value)


def _refuse_private(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace cannot hold {name!r}")


def _to_json(value: Any, **options: Any) -> str:
    return json.dumps(value, **{"ensure_ascii": False, **options})


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)
