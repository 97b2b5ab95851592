"""The diagnostics tell how far another sampler is from the learner."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from app.ui.diagnostics import ROUNDS, sampler


def test_the_last_rounds_of_another_sampler(tmp_path: Path) -> None:
    assert sampler(tmp_path) == ""
    folder = tmp_path / "models" / "tiny-12345678"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "history.sqlite") as db:
        db.execute("CREATE TABLE rounds (round INTEGER, details TEXT)")
        db.execute("INSERT INTO rounds VALUES (1, ?)", ['{"mismatch": null, "capped": null}'])
        db.execute("INSERT INTO rounds VALUES (2, ?)", ["{}"])
    assert sampler(tmp_path) == ""
    with sqlite3.connect(folder / "history.sqlite") as db:
        for number in range(3, 60):
            db.execute("INSERT INTO rounds VALUES (?, ?)", [number, '{"mismatch": 0.0123, "capped": 0.004}'])
    lines = sampler(tmp_path).splitlines()
    assert len(lines) == ROUNDS
    assert lines[0] == "round 59: mismatch 1.23e-02 nats, 0.40 % of the tokens at the cap"
    (folder / "history.sqlite").write_bytes(b"damaged")
    assert sampler(tmp_path) == ""
