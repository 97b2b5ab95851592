"""What Shoal is made of: version, licences, and where the data is stored, as a page of the help."""

from __future__ import annotations

import sys
from email.message import Message
from importlib import metadata
from typing import cast

from PySide6.QtGui import QKeySequence

from app.install.updates import installed
from app.ui.language.manual import Topic
from app.ui.language.texts import tr

# The keys that do something in the window.


def shortcuts() -> list[tuple[str, str]]:
    """(key, what it does), with keys written as on this system."""
    known = [
        ("Ctrl+1 … Ctrl+9", tr("Go to a page")),
        ("Ctrl+P", tr("Pause or resume")),
        ("Ctrl+F", tr("Search on this page")),
        ("Ctrl+,", tr("Settings")),
        ("F1", tr("Help")),
        (QKeySequence(QKeySequence.StandardKey.Quit).toString() or "Ctrl+Q", tr("Quit")),
    ]
    return [(key.replace("Ctrl+", "⌘") if sys.platform == "darwin" else key, what) for key, what in known]


KEY = "about"
_LICENCE = "https://www.apache.org/licenses/LICENSE-2.0"


def about(home: str) -> Topic:
    """`home` is the data folder."""
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
    return Topic(key=KEY, title=title, text="\n\n".join(lines))


def packages() -> list[tuple[str, str, str]]:
    """(name, version, licence) of every Python package that is installed beside Shoal, by name."""
    found = {}
    for one in metadata.distributions():
        known = cast(Message, one.metadata)
        name = str(known.get("name") or "")
        if name:
            found[name.casefold()] = (name, one.version, licence(known))
    return [found[name] for name in sorted(found)]


def licence(known: Message) -> str:
    """A package's licence in one line, as the package states it; some put the whole text in that field."""
    named = str(known.get("license-expression") or known.get("license") or "").strip().partition("\n")[0]
    if 0 < len(named) < 60:
        return named
    classified = [one for one in known.get_all("classifier") or [] if one.casefold().startswith("license ::")]
    return ", ".join(one.rpartition(" :: ")[2] for one in classified) or "–"


def _code(text: str) -> str:
    """The text as Markdown code, whatever is in it."""
    return "`" + text.replace("`", "'").replace("|", "/") + "`"
