"""The window's knowledge of new versions of Shoal: the one that runs, the one that is there, and what is being
done about it."""

from __future__ import annotations

from enum import Enum

import msgspec

from app.install.updates.known import UpdateOffer


class UpdateStage(Enum):
    CHECKOUT = "checkout"
    """git brings what is new."""
    IDLE = "idle"
    ASKING = "asking"
    FETCHING = "fetching"
    INSTALLING = "installing"


class Renewal(msgspec.Struct, frozen=True, kw_only=True):
    """`offer` is None where nothing newer is known; `fetched`: its file is here and was checked. `sentence`
    is why something did not go, `said` what was done; `command` is what the owner types where nothing could
    be started. `answered` is when the list was last read, 0 for never, in seconds since 1970."""

    version: str = ""
    stage: UpdateStage = UpdateStage.CHECKOUT
    form: str = "checkout"
    """See app.install.updates.installed."""
    host: str = ""
    """Who is asked."""
    request: str = ""
    """With which words."""
    offer: UpdateOffer | None = None
    fetched: bool = False
    have: int = 0
    per_second: float | None = None
    note: str = ""
    sentence: str = ""
    said: str = ""
    command: str = ""
    answered: float = 0.0
    wanted: bool = False
    """Whether it may look once a day."""
    undecided: bool = False
    """Whether that was never asked."""
    hidden: str = ""
    """The version that the owner does not want to be told of again."""
