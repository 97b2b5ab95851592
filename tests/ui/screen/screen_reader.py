"""What a screen reader hears of a window over AT-SPI, from outside: names, roles, boxes and the focus."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

pytest.importorskip("jeepney")
from jeepney import DBusAddress, HeaderFields, MatchRule, MessageType, message_bus, new_method_call
from jeepney.io.blocking import open_dbus_connection

CONTROLS = {
    *("push button", "toggle button", "check box", "radio button", "button menu", "combo box", "slider"),
    *("spin button", "text", "password text", "table", "tree", "tree table", "list"),
}
"""Roles of what somebody can do something with, by AT-SPI's names."""
_ACCESSIBLE, _COMPONENT = "org.a11y.atspi.Accessible", "org.a11y.atspi.Component"
_REGISTRY = "org.a11y.atspi.Registry"
_FOCUSED = "object:state-changed:focused"
_ENABLED, _SHOWING = 1 << 8, 1 << 25
"""Of AtspiStateType."""
_PATIENCE_S = 300

Ref = tuple[str, str]
"""A program's name on the bus and the path of one of its parts."""


class Heard(NamedTuple):
    ref: Ref
    role: str
    name: str
    box: tuple[int, int, int, int]
    """Left, top, width, height on the screen, as the window counts."""
    enabled: bool
    above: tuple[Ref, ...]
    """Its parent, and that one's."""


class ScreenReader:
    def __init__(self, session: str) -> None:
        """`session` is the address of a session bus that has an accessibility bus behind it."""
        with contextlib.closing(open_dbus_connection(session)) as bus:
            asked = new_method_call(DBusAddress("/org/a11y/bus", "org.a11y.Bus", "org.a11y.Bus"), "GetAddress")
            (address,) = bus.send_and_get_reply(asked, timeout=_PATIENCE_S).body
        self._bus = open_dbus_connection(address)
        self._focus = open_dbus_connection(address)
        rule = MatchRule(type="signal", interface="org.a11y.atspi.Event.Object", member="StateChanged")
        self._focus.send_and_get_reply(message_bus.AddMatch(rule), timeout=_PATIENCE_S)
        to = DBusAddress("/org/a11y/atspi/registry", _REGISTRY, _REGISTRY)
        reply = self._focus.send_and_get_reply(
            new_method_call(to, "RegisterEvent", "sass", (_FOCUSED, [], "")), timeout=_PATIENCE_S
        )
        assert reply.header.message_type is MessageType.method_return, reply.body

    def controls(self, pid: int) -> list[Heard]:
        """Every control in sight of that process's windows; not the parts that a control itself is made of."""
        (programs,) = self._call((_REGISTRY, "/org/a11y/atspi/accessible/root"), _ACCESSIBLE, "GetChildren")
        return [one for program in programs if self._pid(program[0]) == pid for one in self._below(program, ())]

    def said(self, pid: int) -> list[str]:
        """The name of everything in sight of that process's windows, from top to bottom."""
        (programs,) = self._call((_REGISTRY, "/org/a11y/atspi/accessible/root"), _ACCESSIBLE, "GetChildren")
        return [name for program in programs if self._pid(program[0]) == pid for name in self._names(program)]

    def focused(self, patience_s: float = 5) -> Heard | None:
        """The control that the focus comes to next, waited for; none where it stays."""
        until = time.monotonic() + patience_s
        while (left := until - time.monotonic()) > 0:
            try:
                message = self._focus.receive(timeout=left)
            except TimeoutError:
                return None
            fields = message.header.fields
            if fields.get(HeaderFields.member) == "StateChanged" and message.body[:2] == ("focused", 1):
                return self._control((fields[HeaderFields.sender], fields[HeaderFields.path]))
        return None

    def forget(self) -> None:
        """What was heard of the focus until now."""
        with contextlib.suppress(TimeoutError):
            while True:
                self._focus.receive(timeout=0.2)

    def _control(self, ref: Ref) -> Heard:
        """That control, or the one it is a part of: a cell's table."""
        found = at = self._heard(ref)
        while at.role not in CONTROLS and at.role not in ("frame", "dialog", "application"):
            at = self._heard(at.above[0])
        return at if at.role in CONTROLS else found

    def _below(self, ref: Ref, above: tuple[Ref, ...]) -> Iterator[Heard]:
        (low, _) = self._call(ref, _ACCESSIBLE, "GetState")[0]
        if above and not low & _SHOWING:
            return
        if (one := self._heard(ref)).role in CONTROLS:
            yield one
            return
        for child in self._call(ref, _ACCESSIBLE, "GetChildren")[0]:
            yield from self._below(child, (ref, *above)[:2])

    def _names(self, ref: Ref, top: bool = True) -> Iterator[str]:
        (low, _) = self._call(ref, _ACCESSIBLE, "GetState")[0]
        if not top and not low & _SHOWING:
            return
        if name := self._property(ref, "Name"):
            yield name
        for child in self._call(ref, _ACCESSIBLE, "GetChildren")[0]:
            yield from self._names(child, top=False)

    def _heard(self, ref: Ref) -> Heard:
        (low, _) = self._call(ref, _ACCESSIBLE, "GetState")[0]
        parent = self._property(ref, "Parent")
        return Heard(
            ref,
            self._call(ref, _ACCESSIBLE, "GetRoleName")[0],
            self._property(ref, "Name"),
            self._call(ref, _COMPONENT, "GetExtents", "u", (0,))[0],
            bool(low & _ENABLED),
            (parent, self._property(parent, "Parent")),
        )

    def _property(self, ref: Ref, name: str) -> Any:
        return self._call(ref, "org.freedesktop.DBus.Properties", "Get", "ss", (_ACCESSIBLE, name))[0][1]

    def _pid(self, name: str) -> int:
        asked = message_bus.GetConnectionUnixProcessID(name)
        return int(self._bus.send_and_get_reply(asked, timeout=_PATIENCE_S).body[0])

    def _call(self, ref: Ref, interface: str, method: str, signature: str | None = None, body: Any = ()) -> Any:
        asked = new_method_call(DBusAddress(ref[1], ref[0], interface), method, signature, body)
        reply = self._bus.send_and_get_reply(asked, timeout=_PATIENCE_S)
        assert reply.header.message_type is MessageType.method_return, (ref, method, reply.body)
        return reply.body
