from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.packs.wheels import Host, serving, wheel, with_uv


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("NO_PROXY", "")


@pytest.fixture
def files() -> dict[str, bytes]:
    """Two wheels, one of them larger than a slice."""
    return dict([wheel("shoal_small"), wheel("shoal_large", fill=300_000)])


@pytest.fixture
def host(files: dict[str, bytes]) -> Iterator[Host]:
    with serving(Host(with_uv(files))) as one:
        yield one
