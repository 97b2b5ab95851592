from __future__ import annotations

from pathlib import Path

import pytest

from app.lab.plan import RegimeError, read_regime, regimes
from app.sapo import curriculum


@pytest.mark.parametrize("name", regimes())
def test_every_regime_reads_and_its_levels_exist(name: str) -> None:
    regime = read_regime(name)
    curriculum.start(regime.levels)
    assert not regime.starters or len(regime.starters) == regime.nodes


def test_a_file_may_be_given_and_what_it_leaves_out_is_ordinary(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("rounds = 3\n[levels]\ngcd = 1\n")
    assert read_regime(str(path)).rounds == 3 and read_regime(str(path)).nodes == 8
    assert {"rare", "mid"} <= set(regimes())


@pytest.mark.parametrize("text", ["", "levels = 3", "[levels]\ngcd = 1\n[typo]\n", "rounds ="])
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(RegimeError, match=r"cannot be read .*correct the file\.$"):
        read_regime(str(path))


def test_an_unknown_regime_names_the_known_ones() -> None:
    with pytest.raises(RegimeError, match="rare"):
        read_regime("nonsense")
