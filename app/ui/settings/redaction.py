"""Removes private data from a text: invites, tokens, keys, secret words, addresses of computers, and the
person's user name."""

from __future__ import annotations

import getpass
import re
import socket
from functools import cache
from pathlib import Path

HIDDEN = "(hidden)"

_RULES = tuple(
    (re.compile(pattern, re.IGNORECASE), by)
    for pattern, by in (
        (r"shoal://[^\s\"']+", f"shoal://{HIDDEN}"),
        (r"\b([a-z][a-z0-9+.-]*://)[^\s/@\"']+@", rf"\1{HIDDEN}@"),
        (r"(://[^\s\"'?]*)\?[^\s\"']+", rf"\1?{HIDDEN}"),
        (r"\b(Bearer|Basic)\s+[^\s\"']+", rf"\1 {HIDDEN}"),
        (
            r"([\w-]*(?:token|secret|password|passphrase|api[_-]?key|authorization|SHOAL_PRIVATE)[\w-]*"
            r"[\"']?\s*[:=]\s*[\"']?)[^\s\"',}]+",
            rf"\1{HIDDEN}",
        ),
        (r"\bhf_[A-Za-z0-9]{8,}", HIDDEN),
        (r"\b(?:a1\.)?[0-9a-f]{32,}\b", HIDDEN),
        (r"\b[A-Za-z0-9+_-]{43,}={0,2}", HIDDEN),
        (r"\b(?!127\.|0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}\b", "(address)"),
        (r"(?<![\w:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}(?![\w:])", "(address)"),
    )
)
_WORD_RUN = re.compile(r"\b[a-z]{3,8}(?:[ ,_-]+[a-z]{3,8}){5,}\b", re.IGNORECASE)
_FEWEST_WORDS = 6


def cleaned(text: str, home: Path | None = None, user: str | None = None, computer: str | None = None) -> str:
    """The text without private data. The person's home folder is written as ~, also where their name is in
    another path."""
    home = home or Path.home()
    user = _user() if user is None else user
    computer = socket.gethostname() if computer is None else computer
    for way in (str(home), str(home).replace("\\", "\\\\"), home.as_posix()):
        if len(way) > 1:
            text = text.replace(way, "~")
    for pattern, by in _RULES:
        text = pattern.sub(by, text)
    text = _WORD_RUN.sub(lambda found: _without_words(found[0]), text)
    if len(user) > 1:
        text = re.sub(rf"(?<=[/\\]){re.escape(user)}(?=[/\\\"'\s:]|$)", "~", text)
    if len(computer) > 2 and computer != "localhost":
        text = re.sub(rf"\b{re.escape(computer)}\b", "(this computer)", text)
    return text


def _without_words(run: str) -> str:
    """Hides every run of six or more words from the list that recovery words and private swarms use."""
    parts = re.split(r"([ ,_-]+)", run)
    known = _words()
    at, made = 0, ""
    while at < len(parts):
        end = at
        while end < len(parts) and parts[end].casefold() in known:
            end += 2
        if (end - at) // 2 >= _FEWEST_WORDS:
            made += HIDDEN + (parts[end - 1] if end - 1 < len(parts) else "")
            at = end
        else:
            made += "".join(parts[at : at + 2])
            at += 2
    return made


@cache
def _words() -> frozenset[str]:
    from mnemonic import Mnemonic

    return frozenset(Mnemonic("english").wordlist)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
