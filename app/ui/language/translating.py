"""Collects texts from the source into the translators' files (Qt's .ts, an XML format, and the .qm compiled
from it).

The source is read without running it: every constant passed to `tr`, `mark` or `counted` is a text. The rules'
reasons and settings belong to the node, which does not translate; they are taken from its tables. The node's
other sentences are recognised in its source by their form."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from app.ui.language.texts import CONTEXT, SPOKEN_FILE, SPOKEN_UNITS

FOLDER = Path(__file__).parents[3] / "resources" / "translations"
_SOURCE = Path(__file__).parents[1]
_ROOT = _SOURCE.parents[1]
_LEARNER = (
    *(
        f"app/{room}"
        for room in (
            "chat",
            "cli/_saying.py",
            "common",
            "desktop",
            "learning",
            "models",
            "node",
            "skills",
            "install/__init__.py",
            "install/packs",
            "install/signed.py",
            "install/updates",
            "swarm",
        )
    ),
    "engines",
    "app/sapo/sets",
    "app/sapo/scoring/sandbox.py",
)
_UNSEEN = {
    "app/chat/terminal.py": "the terminal's",
    "app/common/text.py": "the command line's",
    "app/common/home.py": "said in a terminal, before there is a window",
    "app/common/rate.py": "a fault in the source",
    "app/node/models/card.py": "a page for whoever gets an exported model",
    "app/node/rules/causes.py": "faults in the source",
    "app/node/trainer/messages.py": "faults of the protocol",
    "app/node/rules/preferences.py": "a table of its own",
    "app/node/terminal/lines.py": "the terminal's",
    "app/node/record/reasons.py": "a table of its own",
    "app/node/record/settings.py": "the command line's",
    "app/node/record/snapshot.py": "the terminal's",
    "app/node/models/survey.py": "a table of its own",
    "app/node/terminal/terminal.py": "the terminal's",
    "app/swarm/wire/body.py": "what relays answer to programs",
    "app/swarm/wire/noise.py": "faults of the protocol",
    "app/swarm/wire/frames.py": "what relays answer to programs",
    "app/swarm/wire/protocol.py": "what relays answer to programs",
    "app/swarm/wire/signin.py": "what relays answer to programs",
    "app/common/signing.py": "a fault in the source",
    **dict.fromkeys(
        (f"app/swarm/library/{one}.py" for one in ("export", "members", "records", "sea")),
        "for those who program with it",
    ),
}
"""Files of the node whose sentences no window shows, with the reason."""
_PHRASES = ("engines/remedy.py", "app/node/rules/setting.py")
"""Files whose texts are parts of sentences."""
_PARTS = (
    "{n} days",
    "there is no display here",
    "the display {where} does not answer",
    "name another folder with SHOAL_PACKS",
    "move the data folder",
)
"""Other texts that are parts of sentences."""
_SENSOR = re.compile(r'^    name = "(.+ .+)"$', re.MULTILINE)
"""Matches the name of a source of facts."""
_BETWEEN = re.compile(r"(?<=[.!?]) (?=[A-Z{])|(?<=\}) (?=[A-Z][a-z]+ )|(?<=^\{way\}) |(?<=^\{reason\}) ")


class SourceText(msgspec.Struct, frozen=True):
    """A text to translate. `counted`: it contains a number and has plural forms."""

    source: str
    counted: bool = False


def collect() -> list[SourceText]:
    """Returns every text of the window without duplicates, in the order of the files."""
    found: dict[str, SourceText] = {}
    for path in sorted(_SOURCE.rglob("*.py")):
        for text in _in_source(path.read_text(encoding="utf-8")):
            if text.source not in found or text.counted:
                found[text.source] = text
    for source in (*_of_the_node(), *sentences(), *phrases()):
        found.setdefault(source, SourceText(source))
    return [text for text in found.values() if text.source]


def id_of(source: str) -> str:
    """Returns a text's id in lists, which stays the same as long as the English text does.

    >>> id_of("Learning.")
    'fdf6ea'
    """
    return hashlib.sha256(source.encode()).hexdigest()[:6]


def sentences() -> list[str]:
    """Returns every sentence of the node that a window can show, without duplicates and with placeholders for
    its values."""
    found = dict[str, None]()
    for room in _LEARNER:
        for path in sorted((_ROOT / room).rglob("*.py")) or [_ROOT / room]:
            if str(path.relative_to(_ROOT)) not in _UNSEEN:
                found |= dict.fromkeys(said_in(path.read_text(encoding="utf-8")))
    return list(found)


def phrases() -> list[str]:
    """Returns the texts that are parts of sentences."""
    found = dict.fromkeys(_PARTS)
    for name in _PHRASES:
        for text in _texts((_ROOT / name).read_text(encoding="utf-8")):
            if _words(text) > 1 and " " in text:
                found[text.strip()] = None
    for path in sorted((_ROOT / "app" / "desktop").rglob("*.py")):
        found |= dict.fromkeys(_SENSOR.findall(path.read_text(encoding="utf-8")))
    return list(found)


def write_learner() -> None:
    """Writes the file from which an installed app, which has no source to read, recognises sentences."""
    told = msgspec.json.encode({"sentences": sentences(), "phrases": phrases()})
    SPOKEN_FILE.write_bytes(msgspec.json.format(told, indent=1) + b"\n")


def said_in(source: str) -> Iterator[str]:
    """Yields the sentences in a file's source.

    >>> list(said_in('say(f"Round {one.round} is safe. {more} All is lost: go back."); sql = "B FROM a"'))
    ['Round {round} is safe.', 'All is lost:', 'go back.']
    """
    for text in _texts(source):
        parts = _BETWEEN.split(text.strip())
        if "\n" not in text and all(map(_sentence, parts)):
            yield from (unit for part in parts for unit in SPOKEN_UNITS.split(part) if _words(unit))


def _sentence(text: str) -> bool:
    """Whether a text is a sentence: it ends as sentences do, or with a value after some words."""
    if re.fullmatch(r"\{\w+\}", text):
        return True
    ended = re.search(r"[.!?]$", text) or re.match(r"[A-Z{].*[a-z:] \{\w+\}$", text)
    words = (
        re.match(r"[A-Za-z{]", text)
        and text.count(" ") > 1
        and not re.search(r"\b(SET|FROM|PARAMETER)\b", text)
    )
    return bool(ended and words) and _words(text) > 1


def _words(text: str) -> int:
    return len(re.findall(r"[a-z]{2,}", re.sub(r"\{\w+\}", "", text)))


def _texts(source: str) -> Iterator[str]:
    """Yields every string of a file except docstrings; values appear as {name}."""
    tree = ast.parse(source)
    inside: set[ast.AST] = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {part for part in ast.walk(node) if isinstance(part, ast.Constant) or part is not node}
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield _with_places(node)


def _with_places(text: ast.JoinedStr) -> str:
    said, names = "", list[str]()
    for part in text.values:
        if isinstance(part, ast.FormattedValue):
            name = _name(part.value)
            names.append(name)
            said += f"{{{name}{names.count(name) if names.count(name) > 1 else ''}}}"
        else:
            assert isinstance(part, ast.Constant)
            said += str(part.value)
    return said


def _name(value: ast.expr) -> str:
    """Returns the placeholder that translators see in place of a value.

    >>> [_name(ast.parse(text, mode="eval").body) for text in ("n", "error.strerror", "in_bytes(size)", "1")]
    ['n', 'strerror', 'size', 'value']
    """
    match value:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.strip("_")
        case ast.Call(args=[first, *_]) if not isinstance(first, ast.Constant):
            return _name(first)
        case ast.Call(func=ast.Attribute(value=of)):
            return _name(of)
    found = (_name(node) for node in ast.walk(value) if isinstance(node, ast.Attribute | ast.Name))
    return next(found, "value")


def files() -> list[Path]:
    return sorted(FOLDER.glob(f"{CONTEXT}_*.ts"))


def begin(code: str) -> Path:
    """Creates an empty file for another language; an existing one stays as it is."""
    path = FOLDER / f"{CONTEXT}_{code}.ts"
    if not path.exists():
        _write(path, code, [], {})
    return path


def read(path: Path) -> dict[str, list[str]]:
    """Returns the translations in a file: source text to its plural forms, or to a single form."""
    done: dict[str, list[str]] = {}
    for message in ElementTree.parse(path).iter("message"):
        translation = message.find("translation")
        if translation is None or translation.get("type") == "unfinished":
            continue
        forms = [form.text or "" for form in translation.findall("numerusform")] or [translation.text or ""]
        if all(forms):
            done[message.findtext("source", "")] = forms
    return done


def update(path: Path, texts: list[SourceText]) -> int:
    """Adds new texts and removes unused ones. Returns how many are not translated."""
    done = read(path)
    _write(path, path.stem.removeprefix(f"{CONTEXT}_"), texts, done)
    return sum(text.source not in done for text in texts)


def compile(path: Path) -> Path:
    """Runs Qt's compiler, which produces the .qm file that the window loads. Raises CalledProcessError."""
    to = path.with_suffix(".qm")
    tool = Path(sysconfig.get_path("scripts")) / f"pyside6-lrelease{'.exe' if sys.platform == 'win32' else ''}"
    subprocess.run([tool, "-silent", path, "-qm", to], check=True, stdin=subprocess.DEVNULL)
    return to


def _in_source(source: str) -> Iterator[SourceText]:
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        given = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        strings = [value for value in given if isinstance(value, str)]
        match node.func.id:
            case "tr" | "mark" if strings:
                yield SourceText(strings[0])
            case "counted" if len(strings) >= 2:
                yield SourceText(strings[0])
                yield SourceText(strings[1], counted=True)


def _of_the_node() -> Iterator[str]:
    from app.models.catalogue import STARTER, entries, title
    from app.node.models.survey import STARTER_ABOUT
    from app.node.record.reasons import Reason
    from app.node.rules.preferences import SETTINGS
    from app.sapo.families import FAMILIES
    from app.sapo.families.family import FamilyKind
    from app.sapo.sets.tables import SkipReason
    from app.sapo.sets.templates import EXAMPLES

    for reason in Reason:
        yield from (reason.sentence, reason.short)
    for entry in entries():
        yield from (entry.about, entry.gated)
    yield from (STARTER_ABOUT, title(STARTER))
    yield from (family.title for family in FAMILIES.values())
    answers = (family.guess[1] for family in FAMILIES.values())
    yield from (answer for answer in answers if any(map(str.islower, answer)))  # no numbers and formulas
    yield from (*FamilyKind, *SkipReason, *EXAMPLES)
    for setting in SETTINGS:
        yield from (setting.group, setting.label, setting.help, setting.words)
        yield from (label for _, label in setting.options)


def _write(path: Path, code: str, texts: list[SourceText], done: dict[str, list[str]]) -> None:
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
