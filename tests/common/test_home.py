from __future__ import annotations

from pathlib import Path

import pytest

from app.common import home

USER = Path("/users/ada")


@pytest.mark.parametrize(
    ("chosen", "platform", "environment", "expected"),
    [
        (None, "linux", {}, "/users/ada/.local/share/shoal"),
        (None, "linux", {"XDG_DATA_HOME": "/data"}, "/data/shoal"),
        (None, "linux", {"XDG_DATA_HOME": "relative"}, "/users/ada/.local/share/shoal"),
        (None, "linux", {"XDG_DATA_HOME": ""}, "/users/ada/.local/share/shoal"),
        (None, "darwin", {"XDG_DATA_HOME": "/data"}, "/users/ada/Library/Application Support/Shoal"),
        (None, "win32", {"LOCALAPPDATA": "/local"}, "/local/Shoal"),
        (None, "win32", {}, "/users/ada/AppData/Local/Shoal"),
        (None, "linux", {"SHOAL_HOME": "/moved"}, "/moved"),
        (None, "win32", {"SHOAL_HOME": "/moved", "LOCALAPPDATA": "/local"}, "/moved"),
        (None, "linux", {"SHOAL_HOME": ""}, "/users/ada/.local/share/shoal"),
        (None, "linux", {"SHOAL_HOME": "~/moved"}, "/users/ada/moved"),
        ("/said", "linux", {"SHOAL_HOME": "/moved"}, "/said"),
        (Path("/said"), "darwin", {}, "/said"),
    ],
)
def test_where_the_data_is(
    chosen: str | Path | None, platform: str, environment: dict[str, str], expected: str
) -> None:
    assert home.resolve(chosen, platform, environment, USER) == Path(expected)


def test_it_is_absolute_and_nothing_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOAL_HOME", "here")
    assert home.home() == tmp_path / "here"
    assert list(tmp_path.iterdir()) == []
