"""The workflows of the repository: what they may do, that every action is pinned, and that no step can be
made to run what somebody else wrote."""

from __future__ import annotations

import functools
import json
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
