"""Fetching models from a stand-in of the hub that cuts, truncates, corrupts and refuses."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.common.job import JobEvent, Progress, Waiting
from app.common.rate import RetryLimit
from app.models.download import (
    DownloadDone,
    PlannedDownload,
    download,
)
from app.models.shelf import Shelf, is_downloading, locate
from engines.contract import EngineError
from engines.files import folder_lock
from tests.engines.hub import COMMIT, StandIn, model_files, serving
from tests.engines.small_models import MakeModel
from tests.hosting import wait_until

ROOT = Path(__file__).parents[2]
QUICK = RetryLimit(attempts=4, first_s=0.01, longest_s=0.05, silent_s=10.0)


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "HF_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def files(make_model: MakeModel) -> dict[str, bytes]:
    """A real model's files, and those of a repository that nobody needs."""
    found = model_files(make_model("qwen2", hidden_size=64, num_hidden_layers=4))
    assert len(found["model.safetensors"]) > 200_000
    return {**found, "README.md": b"# A model", "pytorch_model.bin": b"\x80\x04pickle", "LICENSE": b"Apache"}


@pytest.fixture
def hub(files: dict[str, bytes]) -> Iterator[StandIn]:
    with serving(StandIn(dict(files))) as stand_in:
        yield stand_in


class Heard:
    """What was told, by kind."""

    def __init__(self) -> None:
        self.events: list[JobEvent] = []

    def __call__(self, event: JobEvent) -> None:
        self.events.append(event)

    def __getitem__(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def get(hub: StandIn, home: Path, tell: Heard | None = None, **options: Any) -> Path:
    options.setdefault("patience", QUICK)
    return download(hub.id, home, tell or Heard(), endpoint=hub.url, **options)


def refused(hub: StandIn, home: Path, **options: Any) -> str:
    with pytest.raises(EngineError) as caught:
        get(hub, home, **options)
    said = str(caught.value)
    assert "\n" not in said and said.endswith(".") and "Traceback" not in said
    return said


def test_a_model_is_fetched_whole_and_opens(hub: StandIn, tmp_path: Path) -> None:
    heard = Heard()
    folder = get(hub, tmp_path, heard)
    names = {file.name for file in folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "LICENSE"} <= names
    assert not names & {"README.md", "pytorch_model.bin", "vocab.json"}
    for file in folder.iterdir():
        assert file.read_bytes() == hub.files[file.name]
    total = sum(file.stat().st_size for file in folder.iterdir())
    assert heard[PlannedDownload][0].total == total and heard[Progress][-1].have == total
    assert [event.have for event in heard[Progress]] == sorted(event.have for event in heard[Progress])
    assert heard.events[-1] == DownloadDone(model=hub.id, commit=COMMIT, path=str(folder), bytes=total)
    assert locate(hub.id, tmp_path) == folder
    source = Shelf(tmp_path).source(hub.id)
    assert source is not None and source.commit == COMMIT and source.revision == "main"
    assert not Shelf(tmp_path).unfinished()

    from engines.torch_lora import open_engine

    engine = open_engine(locate(hub.id, tmp_path), threads=1)
    prompt = [{"role": "user", "content": "w1 w2"}]
    assert len(engine.sample([prompt], n=2, max_tokens=4, seed=0)[0]) == 2
    assert engine.info.model == hub.id


def test_huggingface_hub_finds_it_too(hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import snapshot_download

    folder = get(hub, tmp_path)
    found = snapshot_download(hub.id, cache_dir=tmp_path / "hub", local_files_only=True)
    assert Path(found) == folder


def test_nothing_is_asked_twice(hub: StandIn, tmp_path: Path) -> None:
    folder = get(hub, tmp_path)
    before, heard = len(hub.asked), Heard()
    assert get(hub, tmp_path, heard) == folder
    assert len(hub.asked) == before and [type(event) for event in heard.events] == [DownloadDone]


def test_nobody_is_told_more_than_the_name(hub: StandIn, tmp_path: Path) -> None:
    get(hub, tmp_path, token="hf_secret_token")
    assert {one.token for one in hub.asked if one.host == "hub"} == {"Bearer hf_secret_token"}
    assert {one.token for one in hub.asked if one.host == "store"} == {""}
    agents = {one.agent for one in hub.asked}
    assert len(agents) == 1 and "torch" not in agents.pop()


def test_a_token_goes_over_no_line_that_others_can_read() -> None:
    from app.models.hub import Hub

    assert Hub("http://mirror.example.org", "hf_secret").headers == {}
    assert Hub("https://mirror.example.org/", "hf_secret").headers == {"Authorization": "Bearer hf_secret"}
    assert Hub("http://127.0.0.1:1", "hf_secret").headers == {"Authorization": "Bearer hf_secret"}
    assert Hub("https://mirror.example.org", None).headers == {}


def test_a_cut_connection_is_continued(hub: StandIn, tmp_path: Path) -> None:
    size = len(hub.files["model.safetensors"])
    hub.cut["model.safetensors"] = [50_000, 70_000, 0, 0]
    heard = Heard()
    folder = get(hub, tmp_path, heard)
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]
    starts = [one.range for one in hub.asked if one.host == "store" and "model" in one.path]
    assert starts[0] == "" and len(starts) == 5 and len(heard[Waiting]) == 4
    begins = [int(text.removeprefix("bytes=").rstrip("-")) for text in starts[1:]]
    assert begins == sorted(begins) and 0 < begins[0] <= 50_000 and begins[-1] < size
    assert all(
        "broke off" in event.sentence
        or "ended the connection early" in event.sentence
        or "reached" in event.sentence
        for event in heard[Waiting]
    )


def test_a_line_that_stays_dead_is_told_and_kept(hub: StandIn, tmp_path: Path) -> None:
    hub.cut["model.safetensors"] = [50_000] + [0] * 20
    said = refused(hub, tmp_path)
    assert "try" in said
    (partial,) = Shelf(tmp_path).unfinished()
    assert partial.sentence == said and 0 < partial.have < partial.total and not partial.running
    hub.cut.clear()
    heard = Heard()
    get(hub, tmp_path, heard)
    assert heard[PlannedDownload][0].have == partial.have and not Shelf(tmp_path).unfinished()


def test_a_hub_that_falls_silent_is_left(hub: StandIn, tmp_path: Path) -> None:
    hub.hang_s = 3.0
    heard = Heard()
    get(hub, tmp_path, heard, patience=RetryLimit(attempts=4, first_s=0.01, longest_s=0.05, silent_s=0.5))
    assert any("broke off" in event.sentence for event in heard[Waiting])


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_file_is_fetched_anew(hub: StandIn, tmp_path: Path, name: str) -> None:
    hub.corrupt[name] = 1
    heard = Heard()
    folder = get(hub, tmp_path, heard)
    assert (folder / name).read_bytes() == hub.files[name]
    assert "is damaged or another file" in heard[Waiting][0].sentence
    shutil.rmtree(tmp_path / "hub")
    hub.corrupt[name] = 3
    said = refused(hub, tmp_path)
    assert said.startswith(f"{name} from 127.0.0.1 is damaged")
    assert locate_fails(hub.id, tmp_path)


def locate_fails(id: str, home: Path) -> bool:
    return Shelf(home).find(id) is None


def test_a_mirror_without_ranges_gives_everything_again(hub: StandIn, tmp_path: Path) -> None:
    hub.ranges = False
    hub.cut["model.safetensors"] = [60_000]
    folder = get(hub, tmp_path)
    assert (folder / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_a_file_that_changes_between_attempts(hub: StandIn, tmp_path: Path) -> None:
    """The old half is thrown away, and the new file is taken whole."""
    hub.cut["model.safetensors"] = [50_000] + [0] * 20
    refused(hub, tmp_path)
    hub.cut.clear()
    other = bytearray(hub.files["model.safetensors"])
    other[-1] ^= 1
    hub.files["model.safetensors"] = bytes(other)
    folder = get(hub, tmp_path)
    assert (folder / "model.safetensors").read_bytes() == bytes(other)


def test_a_body_that_never_ends_is_cut(hub: StandIn, tmp_path: Path) -> None:
    hub.claims["model.safetensors"] = 100_000
    said = refused(hub, tmp_path)
    assert said.startswith("model.safetensors from 127.0.0.1 is damaged or another file")


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (401, {}, "only to those who sign in"),
        (401, {"X-Error-Code": "GatedRepo"}, "accept the licence"),
        (403, {}, "hasn't the right to read it"),
        (404, {"X-Error-Code": "RepoNotFound"}, "has no model"),
        (404, {"X-Error-Code": "RevisionNotFound"}, "in that version"),
        (418, {}, "answers 418"),
    ],
)
def test_what_cannot_be_had_is_said_at_once(
    hub: StandIn, tmp_path: Path, status: int, headers: dict[str, str], words: str
) -> None:
    hub.status = [(status, headers)]
    said = refused(hub, tmp_path)
    assert words in said and len(hub.asked) == 1
    (partial,) = Shelf(tmp_path).unfinished()
    assert partial.sentence == said and partial.have == partial.total == 0


@pytest.mark.parametrize(
    ("status", "headers"), [(429, {"Retry-After": "7"}), (500, {}), (502, {}), (503, {}), (504, {})]
)
def test_a_busy_hub_is_waited_for(hub: StandIn, tmp_path: Path, status: int, headers: dict[str, str]) -> None:
    hub.status = [(status, headers)]
    hub.file_status = [(status, headers)]
    heard, slept = Heard(), []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    patience = dataclasses.replace(QUICK, sleep=sleep)
    get(hub, tmp_path, heard, patience=patience)
    assert len(heard[Waiting]) == 2
    assert slept == ([7.0, 7.0] if headers else [0.01, 0.01])
    hub.status = [(status, headers)] * 9
    shutil.rmtree(tmp_path / "hub")
    assert f"answers {status}: try again later" in refused(hub, tmp_path, patience=patience)


def test_a_wrong_token_and_an_account_without_leave(hub: StandIn, tmp_path: Path) -> None:
    hub.token = "hf_the_right_one"
    assert "save an access token" in refused(hub, tmp_path)
    assert "doesn't know the access token" in refused(hub, tmp_path, token="hf_a_wrong_one")
    get(hub, tmp_path, token="hf_the_right_one")
    shutil.rmtree(tmp_path / "hub")
    hub.status = [(403, {"X-Error-Code": "GatedRepo"})]
    assert "hasn't been given" in refused(hub, tmp_path, token="hf_the_right_one")


def test_pickles_are_never_fetched(hub: StandIn, tmp_path: Path) -> None:
    weights = hub.files.pop("model.safetensors")
    assert "pickle files" in refused(hub, tmp_path)
    del hub.files["pytorch_model.bin"]
    assert "no .safetensors" in refused(hub, tmp_path)
    hub.files["model.gguf"] = weights
    assert "GGUF" in refused(hub, tmp_path)
    assert all(one.host == "hub" and "/api/" in one.path for one in hub.asked)


def test_a_full_disk_is_said_before_the_first_byte(hub: StandIn, tmp_path: Path) -> None:
    hub.claims["model.safetensors"] = 10**16
    said = refused(hub, tmp_path)
    assert "free up some space" in said and "GB more" in said
    assert all("/api/" in one.path for one in hub.asked)


def test_a_disk_that_fills_up_on_the_way(hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real limit on the size of files, in a process of its own."""
    if sys.platform == "win32":
        pytest.skip("no such limit on Windows")
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
        "from app.cli.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "models", "get", hub.id, "--mirror", hub.url, "--home", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )
    assert done.returncode == 1 and "can't be written" in done.stderr and "Traceback" not in done.stderr
    get(hub, tmp_path)


def test_a_quantised_model_is_refused_before_its_weights(hub: StandIn, tmp_path: Path) -> None:
    config = msgspec.json.decode(hub.files["config.json"])
    hub.files["config.json"] = msgspec.json.encode({**config, "quantization_config": {"bits": 4}})
    assert "is quantised" in refused(hub, tmp_path)
    assert not any(one.host == "store" and "model" in one.path for one in hub.asked)


def test_a_hub_that_talks_nonsense(hub: StandIn, tmp_path: Path) -> None:
    hub.commit = "not-a-commit"
    assert "which version" in refused(hub, tmp_path)
    hub.commit, hub.files["../../evil.safetensors"] = COMMIT, b"x"
    get(hub, tmp_path)
    assert not list(tmp_path.rglob("evil*"))


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"can't be reached: check the network"):
        download("Some/Model", tmp_path, Heard(), endpoint="http://127.0.0.1:9", patience=QUICK)
    for wrong in ("ftp://x", "hub", "http://me:secret@host"):
        with pytest.raises(EngineError, match="no address of a hub"):
            download("Some/Model", tmp_path, Heard(), endpoint=wrong, patience=QUICK)


def test_a_proxy_is_used_and_named(hub: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    try:
        with pytest.raises(EngineError, match=r"can't be reached|proxy"):
            download("Some/Model", tmp_path, Heard(), endpoint="http://hub.invalid", patience=QUICK)
        monkeypatch.setenv("HTTP_PROXY", hub.url)  # it answers for that name: so the proxy was asked
        with pytest.raises(EngineError):
            download("Some/Model", tmp_path, Heard(), endpoint="http://hub.invalid", patience=QUICK)
        assert any("hub.invalid" in one.path or "Some/Model" in one.path for one in hub.asked)
    finally:
        monkeypatch.delenv("HTTP_PROXY")


def test_the_weights_of_a_catalogue_model_must_be_the_known_ones(hub: StandIn, tmp_path: Path) -> None:
    hub.id, hub.commit = "Qwen/Qwen2.5-0.5B-Instruct", "7ae557604adf67be50417f59c2c2f167def9a775"
    said = refused(hub, tmp_path)
    assert "aren't the ones that Shoal's catalogue names" in said
    assert all("/api/" in one.path for one in hub.asked)


def start_get(hub: StandIn, home: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "app.cli", "models", "get", hub.id, "--json"]
    return subprocess.Popen(
        [*command, "--mirror", hub.url, "--home", str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "0"},
    )


def test_killed_in_the_middle_and_continued(hub: StandIn, tmp_path: Path) -> None:
    """kill -9 of the real process, three times; what had come is never asked for again."""
    hub.slow_s = 0.05
    shelf = Shelf(tmp_path)

    def have() -> int:
        return sum(partial.have for partial in shelf.unfinished())

    small = sum(
        len(content) for name, content in hub.files.items() if name not in ("model.safetensors", "README.md")
    )
    kept = small
    for _ in range(3):
        child = start_get(hub, tmp_path)
        wait_until(lambda: have() > kept + 20_000 or child.poll() is not None)  # noqa: B023
        assert child.poll() is None and is_downloading(shelf.partial_folder(hub.id))
        child.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
        child.communicate(timeout=60)
        assert not is_downloading(shelf.partial_folder(hub.id)) and locate_fails(hub.id, tmp_path)
        assert have() > kept
        kept = have()
    (partial,) = shelf.unfinished()
    assert partial.sentence == "" and not partial.running
    hub.slow_s = 0.0
    child = start_get(hub, tmp_path)
    out, error = child.communicate(timeout=120)
    assert child.returncode == 0, error.decode()
    lines = [msgspec.json.decode(line) for line in out.splitlines()]
    assert [line["event"] for line in lines[:1]] == ["planned"] and lines[0]["have"] == kept
    assert lines[-1]["event"] == "done" and locate(hub.id, tmp_path) == Path(lines[-1]["path"])
    begins = [
        int(one.range.removeprefix("bytes=").rstrip("-") or 0)
        for one in hub.asked
        if one.host == "store" and "model.safetensors" in one.path
    ]
    assert begins[0] == 0 and begins == sorted(begins) and begins[-1] > 60_000


def test_two_processes_do_not_fetch_the_same(hub: StandIn, tmp_path: Path) -> None:
    with folder_lock(Shelf(tmp_path).partial_folder(hub.id)) as ours:
        assert ours
        with pytest.raises(EngineError, match="another process"):
            get(hub, tmp_path)
    get(hub, tmp_path)


def test_stopped_on_purpose(hub: StandIn, tmp_path: Path) -> None:
    hub.slow_s = 0.05
    child = start_get(hub, tmp_path)
    wait_until(lambda: any(partial.have > 20_000 for partial in Shelf(tmp_path).unfinished()))
    child.terminate()
    _, error = child.communicate(timeout=60)
    if sys.platform != "win32":
        assert child.returncode == 1 and b"continues where it was" in error
    assert Shelf(tmp_path).unfinished()[0].have > 20_000
