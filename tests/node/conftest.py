from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from app.node import node
from app.sapo.questions import Coordinates, QuestionError, QuestionPrompt
from app.sapo.scoring.sandbox import Sandbox
from tests.node.bench import Bench


class SharedSandbox:
    """The real sandbox, kept over all tests: its child takes seconds to start."""

    def __init__(
        self, sandbox: Sandbox, suspended: bool = False, late: object = None, sets: object = ()
    ) -> None:
        self._sandbox = sandbox
        if not suspended:  # its child is kept over a beginning with a rest
            sandbox.resume()

    def score(self, coordinates: Coordinates, answers: Sequence[str | None]) -> list[float]:
        return self._sandbox.score(coordinates, answers)

    def questions(
        self, places: Sequence[Coordinates], onward: bool = False, worked: bool = False
    ) -> list[QuestionPrompt | QuestionError]:
        return self._sandbox.questions(places, onward, worked)

    def suspend(self) -> None:
        self._sandbox.suspend()

    def resume(self) -> None:
        self._sandbox.resume()

    def close(self) -> None:
        pass


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> Iterator[Bench]:
    monkeypatch.delenv("FAKE_TROUBLE", raising=False)
    monkeypatch.setattr(node, "Sandbox", partial(SharedSandbox, sandbox))
    yield Bench(tmp_path)
    sandbox.resume()  # a node that ended while it rested left it so
