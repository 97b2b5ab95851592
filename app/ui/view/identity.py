"""The window's knowledge of the owner's name among other Shoals. The secret behind it is never part of it."""

from __future__ import annotations

import msgspec


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is empty where there is none yet; `kept` and `file` are those of
    app.swarm.identity.storage.KeyLocation. `asked`: it was looked for. `busy`: another one is being taken.
    `failed` says why something did not go."""

    name: str = ""
    kept: str = ""
    file: str = ""
    asked: bool = False
    busy: bool = False
    failed: str = ""
