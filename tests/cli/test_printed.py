"""Every command line that README, CONTRIBUTING and the help pages print is one that Shoal takes, and does."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import __main__ as cli
from app.common.process import streams

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "resources" / "help").rglob("*.md")))
BY_THE_LAUNCHER = ("setup", "COMMAND", "help")
STANDS_FOR = {
    "S": "3",
    "N": "2",
    "P": "32",
    "E": "torch",
    "LINK": "ws://127.0.0.1:1/v1/ws",
    "URL": "ws://127.0.0.1:1/v1/ws",
    "DIR": "a-folder",
    "FOLDER": "a-folder",
    "FILE": "a-file",
    "OUT": "out",
    "NAME": "starter",
    "KEY": "a" * 64,
    "nats://HOST,HOST,HOST": "nats://one,two",
}
"""What the placeholders of the pages stand for here."""

ENDS = {
    "data": 0,
    "doctor": 0,
    "identity": 0,
    "models": 0,
    "run --solo --rounds 1 --json": 0,
    "trial": 0,
    "bench puzzles": 0,
    "update": 0,
    "export --format gguf": 1,  # nothing has been learned yet
    "relay status --state a-folder": 1,  # no relay runs there
}
"""Commands that end by themselves, started in a new home, with the exit code that the pages promise."""


def printed() -> list[tuple[str, str]]:
    """(page, command line) of everything in code that begins with ./shoal."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for line in re.findall(r"\./shoal[^`\n]*", text):
            line = re.split(r"\s{2,}|\s+#|\s+>|\s+\|\s|[;,.]?$", line)[0]
            line = re.sub(r"(\w+)\|\w+", r"\1", re.sub(r"[\[\]]", "", line))  # a synopsis: the first of each
            found.append((str(page.relative_to(ROOT)), line.removeprefix("./shoal").strip()))
    return sorted(set(found))


def parsed(words: list[str]) -> None:
    """Raises SystemExit where the command does not take these words."""
    place = cli._files()[words[0]].relative_to(cli.FOLDER).with_suffix("")
    command = importlib.import_module(".".join(["app.cli", *place.parts]))
    parser = cli.Parser(prog=f"shoal {words[0]}")
    command.add_arguments(parser)
    if not getattr(command, "PASSES_ON", False):
        parser.parse_args(words[1:])


@pytest.mark.parametrize(("page", "line"), printed(), ids=lambda text: text.replace(" ", "-") or "alone")
def test_what_a_page_prints_is_taken(page: str, line: str) -> None:
    words = [STANDS_FOR.get(word, word) for word in shlex.split(line)]
    if not words or words[0] in BY_THE_LAUNCHER or words[0].startswith("-"):
        return
    assert words[0] in cli.commands(), f"{page} prints {line}"
    try:
        parsed(words)
    except SystemExit as refused:
        pytest.fail(f"{page} prints {line!r}, which is refused ({refused.code})")


@pytest.mark.long
@pytest.mark.parametrize("line", ENDS)
def test_what_ends_by_itself_ends_as_the_pages_say(line: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app.cli", *line.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SHOAL_HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == ENDS[line], (done.stdout[-300:], done.stderr[-600:])
    assert "Traceback" not in done.stderr and "This is a fault in Shoal" not in done.stderr


def test_what_others_wrote_never_moves_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A set of somebody else: a title for the window, a cleared screen, text that runs the other way."""
    acting = ("\x1b[2J", "\x9b2J", "\r", "\x07", "\u202e", "\x1b]0;mine\x07")
    rows = [{"question": f"{n} {''.join(acting)}?", "answer": f"{n}\x1b[0m"} for n in range(9)]
    file = tmp_path / "set.json"
    file.write_text(json.dumps({"name": f"Sums{acting[0]}", "rule": {}, "rows": rows}))
    command = ["questions", "add", str(file), "--dry-run", "--home", str(tmp_path / "home")]
    assert cli.main(command) == 0
    shown = capsys.readouterr().out
    assert "Sums\u00b7[2J: 9 different questions" in shown and not any(one in shown for one in acting)
    assert cli.main([*command, "--json"]) == 0
    told = capsys.readouterr().out
    assert not any(one in told for one in acting) and json.loads(told)["name"] == f"Sums{acting[0]}"
    monkeypatch.setattr(streams, "plain_text", str)
    assert cli.main(command) == 0 and acting[0] in capsys.readouterr().out, "without that one function"
