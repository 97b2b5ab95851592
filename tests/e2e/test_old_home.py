"""A data folder as an earlier version left it: nothing is lost, and everything goes on.

tests/data/home-format-2.zip is the first of two nodes that learned together for five rounds, and once more
while the relay was away. The model is the starter with rank 1, four groups a round and three families, which
keeps the safe point small; its key is sealed with PASSPHRASE, as versions before this one could, and two
settings are not the usual ones.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.node.data.home import model_mark
from app.node.history import history
from app.node.models.trained import newest
from app.node.rules.preferences import Preferences
from app.swarm.client.outbox import Outbox
from app.ui.view.settings import Choices
from tests.e2e.conftest import STARTER
from tests.e2e.shoal import QUICK_PROBES, ROOT, checkpoints, shoal

PASSPHRASE = "a home of format two"
NAME = "clean-buck-5878"
PROBED = [0.30078125, 0.296875, 0.31640625, 0.3203125]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with zipfile.ZipFile(ROOT / "tests" / "data" / "home-format-2.zip") as archive:
        archive.extractall(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    folder = shutil.copytree(STARTER, tmp_path / "starter")
    own = json.loads((folder / "shoal.json").read_text()) | {"rank": 1, "groups": 4}
    own["families"] = {name: own["families"][name] for name in ("chain_sum", "gcd", "spell_backward")}
    (folder / "shoal.json").write_text(json.dumps(own))
    assert model_mark(folder) == "27034a7a"
    return folder


def check_past(home: Path, same_ladder: bool = True) -> None:
    """The six rounds of before, in the window's eyes."""
    found = history.read(history.newest(home))
    rounds = found.rounds[:6]
    assert [one.round for one in rounds] == [1, 2, 3, 4, 5, 6] and [one.run for one in rounds] == [1] * 5 + [2]
    assert [one.informative_own for one in rounds] == [2, 3, 3, 4, 4, 4]
    assert [one.taken for one in rounds] == [0, 2, 2, 2, 2, 0]
    assert rounds[0].train_solved == 0.0625 and rounds[-1].answered == 32 and rounds[-1].solved == 9
    if same_ladder:
        assert [point.share for point in found.curve[:4]] == PROBED
    assert [run.first_round for run in found.runs[:2]] == [1, 6] and found.runs[0].outcome == "rounds"
    old = [group for group in found.groups if group.round <= 6]
    assert len(old) == 32 and len([group for group in old if group.peer]) == 8
    assert all(len(group.rewards_G) == 8 for group in old)


def test_the_window_shows_it_before_any_node_has_opened_it(home: Path, small: Path) -> None:
    file = next(home.glob("models/*/history.sqlite"))
    before = file.read_bytes()
    check_past(home)
    found = newest(home, small, home / "copy")
    assert (found.state.round, found.own_groups, found.peer_groups) == (6, 20, 8)
    assert found.first is not None and found.last is not None
    assert (found.first.share, found.last.share) == (PROBED[0], PROBED[-1])
    assert file.read_bytes() == before, "reading changes nothing"


def test_what_was_chosen_and_what_waits_to_be_sent(home: Path) -> None:
    assert Preferences(home).values["idle_s"] == 120
    assert (Choices(home)["theme"], Choices(home)["company"]) == ("dark", "others")
    with closing(Outbox(home / "outbox.sqlite")) as outbox:
        counts = outbox.counts()
    assert (counts.created, counts.waiting, counts.accepted) == (20, 4, 16)


def test_the_next_round_goes_on_and_the_past_stays(home: Path, small: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    restored = shoal("identity", "restore", "--json", "--home", home, input=PASSPHRASE + "\n")
    assert json.loads(restored.stdout)["name"] == NAME, restored.stderr
    options = ("--relay", "ws://127.0.0.1:9", "--rounds", "1", "--home", home, "--model", small, "--json")
    done = shoal("run", *options, *QUICK_PROBES)
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert next(event["name"] for event in seen if event["event"] == "identity") == NAME
    assert [event["round"] for event in seen if event["event"] in ("start", "round")] == [6, 7]
    probed = [event["round"] for event in seen if event["event"] == "probe"]
    assert probed == [6, 7], "another ladder, another curve"
    assert sorted(folder.name for folder in checkpoints(home).iterdir()) == ["round-000006", "round-000007"]
    check_past(home, same_ladder=False)
    with closing(sqlite3.connect(next(home.glob("models/*/history.sqlite")))) as db:
        assert db.execute("SELECT count(*) FROM rounds").fetchone() == (7,)
        records = [json.loads(record) for (record,) in db.execute("SELECT record FROM probes ORDER BY rowid")]
        assert [one["pass_at_1"] for one in records[:4]] == PROBED, "the curve of before is kept"
    assert history.read(history.newest(home)).rounds[-1].round == 7
