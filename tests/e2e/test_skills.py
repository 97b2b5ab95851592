"""From a table to an answer in another program, with real processes and the real starter."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import psutil
import pytest

from app.node.data.question_sets import stored_sets
from app.skills.skill import Skill
from tests import inside
from tests.e2e.shoal import Running, shoal
from tests.serve.served import served

TABLES = {
    "Even or odd": [
        (f"Calculate {n} + {m}.", "2" if (n + m) % 2 == 0 else "1") for n in range(6) for m in range(6)
    ],
    "Two more": [(f"What is {n} + 2?", f"{n + 2}") for n in range(40)],
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with both tables, the first one as a choice."""
    file, folder = tmp_path / "table.csv", tmp_path / "home"
    for (name, rows), check in zip(TABLES.items(), ("choice", "number"), strict=True):
        file.write_text("question,answer\n" + "".join(f"{question},{answer}\n" for question, answer in rows))
        added = inside.shoal(
            "questions", "add", file, "--name", name, "--check", check, "--home", tmp_path / "home"
        )
        assert added.returncode == 0, added.stderr
    return folder


def ask(home: Path, name: str, text: str) -> dict[str, object]:
    done = inside.shoal("ask", name, text, "--json", "--home", home)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def assert_answers_alike(home: Path, exported: Path) -> None:
    """llama-cpp-python, which knows the exported file alone, answers the table's rows as Shoal does."""
    llama_cpp = pytest.importorskip("llama_cpp")
    table, labelled = home.parent / "rows.csv", home.parent / "labelled.csv"
    texts = [question for question, _ in TABLES["Two more"]]
    table.write_text("\n".join(["question", *texts]) + "\n")
    done = shoal("ask", "two-more", "--file", table, "--out", labelled, "--home", home)
    assert done.returncode == 0, done.stderr
    with labelled.open(encoding="utf-8-sig") as file:
        here = [row["answer"] for row in csv.DictReader(file)]
    made = next(one.made for one in stored_sets(home) if one.made.name == "Two more")
    model = llama_cpp.Llama(str(exported / "model.gguf"), n_ctx=0, seed=0, verbose=False)
    there = []
    for text in texts:
        asked = [dict(one) for one in Skill(made).prompt(text)]
        said = model.create_chat_completion(asked, temperature=0, repeat_penalty=1, max_tokens=16)
        there.append(said["choices"][0]["message"]["content"].strip())
    model.close()
    alike = sum(one.strip() == other for one, other in zip(here, there, strict=True))
    assert alike >= len(texts) - 1, [
        pair for pair in zip(texts, here, there, strict=True) if pair[1] != pair[2]
    ]


def test_a_table_is_learned_and_asked(home: Path) -> None:
    done = shoal("run", "--solo", "--home", home, "--questions", "Even or odd", "--rounds", "1", "--json")
    (played,) = [event for line in done.stdout.splitlines() if (event := json.loads(line))["event"] == "round"]
    assert done.returncode == 0 and played["lesson"] > 0, done.stderr
    found = ask(home, "Even or odd", "Calculate 1 + 1.")
    labels = found["labels"]
    assert isinstance(labels, dict) and list(labels) == ["1", "2"] and found["answer"] in labels
    assert sum(labels.values()) == pytest.approx(1, abs=0.001) and found["sure"] == max(labels.values())
    other = inside.shoal("ask", "two-more", "What is 1 + 2?", "--home", home)
    assert other.returncode == 1 and "hasn't been learned yet" in other.stderr


@pytest.mark.long
def test_a_table_is_learned_killed_asked_and_called(home: Path) -> None:
    node = Running("--home", home, "--questions", "Even or odd", "--questions", "Two more", "--rounds", "3")
    assert node.wait_for_kind("checkpoint")["round"] == 1
    for process in (*psutil.Process(node.process.pid).children(recursive=True), node.process):
        process.kill()
    node.process.wait()
    done = shoal(
        *("run", "--solo", "--home", home, "--questions", "Even or odd", "--questions", "Two more"),
        *("--rounds", "2", "--json"),
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    rounds = [(event["round"], event["lesson"] > 0) for event in events if event["event"] == "round"]
    assert done.returncode == 0 and rounds == [(2, True), (3, True), (1, True), (2, True)], done.stderr

    rows = [question for question, _ in TABLES["Even or odd"]][:4]
    told = {text: ask(home, "Even or odd", text) for text in rows}
    for found in told.values():
        labels = found["labels"]
        assert isinstance(labels, dict) and list(labels) == ["1", "2"]
    free = ask(home, "two-more", "What is 5 + 2?")
    assert free["labels"] == {} and free["of"] == 8 and isinstance(free["answer"], str)
    assert shoal("ask", "two-more", "  ", "--home", home).returncode == 1

    to = home.parent / "out"
    done = shoal(
        *("export", "--skill", "two-more", "--format", "ollama", "--kind", "f32", "--json"),
        *("--home", home, to),
    )
    assert done.returncode == 0, done.stderr
    assert "What is 0 + 2?" in (to / "README.md").read_text()
    assert_answers_alike(home, to)

    with served(home) as server:
        assert server.models == ["starter", "puzzles", "even-or-odd", "two-more"]
        for text, found in told.items():
            said = server.chat(model="even-or-odd", messages=[{"role": "user", "content": text}])
            assert said["choices"][0]["message"]["content"] == found["answer"]
        said = server.chat(model="two-more", messages=[{"role": "user", "content": "What is 5 + 2?"}])
        assert said["choices"][0]["message"]["content"].strip() == free["answer"]
