"""A StatusNotifier tray, as KDE and Xfce have it: a small host of our own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

jeepney = pytest.importorskip("jeepney")

from jeepney import (  # noqa: E402
    DBusAddress,
    HeaderFields,
    MessageType,
    message_bus,
    new_error,
    new_method_call,
    new_method_return,
)
from jeepney.io.blocking import open_dbus_connection  # noqa: E402
from jeepney.wrappers import Properties  # noqa: E402

WATCHER = "org.kde.StatusNotifierWatcher"
ITEM, MENU = "org.kde.StatusNotifierItem", "com.canonical.dbusmenu"
_PROPERTIES = "org.freedesktop.DBus.Properties"


class Watcher:
    """Owns the watcher's name and says that there is a host. `items` are the (service, path) of icons."""

    def __init__(self, address: str) -> None:
        self.items: list[tuple[str, str]] = []
        self._connection = open_dbus_connection(address)
        self._connection.send_and_get_reply(message_bus.RequestName(WATCHER))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        values = {
            "IsStatusNotifierHostRegistered": ("b", True),
            "ProtocolVersion": ("i", 0),
            "RegisteredStatusNotifierItems": ("as", []),
        }
        while True:
            try:
                message = self._connection.receive()
            except (OSError, EOFError):
                return
            if message.header.message_type is not MessageType.method_call:
                continue
            fields = message.header.fields
            member = fields[HeaderFields.member]
            if member == "RegisterStatusNotifierItem":
                said = message.body[0]
                sender = fields[HeaderFields.sender]
                self.items.append((sender, said) if said.startswith("/") else (said, "/StatusNotifierItem"))
                self._connection.send(new_method_return(message))
            elif member == "Get" and message.body[1] in values:
                self._connection.send(new_method_return(message, "v", (values[message.body[1]],)))
            elif member == "GetAll":
                self._connection.send(new_method_return(message, "a{sv}", (values,)))
            else:
                error = "org.freedesktop.DBus.Error.UnknownMethod"
                self._connection.send(new_error(message, error, "s", (f"No {member} here",)))


class Host:
    """What a panel does with an icon: reads it, draws its menu, tells of clicks."""

    def __init__(self, address: str, item: tuple[str, str]) -> None:
        self._connection = open_dbus_connection(address)
        self._service, self._path = item

    def ask(
        self, path: str, interface: str, method: str, signature: str = "", body: tuple[Any, ...] = ()
    ) -> Any:
        to = DBusAddress(path, bus_name=self._service, interface=interface)
        reply = self._connection.send_and_get_reply(
            new_method_call(to, method, signature or None, body), timeout=600
        )
        assert reply.header.message_type is MessageType.method_return, reply.body
        return reply.body

    def property(self, name: str) -> Any:
        to = DBusAddress(self._path, bus_name=self._service, interface=ITEM)
        return self._connection.send_and_get_reply(Properties(to).get(name), timeout=600).body[0][1]

    def entries(self) -> dict[str, tuple[int, dict[str, Any]]]:
        """Every entry of the menu by its label: its number and its properties."""
        path = self.property("Menu")
        self.ask(path, MENU, "AboutToShow", "i", (0,))
        _, layout = self.ask(path, MENU, "GetLayout", "iias", (0, -1, []))
        found: dict[str, tuple[int, dict[str, Any]]] = {}

        def walk(entry: Any) -> None:
            number, properties, children = entry
            plain = {name: value for name, (_, value) in properties.items()}
            if "label" in plain:
                found[plain["label"].replace("_", "")] = (number, plain)
            for _, child in children:
                walk(child)

        walk(layout)
        return found

    def click(self, label: str) -> None:
        number = self.entries()[label][0]
        self.ask(self.property("Menu"), MENU, "Event", "isvu", (number, "clicked", ("s", ""), 0))

    def activate(self) -> None:
        """A click on the icon itself."""
        self.ask(self._path, ITEM, "Activate", "ii", (0, 0))
