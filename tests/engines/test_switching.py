"""An owner who changes the engine goes on from the same checkpoint: what one engine saved the others load, and
none takes what was made for another model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engines import opening
from engines.contract import AdapterError, Engine, Row, TokenSequence
from engines.facts import ENGINES
from tests.engines.small_models import MakeModel

PAIRS = [(saver, loader) for saver in ENGINES for loader in ENGINES if saver != loader]
ROWS = [
    Row(prompt_T=[5, 6, 3], completion_T=[10, 11, 1], weights_T=[1.0] * 3),
    Row(prompt_T=[8, 9, 3], completion_T=[12, 13, 1], weights_T=[-0.5] * 3),
]
SEEN = [TokenSequence(prompt_T=row.prompt_T, completion_T=row.completion_T) for row in ROWS]


def opened(name: str, model: Path, **options: Any) -> Engine:
    if reason := opening.why_unavailable(name):
        pytest.skip(reason)
    return opening.open_engine(name, model, device="cpu", threads=1, rank=4, **options)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(("saver", "loader"), PAIRS)
def test_the_adapter_of_another_base_is_refused_and_the_own_one_stays(
    make_model: MakeModel, tmp_path: Path, saver: str, loader: str
) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    opened(saver, make_model("qwen2", seed=7)).save(saved)
    engine = opened(loader, make_model("qwen2"))
    before = engine.logprobs(SEEN)
    with pytest.raises(AdapterError, match="trained on another model"):
        engine.load(saved)
    assert engine.logprobs(SEEN) == before
