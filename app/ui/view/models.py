"""What the window knows of models: the library as it was read last, and the one that is being fetched."""

from __future__ import annotations

import msgspec

from app.node.data.library import Library


class Fetch(msgspec.Struct, frozen=True, kw_only=True):
    """A download in this window's charge. `note` is why it waits, `retry_at` when it tries again by itself, in
    seconds since 1970; `left_s` and `per_second` are None until
    they are known; before `total` is known it is 0."""

    name: str
    have: int = 0
    total: int = 0
    per_second: float | None = None
    left_s: float | None = None
    note: str = ""
    retry_at: float | None = None


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """`chosen` learns at the next start. `queue` waits for `fetch` to end. `failed` is the sentence of each
    model that could not be fetched or removed, `problem` one that concerns all of them."""

    chosen: str
    library: Library | None = None
    fetch: Fetch | None = None
    queue: tuple[str, ...] = ()
    failed: dict[str, str] = {}
    problem: str = ""
    said: str = ""
    """What was done last, for example that the token is kept."""
