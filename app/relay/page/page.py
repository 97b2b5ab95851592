"""The relay's public status page at `/`: one HTML response with inline style, without scripts or external
resources.

It shows counts and the connected nodes by generated names, never keys, addresses or text from clients. Every
value is escaped where it is inserted; the content security policy forbids everything but the inline style."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

import msgspec

from app.common.text import exact_duration

REFRESH_S = 10  # seconds; figures change as slowly
MAX_NODES = 24  # nodes that fit a screen

_STYLE = "".join(line.strip() for line in Path(__file__).with_name("page.css").read_text("utf-8").splitlines())
_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()

HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_HASH}'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_JOIN = {
    "open": "Everybody may join; nothing needs an account.",
    "pow": "Everybody may join; a new node first computes for a moment to prove that it is no crowd.",
    "invite": "This relay asks for an invitation: get a link from its operator and put it here instead.",
    "private": "This swarm is private: whoever knows its six words may join.",
    "allowlist": "Only nodes that the operator has entered may join: send them your node's public key.",
}
_FISH = "M0 5c4-6 11-6 16-1l5-4c-1 3-1 7 0 10l-5-4C11 11 4 11 0 5z"
_LOGO = "".join(f'<path transform="translate({x} {y})" d="{_FISH}"/>' for x, y in ((21, 0), (0, 12), (27, 17)))
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 -6 22 22'%3E"
    f"%3Cpath fill='%230c7c7a' d='{_FISH}'/%3E%3C/svg%3E"
)


class NodeHere(msgspec.Struct, frozen=True, kw_only=True):
    """A connected key: its generated name (empty if this relay shows none), and the seconds since it
    connected."""

    name: str
    here_s: float = 0.0


class RelayPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the page. `oldest_s`: None for an empty window. Times in seconds."""

    swarm: str
    relay: str
    url: str
    access: str = "open"
    ready: bool = True
    peers: int = 0
    relays: int = 1
    window: int = 0
    oldest_s: float | None = None
    stored: int = 0
    software: str = ""
    uptime_s: float = 0.0
    contact: str = ""
    nodes: tuple[NodeHere, ...] = ()


def render(view: RelayPage) -> bytes:
    nodes = {0: "nodes just now" if view.stored else "nodes: be the first", 1: "node is learning"}.get(
        view.peers, "nodes are learning together"
    )
    here = "on this relay" if view.relays == 1 else f"on {_number(view.relays)} relays"
    facts = (
        ("To learn from now", _number(view.window)),
        ("The oldest of them", "none" if view.oldest_s is None else exact_duration(view.oldest_s)),
        ("Ever stored", _number(view.stored)),
        ("Up for", exact_duration(view.uptime_s)),
    )
    state = "<em>open</em>" if view.ready else '<em class="not">starting</em>'
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f'<meta http-equiv="refresh" content="{REFRESH_S}">',
            '<meta name="color-scheme" content="light dark">',
            f'<link rel="icon" href="{_ICON}">',
            f"<title>{escape(view.swarm)} · Shoal relay</title><style>{_STYLE}</style></head><body>",
            f'<header><svg viewBox="0 0 48 28" aria-hidden="true">{_LOGO}</svg>',
            f"<b>Shoal</b><span>{escape(view.swarm)}</span>{state}</header><main>",
            f'<div class="now"><div><h1><strong>{_number(view.peers)}</strong>{nodes}</h1>',
            f"<p>Each trains a small model on its own computer, and learns from what the others {here} "
            "have found out. Only answers to puzzles are shared.</p></div><dl>",
            *(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts),
            "</dl></div>",
            _here(view.nodes, max(0, view.peers - len(view.nodes))),
            '<section class="join"><h2>Join</h2><p>Start a node of your own with</p>',
            f"<code>./shoal run --relay {escape(view.url)}</code>",
            f"<p>{escape(_JOIN.get(view.access, ''))} The app takes the address on its page Swarm.</p>",
            "</section>",
            "</main><footer>",
            f"<span>Relay {escape(view.relay)}</span><span>{escape(view.software)}</span>",
            f"<span>Operator: {escape(view.contact)}</span>" if view.contact else "",
            '<span><a href="/v1/info">Info document</a></span>',
            f"<span>Figures are renewed every {REFRESH_S} seconds</span></footer></body></html>",
        )
    ).encode("utf-8", "replace")


def _here(nodes: Sequence[NodeHere], others: int) -> str:
    """The list of connected nodes; `others` is the number of connected nodes that are not listed."""
    if not nodes:
        return ""
    rows = "".join(f"<li>{escape(describe_node(one))}</li>" for one in nodes)
    more = f"<li>and {others} more</li>" if others else ""
    return f'<section class="here"><h2>Who is here</h2><ul>{rows}{more}</ul></section>'


def describe_node(one: NodeHere) -> str:
    """One line of text about a connected node.

    >>> describe_node(NodeHere(name="cosy-firefly-7467", here_s=60.0))
    'cosy-firefly-7467, here for 1 min'
    """
    return f"{one.name or 'A node'}, here for {exact_duration(one.here_s)}"


def _number(value: int) -> str:
    """Formats a number with narrow spaces between thousands.

    >>> _number(1234567)
    '1\\u202f234\\u202f567'
    """
    return f"{value:,}".replace(",", "\u202f")
