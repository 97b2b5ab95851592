"""Colors for the points of a graph, so that no two that are joined have the same."""

from __future__ import annotations

import json
import re

from app.sapo import reading
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced

_PAIR = re.compile(r"(['\"]?)(0|[1-9][0-9]?)\1\s*:\s*([1-9][0-9]?)", re.ASCII)


def _colors(answer: str) -> dict[int, int] | None:
    """A map in braces; vertices in quotes or not, each once. Otherwise None."""
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


def _score(answer: str, entry: Entry) -> float:
    """1 for any map that colors every vertex, and no two joined ones alike."""
    colors = _colors(answer)
    return float(colors is not None and _fits(colors, entry))


def _ways(entry: Entry, colors: dict[int, int], most: int) -> int:
    """How many ways there are to go on from these colors, counted to `most`."""
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


def _sound(entry: Entry) -> bool:
    """Whether one coloring is right, but for which color is which: where several are, some map often fits."""
    return _ways(entry, {}, 7) == 6


def _solution(entry: Entry) -> str:
    return json.dumps(entry["metadata"]["possible_answer"])


def _work(entry: Entry) -> str:
    colors = entry["metadata"]["possible_answer"]
    alike = [
        [v for v in colors if colors[v] == color] for color in entry["metadata"]["puzzle"]["color_options"]
    ]
    return f"Not joined: {'; '.join(' '.join(map(str, group)) for group in alike if len(group) > 1)}."


FAMILY = Family(
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
    score=_score,
    sound=_sound,
    solution=_solution,
    work=_work,
)
