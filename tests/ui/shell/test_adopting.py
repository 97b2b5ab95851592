"""A window over what the command line learned shows one model everywhere, and goes on with it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from app.common.files import write
from app.models.shelf import Shelf, starter_folder
from app.node.data.home import model_folder, model_mark
from app.node.history import history
from app.node.history.store import Store
from app.ui.shell.desktop import choose_last_trained_model
from app.ui.view.settings import Choices

NAME = "Some/Own"


def learned(home: Path, model: Path, name: str) -> Path:
    """What `./shoal run --model` leaves of its first run."""
    folder = model_folder(home, name, model_mark(model))
    folder.mkdir(parents=True)
    Store(folder / history.FILE).close()
    with closing(sqlite3.connect(folder / history.FILE)) as db, db:
        settings = msgspec.json.encode({"model": name}).decode()
        db.execute(
            "INSERT INTO runs (started, first_round, settings, engine) VALUES (1, 1, ?, '{}')", (settings,)
        )
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """With a model that was downloaded."""
    place = Shelf(tmp_path).model_folder(NAME)
    shutil.copytree(starter_folder(), place / "snapshots" / "one")
    write(place / "refs" / "main", b"one")
    return tmp_path


def own(home: Path) -> Path:
    found = Shelf(home).find(NAME)
    assert found is not None
    return found


def test_the_model_of_the_command_line_is_the_chosen_one(home: Path) -> None:
    folder = learned(home, own(home), NAME)
    assert history.model_of(folder) == NAME
    choose_last_trained_model(home, Choices(home))
    assert Choices(home)["model"] == NAME


@pytest.mark.parametrize("why", ["asked", "starter learned too", "gone"])
def test_nothing_is_chosen_for_whoever_has_chosen(home: Path, why: str) -> None:
    learned(home, own(home), NAME)
    choices = Choices(home)
    if why == "asked":
        choices.remember_window(asked=True)
    elif why == "gone":
        shutil.rmtree(own(home))
    else:
        learned(home, starter_folder(), "starter")
    choose_last_trained_model(home, choices)
    assert choices["model"] == "starter"
