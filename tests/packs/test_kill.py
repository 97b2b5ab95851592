"""kill -9 in the middle of an installation: what was in use stays in use, and the next attempt goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.install.packs import place
from tests.packs.wheels import KEYS, Host, plain, wheel

ROOT = Path(__file__).parents[2]
LARGE = "shoal_large-1.0-py3-none-any.whl"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")


class Updating:
    """The command, run again and again until it comes to its end."""

    def __init__(self, folder: Path, manifest: str) -> None:
        self.packs = folder / "packs"
        key = folder / "key"
        key.write_text(KEYS[0] + "\n")
        command = [sys.executable, "-m", "app.cli", "pack", "install", "--json"]
        self.command = [*command, "--manifest", manifest, "--key", str(key)]
        self.environment = {**os.environ, "SHOAL_PACKS": str(self.packs)}

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command,
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def kill_at(self, percent: int, later_s: float, everything: bool, wanted: str = "") -> str:
        """Where it was; "end" when it was faster. `everything` also ends what it had started."""
        stage = ""
        with self.start() as process:
            for line in process.stdout or ():
                event = json.loads(line)
                stage = event.get("stage", stage)
                if event.get("percent", 0) >= percent and wanted in ("", stage):
                    break
            else:
                return "end"
            time.sleep(later_s)
            (os.killpg if everything else os.kill)(process.pid, signal.SIGKILL)
            process.wait(60)
        return stage

    def finish(self) -> list[dict[str, object]]:
        done = subprocess.run(
            self.command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def version(self) -> str:
        """What the pack in use imports; empty where none is."""
        used = place.current(self.packs).current
        if not used:
            return ""
        code = "import shoal_small, shoal_large; print(shoal_small.VERSION)"
        python = place.interpreter(self.packs / used)
        return subprocess.check_output([python, "-I", "-c", code], text=True).strip()


@pytest.fixture
def updating(host: Host, tmp_path: Path) -> Updating:
    host.slow_s = 0.02
    return Updating(tmp_path, host.offer(plain(host.files)))


@pytest.mark.parametrize("percent, stage", [(40, "fetch"), (80, "make")])
def test_a_killed_installation_goes_on(percent: int, stage: str, updating: Updating, host: Host) -> None:
    fetching = stage == "fetch"  # making is over in a moment on a fast computer
    assert updating.kill_at(percent, 0.05 * fetching, fetching, stage) == stage
    assert updating.version() == ""
    before = len(host.asked)
    events = updating.finish()
    assert events[-1]["event"] == "done" and updating.version() == "1.0"
    wheels = [(name, wanted) for name, wanted in host.asked[before:] if name.endswith(".whl")]
    if stage == "fetch":
        assert wheels[0][0] == LARGE and int(wheels[0][1].removeprefix("bytes=").rstrip("-")) > 50_000
    assert len(wheels) == (stage == "fetch")
    assert not (updating.packs / ".work").exists() and not list(updating.packs.glob(".removing-*"))


def test_whoever_is_asked_to_stop_leaves_nothing_running(updating: Updating) -> None:
    with updating.start() as process:
        for line in process.stdout or ():
            if json.loads(line).get("stage") == "make":
                break
        while process.poll() is None and not psutil.Process(process.pid).children():
            time.sleep(0.005)
        process.terminate()
        assert process.wait(60) == 1
        said = process.stderr.read() if process.stderr else ""
    with place.alone(updating.packs, lambda: None, 30.0):  # nobody else holds it
        pass
    assert "continues where it was" in said and said.count("\n") == 1
    assert updating.version() == "" and updating.finish()[-1]["event"] == "done"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_an_update_survives_ten_random_kills(seed: int, updating: Updating, host: Host, tmp_path: Path) -> None:
    updating.finish()
    assert updating.version() == "1.0"
    newer = dict([wheel("shoal_small", "2.0"), wheel("shoal_large", "2.0", fill=300_000)])
    host.files.update(newer)
    update = Updating(tmp_path, host.offer(plain(newer, version="2.0"), "newer.json"))
    chance, killed = random.Random(seed), []
    for turn in range(10):
        percent = chance.choice([chance.randrange(100), chance.randrange(76, 100)])
        killed.append(update.kill_at(percent, chance.uniform(0, 0.4), everything=turn % 2 == 0))
        assert update.version() in ("1.0", "2.0"), killed
    update.finish()
    assert update.version() == "2.0" and len(set(killed)) > 1, killed
    assert len(place.packs(update.packs)) == 1
