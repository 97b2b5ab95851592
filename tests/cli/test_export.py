"""`./shoal export`: what was learned leaves the data folder whole, with a card that says only what is known."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from app.cli.export import FORMATS as OFFERED
from app.models.export import FORMATS
from app.models.shelf import locate
from app.node.data.home import model_folder, model_mark
from app.node.history import checkpoint
from app.node.history.resume import HISTORY
from app.node.history.store import Store
from app.node.models import card, exporting, trained
from app.node.models.exporting import ExportRequest, export
from app.node.record.errors import NodeError
from app.node.record.records import Probe, Round
from app.node.record.state import NodeState
from app.sapo import curriculum
from app.sapo.sets.checks import guess_rule
from app.sapo.sets.question_set import QuestionSet
from app.sapo.sets.question_set import Row as TableRow
from app.skills.skill import Skill
from engines.contract import Batch, Row, TokenSequence
from engines.models.gguf import gguf
from engines.torch_lora import open_engine
from tests import inside

ROOT = Path(__file__).parents[2]
STARTER = locate("starter")
SEQUENCE = TokenSequence(prompt_T=[40, 66, 77, 68, 19, 11, 18], completion_T=[20, 4, 19, 1])
ROW = Row(prompt_T=[40, 66, 77], completion_T=[20, 4, 19, 1], weights_T=[1.0, 1.0, -0.5, 1.0])


def state(round: int) -> NodeState:
    return NodeState(
        round=round, curriculum=curriculum.start({"gcd": 1, "chain_sum": 2}), identity="abc",
        completions=128 * round, tokens=900 * round, steps=round, seconds=300.0 * round, saved_at=1.0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A data folder with two safe points and a history that is one round ahead, and the engine's log-probs."""
    home = tmp_path_factory.mktemp("home")
    mark = model_mark(STARTER)
    folder = model_folder(home, "starter", mark)
    engine = open_engine(STARTER, seed=1, device="cpu")
    store = Store(folder / HISTORY)
    run = store.begin_run(1, {"recipe": "default", "learning_rate": 5e-4}, {"name": "torch", "device": "CPU"})
    for round in (1, 2, 3):
        row = Round(
            round=round, run=run, at=1.0, seconds=2.0, informative_own=10, train_solved=0.2, peers={"a": round}
        )  # fmt: skip
        store.add_round(row, [])
    for round, share in ((0, 0.21), (2, 0.34), (3, 0.99)):
        store.add_probe(
            Probe(
                round=round, questions_mark="m", at=1.0, questions=256, share=share, stderr=0.025,
                families={"gcd": share},
            )
        )  # fmt: skip
    store.close()
    for round in (1, 2):
        engine.step(Batch(rows_S=[ROW], learning_rate=0.05))
        unfinished = checkpoint.begin(folder / "checkpoints", round)
        engine.save(unfinished)
        checkpoint.seal(unfinished, mark, state(round))
        checkpoint.publish(unfinished, folder / "checkpoints", round)
    return home, engine.logprobs([SEQUENCE])[0]


@pytest.fixture
def home(learned: tuple[Path, list[float]], tmp_path: Path) -> Path:
    """One of the test's own to spoil."""
    shutil.copytree(learned[0], tmp_path / "home")
    return tmp_path / "home"


def safe_points(home: Path) -> list[Path]:
    return checkpoint.newest_first(next((home / "models").iterdir()) / "checkpoints")


def shoal(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return inside.shoal("export", *arguments, SHOAL_HOME=str(home))


def wish(to: Path, format: str = "peft", **more: Any) -> ExportRequest:
    return ExportRequest(model="starter", format=format, to=to, **more)


def test_the_command_offers_what_there_is() -> None:
    assert tuple(OFFERED) == tuple(FORMATS) == tuple(card.FORMATS)


def test_json_for_a_window(learned: tuple[Path, list[float]], tmp_path: Path) -> None:
    """Progress, then what lies where; and llama.cpp computes with it what the engine did."""
    done = shoal("--format", "ollama", "--kind", "f32", "--json", str(tmp_path / "out"), home=learned[0])
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    shares = [event["share"] for event in events if event["event"] == "progress"]
    assert shares == sorted(shares) and shares[-1] == 1.0
    last = events[-1]
    assert last["event"] == "exported" and last["round"] == 2 and last["pass_at_1"] == 0.34
    assert set(last["files"]) == {"model.gguf", "Modelfile", "README.md"}
    from tests.engines.llama import logits

    tokens = SEQUENCE.prompt_T + SEQUENCE.completion_T
    found = np.array(logits(tmp_path / "out" / "model.gguf", tokens), dtype=np.float64)
    found -= np.log(np.exp(found).sum(1, keepdims=True))
    first = len(SEQUENCE.prompt_T) - 1
    got = [float(found[first + at, token]) for at, token in enumerate(SEQUENCE.completion_T)]
    assert got == pytest.approx(learned[1], rel=1e-3, abs=1e-3)


@pytest.mark.skipif(os.name != "posix", reason="the stand-in is a shell script")
def test_ollama_is_handed_what_its_modelfile_names(
    learned: tuple[Path, list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a stand-in with the command line of Ollama's program: one that takes it, one that isn't running."""
    program, told = tmp_path / "bin" / "ollama", tmp_path / "told"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    def handed(name: str, script: str) -> tuple[int, dict[str, Any]]:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        out = str(tmp_path / name)
        done = shoal("--format", "ollama", "--create", "--json", out, home=learned[0])
        return done.returncode, json.loads(done.stdout.splitlines()[-1])

    takes = (
        f'echo "$1 $2 $3" > {told}; cd "$(dirname "$4")" && head -c 4 "$(sed -n "s/^FROM //p" "$4")" >> {told}'
    )
    code, last = handed("My Minnow", takes)
    assert (code, last["event"]) == (0, "exported")
    assert told.read_text() == "create my-minnow -f\nGGUF"
    code, last = handed("later", "echo Error: could not connect to ollama app >&2; exit 1")
    assert (code, last["event"]) == (1, "refused")
    assert last["sentence"].startswith(
        "Ollama didn't take it (Error: could not connect to ollama app): start Ollama"
    )
    assert (tmp_path / "later" / "model.gguf").is_file(), "the export stays"


def test_refusals_on_the_command_line(learned: tuple[Path, list[float]], tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    refused = shoal("--format", "peft", "--json", str(tmp_path / "full"), home=learned[0])
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["event"] == "refused" and "is there already" in refused.stdout
    assert refused.stderr.startswith("shoal: ") and len(refused.stderr.splitlines()) == 1
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["mine.txt"]
    empty = shoal("--format", "peft", str(tmp_path / "out"), home=tmp_path / "nowhere")
    assert empty.returncode == 1 and "Nothing was learned yet" in empty.stderr and not empty.stdout
    assert not (tmp_path / "nowhere").exists()
    assert shoal("--format", "pickle", str(tmp_path / "out"), home=learned[0]).returncode == 2
    assert shoal("--format", "peft", home=learned[0]).returncode == 2


def test_the_card(learned: tuple[Path, list[float]], tmp_path: Path) -> None:
    """Scores of the exported round, not of one that is not in it; the licence; nothing of this computer."""
    done = export(learned[0], wish(tmp_path / "out"), lambda news: None)
    text = (tmp_path / "out" / "README.md").read_text()
    assert done.round == 2 and "after the safe point" not in text
    for said in (
        "license: apache-2.0",
        "safe point after round 2",
        "| before training | 21.0 % ± 2.5 |",
        "| **after round 2** | **34.0 % ± 2.5** |",
        "| chain_sum | 2 |",
        "20 groups of its own answers and 3 of peers'",
        "recipe: default",
        "256 held-out questions",
        "10 min",
    ):
        assert said in text, said
    assert "99.0" not in text
    for place in (str(learned[0]), str(tmp_path), str(ROOT)):
        assert not any(place.encode() in file.read_bytes() for file in (tmp_path / "out").iterdir())


@pytest.mark.parametrize("format", ["ollama", "gguf", "peft", "merged"])
def test_the_code_on_the_card_runs(
    format: str, learned: tuple[Path, list[float]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a person copies it, with the names of their folders."""
    out, base = tmp_path / "out", tmp_path / "base.gguf"
    if format in ("ollama", "gguf"):
        pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
        gguf.write(STARTER, base, "f32")
    export(learned[0], wish(out, format), lambda news: None)
    (code,) = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text(), re.DOTALL)
    for name, place in (("THIS_FOLDER", out), ("FOLDER_OF_THE_BASE_MODEL", STARTER), ("BASE_MODEL.gguf", base)):
        code = code.replace(name, str(place))
    exec(code, {})  # noqa: S102 - what the card says
    assert capsys.readouterr().out.strip()


def test_a_skills_card_says_how_it_is_asked(learned: tuple[Path, list[float]], tmp_path: Path) -> None:
    """With a row of its table, whatever stands in it, and what one constant answer gets."""
    rows = [TableRow(question=f"CHAT TEXT {n}", answer="spam" if n % 4 else "ham") for n in range(20)]
    rule = guess_rule([row.answer for row in rows])
    made = QuestionSet(name="Mails", rule=rule, rows=tuple(rows), instruction='Say "spam" or "ham".')
    found = trained.newest(learned[0], STARTER, tmp_path / "copy")
    state = msgspec.structs.replace(found.state, way=Skill(made).way)
    found = msgspec.structs.replace(found, state=state)
    text = card.write("ollama", card.BaseModel(name="Starter"), found, "2026-11-28", Skill(made))
    (code,) = re.findall(r"chat = (\[.*?\n\])", text, re.DOTALL)
    assert json.loads(code) == Skill(made).prompt("CHAT TEXT 0")
    assert "ollama run my-model 'CHAT TEXT 0'" in text and "max_tokens=8" in text
    assert '| always saying "spam" | 75.0 % |' in text


def test_without_a_history(home: Path, tmp_path: Path) -> None:
    for file in next((home / "models").iterdir()).glob("history*"):
        file.unlink()
    done = export(home, wish(tmp_path / "out"), lambda news: None)
    assert done.pass_at_1 is None
    assert "It was not measured" in (tmp_path / "out" / "README.md").read_text()
    next((home / "models").iterdir()).joinpath(HISTORY).write_bytes(b"no database" * 100)
    export(home, wish(tmp_path / "again"), lambda news: None)


def test_a_damaged_safe_point_is_passed_over(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, older = safe_points(home)
    (newest / "adapter_model.safetensors").write_bytes(b"\0" * 10)
    assert export(home, wish(tmp_path / "out"), lambda news: None).round == 1
    monkeypatch.setattr(trained, "_PAUSE_S", 0.0)
    (older / "state.json").unlink()
    with pytest.raises(NodeError, match="can't be read") as caught:
        export(home, wish(tmp_path / "none"), lambda news: None)
    assert "\n" not in str(caught.value) and not (tmp_path / "none").exists()
    assert safe_points(home)[0] == newest, "nothing in the data folder is touched"


def test_beside_a_node_that_learns(home: Path, tmp_path: Path) -> None:
    """Safe points are replaced all the time; what is copied is always one whole one."""
    root, stop = safe_points(home)[0].parent, threading.Event()
    source = tmp_path / "source"
    shutil.copytree(safe_points(home)[0], source)
    (source / checkpoint.STATE_FILE).unlink()
    mark = model_mark(STARTER)

    def learn() -> None:
        round = 2
        while not stop.is_set():
            round += 1
            unfinished = checkpoint.begin(root, round)
            shutil.copytree(source, unfinished, dirs_exist_ok=True)
            checkpoint.seal(unfinished, mark, state(round))
            checkpoint.publish(unfinished, root, round)

    node = threading.Thread(target=learn)
    node.start()
    try:
        for number in range(20):
            found = trained.newest(home, STARTER, tmp_path / f"copy-{number}")
            assert checkpoint.read(found.folder, mark) == found.state
    finally:
        stop.set()
        node.join()


def test_whose_licence(tmp_path: Path) -> None:
    assert exporting.base_model("starter", STARTER).licence == "Apache-2.0"
    hub = tmp_path / "models--Qwen--Qwen2.5-0.5B-Instruct" / "snapshots" / "0123"
    shutil.copytree(STARTER, hub)
    known = exporting.base_model("Qwen/Qwen2.5-0.5B-Instruct", hub)
    assert known.on_hub and known.licence and known.licence_url.startswith("https://")
    own = tmp_path / "own"
    shutil.copytree(STARTER, own)
    (own / "README.md").write_text("---\nlanguage: en\nlicense: 'mit'\n---\nlicense: not this\n")
    assert exporting.base_model(str(own), own) == card.BaseModel(name="own", licence="mit")
    (own / "README.md").write_text("license: not a header")
    assert exporting.base_model(str(own), own).licence == ""
