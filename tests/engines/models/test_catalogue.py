"""The catalogue, what its models need, and the shelf that they lie on."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
import torch

from app.models.catalogue import FILE, Catalogue, catalogue, entries, find
from app.models.fit import (
    FitVerdict,
    MemoryNeeds,
    MemoryRoom,
    Shape,
    assess_fit,
    likely_dtype,
    memory_here,
    needs,
)
from app.models.shelf import ModelSource, Shelf, UnfinishedDownload, is_downloading
from engines.contract import EngineError
from engines.files import folder_lock, write_json
from engines.models.folder import count_parameters, open_folder, read_architecture
from engines.torch_lora.network.native import NativeNetwork
from tests.engines.small_models import MakeModel

GB = 10**9
PUBLISHED = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": 134_515_008,
    "HuggingFaceTB/SmolLM2-360M-Instruct": 361_821_120,
    "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,
    "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400,
    "HuggingFaceTB/SmolLM2-1.7B-Instruct": 1_711_376_384,
    "Qwen/Qwen3-1.7B": 1_720_574_976,
    "Qwen/Qwen3-4B-Instruct-2507": 4_022_468_096,
}
HEAD_STORED = ("Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B")
"""Their files hold the head as well, although it is the embedding."""
SEVERAL_FILES = ("Qwen/Qwen3-1.7B", "Qwen/Qwen3-4B-Instruct-2507")


def shape_of(folder: Path) -> Shape:
    known = read_architecture(open_folder(folder).config)
    assert known is not None
    return Shape(**{name: getattr(known, name) for name in Shape.__struct_fields__})


def test_the_models_are_these_and_their_shapes_are_theirs() -> None:
    assert {entry.id: entry.shape.parameters for entry in entries()} == PUBLISHED
    for entry in entries():
        doubled = entry.shape.vocabulary * entry.shape.hidden if entry.id in HEAD_STORED else 0
        held = entry.shape.parameters + doubled
        assert 0 < entry.weights_bytes - 2 * held < 100_000, entry.id  # the file's own header
        assert len(entry.revision) == 40 and bool(entry.weights_sha256) == (entry.id not in SEVERAL_FILES)


def test_what_is_recommended_exists() -> None:
    for entry in entries():
        assert not entry.settings.families, "what it can begin with is found by placing it"
        assert entry.settings.max_tokens < entry.shape.context
    assert [entry.id for entry in entries() if entry.gated] == ["meta-llama/Llama-3.2-1B-Instruct"]
    assert find("qwen/qwen2.5-0.5b-INSTRUCT") == find("Qwen/Qwen2.5-0.5B-Instruct") is not None
    assert find("Nobody/Knows") is None
    assert "was not asked" in catalogue().known_from


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": "1"'),
        ('"about"', '"abuot"'),
        ('"revision": "12fd25f77366', '"revision": "zzzz'),
        ('"id": "Qwen/Qwen3-0.6B"', '"id": "../../etc/passwd"'),
        ('"id": "Qwen/Qwen3-0.6B"', '"id": "Qwen/Qwen2.5-0.5B-Instruct"'),
        ('"family": "qwen3"', '"family": "mamba"'),
        ('"models": [', '"models": {'),
    ],
)
def test_a_damaged_catalogue_is_said(tmp_path: Path, old: str, new: str) -> None:
    text = FILE.read_text("utf-8")
    assert old in text
    (tmp_path / "models.json").write_text(text.replace(old, new))
    with pytest.raises(EngineError, match="install Shoal again"):
        catalogue(tmp_path / "models.json")
    assert msgspec.json.decode(text, type=Catalogue) == catalogue()


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "llama"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_accounting_is_the_engine_s(make_model: MakeModel, family: str, dtype: torch.dtype) -> None:
    folder = make_model(family)
    shape, opened = shape_of(folder), open_folder(folder)
    known = read_architecture(opened.config)
    assert known is not None
    network = NativeNetwork(opened, known, torch.device("cpu"), dtype)
    size = dtype.itemsize
    assert shape.row_bytes(300, size) == network.row_bytes(300)
    for checkpointing in (False, True):
        assert shape.token_bytes(checkpointing, size) == network.token_bytes(checkpointing)
    assert shape.parameters == count_parameters(opened)
    adapted = sum(one.width_in * sum(one.widths_out) for one in network.projections)
    assert shape.linear_parameters == adapted
    sides = sum(len(one.names) * one.width_in + sum(one.widths_out) for one in network.projections)
    assert shape.adapter_parameters(16) == 16 * sides


def test_what_fits() -> None:
    need = MemoryNeeds(least=4 * GB, learning=8 * GB, disk=GB)
    roomy = MemoryRoom(free=10 * GB, most=14 * GB)

    def verdict(memory: MemoryRoom, disk: int = 100 * GB) -> FitVerdict:
        found = assess_fit(need, memory, disk)
        assert found.sentence.endswith(".") and "\n" not in found.sentence
        return found.verdict

    assert verdict(roomy) is FitVerdict.FITS
    assert verdict(MemoryRoom(free=8 * GB - 1, most=14 * GB)) is FitVerdict.TIGHT
    assert verdict(MemoryRoom(free=4 * GB - 1, most=14 * GB)) is FitVerdict.CROWDED
    assert verdict(MemoryRoom(free=4 * GB - 1, most=4 * GB - 1)) is FitVerdict.TOO_LARGE
    assert verdict(roomy, disk=GB) is FitVerdict.NO_DISK
    assert assess_fit(msgspec.structs.replace(need, disk=0), roomy, 0).verdict is FitVerdict.FITS


def test_needs_grow_as_they_should() -> None:
    small, large = (find(id) for id in ("HuggingFaceTB/SmolLM2-135M-Instruct", "Qwen/Qwen2.5-1.5B-Instruct"))
    assert small is not None and large is not None
    for dtype in ("float32", "bfloat16"):
        one, other = needs(small.shape, dtype), needs(large.shape, dtype)
        assert one.least < other.least and one.learning < other.learning
        assert one.least <= one.learning
    assert needs(large.shape, "bfloat16").least < needs(large.shape, "float32").least
    doubled = needs(small.shape, "float32", stored_parameters=10**9)
    assert doubled.least == 6 * 10**9  # with less the engine refuses to open it


def test_this_computer(tmp_path: Path) -> None:
    here = memory_here()
    assert 0 < here.free <= here.most
    (tmp_path / "cpuinfo").write_text("flags : fpu avx512_bf16 sse\n")
    assert likely_dtype(tmp_path / "cpuinfo") == "bfloat16"
    assert likely_dtype(tmp_path / "none") == "float32"


def fetched(home: Path, tiny: Path, id: str = "Some/Model", commit: str = "0" * 40) -> Path:
    place = Shelf(home).model_folder(id)
    folder = place / "snapshots" / commit
    shutil.copytree(tiny, folder)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    digests = {"config.json": "git:0"}
    write_json(
        place / "source.json",
        ModelSource(id=id, revision="main", commit=commit, endpoint="x", fetched=0.0, bytes=1, digests=digests),
    )
    return folder


def test_what_lies_on_the_shelf(tmp_path: Path, tiny: Path) -> None:
    shelf = Shelf(tmp_path / "home")
    assert shelf.installed() == shelf.unfinished() == shelf.folders() == [] and shelf.free_bytes() > 0
    folder = fetched(tmp_path / "home", tiny)
    (one,) = shelf.installed()
    assert (one.name, one.folder, one.local) == ("Some/Model", str(folder), False)
    assert one.source is not None and one.source.commit == "0" * 40
    assert shelf.remove("Some/Model") >= one.bytes and not shelf.installed() and not folder.exists()
    with pytest.raises(EngineError, match="isn't on this computer"):
        shelf.remove("Some/Model")


def test_a_folder_of_the_owner_is_kept_whatever_happens(tmp_path: Path, tiny: Path) -> None:
    shelf, own = Shelf(tmp_path / "home"), tmp_path / "own"
    shutil.copytree(tiny, own)
    with pytest.raises(EngineError, match="no config"):
        shelf.add_folder(tmp_path)
    assert shelf.add_folder(own) == own.resolve()
    shelf.add_folder(own)
    assert [one.name for one in shelf.installed()] == [str(own.resolve())]
    assert shelf.remove(str(own)) == 0 and shelf.folders() == [] and (own / "config.json").exists()


def test_what_is_being_fetched_is_not_removed(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    partial = shelf.partial_folder("Some/Model")
    with folder_lock(partial) as ours:
        assert ours and is_downloading(partial)
        write_json(partial / "state.json", UnfinishedDownload(id="Some/Model", revision="main", total=10))
        assert shelf.unfinished()[0].running
        with pytest.raises(EngineError, match="cancel that first"):
            shelf.remove("Some/Model")
        with folder_lock(partial) as other:
            assert not other
    assert not is_downloading(partial)
    shelf.remove("Some/Model")
    assert shelf.unfinished() == []


@pytest.mark.parametrize("name", ["../x", "..", "a/../../b", "/etc", "", "a/b/c"])
def test_no_name_leads_out_of_the_shelf(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").mkdir()
    shelf = Shelf(tmp_path / "home")
    with pytest.raises(EngineError):
        shelf.remove(name)
    assert (tmp_path / "x").exists()
