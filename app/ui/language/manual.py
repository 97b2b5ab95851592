"""The help pages (resources/help): which there are, in which language, and what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parents[3] / "resources" / "help"
PAGES = (
    *("start", "yours", "questions", "course", "swarm", "clubs", "models", "programs", "when"),
    *("commands", "relay", "experiment", "developing"),
)
"""In the order in which people read them."""
_PICTURE = re.compile(r"!\[([^]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
_MARKUP = re.compile(r"[*`#|]+|^[-: |]+$", re.MULTILINE)


class Topic(msgspec.Struct, frozen=True):
    """One page. `key` is what links name it by, `text` its Markdown with links of `inside` alone."""

    key: str
    title: str
    text: str

    def hits(self, words: str) -> int:
        """How often these words occur, 0 unless all of them do.

        >>> Topic("a", "A", "# A\\n\\nA **relay** is no relay.").hits("Relay no")
        3
        """
        said = _MARKUP.sub("", _LINK.sub(r"\1", self.text)).casefold()
        found = [said.count(word) for word in words.casefold().split()]
        return sum(found) if all(found) else 0


def topics(language: str, folder: Path = FOLDER) -> list[Topic]:
    """Every page, in this language if there is a translation, else in English."""
    found = []
    for key in PAGES:
        path = next(
            (path for path in (folder / language / f"{key}.md", folder / f"{key}.md") if path.is_file()), None
        )
        if path is not None:
            text = readable(path.read_text(encoding="utf-8"))
            found.append(Topic(key=key, title=text.partition("\n")[0].lstrip("# "), text=text))
    return found


def readable(text: str) -> str:
    """Markdown for the window: pictures become their captions; links stay only if they lead to another page or
    into the browser, not to files of the source.

    >>> readable("![a curve](x.png) [a page](start.md) [code](../app/a.py) [web](https://a.org/b)")
    '*a curve* [a page](start.md) code [web](https://a.org/b)'
    """
    return _LINK.sub(
        lambda link: link[0] if inside(link[2]) or outside(link[2]) else link[1], _PICTURE.sub(r"*\1*", text)
    )


def inside(target: str) -> str:
    """The key of the page that a link leads to, "" if it leads to no page. A translated page may link to one
    that exists only in English.

    >>> inside("when.md"), inside("../relay.md"), inside("../../app/swarm/PROTOCOL.md"), inside("file:///when.md")
    ('when', 'relay', '', '')
    """
    name = target.removesuffix(".md").removeprefix("../")
    return name if target.endswith(".md") and name in PAGES else ""


def outside(target: str) -> bool:
    """Whether a browser may open it."""
    return target.startswith("https://")


def matching(found: Sequence[Topic], words: str) -> list[tuple[Topic, int]]:
    """Pages in which all words occur, with how often; every page if there are no words."""
    counted = [(topic, topic.hits(words)) for topic in found]
    return [(topic, hits) for topic, hits in counted if hits or not words.strip()]
