from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.packs.wheels import Host, serving
from tests.updates.releases import release


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("NO_PROXY", "")


@pytest.fixture
def host() -> Iterator[Host]:
    with serving(Host(release())) as one:
        yield one
