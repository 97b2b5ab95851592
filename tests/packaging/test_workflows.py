"""The workflows of the repository: what they may do, that every action is pinned, and that each program which
they call is there and takes the words that it is given. bash really runs their steps, with stand-ins for what
they call."""

from __future__ import annotations

import argparse
import functools
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
SYSTEMS = ("linux", "windows", "macos")
ANSWERS = {
    "runner.temp": "tmp",
    "github.ref_name": "v0.1.0",
    "github.server_url": "https://example.org",
    "github.repository": "some/shoal",
    "github.token": "t",
    "needs.check.outputs.version": "0.1.0",
    "needs.check.outputs.epoch": "1795000000",
    "needs.check.outputs.date": "2026-11-21",
    "steps.check.outputs.epoch": "1795000000",
    "vars.SHOAL_PUBLIC_KEYS": "ab" * 32,
}
STAND_IN = r"""#!/bin/bash
printf '%s\0' "${0##*/}" "$@" END >> "$RECORD"
case "$*" in
  *packaging/release/check*) printf 'version=0.1.0\nepoch=1795000000\n' ;;
  "release view"*) echo v0.1.0 ;;
esac
"""
COMMANDS = ("python", "apt-get", "sudo", "gh", "git", "sha256sum")

Job = dict[str, Any]


@functools.cache
def workflows() -> dict[str, Job]:
    return {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yml"))
    }


def jobs() -> Iterator[tuple[str, str, Job]]:
    for workflow, whole in workflows().items():
        for name, job in whole["jobs"].items():
            yield workflow, name, job


def steps() -> Iterator[tuple[str, Job, Job]]:
    for workflow, name, job in jobs():
        for step in job.get("steps", []):
            yield f"{workflow}.{name}", job, step


def test_every_action_is_pinned_to_one_commit() -> None:
    found: dict[str, set[str]] = {}
    for path in FOLDER.glob("*.yml"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if (used := re.search(r"uses: (\S+)(.*)", line)) and not used[1].startswith("./"):
                assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", used[1]), line
                assert re.fullmatch(r" # v\d+\.\d+\.\d+", used[2]), f"{line}: which version is that?"
                found.setdefault(used[1].split("@")[0], set()).add(used[1])
    assert found and all(len(pins) == 1 for pins in found.values())
    assert all(name.startswith("actions/") for name in found)


def test_nobody_may_do_more_than_it_needs() -> None:
    writers = set()
    for name, whole in workflows().items():
        assert whole["permissions"] in ({}, {"contents": "read"}), name
        assert "concurrency" in whole, name
    for workflow, name, job in jobs():
        allowed = job.get("permissions", {"contents": "read"} if workflow == "tests" else None)
        assert allowed in ({"contents": "read"}, {"contents": "write"}), (workflow, name)
        assert "timeout-minutes" in job or "uses" in job, (workflow, name)
        writers |= {f"{workflow}.{name}"} if allowed == {"contents": "write"} else set()
        for step in job.get("steps", []):
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
            assert not step.get("uses", "").startswith("actions/cache@")
    assert writers == {"release.draft", "renew.renew"}


def test_the_release_key_is_seen_by_the_steps_that_sign_and_by_no_other() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yml"))
    holders = [(where, step) for where, _, step in steps() if "SHOAL_RELEASE_KEY" in json.dumps(step)]
    assert text.count("secrets.SHOAL_RELEASE_KEY") == len(holders) == 3
    for where, step in holders:
        called = re.findall(r"packaging/\S+", step["run"])
        assert called and set(called) <= {"packaging/release/seal", "packaging/release/close"}, where
        assert "SHOAL_RELEASE_KEY" not in step["run"] and "echo" not in step["run"]
    for workflow, name, job in jobs():
        assert "secrets" not in json.dumps({**job, "steps": []}), (workflow, name)
        if any("secrets." in json.dumps(step) for step in job.get("steps", [])):
            assert job["environment"] == "release", (workflow, name)


def test_nothing_is_filled_into_scripts_and_no_host_is_named() -> None:
    """A tag's name filled into a script would be run as part of it."""
    for where, _, step in steps():
        assert "${{" not in step.get("run", ""), where
    for path in FOLDER.glob("*.yml"):
        assert "://" not in path.read_text(encoding="utf-8"), path


def test_the_three_systems_are_tested_and_built_for() -> None:
    matrices = {
        f"{workflow}.{name}": job.get("strategy", {}).get("matrix", {}) for workflow, name, job in jobs()
    }
    assert {name.split("-")[0] for name in matrices["tests.test"]["os"]} == {"ubuntu", "windows", "macos"}
    for name in ("release.wheel", "release.build"):
        assert [row["system"] for row in matrices[name]["include"]] == list(SYSTEMS), name


def rows() -> Iterator[tuple[str, dict[str, str], Job, Job]]:
    """Every step with a script, for each row of its job's matrix."""
    for where, job, step in steps():
        matrix = job.get("strategy", {}).get("matrix", {})
        for row in matrix.get("include", [{"os": one} for one in matrix.get("os", [])] or [{}]):
            system = row.get("system") or SYSTEMS[0]
            if "run" in step and wanted(str(step.get("if", "")), system):
                yield (
                    f"{where} {system}",
                    {f"matrix.{key}": str(value) for key, value in row.items()},
                    job,
                    step,
                )


def wanted(condition: str, system: str) -> bool:
    found = re.fullmatch(r"matrix\.system (==|!=) '(\w+)'", condition)
    return not found or (system == found[2]) == (found[1] == "==")


def answered(value: object, known: dict[str, str]) -> str:
    """What GitHub would put there. Secrets are empty, as in a fork."""

    def one(found: re.Match[str]) -> str:
        text = found[1].strip()
        if choice := re.fullmatch(r"(matrix\.\w+) == '(\w+)' && (\S+) \|\| (\S+)", text):
            text = choice[3] if known[choice[1]] == choice[2] else choice[4]
        return text.strip("'") if text.startswith("'") else known.get(text, "")

    return re.sub(r"\$\{\{(.*?)\}\}", one, str(value))


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, list[str]]]:
    """What the steps call: where, and the words."""
    if not shutil.which("bash") or sys.platform == "win32":
        pytest.skip("needs bash")
    place = tmp_path_factory.mktemp("work")
    (place / "packaging").symlink_to(ROOT / "packaging")
    tools = tmp_path_factory.mktemp("bin")
    for name in COMMANDS:
        (tools / name).write_text(STAND_IN, encoding="utf-8")
        (tools / name).chmod(0o755)
    for name in (
        "engine/p.tar.gz",
        "dist/a.deb",
        "sealed/packs/p.json",
        "resources/x",
    ):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).touch()
    found: list[tuple[str, list[str]]] = []
    for where, row, job, step in rows():
        known = {**ANSWERS, **row}
        given = {
            key: answered(value, known) for key, value in {**job.get("env", {}), **step.get("env", {})}.items()
        }
        if "PYTHON" in given:
            given["PYTHON"] = "python"
        if where.startswith("release.build") and row["matrix.system"] != "linux":
            given["ENGINE"] = "engine/p.tar.gz"
        record = place / "record"
        record.unlink(missing_ok=True)
        outputs = {name: str(place / name) for name in ("GITHUB_OUTPUT", "GITHUB_ENV")}
        surroundings = {"PATH": f"{tools}:{os.environ['PATH']}", "RECORD": str(record), "HOME": str(place)}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=place,
            env={**surroundings, **outputs, "GITHUB_WORKSPACE": str(place), **given},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (where, done.stderr)
        said = record.read_text(encoding="utf-8") if record.exists() else ""
        found += [(where, one.split("\0")) for one in said.split("\0END\0") if one]
    assert "version=0.1.0" in (place / "GITHUB_OUTPUT").read_text(encoding="utf-8")
    return found


class Parsed(Exception):
    pass


def test_every_program_is_there_and_takes_its_words(
    called: list[tuple[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is loaded and reads its arguments with its own parser; what comes after that is not run."""
    parse = argparse.ArgumentParser.parse_args

    def parsed(self: argparse.ArgumentParser, *args: Any, **named: Any) -> argparse.Namespace:
        parse(self, *args, **named)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    monkeypatch.setattr(sys, "path", [*sys.path])
    seen = set()
    for where, words in called:
        if words[0] != "python" or not words[1].startswith("packaging/"):
            continue
        program, given = ROOT / words[1], words[2:]
        assert os.access(program, os.X_OK), (where, program)
        seen.add(words[1])
        with monkeypatch.context() as now:
            now.setattr(sys, "argv", [str(program), *given])
            now.syspath_prepend(str(program.parent))
            loader = importlib.machinery.SourceFileLoader(f"called_{program.name}", str(program))
            spec = importlib.util.spec_from_loader(loader.name, loader)
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            try:
                module.main(*([given] if module.main.__code__.co_argcount else []))
            except Parsed:
                continue
            except SystemExit as error:
                pytest.fail(f"{where}: {' '.join(words)} ends with {error.code}")
            pytest.fail(f"{where}: {' '.join(words)} reads no arguments")
    tools = {
        f"packaging/release/{name}" for name in ("check", "packs", "seal", "python", "try", "close", "sign")
    }
    assert seen == {*tools, "packaging/packs/make", "packaging/packs/wheel", "packaging/build"}


def test_what_the_steps_say_is_what_is_meant(called: list[tuple[str, list[str]]]) -> None:
    build = {where: words for where, words in called if words[1:2] == ["packaging/build"]}
    assert [words[2] for words in build.values()] == list(SYSTEMS)
    for system, words in zip(SYSTEMS, build.values(), strict=True):
        assert words[words.index("--packs") + 1] == f"sealed/trust/{system}/release.json"
        assert ("--engine-python" in words) == (system != "linux")
    (draft,) = [words for _, words in called if words[:3] == ["gh", "release", "create"]]
    assert draft[3] == "v0.1.0" and "--draft" in draft and "--verify-tag" in draft
    for where, words in called:
        if words[0] == "python" and words[1:3] == ["-m", "pip"]:
            assert {"--require-hashes", "--no-deps", "--only-binary"} <= set(words), where
    tried = [words for _, words in called if words[1:2] == ["packaging/release/try"]]
    assert len(tried) == 3 and all("--pack" in words for words in tried)


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    for at, (where, _, step) in enumerate(steps()):
        if "run" in step:
            (tmp_path / f"{where}-{at}.sh").write_text(
                f"#!/bin/bash\nset -eo pipefail\n{step['run']}", encoding="utf-8"
            )
    done = subprocess.run(
        [
            "shellcheck",
            "--severity",
            "style",
            *sorted(tmp_path.glob("*.sh")),
            ROOT / "packaging" / "macos" / "keychain",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_github_can_read_them() -> None:
    schema = pytest.importorskip(
        "check_jsonschema", reason="check-jsonschema, which has GitHub's schema, is not installed"
    )
    del schema
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, *FOLDER.glob("*.yml")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
