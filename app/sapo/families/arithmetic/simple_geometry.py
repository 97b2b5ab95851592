"""The last interior angle of a polygon."""

from __future__ import annotations

from app.sapo.families import scores
from app.sapo.families.family import Entry, Family, FamilyKind
from app.sapo.families.wording import replaced


def _known(entry: Entry) -> list[int]:
    return [int(angle) for angle in entry["metadata"]["known_angles"]]


def _sound(entry: Entry) -> bool:
    """Whether the polygon is convex, as the question says: the library lets the last angle pass 180 degrees."""
    last = 180 * (len(_known(entry)) - 1) - sum(_known(entry))
    return 0 < last < 180 and entry["answer"] == str(last)


def _work(entry: Entry) -> str:
    angles = _known(entry)
    whole = 180 * (len(angles) - 1)
    triangles = f"180 * {len(angles) - 1} = {whole}. " if len(angles) > 2 else ""
    known = f"{' + '.join(map(str, angles))} = {sum(angles)}."
    return f"{triangles}{known} {whole} - {sum(angles)} = {whole - sum(angles)}."


FAMILY = Family(
    name="simple_geometry",
    title="Missing angles",
    kind=FamilyKind.NUMBERS,
    levels=(
        dict(min_sides=3, max_sides=3, min_angle=10, max_angle=80),
        dict(min_sides=3, max_sides=4, min_angle=20, max_angle=120),
        dict(min_sides=4, max_sides=6, min_angle=40, max_angle=150),
        dict(min_sides=5, max_sides=10, min_angle=80, max_angle=175),
    ),
    content=lambda entry: tuple(sorted(_known(entry))),
    wording=replaced(("?Return", "? Return"), ("angle.Return", "angle. Return"), ("answer.Do", "answer. Do")),
    score=scores.integer,
    sound=_sound,
    work=_work,
)
