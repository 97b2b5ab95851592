from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

from app.relay.page.page import HEADERS, NodeHere, RelayPage, describe_node, render
from app.swarm.identity.identity import node_name

NASTY = "<script>alert(1)</script>\"'&\u202e\ud800"


class Reader(HTMLParser):
    """Every tag with its attributes, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def full(**changes: object) -> RelayPage:
    values = dict(
        swarm="shoal",
        relay="relay.example",
        url="wss://relay.example/v1/ws",
        peers=1284,
        window=991,
        oldest_s=3541.0,
        stored=12_804_113,
        software="shoal/0.1",
        uptime_s=4000.0,
        contact="ann@example.org",
    )
    return RelayPage(**(values | changes))  # type: ignore[arg-type]


def test_the_page_shows_what_it_knows() -> None:
    text = Reader(render(full()).decode()).text
    for expected in (
        "1\u202f284nodes are learning together",
        "12\u202f804\u202f113",
        "59 min",
        "1 h 6 min",
        "./shoal run --relay wss://relay.example/v1/ws",
        "Operator: ann@example.org",
    ):
        assert expected in text, expected


def test_an_empty_relay_has_a_page_too() -> None:
    text = Reader(render(RelayPage(swarm="s", relay="r", url="ws://r")).decode()).text
    assert "be the first" in text and "Operator" not in text


def test_whatever_is_foreign_is_text() -> None:
    page = render(
        full(
            swarm=NASTY,
            relay=NASTY,
            url=NASTY,
            access=NASTY,
            software=NASTY,
            contact=NASTY,
        )
    ).decode()
    read = Reader(page)
    assert {tag for tag, _ in read.tags} == {tag for tag, _ in Reader(render(full()).decode()).tags}
    assert read.text.count("<script>alert(1)</script>") == 6


def test_nothing_is_loaded_and_nothing_runs() -> None:
    page = render(full()).decode()
    tags = Reader(page).tags
    assert not {tag for tag, _ in tags} & {
        "script",
        "img",
        "iframe",
        "object",
        "form",
        "base",
        "audio",
        "video",
    }
    for tag, attributes in tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src")], tag
        if "href" in attributes:
            assert re.match(r"(data:image/|/v1/info$)", attributes["href"] or ""), attributes
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style and "@import" not in style and "prefers-color-scheme: dark" in style
    policy = HEADERS["Content-Security-Policy"]
    assert f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    assert len(page.encode()) < 16_384


NODES = tuple(NodeHere(name=node_name(bytes([n]) * 32), here_s=60.0 * n) for n in range(1, 24))


def test_who_is_here_is_listed() -> None:
    page = render(full(nodes=NODES, peers=30)).decode()
    read = Reader(page)
    for one in NODES:
        assert page.count(describe_node(one)) == 1
    assert sum(tag == "li" for tag, _ in read.tags) == len(NODES) + 1 and "and 7 more" in read.text
    assert not [with_ for _, with_ in read.tags if "style" in with_]  # the policy would not let it through
