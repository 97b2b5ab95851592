"""From the source to the translators' files (Qt's .ts, an XML format, and the .qm compiled from it).

Texts are read from the source without running it: every constant given to `tr`, `mark` or `counted`. The rules'
reasons and settings belong to the node, which knows no translation; they are taken from its tables.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from app.ui.texts import CONTEXT

FOLDER = Path(__file__).parents[2] / "resources" / "translations"
_SOURCE = Path(__file__).parent


class Text(msgspec.Struct, frozen=True):
    """`counted`: it has a number in it, and the language's own plural forms."""

    source: str
    counted: bool = False


def collect() -> list[Text]:
    """Every text of the window, once, in the order of the files."""
    found: dict[str, Text] = {}
    for path in sorted(_SOURCE.rglob("*.py")):
        for text in _in_source(path.read_text(encoding="utf-8")):
            if text.source not in found or text.counted:
                found[text.source] = text
    for source in _of_the_node():
        found.setdefault(source, Text(source))
    return [text for text in found.values() if text.source]


def files() -> list[Path]:
    """The translators' files that are there."""
    return sorted(FOLDER.glob(f"{CONTEXT}_*.ts"))


def begin(code: str) -> Path:
    """An empty file for one more language; one that is there stays as it is."""
    path = FOLDER / f"{CONTEXT}_{code}.ts"
    if not path.exists():
        _write(path, code, [], {})
    return path


def read(path: Path) -> dict[str, list[str]]:
    """What has been translated: source to its forms, a single one unless it is counted."""
    done: dict[str, list[str]] = {}
    for message in ElementTree.parse(path).iter("message"):
        translation = message.find("translation")
        if translation is None or translation.get("type") == "unfinished":
            continue
        forms = [form.text or "" for form in translation.findall("numerusform")] or [translation.text or ""]
        if all(forms):
            done[message.findtext("source", "")] = forms
    return done


def update(path: Path, texts: list[Text]) -> int:
    """Adds what is new, drops what nobody shows any more. Returns how many texts are not translated."""
    done = read(path)
    _write(path, path.stem.removeprefix(f"{CONTEXT}_"), texts, done)
    return sum(text.source not in done for text in texts)


def compile(path: Path) -> Path:
    """Qt's own compiler makes the file that the window loads. Raises CalledProcessError."""
    to = path.with_suffix(".qm")
    tool = Path(sysconfig.get_path("scripts")) / f"pyside6-lrelease{'.exe' if sys.platform == 'win32' else ''}"
    subprocess.run([tool, "-silent", path, "-qm", to], check=True, stdin=subprocess.DEVNULL)
    return to


def _in_source(source: str) -> Iterator[Text]:
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        given = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        strings = [value for value in given if isinstance(value, str)]
        match node.func.id:
            case "tr" | "mark" if strings:
                yield Text(strings[0])
            case "counted" if len(strings) >= 2:
                yield Text(strings[0])
                yield Text(strings[1], counted=True)


def _of_the_node() -> Iterator[str]:
    from app.node.preferences import SETTINGS
    from app.node.reasons import Reason
    from app.node.survey import STARTER_ABOUT
    from app.sapo.families import FAMILIES
    from engines.models.catalogue import entries

    for reason in Reason:
        yield from (reason.sentence, reason.short)
    for entry in entries():
        yield from (entry.about, entry.gated)
    yield STARTER_ABOUT
    yield from (family.title for family in FAMILIES.values())
    for setting in SETTINGS:
        yield from (setting.group, setting.label, setting.help, setting.words)
        yield from (label for _, label in setting.options)


def _write(path: Path, code: str, texts: list[Text], done: dict[str, list[str]]) -> None:
    root = ElementTree.Element("TS", version="2.1", language=code, sourcelanguage="en")
    context = ElementTree.SubElement(root, "context")
    ElementTree.SubElement(context, "name").text = CONTEXT
    for text in texts:
        message = ElementTree.SubElement(context, "message", {"numerus": "yes"} if text.counted else {})
        ElementTree.SubElement(message, "source").text = text.source
        translation = ElementTree.SubElement(message, "translation")
        forms = done.get(text.source, [])
        if not forms:
            translation.set("type", "unfinished")
        elif text.counted:
            for form in forms:
                ElementTree.SubElement(translation, "numerusform").text = form
        else:
            translation.text = forms[0]
    ElementTree.indent(root, " ")
    path.parent.mkdir(parents=True, exist_ok=True)
    written = ElementTree.tostring(root, encoding="unicode")
    path.write_text(f'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n{written}\n', encoding="utf-8")
