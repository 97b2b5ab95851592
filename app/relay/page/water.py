"""The swarm as water, on the relay's page: who is connected, as drawn fish; an answer swims over when it was
learned from. SVG and CSS alone. Names follow from keys (app.swarm.identity.names), models are classes of size,
families are this relay's own: nothing that a client wrote is on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import msgspec

from app.common.text import exact_span
from app.sapo.families import FAMILIES

MOST = 24
WIDE, HIGH = 960, 264
_LANES = (44, 132, 216)
_EDGE = 66
"""Room for a name at either side."""
_BODY = "M22 0C12-11-6-12-19-1L-30-10c3 6 3 14 0 20L-19 1C-6 12 12 11 22 0z"
_FIN = "M4-9C0-16-6-17-10-16c2 3 2 5 1 8z"
_KINDS = 4
"""Ways of swimming, in page.css."""


class Swimmer(msgspec.Struct, frozen=True, kw_only=True):
    """A connected key: its name, empty where this relay tells none; the class of its model; the families of its
    latest groups; since when it is here, in seconds."""

    name: str
    model: str
    families: tuple[str, ...] = ()
    here_s: float = 0.0


def drawing(swimmers: Sequence[Swimmer], learned: Sequence[tuple[int, int]], others: int = 0) -> str:
    """The picture and the list. `learned`: who showed something and who learned it, by their places in
    `swimmers`; `others` are here and not drawn."""
    if not swimmers:
        return ""
    spots = places(len(swimmers))
    fish = "".join(
        _fish(one, spot, number) for number, (one, spot) in enumerate(zip(swimmers, spots, strict=True))
    )
    drops = "".join(
        _drop(spots[author], spots[learner], number) for number, (author, learner) in enumerate(learned)
    )
    rows = "".join(f"<li>{escape(told(one))}</li>" for one in swimmers)
    more = f"<li>and {others} more</li>" if others else ""
    return (
        '<section class="water"><h2>Who is here</h2>'
        "<p>A drop swims over when a model learned from an answer</p>"
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="group" aria-label="Connected nodes as fish">'
        f"{_GROUND}{drops}{fish}</svg>"
        f"<details><summary>As a list</summary><ul>{rows}{more}</ul></details></section>"
    )


def told(one: Swimmer) -> str:
    """
    >>> told(Swimmer(name="cosy-firefly-7467", model="starter", families=("gcd",), here_s=60.0))
    'cosy-firefly-7467: starter, here for 1 min, Greatest common divisor'
    """
    titles = [FAMILIES[name].title for name in one.families if name in FAMILIES]
    model = "model of unknown size" if one.model == "unknown" else one.model
    return f"{one.name or 'A node'}: " + ", ".join((model, f"here for {exact_span(one.here_s)}", *titles[:3]))


def places(count: int) -> list[tuple[int, int]]:
    """So many places, none on another.

    >>> places(1), places(4)
    ([(480, 132)], [(204, 44), (480, 132), (756, 216), (234, 216)])
    """
    columns = min(count, max(3, -(-count // 3)))
    found = []
    for number in range(count):
        column, turn = number % columns, number // columns
        lane = (column % 3 + 2 * turn) % 3 if columns > 1 else 1
        found.append(
            (_EDGE + round((WIDE - 2 * _EDGE) * (column + 0.5) / columns) + 30 * (turn % 2), _LANES[lane])
        )
    return found


def _fish(one: Swimmer, spot: tuple[int, int], number: int) -> str:
    said = escape(told(one))
    name = f'<text y="30">{escape(one.name)}</text>' if one.name else ""
    return (
        f'<g transform="translate({spot[0]} {spot[1]})">'
        f'<g class="fish swim{number % _KINDS}" tabindex="0" role="img" aria-label="{said}">'
        f"<title>{said}</title>"
        f'<path class="fin" d="{_FIN}"/><path d="{_BODY}"/><circle class="eye" cx="13" cy="-3" r="2"/>'
        f"{name}</g></g>"
    )


def _drop(start: tuple[int, int], goal: tuple[int, int], number: int) -> str:
    """Moving, or for who wants less motion, the way it took."""
    (x, y), (to_x, to_y) = start, goal
    way = f"M{x} {y}Q{(x + to_x) // 2} {min(y, to_y) - 40} {to_x} {to_y}"
    return (
        f'<path class="way" d="{way}"/><circle class="drop" r="6" cx="-20" cy="-20">'
        f'<animateMotion path="{way}" dur="2.4s" begin="{0.4 + 0.7 * number:.1f}s" repeatCount="1"/>'
        f'<animate attributeName="cx" from="0" to="0" dur="2.4s" begin="{0.4 + 0.7 * number:.1f}s"/>'
        f'<animate attributeName="cy" from="0" to="0" dur="2.4s" begin="{0.4 + 0.7 * number:.1f}s"/></circle>'
    )


_WEED = "".join(
    f'<path class="weed" d="M{x} {HIGH}q-9-{high // 2} 4-{high}"/>'
    for x, high in ((40, 34), (66, 22), (250, 28), (470, 18), (640, 36), (664, 24), (880, 30), (930, 20))
)
_GROUND = f'<rect class="sea" width="{WIDE}" height="{HIGH}" rx="14"/>{_WEED}'
