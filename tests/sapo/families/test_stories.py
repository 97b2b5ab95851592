"""Word problems: their seeds draw different stories."""

from __future__ import annotations

import contextlib

from app.sapo.questions import Coordinates, UnsoundQuestion, generate


def test_seeds_alone_draw_different_stories() -> None:
    texts = []
    for seed in range(10**6, 10**6 + 40):
        with contextlib.suppress(UnsoundQuestion):
            texts.append(generate(Coordinates(family="gsm_symbolic", level=0, seed=seed, index=0)).text)
    for words in ("jars", "right now", "friends", "sliced", "fewer", "unknown number"):
        assert any(words in text for text in texts), words
