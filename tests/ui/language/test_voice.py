"""How Shoal speaks, as far as it can be counted: short sentences in everyday words."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

from app.cli.__main__ import commands, summary
from app.node.record.reasons import Reason
from app.ui.language import translating

SOURCE = Path(__file__).parents[3] / "app" / "ui"
MAIN = (
    *(
        "privacy/live.py",
        "models/page.py",
        "overview/page.py",
        "skills/page.py",
        "swarm/page.py",
        "chat/page.py",
        "chat/question.py",
        "welcome/page.py",
        "welcome/model.py",
    ),
    *(
        "shell/sidebar.py",
        "shell/tray.py",
        "privacy/page.py",
        "privacy/message.py",
        "privacy/group.py",
        "view/words.py",
        "charts/curve.py",
        "charts/tile.py",
    ),
)
"""What people see without asking for it."""
MAX, MAX_ON_MAIN = 22, 14
ALLOWED_ON_MAIN: dict[str, str] = {
    "{now} at round {last}, {then} at round {first}, the highest was {best} at round {at};": "read out",
    "± is one standard error: right two times out of three.": "a tip",
}
JARGON = re.compile(
    r"\b(held-out|safe point|gradients?|adapter|rollouts?|float32|groups?|checkout|learner|log axis)\b",
    re.IGNORECASE,
)
JARGON_ALLOWED = {
    "Puzzles no one trains on (held-out). ± is one standard error: right two times out of three.": "a tip",
    "adapters and histories": "the Models page's bookkeeping",
}
STIFF = re.compile(
    r"\b(anew|whoever|nobody|for ever|be rid of|put right|goe?s? on|fetch\w*|handed over|taken into use)\b",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """A colon ends an idea as a full stop does."""
    return [part for part in re.split(r"(?<=[.!?…:;]) ", text) if part]


def words(sentence: str) -> int:
    """Those with letters, and the places of values."""
    return len(re.findall(r"[\w{][\w'}.-]*", sentence))


def on_main() -> list[str]:
    found = [
        text.source
        for name in MAIN
        for text in translating._in_source((SOURCE / name).read_text(encoding="utf-8"))
    ]
    return [*found, *(reason.sentence for reason in Reason)]


@functools.cache
def everything() -> list[str]:
    return [text.source for text in translating.collect()]


def forms() -> list[str]:
    """The German, too."""
    done = translating.read(translating.FOLDER / "shoal_de.ts")
    return [form for text in everything() for form in done.get(text, [])]


def test_no_sentence_is_long() -> None:
    long = {part: words(part) for text in everything() for part in sentences(text) if words(part) > MAX}
    assert long == {}
    long = {part: words(part) for text in forms() for part in sentences(text) if words(part) > MAX + 2}
    assert long == {}, "German takes a word or two more"


def test_no_sentence_of_the_main_screens_is_long() -> None:
    long = [
        part
        for text in on_main()
        for part in sentences(text)
        if words(part) > MAX_ON_MAIN and part not in ALLOWED_ON_MAIN
    ]
    assert long == []


def in_terminals() -> list[str]:
    """What commands and the set-up say."""
    found = []
    for path in (
        path for room in ("cli", "install/launcher") for path in sorted((SOURCE.parent / room).rglob("*.py"))
    ):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        told = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
        strings = (one for one in ast.walk(tree) if isinstance(one, ast.Constant) and id(one) not in told)
        found += [one.value for one in strings if isinstance(one.value, str)]
    return found


def test_terms_of_the_field_stay_away_from_the_main_screens() -> None:
    assert [text for text in on_main() if JARGON.search(text) and text not in JARGON_ALLOWED] == []


def test_words_are_those_that_people_say() -> None:
    assert [text for text in everything() if STIFF.search(text)] == []
    assert [text for text in in_terminals() if " " in text and STIFF.search(text)] == []


def test_commands_say_what_they_do_in_one_short_sentence() -> None:
    assert [name for name in commands() if not 1 < words(summary(name)) <= MAX] == []


def test_the_tests_find_what_they_should() -> None:
    assert words("Round {n} isn't up-to-date, 24 %.") == 5
    assert sentences("It stopped. Free up space: now.") == ["It stopped.", "Free up space:", "now."]
    assert JARGON.search("Held-out questions") and STIFF.search("Fetching it") and not STIFF.search("a goal")
