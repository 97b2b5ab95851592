"""Renders a result as one HTML file with its picture, which loads and runs nothing. The window passes its own
`tr`, which translates and fills in values, and its own number format."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Protocol

from app.common.drawing import card
from app.common.text import safe_line, span
from app.models.catalogue import title
from app.node.models.result import (
    OWN_SETS,
    FlipCounts,
    MeasuredPoint,
    Result,
    RunSegment,
    VerifiedResult,
    commands_to_repeat,
    obstacle,
)
from app.sapo.families import FAMILIES
from engines.remedy import command

_SURE = 0.05
_ROWS = 30
"""Maximum measurements in the table."""
_STYLE = """
:root{color-scheme:light dark}
:root{--surface:#fff;--ground:#f6f8f8;--text:#0f2429;--text_soft:#46595f;--text_faint:#53666c;--line_strong:#c6d2d4;--grid:#e9eef0;--own:#0e8a9c;--good:#23724f;--bad:#b23a37}
@media(prefers-color-scheme:dark){:root{--surface:#16222a;--ground:#0f1a20;--text:#e6eff1;--text_soft:#b4c4c9;
--text_faint:#9fb1b7;--line_strong:#3b4d55;--grid:#22323a;--own:#3fc1d0;--good:#6cc79a;--bad:#f0908c}}
body{margin:0;background:var(--ground);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:960px;margin:0 auto;padding:24px 16px 48px}
svg{display:block;width:100%;border-radius:12px}
h1{font-size:26px;margin:24px 0 4px}h2{font-size:18px;margin:28px 0 8px}p{margin:4px 0}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:5px 12px 5px 0;vertical-align:top;border-bottom:1px solid var(--grid)}
th{font-weight:400;color:var(--text_soft)}td.n{text-align:right;white-space:nowrap}
code,pre{font:13px/1.6 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}
pre{background:var(--surface);padding:12px 16px;border-radius:8px;margin:8px 0}.soft{color:var(--text_soft)}
.good{color:var(--good)}.bad{color:var(--bad)}.q{white-space:pre-wrap}
"""
_COLOURS = {
    name: f"var(--{name})"
    for name in ("surface", "text", "text_soft", "text_faint", "line_strong", "grid", "own")
}


class Translate(Protocol):
    def __call__(self, text: str, /, **values: object) -> str: ...


class Numbers(Protocol):
    def __call__(self, value: float, digits: int = 0) -> str: ...


def english(text: str, /, **values: object) -> str:
    return text.format(**values) if values else text


def plainly(value: float, digits: int = 0) -> str:
    """Formats a number with thin spaces between thousands."""
    return f"{value:,.{digits}f}".replace(",", "\u2009")


def dated(day: str, written: Callable[[float], str] | None = None) -> str:
    """Formats an ISO 8601 day for people; `written`, if given, formats its Unix time instead. Any other text is
    returned as it is.

    >>> dated("2026-11-06"), dated("soon")
    ('6 Nov 2026', 'soon')
    """
    try:
        moment = time.strptime(day, "%Y-%m-%d")
    except ValueError:
        return day
    return written(time.mktime(moment)) if written else f"{moment.tm_mday} {time.strftime('%b %Y', moment)}"


def headline(
    now: float, was: float, first: int, tr: Translate = english, number: Numbers = plainly, rows: bool = False
) -> str:
    """Returns the shares solved, later and first, as a sentence. `rows`: of the owner's table, not puzzles.

    >>> headline(0.9, 0.2, 0)
    'Solves 90 of 100 new puzzles, 20 when it started.'
    >>> headline(0.9, 0.2, 40)
    'Solves 90 of 100 new puzzles, 20 at round 40.'
    """
    shares = {"now": number(round(100 * now)), "was": number(round(100 * was))}
    if rows:
        return tr("Of 100 new rows {now} are right, {was} when it started.", **shares)
    if not first:
        return tr("Solves {now} of 100 new puzzles, {was} when it started.", **shares)
    return tr("Solves {now} of 100 new puzzles, {was} at round {round}.", **shares, round=number(first))


def summary(result: Result, tr: Translate = english, number: Numbers = plainly) -> str:
    """Returns what was learned, in a sentence; of a skill with what one constant answer gets."""
    first, last = result.first, result.last
    if not result.skill:
        return headline(last.pass_at_1, first.pass_at_1, first.round, tr, number)
    return tr(
        "{skill}: right in {now} of 100 new rows, {was} at round {round}. One constant answer gets {constant}.",
        skill=safe_line(result.skill),
        now=number(round(100 * last.pass_at_1)),
        was=number(round(100 * first.pass_at_1)),
        round=number(first.round),
        constant=number(round(100 * result.constant)),
    )


def certainty(
    difference: float, error: float, chance: float, tr: Translate = english, number: Numbers = plainly
) -> str:
    """Returns a sentence with the paired difference, twice its standard error, and whether chance explains
    it.
    """
    points, error_ = number(round(100 * difference)), number(round(200 * error))
    if chance > _SURE:
        return tr(
            "{points} points, give or take {error}. That could still be chance.", points=points, error=error_
        )
    return tr("{points} points, give or take {error}. That's more than chance.", points=points, error=error_)


def page(
    found: VerifiedResult,
    tr: Translate = english,
    number: Numbers = plainly,
    written: Callable[[float], str] | None = None,
) -> str:
    """Returns the result as an HTML page. `written` formats a Unix time as a date."""
    result = found.result
    flips = result.flips
    parts = [
        picture(result, tr, number, dated(result.day, written)),
        f"<h1>{escape(summary(result, tr, number))}</h1>",
        *([_flips(flips, tr, number)] if flips is not None else []),
        _heading(tr("The curve")),
        _paragraph(
            tr(
                "Rows that the model never trained on, the likeliest answer to each. Brackets hold the 95 % "
                "interval; the band in the picture is one standard error."
            )
            if result.skill
            else tr(
                "Puzzles that the model never trained on, one answer each. Brackets hold the 95 % interval; "
                "the band in the picture is one standard error."
            )
        ),
        _table(_points(result.curve, tr, number), right=True),
        _heading(tr("Kinds of puzzles, at the end")),
        _table(
            ((_kind(name, tr), f"{number(100 * share)} %") for name, share in result.families.items()), True
        ),
        *(_examples(flips, tr) if flips is not None else []),
        _heading(tr("How it was made")),
        _table(_facts(result, tr, number)),
        _heading(tr("Play it again")),
        *_again(result, tr),
        _heading(tr("Who signed it")),
        _paragraph(
            tr(
                "{name} signed the file beside this page. A signature says who wrote it, not that it is true.",
                name=found.name,
            )
        ),
        f"<pre>{command('result verify FILE')}\n{command('result verify FILE --again')}</pre>",
        _paragraph(found.key),
    ]
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>{escape(tr("A result of Shoal"))}</title>'
        '<meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline'\">"
        f"<style>{_STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def picture(result: Result, tr: Translate, number: Numbers, day: str) -> str:
    """Returns the curve as SVG, in the page's colours, with the model's title and this day."""
    curve = _thinned(result.curve, 400)
    line = [(one.round, one.pass_at_1, one.pass_at_1 - one.stderr, one.pass_at_1 + one.stderr) for one in curve]
    facts = ("Shoal", title(result.base.name), tr("Round {n}", n=number(result.rounds)), day)
    what = safe_line(result.skill, 40) or tr("New puzzles solved")
    said = f"{what}: {_share(result.last, number)}"
    return card(line, said, [safe_line(one, 60) for one in facts], _COLOURS, tr("rounds"))


def facts(result: Result, tr: Translate = english, number: Numbers = plainly) -> list[tuple[str, str]]:
    """Returns pairs of label and text about how the result was made, for the page and the terminal."""
    return list(_facts(result, tr, number))


def _facts(result: Result, tr: Translate, number: Numbers) -> Iterable[tuple[str, str]]:
    last = result.played[-1]
    name, called = result.base.name, title(result.base.name)
    base = called if called.casefold() == name.casefold() else f"{called} ({name})"
    yield tr("Base model"), f"{safe_line(base)}, SHA-256 {result.base.sha256}"
    seeds = [tr("none") if seed is None else str(seed) for seed in result.seeds]
    yield tr("Seed"), ", ".join(seeds)
    yield tr("Recipe"), _recipe(last, tr, number)
    yield (
        tr("Rounds"),
        tr(
            "{rounds} with {answers} answers, {span} of work",
            rounds=number(result.rounds),
            answers=number(result.answers),
            span=span(result.seconds),
        ),
    )
    others = tr("{n} groups and lessons", n=number(result.from_peers)) if result.from_peers else tr("nothing")
    yield tr("Learned from others"), others
    engine = [last.engine, last.sampler, last.device, last.dtype]
    yield tr("Engine"), safe_line(", ".join(dict.fromkeys(filter(None, engine))))
    machine = result.machine
    cores = tr("{cores} cores, {gb} GB of memory", cores=machine.cores, gb=machine.memory_gb)
    yield tr("Computer"), safe_line(f"{machine.system} {machine.processor}, {cores}")
    puzzles = tr("puzzles {version}, held-out set {mark}", version=result.questions, mark=result.questions_mark)
    yield "Shoal", safe_line(f"{result.shoal}, {puzzles}")
    yield tr("What it learned"), f"SHA-256 {result.adapter}"


def _recipe(one: RunSegment, tr: Translate, number: Numbers) -> str:
    said = tr(
        "{name}: {groups} puzzles a round, {answers} answers each, learning rate {rate}, rank {rank}",
        name=safe_line(one.recipe),
        groups=number(one.groups),
        answers=number(one.completions),
        rate=f"{one.learning_rate:g}",
        rank=tr("the engine's own") if one.rank is None else number(one.rank),
    )
    return f"{said}; {tr('rewards shuffled, as a control')}" if one.shuffled_rewards else said


def _points(curve: Sequence[MeasuredPoint], tr: Translate, number: Numbers) -> Iterable[tuple[str, str]]:
    for one in _thinned(curve, _ROWS):
        yield tr("Round {n}", n=number(one.round)), _share(one, number)


def _share(point: MeasuredPoint, number: Numbers) -> str:
    """
    >>> _share(MeasuredPoint(round=0, pass_at_1=0.5, stderr=0.03, questions=256, lenient=0.5), plainly)
    '50.0 % [44.1 – 55.9]'
    """
    low, high = point.interval
    return f"{number(100 * point.pass_at_1, 1)} % [{number(100 * low, 1)} – {number(100 * high, 1)}]"


def _thinned(curve: Sequence[MeasuredPoint], most: int) -> list[MeasuredPoint]:
    """Returns at most `most` points, evenly spaced, with the first and the last."""
    if len(curve) <= most:
        return list(curve)
    return [curve[round(n * (len(curve) - 1) / (most - 1))] for n in range(most)]


def _flips(flips: FlipCounts, tr: Translate, number: Numbers) -> str:
    gained = escape(tr("{n} now right", n=number(flips.gained)))
    lost = escape(tr("{n} now wrong", n=number(flips.lost)))
    sure = escape(certainty(flips.difference, flips.error, flips.chance, tr, number))
    return f"<p><span class=good>{gained}</span>, <span class=bad>{lost}</span>. {sure}</p>"


def _examples(flips: FlipCounts, tr: Translate) -> Iterable[str]:
    if not flips.examples:
        return
    yield _heading(tr("Before and after"))
    for one in flips.examples:
        before, after = tr("Before: {answer}", answer=one.before), tr("After: {answer}", answer=one.after)
        yield (
            f"<p class=q><b>{escape(one.question)}</b>\n{escape(before)}\n"
            f"<span class={'good' if one.now else 'bad'}>{escape(after)}</span></p>"
        )


def _again(result: Result, tr: Translate) -> Iterable[str]:
    if why := obstacle(result):
        yield _paragraph(tr(why))
    if commands := commands_to_repeat(result):
        yield f"<pre>{escape(chr(10).join(commands))}</pre>"
        yield _paragraph(
            tr(
                "The same engine on the same kind of processor gives the same figures. Another one rounds "
                "otherwise: then the intervals say whether they agree."
            )
            if None not in result.seeds
            else tr(
                "It had no seed, so another run is another one: the intervals say how far they may be apart."
            )
        )


def _kind(name: str, tr: Translate) -> str:
    if name == OWN_SETS:
        return tr("questions of one's own")
    return tr(FAMILIES[name].title) if name in FAMILIES else safe_line(name, 60)


def _heading(text: str) -> str:
    return f"<h2>{escape(text)}</h2>"


def _paragraph(text: str) -> str:
    return f"<p class=soft>{escape(text)}</p>"


def _table(rows: Iterable[tuple[str, str]], right: bool = False) -> str:
    look = " class=n" if right else ""
    cells = (f"<tr><th>{escape(one)}</th><td{look}>{escape(other)}</td></tr>" for one, other in rows)
    return f"<table>{''.join(cells)}</table>"
