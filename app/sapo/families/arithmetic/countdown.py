"""An expression of given numbers that makes another one."""

from __future__ import annotations

import re

from app.sapo import reading
from app.sapo.families.family import Content, Entry, Family, FamilyKind
from app.sapo.families.wording import replaced
from app.sapo.reading.expression import exactly

_EXPRESSION = re.compile(r"[-+*/() 0-9]{1,80}")
"""So short that its parentheses cannot nest deep."""
_NUMBER = re.compile(r"[0-9]+")


def _score(answer: str, entry: Entry) -> float:
    """1 for any expression of + - * / and parentheses that has the value, and each of the numbers once. The
    library runs the answer."""
    answer = answer.strip(reading.SPACE)
    if not _EXPRESSION.fullmatch(answer):
        return 0.0
    used = sorted(map(int, _NUMBER.findall(answer)))
    metadata = entry["metadata"]
    return float(used == sorted(metadata["numbers"]) and exactly(answer) == metadata["target"])


def _sound(entry: Entry) -> bool:
    return _score(entry["answer"], entry) == 1.0


def _work(entry: Entry) -> str:
    return f"{entry['answer']} = {entry['metadata']['target']}."


def _level(
    numbers: tuple[int, int], value: tuple[int, int], target: tuple[int, int], operators: str = "+-*/"
) -> dict[str, object]:
    bounds = {"numbers": numbers, "value": value, "target": target}
    least = {f"min_{name}": bound[0] for name, bound in bounds.items()}
    most = {f"max_{name}": bound[1] for name, bound in bounds.items()}
    return {**least, **most, "operators": tuple(operators)}


def _content(entry: Entry) -> Content:
    """Numbers and target, however they are asked for."""
    return *sorted(entry["metadata"]["numbers"]), "makes", entry["metadata"]["target"]


FAMILY = Family(
    name="countdown",
    title="Target number",
    kind=FamilyKind.NUMBERS,
    levels=(
        _level((3, 3), (2, 9), (2, 60), "+-*"),
        _level((3, 4), (1, 20), (1, 100)),
        _level((4, 4), (1, 20), (1, 1000)),
        _level((4, 5), (1, 50), (1, 5000)),
    ),
    content=_content,
    wording=replaced(
        ("a arithmetic", "an arithmetic"),
        ("may be used at most once", "must be used exactly once"),
        ("can only be used once", "must be used exactly once"),
    ),
    score=_score,
    sound=_sound,
    work=_work,
)
