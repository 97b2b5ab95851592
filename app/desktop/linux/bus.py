"""Questions to services on the D-Bus of a Linux system. One connection, opened when first needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from app.common import remedy
from app.desktop.facts.facts import SourceError

if TYPE_CHECKING:
    from jeepney.io.blocking import DBusConnection

ANSWER_S = 1.0
"""A service on the same computer answers within milliseconds; one that does not is hung."""


class Service(msgspec.Struct, frozen=True):
    """Where a question goes: bus name, object path, interface."""

    name: str
    path: str
    interface: str


class Bus:
    """Not for several threads. Never starts a service that is not running: looking must not change anything."""

    def __init__(self, kind: Literal["SESSION", "SYSTEM"]) -> None:
        self.kind = kind
        self._connection: DBusConnection | None = None

    def ask(self, service: Service, method: str, signature: str | None = None, *arguments: object) -> object:
        """The first value of the answer. Raises SourceError."""
        from jeepney import DBusAddress, MessageFlag, MessageType, new_method_call

        address = DBusAddress(service.path, bus_name=service.name, interface=service.interface)
        question = new_method_call(address, method, signature, arguments)
        question.header.flags |= MessageFlag.no_auto_start
        try:
            answer = self._connected().send_and_get_reply(question, timeout=ANSWER_S)
        except (OSError, EOFError) as error:  # TimeoutError and ConnectionError are OSErrors
            self.close()
            raise SourceError(f"{service.name} didn't answer ({error or type(error).__name__}).") from error
        if answer.header.message_type is MessageType.error:
            why = answer.body[0] if answer.body else "an error without words"
            raise SourceError(f"{service.name} refused to answer ({why}).")
        return answer.body[0] if answer.body else None

    def property(self, service: Service, name: str) -> object:
        """The value of a property. Raises SourceError."""
        asked = Service(service.name, service.path, "org.freedesktop.DBus.Properties")
        value = self.ask(asked, "Get", "ss", service.interface, name)
        if not isinstance(value, tuple) or len(value) != 2:
            raise SourceError(f"{service.name} answered something else than a property.")
        return value[1]

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> DBusConnection:
        if self._connection is None:
            try:
                from jeepney.io.blocking import open_dbus_connection
            except ImportError as error:
                raise SourceError(
                    f"The library for D-Bus (jeepney) is missing; {remedy.reinstall()}."
                ) from error
            try:
                self._connection = open_dbus_connection(self._address(), auth_timeout=ANSWER_S)
            except (OSError, RuntimeError, ValueError) as error:
                raise SourceError(f"There is no {self.kind.lower()} bus to ask ({error}).") from error
        return self._connection

    def _address(self) -> str:
        if self.kind == "SYSTEM" or os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
            return self.kind
        usual = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "bus"
        if not usual.exists():
            raise SourceError("There is no session bus to ask.")
        return f"unix:path={usual}"


def number(answer: object, service: Service) -> int:
    """Raises SourceError for anything that is no whole number."""
    if not isinstance(answer, int) or isinstance(answer, bool):
        raise SourceError(f"{service.name} answered something else than a number.")
    return answer


def truth(answer: object, service: Service) -> bool:
    """Raises SourceError for anything but true and false."""
    if not isinstance(answer, bool):
        raise SourceError(f"{service.name} answered something else than yes or no.")
    return answer
