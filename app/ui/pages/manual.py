"""The help's pages: those of resources/help, in the person's language if there is a translation, and one about
Shoal itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import cast

import msgspec
from PySide6.QtGui import QKeySequence

from app.install.updates import installed
from app.ui.language.texts import tr

FOLDER = Path(__file__).parents[3] / "resources" / "help"
PAGES = (
    *("start", "yours", "questions", "course", "swarm", "clubs", "models", "programs", "trainers", "when"),
    *("commands", "relay", "experiment", "developing"),
)
"""Keys of the pages in reading order."""
_PICTURE = re.compile(r"!\[([^]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
_MARKUP = re.compile(r"[*`#|]+|^[-: |]+$", re.MULTILINE)


class Topic(msgspec.Struct, frozen=True):
    """A help page. Links refer to it by `key`. `text` is Markdown; each of its links leads to another page (see
    `page_of_link`) or to an https address (see `is_web_link`)."""

    key: str
    title: str
    text: str

    def hits(self, words: str) -> int:
        """Returns how often these words occur, 0 unless all of them do.

        >>> Topic("a", "A", "# A\\n\\nA **relay** is no relay.").hits("Relay no")
        3
        """
        said = _MARKUP.sub("", _LINK.sub(r"\1", self.text)).casefold()
        found = [said.count(word) for word in words.casefold().split()]
        return sum(found) if all(found) else 0


def topics(language: str) -> list[Topic]:
    """Returns every page, in this language if there is a translation, else in English."""
    found = []
    for key in PAGES:
        path = next(
            (path for path in (FOLDER / language / f"{key}.md", FOLDER / f"{key}.md") if path.is_file()), None
        )
        if path is not None:
            text = readable(path.read_text(encoding="utf-8"))
            found.append(Topic(key=key, title=text.partition("\n")[0].lstrip("# "), text=text))
    return found


def readable(text: str) -> str:
    """Prepares Markdown for the window: pictures become their captions; links stay only if they lead to another
    page or into the browser, not to source files.

    >>> readable("![a curve](x.png) [a page](start.md) [code](../app/a.py) [web](https://a.org/b)")
    '*a curve* [a page](start.md) code [web](https://a.org/b)'
    """
    return _LINK.sub(
        lambda link: link[0] if page_of_link(link[2]) or is_web_link(link[2]) else link[1],
        _PICTURE.sub(r"*\1*", text),
    )


def page_of_link(target: str) -> str:
    """Returns the key of the page that a link leads to, "" if it leads to none. A translated page may link to
    one that exists only in English.

    >>> page_of_link("when.md"), page_of_link("../relay.md")
    ('when', 'relay')
    >>> page_of_link("../../app/swarm/PROTOCOL.md"), page_of_link("file:///when.md")
    ('', '')
    """
    name = target.removesuffix(".md").removeprefix("../")
    return name if target.endswith(".md") and name in PAGES else ""


def is_web_link(target: str) -> bool:
    """Whether a link may be opened in the browser."""
    return target.startswith("https://")


def matching(found: Sequence[Topic], words: str) -> list[tuple[Topic, int]]:
    """Returns the pages in which all words occur, with how often; every page if there are no words."""
    counted = [(topic, topic.hits(words)) for topic in found]
    return [(topic, hits) for topic, hits in counted if hits or not words.strip()]


ABOUT = "about"
"""The key of the page about Shoal."""
_LICENCE = "https://www.apache.org/licenses/LICENSE-2.0"


def about(home: str) -> Topic:
    """Builds the page about Shoal: version, licences, and where the data is. `home` is the data folder."""
    title = tr("About Shoal")
    lines = [
        f"# {title}",
        tr("Version {version}. Data folder: {home}", version=installed.version(), home=_code(home)),
        tr("Licence: [Apache 2.0]({address}). Free to use, change and share.", address=_LICENCE),
        f"## {tr('Keys')}",
        f"| {tr('Key')} | |\n|---|---|\n"
        + "\n".join(f"| {_code(key)} | {does} |" for key, does in shortcuts()),
        f"## {tr('Made with')}",
        tr("The typeface is Inter (OFL-1.1). Each model has a licence of its own, shown on the page Models."),
        f"| {tr('Package')} | {tr('Version')} | {tr('Licence')} |\n|---|---|---|\n"
        + "\n".join(
            f"| {_code(name)} | {version} | {_code(licence)} |" for name, version, licence in packages()
        ),
    ]
    return Topic(key=ABOUT, title=title, text="\n\n".join(lines))


def packages() -> list[tuple[str, str, str]]:
    """Returns (name, version, licence) of every Python package installed with Shoal, sorted by name."""
    found = {}
    for one in metadata.distributions():
        known = cast(Message, one.metadata)
        name = str(known.get("name") or "")
        if name:
            found[name.casefold()] = (name, one.version, licence(known))
    return [found[name] for name in sorted(found)]


def licence(known: Message) -> str:
    """Returns a package's licence in one line. If its licence field is long, as with the whole text, its
    classifiers are used."""
    named = str(known.get("license-expression") or known.get("license") or "").strip().partition("\n")[0]
    if 0 < len(named) < 60:
        return named
    classified = [one for one in known.get_all("classifier") or [] if one.casefold().startswith("license ::")]
    return ", ".join(one.rpartition(" :: ")[2] for one in classified) or "–"


def _code(text: str) -> str:
    """Returns any text as Markdown code."""
    return "`" + text.replace("`", "'").replace("|", "/") + "`"


def shortcuts() -> list[tuple[str, str]]:
    """Returns (key, what it does) for the window's keys, written as on this system."""
    known = [
        ("Ctrl+1 … Ctrl+9", tr("Go to a page")),
        ("Ctrl+P", tr("Pause or resume")),
        ("Ctrl+F", tr("Search on this page")),
        ("S", tr("Sort a table by the column you're in")),
        ("Ctrl+,", tr("Settings")),
        ("F1", tr("Help")),
        (QKeySequence(QKeySequence.StandardKey.Quit).toString() or "Ctrl+Q", tr("Quit")),
    ]
    return [(key.replace("Ctrl+", "⌘") if sys.platform == "darwin" else key, what) for key, what in known]
