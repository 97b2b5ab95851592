"""Small problems of computer science: a program, a row of bits, a graph."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Any

from app.sapo import library, reading
from app.sapo.families import scores
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

# The output of a small Brainfuck program.

_PRINTED = re.compile(r'print\("(.*)"\);')
_NUMBER = re.compile(r"int (target|x|y) = ([0-9]+);")


class _Programs:
    """Generates the library's items without running their programs: 2 ms each instead of 15, or 100 for the
    slowest. A program's output is derived from the source that it is compiled from."""

    def __init__(self, difficulty: int) -> None:
        self.seed = 0
        self._difficulty = difficulty
        self._library = library.gym().create_dataset("bf", seed=0, size=1, difficulty=difficulty)

    def __getitem__(self, index: int) -> Entry:
        rng = Random(self.seed + index)
        source = self._library.generate_bfit_code(self._difficulty, rng)
        program = self._library.compile_bfit_code_to_bf(source)
        return {
            "question": rng.choice(self._library._prompt_templates).format(bf_program=program),
            "answer": program_output(source),
            "metadata": {
                "source_dataset": "bf",
                "source_index": index,
                "bfit_code": source,
                "bf_program": program,
                "difficulty": {"difficulty": self._difficulty},
            },
        }


def program_output(source: str) -> str:
    """Returns the output of a program: a word, or the first multiple of x + y that reaches the target.

    >>> program_output('print("shoal");'), program_output("int target = 43; int x = 2; int y = 3;")
    ('shoal', '45')
    """
    if word := _PRINTED.search(source):
        return word[1]
    numbers = {name: int(value) for name, value in _NUMBER.findall(source)}
    step = numbers["x"] + numbers["y"]
    return str(-(-numbers["target"] // step) * step)


def _bf_opened(settings: Mapping[str, Any]) -> _Programs:
    return _Programs(settings["difficulty"])


def _bf_content(entry: Entry) -> Content:
    """Returns the source of the program: several programs print the same word."""
    return str(entry["metadata"]["bfit_code"])


BF = Family(
    name="bf",
    title="Tiny programs",
    kind=FamilyKind.LOGIC,
    levels=(
        dict(difficulty=1),
        dict(difficulty=2),
    ),
    opened=_bf_opened,
    content=_bf_content,
    score=scores.exact,
)


# How many swaps make the bits of a row take turns.


def _misplaced(bits: str) -> dict[str, int]:
    """Returns, for each alternating row with the same bits, the number of places in which it differs."""
    rows = ["".join(pair[place % 2] for place in range(len(bits))) for pair in ("01", "10")]
    return {
        row: sum(one != other for one, other in zip(bits, row, strict=True))
        for row in rows
        if row.count("1") == bits.count("1")
    }


def _alternation_sound(entry: Entry) -> bool:
    """Whether the true answer is half of the misplaced bits, or -1 if no alternating row has these bits."""
    return int(entry["answer"]) == min(_misplaced(entry["metadata"]["string"]).values(), default=-2) // 2


def _alternation_work(entry: Entry) -> str:
    bits = entry["metadata"]["string"]
    rows = _misplaced(bits)
    if not rows:
        return f"{bits.count('0')} zeros, {bits.count('1')} ones: impossible."
    row = min(rows, key=lambda row: rows[row])
    return f"{bits} to {row}: {rows[row]} differ, {rows[row]} / 2 = {rows[row] // 2}."


BINARY_ALTERNATION = Family(
    name="binary_alternation",
    title="Bits in turn",
    kind=FamilyKind.LOGIC,
    levels=(
        dict(min_n=7, max_n=13),
        dict(min_n=10, max_n=15),
        dict(min_n=15, max_n=22),
        dict(min_n=23, max_n=34),
    ),
    content=lambda entry: entry["metadata"]["string"],
    score=scores.integer,
    sound=_alternation_sound,
    work=_alternation_work,
    thinned=(
        {"-1": 0.26, "1": 0.38, "2": 0.14, "3": 0.27},
        {"-1": 0.4, "2": 0.25, "3": 0.28, "4": 0.66},
        {"-1": 0.4, "3": 0.52, "4": 0.28, "5": 0.4},
        {"-1": 0.81, "6": 0.6, "7": 0.8},
    ),
    guess=(0.2, "-1"),
)


# Colors for the points of a graph, so that no two that are joined have the same.

_PAIR = re.compile(r"(['\"]?)(0|[1-9][0-9]?)\1\s*:\s*([1-9][0-9]?)", re.ASCII)


def _colors(answer: str) -> dict[int, int] | None:
    """Parses a map in braces with vertices optionally in quotes, each once; None for other text."""
    text = answer.strip(reading.SPACE)
    if not (text.startswith("{") and text.endswith("}")):
        return None
    pairs = [_PAIR.fullmatch(pair.strip(reading.SPACE)) for pair in text[1:-1].split(",")]
    colors = {int(pair[2]): int(pair[3]) for pair in pairs if pair}
    return colors if len(colors) == len(pairs) else None


def _fits(colors: dict[int, int], entry: Entry) -> bool:
    puzzle = entry["metadata"]["puzzle"]
    return (
        colors.keys() == set(puzzle["vertices"])
        and set(colors.values()) <= set(puzzle["color_options"])
        and all(colors[a] != colors[b] for a, b in puzzle["edges"])
    )


def _coloring_score(answer: str, entry: Entry) -> float:
    """Scores 1 for any map that colors every vertex, with different colors for neighbours."""
    colors = _colors(answer)
    return float(colors is not None and _fits(colors, entry))


def _ways(entry: Entry, colors: dict[int, int], most: int) -> int:
    """Returns the number of ways to complete these colors; counting stops at `most`."""
    puzzle = entry["metadata"]["puzzle"]
    if len(colors) == len(puzzle["vertices"]):
        return 1
    vertex = puzzle["vertices"][len(colors)]
    near = {colors.get(a if b == vertex else b) for a, b in puzzle["edges"] if vertex in (a, b)}
    ways = 0
    for color in puzzle["color_options"]:
        if color not in near and ways < most:
            ways += _ways(entry, {**colors, vertex: color}, most - ways)
    return ways


def _coloring_sound(entry: Entry) -> bool:
    """Whether there is only one coloring up to renaming the colors; with several, most maps often fit."""
    return _ways(entry, {}, 7) == 6


def _coloring_solution(entry: Entry) -> str:
    return json.dumps(entry["metadata"]["possible_answer"])


def _coloring_work(entry: Entry) -> str:
    colors = entry["metadata"]["possible_answer"]
    alike = [
        [v for v in colors if colors[v] == color] for color in entry["metadata"]["puzzle"]["color_options"]
    ]
    return f"Not joined: {'; '.join(' '.join(map(str, group)) for group in alike if len(group) > 1)}."


GRAPH_COLOR = Family(
    name="graph_color",
    title="Colored graphs",
    kind=FamilyKind.LOGIC,
    levels=(
        dict(min_num_vertices=5, max_num_vertices=6, edge_probability=0.75),
        dict(min_num_vertices=6, max_num_vertices=7, edge_probability=0.65),
        dict(min_num_vertices=7, max_num_vertices=8, edge_probability=0.6),
    ),
    content=lambda entry: tuple(sorted(tuple(sorted(edge)) for edge in entry["metadata"]["puzzle"]["edges"])),
    wording=replaced(("such that every vertex is not connected", "such that no vertex is connected")),
    score=_coloring_score,
    sound=_coloring_sound,
    solution=_coloring_solution,
    work=_coloring_work,
)
