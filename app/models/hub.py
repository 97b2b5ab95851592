"""Asking a hub, or a mirror of it. The requests say "shoal" and the access token, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from app.common import fetch
from app.common.connection import Fault
from app.common.retry import Patience
from engines.models import hub
from engines.models.hub import DownloadPlan, HubError, HubFile


class Hub:
    """`token` goes there alone, and never over a line that others can read. Raises HubError."""

    def __init__(self, endpoint: str = "", token: str | None = None) -> None:
        self.endpoint = hub.checked_endpoint(endpoint)
        parts = urlsplit(self.endpoint)
        self.host = parts.hostname or self.endpoint
        safe = parts.scheme == "https" or parts.hostname in ("127.0.0.1", "localhost", "::1")
        self.headers = {"Authorization": f"Bearer {token}"} if token and safe else {}
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
            raise HubError("HF_HUB_OFFLINE is set, which forbids every download: unset it and try again.")

    def plan(self, id: str, revision: str, patience: Patience, waiting: fetch.Waiting) -> DownloadPlan:
        """The files to fetch. Raises HubError."""
        with self._sentences(id):
            question = hub.question(self.endpoint, id, revision)
            (description,) = fetch.ask([(question, hub.DESCRIPTION)], patience, waiting, self.headers)
        return hub.read(self.host, id, description)

    def bring(
        self,
        plan: DownloadPlan,
        to: Path,
        heard: fetch.Heard,
        waiting: fetch.Waiting,
        patience: Patience,
        came: Callable[[fetch.Piece], object],
    ) -> None:
        """All of a plan's files (see app.common.fetch). Raises HubError, and OSError."""
        orders = [fetch.PieceOrder(piece, [self._address(plan, piece)]) for piece in plan.pieces]
        with self._sentences(plan.id):
            fetch.bring(orders, to, heard, waiting, patience, self.headers, came)

    def _address(self, plan: DownloadPlan, piece: HubFile) -> str:
        return hub.address(self.endpoint, plan.id, plan.commit, piece.file)

    @contextmanager
    def _sentences(self, id: str) -> Iterator[None]:
        try:
            yield
        except Fault as caught:
            said = hub.refusal(self.host, id, caught.status, caught.code, bool(self.headers))
            raise HubError(said or str(caught)) from caught
