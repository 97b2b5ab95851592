"""A D-Bus of our own with services that answer as a test says: real daemon, real messages, made-up answers."""

from __future__ import annotations

import subprocess
import threading
from typing import Any

from jeepney import HeaderFields, MessageFlag, MessageType, message_bus, new_error, new_method_return
from jeepney.io.blocking import open_dbus_connection
from jeepney.low_level import Message

Answer = tuple[str, tuple[Any, ...]]
"""Signature and values."""


class StandInBus:
    """`answers` maps (interface, method, arguments) to an answer; what is missing there is answered by an
    error, and None by silence."""

    def __init__(self, daemon: str) -> None:
        self._process = subprocess.Popen(
            [daemon, "--session", "--nofork", "--nopidfile", "--print-address=1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout
        self.address = self._process.stdout.readline().strip()
        self.answers: dict[tuple[str, str, tuple[Any, ...]], Answer | None] = {}
        self.flags: list[MessageFlag] = []
        self._connection = open_dbus_connection(self.address)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def own(self, *names: str) -> None:
        for name in names:
            self._connection.send_and_get_reply(message_bus.RequestName(name))
        if not self._thread.is_alive():
            self._thread.start()

    def property(self, interface: str, name: str, signature: str, value: Any) -> None:
        asked = ("org.freedesktop.DBus.Properties", "Get", (interface, name))
        self.answers[asked] = ("v", ((signature, value),))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._thread.is_alive():
            self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                message = self._connection.receive()
            except (OSError, EOFError):
                return
            if message.header.message_type is MessageType.method_call:
                reply = self._reply(message)
                if reply is not None:
                    self._connection.send(reply)

    def _reply(self, message: Message) -> Message | None:
        fields = message.header.fields
        asked = (fields[HeaderFields.interface], fields[HeaderFields.member], tuple(message.body))
        self.flags.append(message.header.flags)
        if asked not in self.answers:
            return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod", "s", (f"No {asked[1]} here",))
        answer = self.answers[asked]
        return None if answer is None else new_method_return(message, *answer)
