"""Every state of a new version as the window can show it."""

from __future__ import annotations

import time

import msgspec

from app.install.updates.asking import UpdateOffer
from app.ui.view.view import UpdateStage, UpdateView

OFFER = UpdateOffer(
    version="0.2.0",
    date="2026-12-01",
    notes={
        "en": ["Learns faster.", "Models with up to 3 billion parameters fit into 16 GB of memory."],
        "de": ["Lernt schneller.", "Modelle mit bis zu 3 Milliarden Parametern passen in 16 GB Speicher."],
    },
    page="https://example.org/shoal",
)
_REQUEST = """GET /shoal/shoal-release.json.sig HTTP/1.1
Host: example.org
User-Agent: shoal
Accept: */*
Accept-Encoding: identity"""


def scenes() -> dict[str, UpdateView]:
    base = UpdateView(
        version="0.1.0", stage=UpdateStage.IDLE, host="example.org", request=_REQUEST, wanted=True
    )

    def made(**fields: object) -> UpdateView:
        return msgspec.structs.replace(base, **fields)

    there = {"offer": OFFER, "answered": time.time() - 3 * 3600 - 60}
    return {
        "checkout": UpdateView(version="0.1.0"),
        "never": made(wanted=False),
        "newest": made(answered=there["answered"], wanted=False),
        "asking": made(stage=UpdateStage.ASKING),
        "there": made(**there),
        "cut": made(
            **there,
            sentence="example.org can't be reached: check the network connection, "
            "then try again. Nothing is lost.",
        ),
    }
