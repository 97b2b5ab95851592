"""What other programs have fetched is found where they keep it, by header alone."""

from __future__ import annotations

import json
import math
import os
import shutil
import struct
from pathlib import Path

import pytest

from app.models import found
from app.models.fit import FitVerdict
from app.models.found import FoundModel, ModelFolders, find, model_folders
from app.models.shelf import starter_folder
from app.node.models.survey import survey
from engines.contract import EngineError
from engines.models.folder import open_folder
from engines.models.gguf import gguf
from tests.engines.small_models import entry, made, number, text


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("made") / "model-f16.gguf"
    gguf.write(starter_folder(), to, "f16")
    return to


def ollama(root: Path, file: Path, tag: str = "1b") -> Path:
    """As `ollama pull` leaves a model."""
    digest = "ab" * 32
    manifest = root / "manifests" / "registry.ollama.ai" / "library" / "small" / tag
    manifest.parent.mkdir(parents=True)
    layers = [
        {"mediaType": "application/vnd.ollama.image.template", "digest": f"sha256:{'cd' * 32}"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}", "size": 1},
    ]
    manifest.write_text(json.dumps({"schemaVersion": 2, "config": {"digest": "x"}, "layers": layers}))
    (root / "blobs").mkdir()
    return Path(shutil.copyfile(file, root / "blobs" / f"sha256-{digest}"))


def by_program(home: Path, **variables: str) -> dict[str, FoundModel]:
    return {one.program: one for one in find(model_folders(home, variables, "linux"))}


def test_every_programs_place(file: Path, tmp_path: Path) -> None:
    for part in (".lmstudio/models/maker/name", "jan/models/x", ".cache/llama.cpp"):
        (tmp_path / part).mkdir(parents=True)
        shutil.copyfile(file, tmp_path / part / "own.gguf")
    blob = ollama(tmp_path / ".ollama" / "models", file)
    snapshot = tmp_path / ".cache" / "huggingface" / "hub" / "models--Some--Model"
    shutil.copytree(starter_folder(), snapshot / "snapshots" / "abc123")
    (snapshot / "refs").mkdir()
    (snapshot / "refs" / "main").write_text("abc123")
    rows = by_program(tmp_path)
    assert set(rows) == {"LM Studio", "Jan", "llama.cpp", "Ollama", "Hugging Face"}
    assert rows["Ollama"].title == "small:1b" and rows["Ollama"].name == str(blob)
    assert rows["Hugging Face"].name == "Some/Model" and rows["Hugging Face"].ready
    for row in rows.values():
        assert not row.problem and row.shape is not None and row.shape.family in ("qwen2", "llama", "qwen3")
        assert row.bytes > 1000
    library = survey(tmp_path / "home", elsewhere=model_folders(tmp_path, {}, "linux"))
    listed = {model.name: model for model in library.models if model.program}
    assert set(listed) == {row.name for row in rows.values()}
    assert all(
        model.fit is not None and model.fit.verdict in (FitVerdict.FITS, FitVerdict.TIGHT)
        for model in listed.values()
    )
    assert listed["Some/Model"].installed and not listed[str(blob)].installed


def test_folders_moved_places_and_names_that_say_nothing(file: Path, tmp_path: Path) -> None:
    """LM Studio's home and models can be elsewhere, and hold folders; Jan calls every file model.gguf;
    `llama-cli -hf` keeps files in Hugging Face's cache; browsers in Downloads."""
    moved, studio = tmp_path / "disk" / "models", tmp_path / "studio"
    studio.mkdir()
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{studio}\n")
    (studio / "settings.json").write_text(json.dumps({"downloadsFolder": str(moved)}))
    shutil.copytree(starter_folder(), moved / "mlx-community" / "whole")
    quantised = Path(shutil.copytree(starter_folder(), moved / "mlx-community" / "4bit"))
    settings = json.loads((quantised / "config.json").read_text())
    (quantised / "config.json").write_text(json.dumps({**settings, "quantization": {"bits": 4}}))
    hub = tmp_path / ".cache" / "huggingface" / "hub"
    mistral = Path(shutil.copytree(starter_folder(), hub / "models--Some--Mistral" / "snapshots" / "abc123"))
    changed = {**settings, "model_type": "mistral", "architectures": ["MistralForCausalLM"]}
    (mistral / "config.json").write_text(json.dumps(changed))
    speech = Path(shutil.copytree(starter_folder(), hub / "models--Some--Speech" / "snapshots" / "abc123"))
    changed = {**settings, "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"]}
    (speech / "config.json").write_text(json.dumps(changed))
    files = {
        "Jan": tmp_path / "jan" / "models" / "Qwen3-0.6B" / "model.gguf",
        "GPT4All": tmp_path / ".local" / "share" / "nomic.ai" / "GPT4All" / "own.gguf",
        "Downloads": tmp_path / "Downloads" / "own.gguf",
        "Hugging Face": hub / "models--ggml-org--own-GGUF" / "snapshots" / "abc123" / "own.gguf",
    }
    for path in files.values():
        path.parent.mkdir(parents=True)
        shutil.copyfile(file, path)
    for place in hub.iterdir():
        (place / "refs").mkdir()
        (place / "refs" / "main").write_text("abc123")
    rows = {(one.program, one.title): one for one in find(model_folders(tmp_path, {}, "linux"))}
    assert set(rows) == {
        *(("LM Studio", name) for name in ("whole", "4bit")),
        *(("Hugging Face", name) for name in ("Some/Mistral", "own")),
        *(("Jan", "Qwen3-0.6B"), ("GPT4All", "own"), ("Downloads", "own")),
    }
    assert "quantised" in rows["LM Studio", "4bit"].problem and not rows["LM Studio", "4bit"].ready
    assert rows["Hugging Face", "Some/Mistral"].ready and not rows["Hugging Face", "Some/Mistral"].problem
    whole = str(moved / "mlx-community" / "whole")
    assert rows["LM Studio", "whole"].name == whole and rows["LM Studio", "whole"].shape is not None
    library = survey(tmp_path / "home", elsewhere=model_folders(tmp_path, {}, "linux"))
    (entry,) = (model for model in library.models if model.name == whole)
    assert entry.installed and entry.local and entry.program == "LM Studio" and entry.title == "whole"


def test_the_programs_own_variables_and_other_systems(file: Path, tmp_path: Path) -> None:
    shutil.copytree(file.parent, tmp_path / "cache")
    ollama(tmp_path / "elsewhere", file)
    rows = by_program(tmp_path, LLAMA_CACHE=str(tmp_path / "cache"), OLLAMA_MODELS=str(tmp_path / "elsewhere"))
    assert set(rows) == {"llama.cpp", "Ollama"}
    mac = model_folders(Path("/Users/x"), {}, "darwin")
    assert ("llama.cpp", Path("/Users/x/Library/Caches/llama.cpp")) in mac.gguf
    windows = model_folders(Path("C:/x"), {"LOCALAPPDATA": "C:/l", "APPDATA": "C:/r"}, "win32")
    assert ("Jan", Path("C:/r/Jan/data/models")) in windows.gguf


def test_nothing_is_loaded(file: Path, tmp_path: Path) -> None:
    """Only the opening is read: a file with nothing behind its words is listed all the same."""
    content = file.read_bytes()
    start = content.index(b"tokenizer.ggml.tokens") + len("tokenizer.ggml.tokens") + 16
    (tmp_path / "own.gguf").write_bytes(content[:start])
    where = ModelFolders(gguf=(("Jan", tmp_path),), ollama=(), hugging_face=tmp_path)
    (row,) = find(where)
    assert not row.problem and row.shape is not None and row.shape.vocabulary > 100


def test_what_cannot_learn_says_so_and_rubbish_is_passed_over(file: Path, tmp_path: Path) -> None:
    content = file.read_bytes()
    family = content.index(b"general.architecture") + len("general.architecture") + 12
    other = bytearray(content)
    other[family : family + 5] = b"mamba"
    (tmp_path / "other.gguf").write_bytes(other)
    (tmp_path / "broken.gguf").write_bytes(content[:100])
    (tmp_path / "mmproj-eyes.gguf").write_bytes(content)
    (tmp_path / "gone.gguf").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path)
    shutil.copyfile(file, tmp_path / "good.gguf")
    (tmp_path / "same.gguf").symlink_to(tmp_path / "good.gguf")
    broken = tmp_path / "manifests" / "a" / "b" / "c" / "d"
    broken.parent.mkdir(parents=True)
    broken.write_text('{"layers": [{"mediaType": 7}]')
    where = ModelFolders(gguf=(("Jan", tmp_path),), ollama=(tmp_path,), hugging_face=tmp_path)
    rows = {Path(row.name).name: row for row in find(where)}
    assert set(rows) == {"other.gguf", "broken.gguf", "good.gguf"}
    assert "Qwen2, Qwen3 and Llama" in rows["other.gguf"].problem and rows["broken.gguf"].problem
    library = survey(tmp_path / "home", elsewhere=where)
    assert {model.problem != "" for model in library.models if model.program} == {True, False}


WHOLE = {"block_count": 2, "embedding_length": 64, "attention.head_count": 2, "feed_forward_length": 128}
WORDS = "tokenizer.ggml.tokens"


def header(words: bytes = b"", **changes: int) -> bytes:
    """The opening of a GGUF file of the family Llama, with `words` for its vocabulary."""
    sizes = {**WHOLE, "context_length": 256, **changes}
    entries = [entry("general.architecture", 8, text("llama"))]
    entries += [entry(f"llama.{key}", 4, number(value, "I")) for key, value in sizes.items()]
    return made([*entries, *([words] if words else [])])


BAD = {
    "a text": header(entry(WORDS, 8, text("words"))),
    "no number": header(entry(WORDS, 6, struct.pack("<f", math.nan))),
    "without end": header(entry(WORDS, 12, struct.pack("<d", -math.inf))),
    "2,000 blocks": header(block_count=2000),
    "2^24 wide": header(embedding_length=2**24),
    "a context of 2^31": header(context_length=2**31),
}


def test_one_bad_file_is_one_row_and_the_others_are_listed(file: Path, tmp_path: Path) -> None:
    """A vocabulary that is no array emptied the whole list."""
    for name, content in BAD.items():
        (tmp_path / f"{name}.gguf").write_bytes(content)
    shutil.copyfile(file, tmp_path / "good.gguf")
    (tmp_path / "plain.gguf").write_bytes(header())
    where = ModelFolders(gguf=(("Jan", tmp_path),), ollama=(), hugging_face=tmp_path)
    rows = {row.title: row for row in find(where)}
    assert {title for title, row in rows.items() if row.problem} == set(BAD)
    assert {title for title, row in rows.items() if row.shape} == {"good", "plain"}
    assert all("\n" not in row.problem for row in rows.values())
    library = survey(tmp_path / "home", elsewhere=where)
    assert len([model for model in library.models if model.program]) == len(BAD) + 2


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_only_regular_files_are_opened(file: Path, tmp_path: Path) -> None:
    """A pipe as a manifest, blob or note hung the list for as long as nobody wrote into it."""
    blob = ollama(tmp_path, file)
    manifests = tmp_path / "manifests" / "registry.ollama.ai" / "library" / "small"
    os.mkfifo(manifests / "pipe")
    snapshot = tmp_path / "models--Some--Model"
    (snapshot / "refs").mkdir(parents=True)
    os.mkfifo(snapshot / "refs" / "main")
    where = ModelFolders(gguf=(), ollama=(tmp_path,), hugging_face=tmp_path)
    assert [row.title for row in find(where)] == ["small:1b"]
    blob.unlink()
    os.mkfifo(blob)
    assert find(where) == []
    os.mkfifo(tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EngineError, match="weights"):
        open_folder(tmp_path)


def test_a_full_place_is_not_read_to_its_end(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "_MAX", 5)
    for index in range(8):
        shutil.copyfile(file, tmp_path / f"{index}.gguf")
    where = ModelFolders(gguf=(("Jan", tmp_path),), ollama=(), hugging_face=tmp_path)
    assert len(find(where)) == 5
