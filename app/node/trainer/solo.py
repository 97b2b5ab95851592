"""Solo mode: blocks all network sockets. An audit hook, which cannot be removed, makes any attempt an error."""

from __future__ import annotations

import os
import sys
from typing import Any

OFFLINE_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Environment variables of the trainer in solo mode, with which the hub's client does not try to connect."""

_UNIX = 1  # socket.AF_UNIX: between processes of this computer, as the event loop's own wake-up pair

_REACHING = frozenset(
    {
        "socket.__new__",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.getnameinfo",
        "socket.sendmsg",
        "socket.sendto",
    }
)


class SoloError(RuntimeError):
    """Something tried to use the network in solo mode; this is a bug in Shoal or in a library."""


def refuse_network() -> None:
    """Prevents this process from opening any network socket from now on. Call it inside the running event loop:
    on Windows the loop's wake-up pair consists of two loopback sockets."""
    os.environ.update(OFFLINE_ENVIRONMENT)
    sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event not in _REACHING:
        return
    family = args[1] if event == "socket.__new__" else getattr(args[0], "family", None)
    if family == _UNIX and os.name != "nt":
        return
    raise SoloError(f"Solo mode opens no network socket, but something tried to ({event}).")
