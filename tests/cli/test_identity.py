"""`./shoal identity`, with and without a terminal, and what it never does unasked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from app.node.data.contents import kind_of_entry
from app.node.data.home import lock_data_folder
from app.swarm.identity.identity import Identity
from tests import inside

ROOT = Path(__file__).parents[2]
MINE = Identity(bytes(range(32)))
ENVIRONMENT = {**os.environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
"""Nobody's own keyring is touched."""


def shoal(home: Path, *arguments: str | Path, said: str = "") -> subprocess.CompletedProcess[str]:
    return inside.shoal("identity", "--home", home, *arguments, said=said)


def told(home: Path, *arguments: str, said: str = "") -> dict[str, str]:
    done = shoal(home, "--json", *arguments, said=said)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def typed(home: Path, *arguments: str, answer: str) -> tuple[int, str]:
    """In a terminal, with this typed into it. Returns the exit code and all that stands there."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "identity", "--home", home, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    return process.wait(60), seen.decode()


def refusal(done: subprocess.CompletedProcess[str], code: int = 1) -> str:
    assert done.returncode == code and done.stdout == "" and "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_asking_who_one_is_makes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "no identity yet" in shoal(home).stdout
    assert told(home) == {"name": "", "public_key": "", "kept": "", "file": ""}
    assert "identity new" in refusal(shoal(home, "show", "--yes"))
    assert not home.exists()


def test_words_bring_a_name_back_on_another_computer(tmp_path: Path) -> None:
    made = told(tmp_path / "a", "new")
    words = shoal(tmp_path / "a", "show", "--yes").stdout
    assert Identity.from_words(words).name == made["name"]
    back = told(tmp_path / "b", "restore", said=words.replace(" ", "\n").upper())
    assert (back["name"], back["public_key"], back["kept"]) == (made["name"], made["public_key"], "plain")
    assert Path(back["file"]).parent == tmp_path / "b"
    assert shoal(tmp_path / "b").stdout.splitlines()[0] == made["name"]


def test_no_answer_holds_a_secret_that_was_not_asked_for(tmp_path: Path) -> None:
    shoal(tmp_path, "restore", said=MINE.words())
    answers = [
        shoal(tmp_path),
        shoal(tmp_path, "--json"),
        shoal(tmp_path, "show"),
        shoal(tmp_path, "show", "--json", "--yes"),
        shoal(tmp_path, "restore", "--json", said=MINE.words()),
    ]
    assert [done.returncode for done in answers] == [0, 0, 2, 2, 0]
    for done in answers:
        assert MINE.seed().hex() not in done.stdout + done.stderr
        assert not set(MINE.words().split()[:-1]) & set((done.stdout + done.stderr).split())


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal as POSIX has them")
def test_in_a_terminal_words_are_shown_after_a_yes_alone(tmp_path: Path) -> None:
    shoal(tmp_path, "restore", said=MINE.words())
    code, seen = typed(tmp_path, "show", answer="no\n")
    assert code == 1 and "Nothing was done" in seen and MINE.words().split()[3] not in seen.split()
    code, seen = typed(tmp_path, "show", answer="yes\n")
    shown = [word for word in seen.rpartition("[y/N] ")[2].split() if word.isalpha()]
    assert code == 0 and sorted(shown) == sorted(MINE.words().split())
    assert f" 1 {MINE.words().split()[0]}" in seen and f"24 {MINE.words().split()[-1]}" in seen


@pytest.mark.skipif(os.name == "nt", reason="needs a terminal as POSIX has them")
def test_in_a_terminal_another_name_is_replaced_after_a_yes_alone(tmp_path: Path) -> None:
    old = told(tmp_path, "new")["name"]
    code, seen = typed(tmp_path, "restore", answer=f"{MINE.words()}\nno\n")
    assert code == 1 and f"You are {old} now" in seen and f"Become {MINE.name}" in seen
    assert told(tmp_path)["name"] == old
    assert typed(tmp_path, "restore", answer=f"{MINE.words()}\nyes\n")[0] == 0
    assert told(tmp_path)["name"] == MINE.name


def test_without_a_terminal_another_name_is_replaced_only_when_that_is_said(tmp_path: Path) -> None:
    old = told(tmp_path, "new")["name"]
    for arguments, said in ((["new"], ""), (["restore"], MINE.words())):
        line = refusal(shoal(tmp_path, *arguments, said=said))
        assert old in line and "--yes" in line
    assert told(tmp_path)["name"] == old
    assert told(tmp_path, "restore", "--yes", said=MINE.words())["name"] == MINE.name
    assert told(tmp_path, "restore", said=MINE.words())["name"] == MINE.name, "it is the same: nothing to ask"
    assert told(tmp_path, "new", "--yes")["name"] not in (old, MINE.name)


WRONG_WORDS = [
    ("", "No words came in"),
    ("\n\n", "No words came in"),
    ("zoo " * 23, "these are 23"),
    ("zoo " * 24, "together they are no key"),
    ("zoo shole " * 12, "Word 2 isn't"),
    ("a\0b \x1b[2J" * 500, "Word 1 isn't"),
    ("x" * 100_000, "Word 1 isn't"),
]


def test_wrong_words_change_nothing(tmp_path: Path) -> None:
    mine = told(tmp_path, "new")
    for said, why in WRONG_WORDS:
        line = refusal(shoal(tmp_path, "restore", "--yes", said=said))
        assert why in line and "zoo" not in line and "\x1b" not in line
    assert told(tmp_path) == mine


def test_a_running_node_keeps_its_name(tmp_path: Path) -> None:
    mine = told(tmp_path, "new")
    with lock_data_folder(tmp_path):
        for arguments, said in ((["new", "--yes"], ""), (["restore", "--yes"], MINE.words())):
            assert "stop it" in refusal(shoal(tmp_path, *arguments, said=said))
        assert told(tmp_path) == mine
        assert shoal(tmp_path, "show", "--yes").returncode == 0, "reading is for any time"


@pytest.mark.parametrize("which", ["identity.json", "key-*.secret"])
def test_a_damaged_file_is_kept_aside_and_words_mend_it(tmp_path: Path, which: str) -> None:
    shoal(tmp_path, "restore", said=MINE.words())
    (file,) = tmp_path.glob(which)
    file.write_bytes(b"\xff\x00 damaged")
    assert "identity restore" in refusal(shoal(tmp_path, "show", "--yes"))
    assert told(tmp_path, "restore", said=MINE.words())["name"] == MINE.name
    (aside,) = tmp_path.glob("damaged-*")
    assert aside.read_bytes() == b"\xff\x00 damaged" and kind_of_entry(aside.name) is not None
    assert shoal(tmp_path, "show", "--yes").stdout.strip() == MINE.words()


def test_a_key_that_an_earlier_version_sealed_opens_once_with_its_passphrase(tmp_path: Path) -> None:
    with zipfile.ZipFile(ROOT / "tests" / "data" / "home-format-2.zip") as archive:
        archive.extractall(tmp_path)
    assert told(tmp_path)["kept"] == "file"
    assert "identity restore" in refusal(shoal(tmp_path, "show", "--yes"))
    assert "doesn't open" in refusal(shoal(tmp_path, "restore", said="wrong horse\n"))
    found = told(tmp_path, "restore", said="a home of format two\n")
    assert (found["name"], found["kept"]) == ("clean-buck-5878", "plain")
    words = shoal(tmp_path, "show", "--yes").stdout
    assert Identity.from_words(words).name == found["name"]


def test_words_are_no_arguments(tmp_path: Path) -> None:
    done = shoal(tmp_path, "restore", *MINE.words().split())
    assert done.returncode == 2 and not list(tmp_path.iterdir())
