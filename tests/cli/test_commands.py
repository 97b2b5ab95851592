"""The dispatcher: what is said, on which output, with which exit code."""

from __future__ import annotations

import argparse
import errno
import os
import pty
import subprocess
import sys
import types
from pathlib import Path

import pytest

from app.cli import __main__ as cli
from app.cli import _saying
from app.install.launcher.start import SETUP_HELP
from app.sapo.questions import QuestionError
from engines.contract import EngineError
from tests import inside

ROOT = Path(__file__).parents[2]


def shoal(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def add(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, main: object, **more: object) -> None:
    """A command of the test's own, beside no others."""
    command = types.ModuleType(f"app.cli.{name}")
    command.SUMMARY = f"{name} something"  # type: ignore[attr-defined]
    command.add_arguments = lambda parser: parser.add_argument("--json", action="store_true")  # type: ignore[attr-defined]
    command.main = main  # type: ignore[attr-defined]
    vars(command).update(more)
    (folder / f"{name}.py").write_text(f"import a_library_that_is_missing\nSUMMARY = '{name} something'\n")
    monkeypatch.setitem(sys.modules, command.__name__, command)
    monkeypatch.setattr(cli, "FOLDER", folder)


def test_help_lists_the_commands_and_imports_none_of_them() -> None:
    asks = (
        "import sys; from app.cli.__main__ import main; code = main(['--help', 'all']);"
        "print(code, [name for name in ('torch', 'msgspec', 'rich', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", asks], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert "./shoal doctor" in done.stdout and "./shoal test" in done.stdout and "./shoal setup" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 []"


def test_help_begins_with_what_people_use_and_every_command_says_what_it_does() -> None:
    first, everything = cli.overview(), cli.overview(everything=True)
    assert "./shoal chat" in first and "./shoal bench" not in first and "--help all" in first
    assert "./shoal bench" in everything and set(cli.EVERYDAY) <= set(cli.commands())
    assert [name for name in cli.commands() if not cli.summary(name)] == []


def test_what_people_read_has_80_columns_and_whole_words(tmp_path: Path) -> None:
    asked = [["--help"], ["--help", "all"], ["models"], ["remove", "--list"], ["data"]]
    for words in (*asked, *([name, "--help"] for name in cli.commands())):
        done = inside.shoal(*words, COLUMNS="80", SHOAL_HOME=str(tmp_path))
        assert (done.returncode, done.stderr) == (0, ""), words
        wide = [line for line in done.stdout.splitlines() if len(line) > 80 and " " in line.strip()]
        assert wide == [], "a terminal would break these inside words"
    assert max(map(len, SETUP_HELP.splitlines())) <= 80


def test_an_installed_app_has_no_commands_for_its_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {"test", "translations", "run"} <= set(cli.commands())
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert not {"test", "translations"} & set(cli.commands()) and "run" in cli.commands()
    assert cli.main(["test"]) == 2 and "There is no command test" in capsys.readouterr().err
    assert "shoal test" not in cli.overview(True) and "shoal lab" in cli.overview(True)


def test_a_command_that_cannot_be_imported_is_still_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(monkeypatch, tmp_path, "swim", lambda args: 0)
    assert "./shoal swim" in cli.overview(everything=True)


def test_options_without_a_command_go_to_the_node() -> None:
    done = inside.shoal("--jason")
    assert done.returncode == 2
    assert (
        done.stderr == "shoal run: It does not know --jason (did you mean --json?); see ./shoal run --help.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["doktor"], "shoal: There is no command doktor; did you mean doctor? ./shoal --help lists "),
        (
            ["swim", "--jsn"],
            "shoal swim: It does not know --jsn (did you mean --json?); see ./shoal swim --help.",
        ),
        (
            ["swim", "--js"],
            "shoal swim: It does not know --js (did you mean --json?); see ./shoal swim --help.",
        ),
        (["swim", "far"], "shoal swim: It does not know far; see ./shoal swim --help."),
        (
            ["swim", "--depth", "x"],
            "shoal swim: Argument --depth: invalid int value: 'x'; see ./shoal swim --help.",
        ),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")
        parser.add_argument("--depth", type=int)

    add(monkeypatch, tmp_path, "swim", lambda args: 0, add_arguments=add_arguments)
    add(monkeypatch, tmp_path, "doctor", lambda args: 0)
    try:
        code = cli.main(arguments)
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith(sentence) and len(err.splitlines()) == 1


def test_arguments_and_exit_code_go_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[argparse.Namespace] = []
    add(monkeypatch, tmp_path, "swim", lambda args: seen.append(args) or 4)
    assert cli.main(["swim", "--json"]) == 4
    assert seen == [argparse.Namespace(json=True)]


def test_alone_it_starts_learning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[argparse.Namespace] = []

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--solo", action="store_true")

    add(monkeypatch, tmp_path, "run", lambda args: seen.append(args) or 0, add_arguments=add_arguments)
    assert cli.main([]) == 0
    assert seen == [argparse.Namespace(solo=True)]


def test_an_error_for_the_owner_becomes_its_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(args: argparse.Namespace) -> int:
        raise EngineError("The model folder x has no config.json; choose another with --model.")

    add(monkeypatch, tmp_path, "swim", fails)
    monkeypatch.delenv("SHOAL_DEBUG", raising=False)
    assert cli.main(["swim"]) == 1
    assert capsys.readouterr() == (
        "",
        "shoal: The model folder x has no config.json; choose another with --model.\n",
    )
    monkeypatch.setenv("SHOAL_DEBUG", "1")
    assert cli.main(["swim"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    add(monkeypatch, tmp_path, "swim", interrupted)
    assert cli.main(["swim"]) == 1
    assert capsys.readouterr().err == "shoal: Stopped.\n"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            QuestionError("There is no family x; see ./shoal doctor."),
            ["There is no family x; see ./shoal doctor."],
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "/data/x"),
            ["/data/x", "No space left", "Free some space"],
        ),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), ["/root/x", "yours to read and write"]),
        (MemoryError(), ["memory", "smaller model"]),
        (ModuleNotFoundError("No module named 'peft'", name="peft"), ["peft", "./shoal setup"]),
        (TypeError("two\nlines"), ["fault in Shoal", "TypeError: two lines", "SHOAL_DEBUG=1"]),
    ],
)
def test_every_error_is_a_sentence(error: Exception, words: list[str]) -> None:
    said = _saying.sentence(error)
    assert all(word in said for word in words), said
    assert "\n" not in said and said.endswith(".")


@pytest.mark.skipif(os.name == "nt", reason="head is a POSIX tool")
def test_a_reader_that_leaves_is_no_error() -> None:
    done = subprocess.run(
        f"'{sys.executable}' -c \"import sys; sys.path.insert(0, '.'); from app.cli import __main__ as c;"
        "c.overview = lambda everything: 'x' * 10**6; sys.exit(c.main(['--help']))\" | head -c 1",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("x", "")


def test_pytest_gets_its_arguments_and_gives_its_exit_code() -> None:
    done = shoal("test", "--collect-only", "-q", "-k", "nothing_is_called_this", "tests/common/test_home.py")
    assert done.returncode == 5 and "deselected" in done.stdout
    assert "usage: shoal test" in inside.shoal("test", "--help").stdout


def test_a_language_that_was_set_is_spoken_to_a_person_at_a_terminal_and_to_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "window.json").write_text('{"language": "de"}')
    errors = {}
    for terminal in (True, False):
        screen, side = pty.openpty()
        reader, writer = os.pipe()
        subprocess.run(
            [sys.executable, "-m", "app.cli", "run", "--home", str(tmp_path), "--model", "nowhere"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stderr=side if terminal else writer,
            timeout=240,
        )
        errors[terminal] = os.read(screen if terminal else reader, 4096).decode()
    assert errors[True].startswith("shoal: Bei nowhere ist kein Modell")
    assert errors[False].startswith("shoal: There is no model at nowhere")
