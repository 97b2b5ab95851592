"""What the learner says reaches people in their language, and nothing that it can say is forgotten."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication

from app.learning.placement import Placement
from app.node import healing
from app.node.data import contents
from app.node.record import records
from app.node.record.errors import disk_full_sentence
from app.node.record.reasons import Reason
from app.node.trainer import link
from app.sapo.asking import Way
from app.swarm.invite.invite import InviteError, invite_from_text
from app.ui.language import translating
from app.ui.language.texts import SPOKEN_FILE, translated

UI = Path(__file__).parents[3] / "app" / "ui"
sentences = cache(translating.sentences)
PLACE = re.compile(r"\{(\w+)\}")
ENGLISH = re.compile(r"\b(the|is|were|are|again|this|its|try|choose|computer|learns?|round|and)\b")


def test_the_window_knows_every_sentence_in_the_source() -> None:
    """Fails for a sentence that is new, changed or gone, until `./shoal translations` is run; test_translating
    then wants its German."""
    told = msgspec.json.decode(SPOKEN_FILE.read_bytes())
    assert told == {"sentences": sentences(), "phrases": translating.phrases()}
    assert len(told["sentences"]) > 500


def test_each_comes_out_in_german_with_its_values(german: None) -> None:
    done = translating.read(translating.FOLDER / "shoal_de.ts")
    wrong = []
    for template in sentences():
        values = {name: f"<{at}>" for at, name in enumerate(PLACE.findall(template))}
        wanted = done[template][0].format(**values) if values else done[template][0]
        if translated(template.format(**values) if values else template) != wanted:
            wrong.append((template, translated(template.format(**values)), wanted))
    assert wrong == []


def test_a_decision_in_the_history_comes_out_in_german(german: None) -> None:
    for reason in Reason:
        values = {name: f"<{at}>" for at, name in enumerate(PLACE.findall(reason.sentence))}
        wanted = QCoreApplication.translate("shoal", reason.sentence).format(**values)
        assert translated(reason.sentence.format(**values)) == wanted != reason.sentence


def test_in_english_every_sentence_stays_as_it_is(qapp: QCoreApplication) -> None:
    for template in sentences():
        values = {name: f"<{at}>" for at, name in enumerate(PLACE.findall(template))}
        text = template.format(**values) if values else template
        assert translated(text) == text


def said() -> Iterator[str]:
    """What really comes, as the parts of the learner put it together."""
    for code in (-9, -15, -11, -4, 0, 1):
        died = link.describe_exit(code, Path("/h/trainer.log"))
        yield f"{died} It restarts and plays round 3 again. It uses 50 % of its memory for a step now."
        yield f"{died} That happened 3 times in a row: {died.remedy} Round 2 is safe."
    yield f"{disk_full_sentence(Path('/h'))} Round 4 is safe."
    yield contents._sentence(5 * 10**9, 10**9, 2 * 10**9)
    yield contents._sentence(5 * 10**9, 4 * 10**9, 2 * 10**9)
    for rise in (-0.02, 0.1, 0.4):
        yield records.language_sentence(rise)
    yield healing.placement_summary(Placement(way=Way(name="plain"), families={"gcd": 0, "chain_sum": 1}))
    yield healing.placement_summary(Placement(way=Way(name="plain"), families={}))
    for text in ("", "x y", "shoal://join/", "http://a", "ws://a:0", "mailto:a"):
        with pytest.raises(InviteError) as wrong:
            invite_from_text(text)
        yield str(wrong.value)


def test_what_really_comes_is_german_throughout(german: None) -> None:
    for text in said():
        assert not ENGLISH.search(translated(text)), translated(text)


def test_values_of_a_known_kind_are_translated_too(german: None) -> None:
    assert translated("It can begin with sums, greatest common divisor.") == (
        "Damit kann es anfangen: Summen, Größter gemeinsamer Teiler."
    )
    assert translated(
        "Shoal can't find out the temperature of processor and NVIDIA cards: It does not answer."
    ) == ("Shoal kann die Temperatur von Prozessor und NVIDIA-Karten nicht feststellen: It does not answer.")
    assert (
        translated("The trainer hasn't answered for 2 days.")
        == "Der Trainer hat seit 2 Tage nicht geantwortet."
    )


def test_text_of_others_fills_a_place_and_is_never_a_form(german: None) -> None:
    for hostile in ("{0.__class__}", "{}", "{msg}", "%n", "a: b. C {x}", "{" * 50, "Pay. " * 500):
        assert translated(f"The relay says: {hostile}").endswith(hostile.strip()) or len(hostile) > 1000
    assert translated("Nobody knows this one. Nor that.") == "Nobody knows this one. Nor that."


def test_the_window_shows_no_sentence_of_others_as_it_came() -> None:
    """What comes from another process, or from an error of the core, passes through `translated`."""
    missed = []
    for path in sorted(UI.rglob("*.py")):
        if path.name in ("diagnostics.py", "reducer.py", "display.py", "translating.py", "libraries.py"):
            continue  # for those who mend Shoal; keeps what was said; before there is a window
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {
            part
            for call in ast.walk(tree)
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("translated", "tr")
            for part in ast.walk(call)
        }
        inside |= {
            part
            for either in ast.walk(tree)
            if isinstance(either, ast.BoolOp) and "strerror" in ast.unparse(either)  # the system's own word
            for part in ast.walk(either)
        }
        missed += [
            f"{path.name}: {ast.unparse(node)}"
            for node in ast.walk(tree)
            if node not in inside and _said_by_others(node)
        ]
    assert missed == []


def _said_by_others(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id="error" | "caught")]):
            return True
        case ast.Subscript(value=ast.Name(id="event"), slice=ast.Constant(value="sentence")):
            return True
        case ast.Attribute(attr="sentence", value=ast.Name(id="event" | "reply" | "one" | "swarm" | "partial")):
            return True
        case ast.Attribute(attr="complaint", value=ast.Name(id="job")):
            return True
    return False


def test_the_test_finds_what_it_should() -> None:
    (call,) = ast.parse("label.say(str(error))").body
    assert any(map(_said_by_others, ast.walk(call)))
