"""Names of models to folders, and their makers' settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models.shelf import locate, starter_folder
from engines.contract import EngineError
from engines.models.folder import ModelSettings, read_settings


def test_a_folder(tmp_path: Path) -> None:
    assert locate(str(tmp_path)) == locate(tmp_path) == tmp_path.resolve()


def test_the_starter() -> None:
    expected = Path(__file__).resolve().parents[2] / "resources" / "starter"
    if (expected / "config.json").is_file():
        assert locate("starter") == starter_folder() == expected
    else:
        with pytest.raises(EngineError, match="starter model is missing"):
            locate("starter")


def test_a_name_in_the_local_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--Some--Model-0.5B"
    snapshot = repository / "snapshots" / "0123456789abcdef0123456789abcdef01234567"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(snapshot.name)
    assert locate("Some/Model-0.5B") == snapshot
    with pytest.raises(EngineError, match="shoal models get Other/Model"):
        locate("Other/Model")


@pytest.mark.parametrize("name", ["", "nowhere", "/no/such/folder", "a/b/c", "../../etc", "x/y z", "--flag/x"])
def test_what_is_no_model(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError) as caught:
        locate(name)
    assert "\n" not in str(caught.value)


def test_no_settings_are_the_defaults(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == ModelSettings()
    assert read_settings(tmp_path).families == {} and read_settings(tmp_path).rank is None


def test_settings(tmp_path: Path) -> None:
    (tmp_path / "shoal.json").write_text(
        '{"families": {"chain_sum": 2, "gcd": 0}, "max_tokens": 48, "learning_rate": 5e-4, '
        '"rank": 16, "groups": 9}'
    )
    expected = ModelSettings(
        families={"chain_sum": 2, "gcd": 0}, max_tokens=48, learning_rate=5e-4, rank=16, groups=9
    )
    assert read_settings(tmp_path) == expected
