"""No text that people read is out of a translator's reach."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from app.ui.language.texts import ago

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "app" / "ui"
TRANSLATED = {"tr", "mark", "counted"}
NOT_TEXTS = {
    "theme/theme.py": "a style sheet, and names of fonts",
    "shell/display.py": "names of packages; its sentences are said in a terminal, before there is a window",
    "settings/diagnostics.py": "for those who mend Shoal, and greppable",
    "process/logs.py": "the same",
    "view/view.py": "the node's own names of its phases, which view/words.py translates",
    "language/translating.py": "for translators' files, not for a screen",
    "view/reducer.py": "faults of the protocol, which nobody sees",
}
NAMES = {"Shoal", "Inter", "Ctrl", "Box", "English", "Deutsch"}
"""Words that are the same in every language, or no words."""


def files() -> list[Path]:
    return sorted(path for path in FOLDER.rglob("*.py") if str(path.relative_to(FOLDER)) not in NOT_TEXTS)


def reads_like_text(value: str) -> bool:
    """Two words, or one with a capital letter: what a person would read. Keys and names of looks are
    neither."""
    bare = re.sub(r"\{[^}]*\}", " ", value)
    words = [word for word in re.findall(r"[A-Za-z]{2,}", bare) if word not in NAMES]
    sentence = re.search(r"[A-Za-z]{2,}[,:]? [a-z]{2,}", bare)
    return bool(words) and bool(sentence or re.fullmatch(r"[A-Z][a-z]+[.!?…]?", bare.strip()))


def untranslated(source: str) -> list[tuple[int, str]]:
    tree = ast.parse(source)
    reached: set[ast.AST] = set()
    for node in ast.walk(tree):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        raised = node.exc if isinstance(node, ast.Raise) else None
        if name in TRANSLATED:
            reached.update(part for argument in node.args for part in ast.walk(argument))  # type: ignore[attr-defined]
        elif raised is not None:
            reached.update(ast.walk(raised))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            reached.add(node.value)  # a docstring
        elif isinstance(node, ast.Assign) and any(
            isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets
        ):
            reached.update(ast.walk(node.value))
        elif isinstance(node, ast.AnnAssign):
            reached.update(ast.walk(node.annotation))
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node not in reached
        and reads_like_text(node.value)
    ]


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_text_goes_through_tr(path: Path) -> None:
    assert untranslated(path.read_text(encoding="utf-8")) == []


def test_days_ago_have_words_of_their_own() -> None:
    told = [ago(at, 1_000_000.0) for at in (None, 999_999.0, 999_000.0, 800_000.0)]
    assert told == ["never", "just now", "17 min ago", "2 days ago"]


def test_the_test_finds_what_it_should() -> None:
    assert untranslated('label.setText("Start learning")') == [(1, "Start learning")]
    assert untranslated('label.setText("Pause")') == [(1, "Pause")]
    assert untranslated('x = f"{n} peers online"') != []
    assert untranslated('label.setText(tr("Start learning")); x = "text_soft"; y = "tray-paused"') == []


def test_texts_are_given_to_tr_as_they_are() -> None:
    """A translator's tool reads the source: a text that is put together there can not be found."""
    for path in files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("tr", "counted")
            ):
                for argument in node.args[: 2 if node.func.id == "counted" else 1]:
                    assert not isinstance(argument, ast.JoinedStr | ast.BinOp), f"{path.name}:{node.lineno}"
