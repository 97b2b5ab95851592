"""Diagnostics that help to find a fault, as one text: versions and state, doctor's output, the settings, the
last events, the ends of the logs.

They contain nothing that people or models wrote, and `cleaned` removes private data: invites, tokens, keys,
secret words, addresses of computers, and the person's user name. They are shown before they are saved, and
never sent."""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
import sys
import time
from functools import cache
from pathlib import Path

import msgspec
import PySide6

from app.install.updates import installed
from app.node.data import contents
from app.node.rules import preferences
from app.ui.process.logs import LOGS, PACK, tail
from app.ui.view import settings
from app.ui.view.view import View

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
    """Returns the text without private data. The person's home folder becomes ~, and their name is removed from
    other paths."""
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
    """Replaces every run of six or more words from the list that recovery words and private swarms use."""
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


LOG_BYTES = 64_000
EVENTS = 200
ROUNDS = 20


def report(view: View, doctor: str = "") -> str:
    """Returns the diagnostics, a heading and a section each. `doctor` is the output of `./shoal doctor --json`,
    or a sentence saying why it is missing."""
    home = Path(view.home)
    sections = {
        "about": _about(view),
        "doctor": _indented(doctor),
        "settings": _settings(home),
        "events": _events(view),
        "data": _data(home),
        "sampler": sampler(view),
        **{name: tail(home / "logs" / name, LOG_BYTES) for name in (*LOGS, PACK)},
    }
    return "\n".join(f"==== {name}\n{cleaned(text)}" for name, text in sections.items() if text.strip())


def _about(view: View) -> str:
    facts = {
        "made": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "shoal": installed.version(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "qt": PySide6.__version__,
        "processors": str(os.cpu_count()),
        "session": os.environ.get("XDG_SESSION_TYPE", "") or sys.platform,
        "state": view.state.value,
        "reason": view.reason or (view.ruling.sentence if view.ruling else ""),
        "problem": f"{view.problem.sentence} {view.problem.remedy}" if view.problem else "",
        "model": view.model,
        "recipe": view.recipe,
        "company": "alone" if view.solo else "others",
        "engine pack": _pack(view),
        "engine": msgspec.json.encode(view.engine).decode() if view.engine else "",
        "rounds": str(view.safe_round),
        "held-out": str(view.curve[-1]) if view.curve else "",
        "swarm": _swarm(view),
    }
    return "".join(f"{name}: {value}\n" for name, value in facts.items() if value)


def _pack(view: View) -> str:
    """Describes the engine pack of an installed app."""
    if view.pack is None:
        return ""
    used = view.pack.current
    name = f"{used.pack} (Python {used.python or '?'})" if used is not None else "none"
    return "; ".join(filter(None, [name, view.pack.broken, view.pack.failed]))


def _swarm(view: View) -> str:
    """Describes the swarm in figures alone: with whom somebody learns is private."""
    swarm = view.swarm
    if swarm is None:
        return ""
    figures = {name: getattr(swarm, name) for name in ("connected", "online", "given", "waiting", "taken")}
    figures["refused"] = sum(swarm.refused.values())
    return ", ".join(f"{name} {value}" for name, value in figures.items())


def _settings(home: Path) -> str:
    """Lists the rules' and the window's settings; of lists that somebody wrote, only the length."""
    chosen = settings.Choices(home)
    window = {setting.key: chosen[setting.key] for setting in settings.SETTINGS if not setting.elsewhere}
    window |= {"serve_allows": f"{len(window['serve_allows'])} names"}
    learner = preferences.Preferences(home).values
    return _indented(msgspec.json.encode({"learner": learner, "window": window}).decode())


def _events(view: View) -> str:
    return "".join(
        f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(one.at))} round {one.round} {one.kind}: "
        f"{one.sentence}\n"
        for one in view.happenings[-EVENTS:]
    )


def _data(home: Path) -> str:
    return "".join(f"{size.kind}: {size.bytes} bytes in {size.files} files\n" for size in contents.sizes(home))


def sampler(view: View) -> str:
    """Returns a line for each of the last rounds in which sampler and learner were two programs: how far their
    log probabilities differed, and the share of tokens at the cap."""
    sampled = [one for one in view.rounds if one.mismatch is not None][-ROUNDS:]
    return "".join(
        f"round {one.round}: mismatch {one.mismatch:.2e} nats, "
        f"{100 * (one.capped or 0.0):.2f} % of the tokens at the cap\n"
        for one in reversed(sampled)
    )


def _indented(text: str) -> str:
    try:
        return msgspec.json.format(text.encode(), indent=2).decode() + "\n"
    except msgspec.MsgspecError:
        return text
