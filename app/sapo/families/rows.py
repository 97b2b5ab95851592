"""Rows of colours changed by a rule, and the simple rules that could explain such a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import groupby

from app.sapo import reading
from app.sapo.families.family import Content, Entry, Family, FamilyKind

# Plain rules that turn one row of colours into another: guesses that the examples of arc_1d suggest.
#
# A rule gives None where it says nothing about a row. Blocks are runs of one colour other than 0, dots those of
# one cell.

Row = list[int]
Rule = Callable[[Row], Row | None]
Block = tuple[int, int, int]
"""First cell, length and colour of a run of equal cells."""

_COLOURS = range(1, 10)
_STEPS = (1, 2, 3, 4)


def rivals(examples: Sequence[tuple[Row, Row]], test: Row, output: Row) -> list[Row]:
    """Returns other outputs for the test row, by simple rules that also fit all examples.

    >>> to_the_dot = [([3, 0, 2, 0], [0, 3, 2, 0]), ([0, 2, 0, 0, 0, 4], [0, 2, 0, 0, 4, 0])]
    >>> rivals(to_the_dot, [5, 0, 0, 0, 2], [0, 5, 0, 0, 2]), rivals(to_the_dot, [5, 0, 2], [0, 5, 2])
    ([], [])
    >>> rivals(to_the_dot[:1], [5, 0, 0, 0, 2], [0, 5, 0, 0, 2])
    [[0, 0, 5, 0, 2], [0, 0, 0, 5, 2]]
    """
    found = []
    for rule in _rules():
        if all(rule(before) == after for before, after in examples):
            said = rule(test)
            if said is not None and said != output and said not in found:
                found.append(said)
    return found


@cache
def _rules() -> tuple[Rule, ...]:
    shifts = [sign * step for step in _STEPS for sign in (1, -1)]
    return (
        *(partial(_turned, by=by) for by in shifts),
        *(partial(_moved, by=by) for by in shifts),
        *(partial(_moved_by_size, sign=sign) for sign in (1, -1)),
        *(partial(_to_the_end, sign=sign) for sign in (1, -1)),
        *(partial(_fallen, right=right) for right in (True, False)),
        *(partial(_fallen_once, right=right) for right in (True, False)),
        *(partial(_sorted, down=down) for down in (True, False)),
        *(partial(_packed, order=order) for order in (0, 1, -1)),
        *(partial(_towards_the_dot, most=most) for most in (*_STEPS, 99)),
        *(partial(_painted, which=which, colour=colour) for which in _WHICH for colour in _COLOURS),
        _mirrored,
        _mirrored_inside,
        _around_the_dot,
        _grown_to_the_dot,
        _filled,
        _without_dots,
        _ends_of_blocks,
    )


def _blocks(row: Row) -> list[Block]:
    found, at = [], 0
    for colour, cells in groupby(row):
        length = len(list(cells))
        if colour:
            found.append((at, length, colour))
        at += length
    return found


def _written(size: int, blocks: Iterable[Block]) -> Row | None:
    """Returns the row with these blocks; None if one is not wholly inside."""
    row = [0] * size
    for at, length, colour in blocks:
        if at < 0 or at + length > size:
            return None
        row[at : at + length] = [colour] * length
    return row


def _turned(row: Row, by: int) -> Row:
    by %= len(row)
    return row[len(row) - by :] + row[: len(row) - by]


def _moved(row: Row, by: int) -> Row | None:
    return _written(len(row), ((at + by, length, colour) for at, length, colour in _blocks(row)))


def _moved_by_size(row: Row, sign: int) -> Row | None:
    blocks = _blocks(row)
    return _moved(row, sign * blocks[0][1]) if len(blocks) == 1 else None


def _to_the_end(row: Row, sign: int) -> Row | None:
    filled = [at for at, colour in enumerate(row) if colour]
    if not filled:
        return None
    return _moved(row, len(row) - 1 - filled[-1] if sign > 0 else -filled[0])


def _fallen(row: Row, right: bool) -> Row:
    filled = [colour for colour in row if colour]
    empty = [0] * (len(row) - len(filled))
    return empty + filled if right else filled + empty


def _fallen_once(row: Row, right: bool) -> Row:
    row = row[::-1] if right else list(row)
    for at in range(1, len(row)):
        if row[at] and not row[at - 1]:
            row[at - 1], row[at] = row[at], 0
    return row[::-1] if right else row


def _sorted(row: Row, down: bool) -> Row:
    return sorted(row, reverse=down)


def _packed(row: Row, order: int) -> Row | None:
    """Returns the row with its blocks moved left with gaps of one cell: in their order, by length, or longest
    first."""
    blocks = _blocks(row)
    if order:
        blocks.sort(key=lambda block: order * block[1])
    placed, at = [], 0
    for _, length, colour in blocks:
        placed.append((at, length, colour))
        at += length + 1
    return _written(len(row), placed)


def _block_and_dot(row: Row) -> tuple[Block, int] | None:
    """Returns the single block and the position of the single dot, which is the one with the lower colour; None
    otherwise."""
    blocks = sorted(_blocks(row), key=lambda block: block[2])
    if len(blocks) != 2 or blocks[0][1] != 1 or blocks[0][2] == blocks[1][2]:
        return None
    return blocks[1], blocks[0][0]


def _beside(row: Row, block: Block, dot: int) -> Row | None:
    return _written(len(row), (block, (dot, 1, row[dot])))


def _towards_the_dot(row: Row, most: int) -> Row | None:
    if (found := _block_and_dot(row)) is None:
        return None
    (at, length, colour), dot = found
    by = min(dot - at - length, most) if at < dot else -min(at - dot - 1, most)
    return _beside(row, (at + by, length, colour), dot)


def _around_the_dot(row: Row) -> Row | None:
    if (found := _block_and_dot(row)) is None:
        return None
    (at, length, colour), dot = found
    return _beside(row, (2 * dot - at - length + 1, length, colour), dot)


def _grown_to_the_dot(row: Row) -> Row | None:
    if (found := _block_and_dot(row)) is None:
        return None
    (at, length, colour), dot = found
    start, end = (at, dot) if at < dot else (dot + 1, at + length)
    return _beside(row, (start, end - start, colour), dot)


_WHICH: tuple[Callable[[list[Block]], list[Block]], ...] = (
    lambda blocks: blocks,
    lambda blocks: blocks[:1],
    lambda blocks: blocks[-1:],
    lambda blocks: [block for block in blocks if block[1] == max(length for _, length, _ in blocks)],
    lambda blocks: [block for block in blocks if block[1] == min(length for _, length, _ in blocks)],
)
"""Selections of blocks: all, the first, the last, the longest, the shortest."""


def _painted(row: Row, which: Callable[[list[Block]], list[Block]], colour: int) -> Row | None:
    blocks = _blocks(row)
    return _written(len(row), [*blocks, *((at, length, colour) for at, length, _ in which(blocks))])


def _mirrored(row: Row) -> Row:
    return row[::-1]


def _mirrored_inside(row: Row) -> Row:
    """Returns the row mirrored between its first and last filled cell."""
    filled = [at for at, colour in enumerate(row) if colour] or [0]
    first, last = filled[0], filled[-1] + 1
    return row[:first] + row[first:last][::-1] + row[last:]


def _filled(row: Row) -> Row | None:
    """Returns the row with the gaps between its first and last filled cell filled in; None unless all have one
    colour."""
    blocks = _blocks(row)
    if len({colour for _, _, colour in blocks}) != 1:
        return None
    (first, _, colour), (last, length, _) = blocks[0], blocks[-1]
    return _written(len(row), [(first, last + length - first, colour)])


def _without_dots(row: Row) -> Row | None:
    return _written(len(row), (block for block in _blocks(row) if block[1] > 1))


def _ends_of_blocks(row: Row) -> Row | None:
    ends = ((at, colour) for start, length, colour in _blocks(row) for at in (start, start + length - 1))
    return _written(len(row), ((at, 1, colour) for at, colour in ends))


# A rule read off three rows of colours, applied to a fourth.


def _score(answer: str, entry: Entry) -> float:
    """Scores 1 for the row in the form of the question: one line, digits separated by spaces."""
    return float(reading.rows(answer) == [entry["metadata"]["test_example"]["output"]])


def _sound(entry: Entry) -> bool:
    """Whether the rule changes the test row, the row is not one of the examples (else the answer can be copied:
    7 % of level 0), and no other simple rule fits the examples and gives the test row a different output."""
    test, examples = entry["metadata"]["test_example"], entry["metadata"]["train_examples"]
    seen = [(example["input"], example["output"]) for example in examples]
    copied = test["input"] == test["output"] or any(test["input"] == before for before, _ in seen)
    return not copied and not rivals(seen, test["input"], test["output"])


def _content(entry: Entry) -> Content:
    """Returns the row and its changed form, whatever examples show the rule."""
    test = entry["metadata"]["test_example"]
    return tuple(test["input"]), tuple(test["output"])


ARC_1D = Family(
    name="arc_1d",
    title="Rows of colours",
    kind=FamilyKind.GRIDS,
    levels=(
        dict(min_size=8, max_size=10),
        dict(min_size=8, max_size=16),
        dict(min_size=10, max_size=30),
    ),
    content=_content,
    score=_score,
    sound=_sound,
)
