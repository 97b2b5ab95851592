"""The teacher's page of a classroom, at a URL that only the teacher knows: one HTML response without scripts or
external resources. Names are generated from keys; every value is escaped."""

from __future__ import annotations

import csv
import io
import math
import secrets
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from types import MappingProxyType

from app.common import files
from app.common.text import exact_duration, safe_line
from app.relay.page import page
from app.relay.session.classroom import (
    KEYS_PER_COMPUTER,
    MAX_PUPILS,
    ClassMeasurement,
    Classroom,
    Discovery,
    Pupil,
)
from app.sapo.families import FAMILIES
from app.swarm.identity.identity import node_name
from app.swarm.invite.invite import Invite

PATH = "/class/"
PEOPLE_FILE = "class-names.json"
MAX_SHOWN = 12
"""Maximum discoveries on the page; the CSV export contains all."""
MAX_NOTES_BYTES = 256 * 1024
MAX_PERSON = 40
"""Maximum characters of a pupil's own name."""
_ARROWS = 90
"""Maximum arcs drawn, those with most groups; the list of students contains all figures."""
_RING = 46.0  # percent of the picture
_NAMED = 24
"""Maximum number of models whose names fit around the ring."""
_SPARK = (120.0, 26.0)  # width and height in pixels

_STYLE = "".join(
    line.strip()
    for file in ("page.css", "teacher.css")
    for line in Path(__file__).with_name(file).read_text("utf-8").splitlines()
)
HEADERS = {
    **page.HEADERS,
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
        "img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
}


_COMPLETE = (
    f"The class is complete: more asked to join, and it holds {MAX_PUPILS} models, {KEYS_PER_COMPUTER} from "
    "one computer."
)


class People:
    """Whose model each is, by the models' names: noted by the teacher, kept in one file, sent to no one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        found = None if path is None else files.read_json(path, dict[str, str], MAX_NOTES_BYTES)
        self.names: dict[str, str] = found or {}

    def note(self, noted: Mapping[str, str], room: Classroom) -> None:
        """Notes the people of models in this class; an empty name takes a note away. Raises OSError."""
        for name in set(map(node_name, room.pupils)) & set(noted):
            self.names[name] = safe_line(noted[name], MAX_PERSON)
        self.names = {name: person for name, person in list(self.names.items())[-4 * MAX_PUPILS :] if person}
        if self._path is not None:
            files.write_json(self._path, self.names, private=True)


def token() -> str:
    """Draws the secret last part of the teacher page's URL; anyone who has it is treated as the teacher."""
    return secrets.token_urlsafe(24)


def render(
    room: Classroom,
    swarm: str,
    join: Invite,
    online: frozenset[bytes],
    now: float,
    words: bool = True,
    people: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Renders the page. `join`: the class's invite; `online`: the connected keys; `now`: Unix seconds; `words`:
    also show the invite as six words (a private swarm has other words); `people`: by a model's name, whose it
    is."""

    def named(key: bytes) -> str:
        return people.get(node_name(key)) or node_name(key)

    link, said = join.link(), join.words() if words else None
    pupils = sorted(room.pupils, key=node_name)
    state = "<em>learning</em>" if room.learning else '<em class="not">paused by you</em>'
    run, word = ("0", "Pause everybody") if room.learning else ("1", "Let everybody learn")
    marks = [room.pupils[key].marks[-1] for key in pupils if room.pupils[key].marks]
    mean = sum(mark.share for mark in marks) / len(marks) if marks else 0.0
    facts = (
        ("Connected now", f"{len(online & set(pupils))} of {len(pupils)}"),
        ("Puzzles solved, on average", f"{100 * mean:.0f} %" if marks else "not measured yet"),
        ("Answers shared", _count(sum(room.shared.values()))),
        ("Answers passed on", _count(sum(room.journeys.values()))),
        ("Solved for the first time", _count(len(room.discoveries))),
    )
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f'<meta http-equiv="refresh" content="{page.REFRESH_S}">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(swarm)} · class</title><style>{_STYLE}</style></head><body>",
            f"<header><b>Shoal</b><span>Class {escape(swarm)}</span>{state}</header><main>",
            '<div class="now"><div><h1><strong>',
            f"{len(pupils)}</strong>{'model is' if len(pupils) == 1 else 'models are'} in this class</h1>",
            "<p>Names are made up. Each model learns on its own computer, and from answers of the others.</p>",
            f"<p>{_COMPLETE}</p>" if room.turned_away else "",
            '<form method="post" action="learning">',
            f'<button name="run" value="{run}">{word}</button>',
            ' <a href="names">Who is who</a>',
            ' <a href="skills.csv">Export skills</a>',
            ' <a href="discoveries.csv">Export what was solved first</a></form>',
            "</div><dl>",
            *(f"<div><dt>{dt}</dt><dd>{escape(dd)}</dd></div>" for dt, dd in facts),
            "</dl></div>",
            '<section class="join"><h2>Join this class</h2><p>On the page Swarm, each pupil types ',
            "the six words, or pastes the link. " if said else "the link. ",
            "Who joins agrees that you see its model's skills and may pause it.</p>",
            f'<p class="words">{said}</p>' if said else "",
            "<p>Click the link to select it, or let phones read the code.</p>",
            f'<div><code>{escape(link)}</code><img alt="The link as a QR code" src="{_qr(link)}"></div>',
            "</section>",
            '<div class="pair"><section><h2>Skills over time</h2>',
            "<p>New puzzles that each model solves, since it joined</p>",
            _table(room, pupils, online, people),
            "</section><div><section><h2>Whose answers went where</h2>",
            "<p>Answers that went from one to another; thicker is more</p>",
            _ring(room, pupils, named),
            "</section><section><h2>Solved for the first time</h2><p>A kind of puzzle each, newest first</p>",
            _discoveries(room.discoveries[::-1][:MAX_SHOWN], now, named),
            "</section></div></div></main><footer>",
            f"<span>Figures are renewed every {page.REFRESH_S} seconds</span>",
            "<span>Figures are kept in memory only: export what you want to keep</span></footer></body></html>",
        )
    ).encode("utf-8", "replace")


def render_names(room: Classroom, people: Mapping[str, str]) -> bytes:
    """Renders the form on which the teacher notes whose model each is. It isn't renewed while one types."""
    rows = "".join(
        f'<tr><th scope="row"><label for="{name}">{name}</label></th><td><input id="{name}" name="{name}" '
        f'maxlength="{MAX_PERSON}" value="{escape(people.get(name, ""))}"></td></tr>'
        for name in sorted(map(node_name, room.pupils))
    )
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>Who is who</title><style>{_STYLE}</style></head><body>",
            "<header><b>Shoal</b><span>Who is who</span></header><main><section>",
            "<p>Each pupil finds the model's name on the page Swarm. What you write here stays on this ",
            "computer and is shown on your page only.</p>",
            f'<form method="post" action="names"><table class="pupils">{rows}</table>',
            '<button>Save</button> <a href="page">Back to the class</a></form></section></main></body></html>',
        )
    ).encode("utf-8", "replace")


def state_of(pupil: Pupil, learning: bool, online: bool) -> str:
    """Says what a pupil's model does now, by the relay's clock.

    >>> state_of(Pupil(0.0, ""), True, True), state_of(Pupil(0.0, ""), False, True)
    ('connected', 'paused by you')
    """
    if not online:
        return f"away since {datetime.fromtimestamp(pupil.latest):%H:%M}"
    if not learning:
        return "learning anyway" if pupil.rests is False else "paused by you"
    return {None: "connected", False: "learning", True: "taking a break"}[pupil.rests]


def _table(
    room: Classroom, pupils: Sequence[bytes], online: frozenset[bytes], people: Mapping[str, str]
) -> str:
    if not pupils:
        return '<div class="empty">Nobody is here yet: give out the link above.</div>'
    rows = []
    for key in pupils:
        pupil = room.pupils[key]
        got = sum(sum(one.values()) for one in pupil.got.values())
        last = pupil.marks[-1] if pupil.marks else None
        name, state = node_name(key), state_of(pupil, room.learning, key in online)
        whose = f"{escape(people[name])} <small>{name}</small>" if people.get(name) else name
        rows.append(
            f'<tr><th scope="row">{whose}<br><small>{state}</small></th>'
            f'<td class="spark">{_spark(pupil.marks)}</td>'
            f"<td>{f'{100 * last.share:.0f} %' if last else '–'}</td>"
            f"<td>{last.round if last else '–'}</td><td>{_count(room.shared[key])}</td>"
            f"<td>{_count(got)}</td></tr>"
        )
    head = "<tr><th>Model</th><th></th><th>Solves</th><th>Round</th><th>Shared</th><th>Got</th></tr>"
    return f'<table class="pupils"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>'


def _spark(marks: Sequence[ClassMeasurement]) -> str:
    """A student's share of solved puzzles over time as an SVG sparkline, from 0 to 100 %."""
    wide, high = _SPARK
    if len(marks) < 2:
        return ""
    first, last = marks[0].at, marks[-1].at
    span = max(1e-6, last - first)
    points = " ".join(
        f"{2 + (wide - 4) * (one.at - first) / span:.1f},{high - 2 - (high - 4) * one.share:.1f}"
        for one in marks
    )
    said = f"from {100 * marks[0].share:.0f} to {100 * marks[-1].share:.0f} percent"
    return (
        f'<svg viewBox="0 0 {wide:.0f} {high:.0f}" role="img" aria-label="{said}">'
        f'<line x1="0" y1="{high - 1}" x2="{wide}" y2="{high - 1}"/><polyline points="{points}"/></svg>'
    )


def _ring(room: Classroom, pupils: Sequence[bytes], named: Callable[[bytes], str]) -> str:
    """The students on a ring as SVG, with an arc from each author to each student who received its groups."""
    place = {
        key: (
            50 + _RING * math.sin(2 * math.pi * at / len(pupils)),
            50 - _RING * math.cos(2 * math.pi * at / len(pupils)),
        )
        for at, key in enumerate(pupils)
    }
    drawn = [
        (pair, number) for pair, number in room.journeys.most_common() if pair[0] in place and pair[1] in place
    ][:_ARROWS]
    if not drawn:
        return '<div class="empty">No answer has been passed on yet.</div>'
    most = drawn[0][1]
    arcs = "".join(
        f'<path d="M{place[a][0]:.1f} {place[a][1]:.1f}Q50 50 {place[b][0]:.1f} {place[b][1]:.1f}" '
        f'stroke-width="{0.15 + 1.1 * number / most:.2f}">'
        f"<title>{escape(named(a))} to {escape(named(b))}: {number}</title></path>"
        for (a, b), number in drawn
    )
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6"><title>{escape(named(key))}</title></circle>'
        + (_label(named(key), x, y) if len(pupils) <= _NAMED else "")
        for key, (x, y) in place.items()
    )
    (a, b), number = drawn[0]
    said = f"Most went from {named(a)} to {named(b)}: {number} puzzles with their answers."
    return (
        f'<svg class="ring" viewBox="-44 -4 188 108" role="img" aria-label="{escape(said)}">{arcs}{dots}</svg>'
        f"<p>{escape(said)}</p>"
    )


def _label(text: str, x: float, y: float) -> str:
    """The SVG text of a name, on the outer side of its dot."""
    side, anchor = (2.6, "start") if x >= 50 else (-2.6, "end")
    return f'<text x="{x + side:.1f}" y="{y + 1.2:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


@cache
def _qr(text: str) -> str:
    """The text as a QR code, as a data: URL of a PNG."""
    import segno

    return str(segno.make_qr(text).png_data_uri(scale=4, border=4))


def _discoveries(some: Sequence[Discovery], now: float, named: Callable[[bytes], str]) -> str:
    if not some:
        return '<div class="empty">None yet.</div>'
    return f"<ul>{''.join(f'<li>{escape(discovery_sentence(one, now, named))}</li>' for one in some)}</ul>"


def discovery_sentence(one: Discovery, now: float, named: Callable[[bytes], str] = node_name) -> str:
    """Describes a discovery in a sentence. It states the order of events, not a cause."""
    who, what = named(one.pupil), FAMILIES[one.family].title
    ago = exact_duration(max(0.0, now - one.at))
    if not one.before or one.after_s is None:
        return f"{who} solved its first {what} on its own, {ago} ago."
    others = " and ".join(named(key) for key in one.before)
    after = exact_duration(one.after_s)
    return f"{who} solved its first {what} {after} after answers of {others} came, {ago} ago."


def skills(room: Classroom) -> bytes:
    """Exports every measurement as CSV, including students who were removed to make room."""
    everybody = {**room.past, **room.pupils}
    marks = [(key, mark) for key, pupil in everybody.items() for mark in pupil.marks]
    families = sorted({family for _, mark in marks for family in mark.families})
    rows = [
        [
            node_name(key),
            _time(mark.at),
            mark.round,
            f"{mark.share:.4f}",
            *(f"{mark.families[one]:.4f}" if one in mark.families else "" for one in families),
        ]
        for key, mark in marks
    ]
    titles = (FAMILIES[one].title for one in families)
    return _csv(("model", "time", "round", "solved", *titles), rows)


def discoveries(room: Classroom) -> bytes:
    """Exports every discovery as CSV."""
    rows = [
        [
            node_name(one.pupil),
            _time(one.at),
            FAMILIES[one.family].title,
            " ".join(map(node_name, one.before)),
            "" if one.after_s is None else f"{one.after_s:.0f}",
        ]
        for one in room.discoveries
    ]
    return _csv(("model", "time", "puzzle", "answers came from", "seconds after them"), rows)


def _csv(head: Sequence[str], rows: Sequence[Sequence[object]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue().encode()


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _count(value: int) -> str:
    return f"{value:,}".replace(",", "\u202f")
