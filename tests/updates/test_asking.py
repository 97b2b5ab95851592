"""Asking a host that misbehaves: what is believed, what is remembered, and what it learns of this computer."""

from __future__ import annotations

import asyncio
import socket
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.common.connection import Fault, _followed
from app.common.rate import RetryLimit
from app.install import InstallError
from app.install.updates import asking as known
from app.install.updates import installed
from app.install.updates.asking import Known, ask
from tests.packs.wheels import Host
from tests.updates.releases import LIST, NOW, plain, release, signed, trust

QUICK = RetryLimit(attempts=2, first_s=0.01, longest_s=0.05, silent_s=10.0)


def look(host: Host, home: Path, now: Any = NOW, **changed: Any) -> Known:
    if changed:
        host.files.update(release(**changed))
    return ask(home, trust(f"{host.url}/{LIST}"), now, QUICK)


def refused(host: Host, home: Path, **changed: Any) -> str:
    before = known.read_known(home)
    with pytest.raises(InstallError) as caught:
        look(host, home, **changed)
    said = str(caught.value)
    after = known.read_known(home)
    assert said.endswith(".") and "\n" not in said
    assert after.sentence == said and (after.serial, after.offer) == (before.serial, before.offer)
    return said


def test_a_newer_version_is_offered(host: Host, tmp_path: Path) -> None:
    found = look(host, tmp_path)
    assert found.offer is not None and found.offer.version == "0.2.0"
    assert found.offer.page == "https://example.org/shoal"
    assert found == known.read_known(tmp_path)


def test_the_newest_needs_nothing(host: Host, tmp_path: Path) -> None:
    assert look(host, tmp_path, version=installed.version()).offer is None
    assert look(host, tmp_path, version="0.0.9", serial=6).offer is None


def test_an_older_list_is_refused(host: Host, tmp_path: Path) -> None:
    look(host, tmp_path, serial=7)
    assert "number 6, and number 7 was here before" in refused(host, tmp_path, serial=6)
    assert known.read_known(tmp_path).serial == 7
    assert look(host, tmp_path, serial=8).serial == 8
    (tmp_path / known.KNOWN_FILE).write_text("{ broken")
    assert look(host, tmp_path, serial=9).serial == 9


def test_an_expired_list_is_refused_and_nothing_else_stops(host: Host, tmp_path: Path) -> None:
    look(host, tmp_path)
    late = NOW + timedelta(days=200)
    assert "wasn't renewed" in refused(host, tmp_path, now=late)
    assert known.read_known(tmp_path).offer is not None


def test_a_mirror_steps_in(host: Host, tmp_path: Path) -> None:
    host.files["old.json"], host.files["old.json.sig"] = signed(plain(expires=NOW - timedelta(hours=1)))
    places = trust("https://shoal.invalid/x.json", f"{host.url}/none.json", f"{host.url}/old.json")
    with pytest.raises(InstallError, match="can't be reached: check the network"):
        ask(tmp_path, places, NOW, QUICK)
    both = trust(f"{host.url}/old.json", f"{host.url}/{LIST}")
    assert ask(tmp_path, both, NOW, QUICK).offer is not None


def test_a_list_of_somebody_else_is_refused(host: Host, tmp_path: Path) -> None:
    host.files[f"{LIST}.sig"] = b"0" * 128
    assert "signed by the makers" in refused(host, tmp_path)


def test_hosts_that_misbehave_are_named(host: Host, tmp_path: Path) -> None:
    del host.files[f"{LIST}.sig"]
    assert "127.0.0.1 has no list of new versions" in refused(host, tmp_path)
    host.files.update(release())
    host.files[LIST] += b" " * 2**17
    assert "sends more" in refused(host, tmp_path)
    host.status = [(500, {})] * 2
    assert "answers 500" in refused(host, tmp_path)
    host.status = [(503, {})]
    host.files.update(release())
    assert look(host, tmp_path).offer is not None


def test_a_networks_login_page_is_told_from_a_list(host: Host, tmp_path: Path) -> None:
    host.files["page.html"] = host.files["page.html.sig"] = b"<html>log in</html>"
    with pytest.raises(InstallError, match="open a browser and log in"):
        ask(tmp_path, trust(f"{host.url}/page.html"), NOW, QUICK)
    host.files[LIST] = host.files[f"{LIST}.sig"] = b"<html>log in</html>"
    assert "isn't signed" in refused(host, tmp_path), "also where it is sent as if it were a file"


def test_the_request_says_nothing_about_this_computer(tmp_path: Path) -> None:
    """Word for word, and again after an answer that tried to leave a mark."""
    head = ["HTTP/1.1 200 OK", 'ETag: "you"', "Set-Cookie: you=1", "Content-Length: 1", "Connection: close"]
    answer = "\r\n".join([*head, "", "x"]).encode()
    with serving_raw(answer) as one:
        for _ in range(2):
            with pytest.raises(InstallError):
                ask(tmp_path, trust(f"{one.url}/{LIST}"), NOW, QUICK)
        shown = trust(f"{one.url}/{LIST}").request.split("\n\n")  # on the page Privacy
        for asked, told in zip(one.asked[:2], shown, strict=True):
            assert sorted(asked.decode().split("\r\n")) == ["", "", *sorted(told.split("\n"))]
            assert asked.decode().startswith(told.split("\n")[0])
        assert one.asked[2:] == one.asked[:2], "it cannot tell the second question from the first"


def test_a_proxy_that_wants_a_login_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with serving_raw(answer) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(InstallError, match="asks for a name and a password"):
            ask(tmp_path, trust("https://shoal.invalid/x.json"), NOW, QUICK)


def test_a_redirect_to_another_host_is_followed_and_believed_no_more(host: Host, tmp_path: Path) -> None:
    with redirecting(f"{host.url}/") as one:
        places = trust(f"{one.url}/{LIST}")
        assert ask(tmp_path, places, NOW, QUICK).offer is not None
        host.files[LIST] = host.files[LIST].replace(b"0.2.0", b"0.9.0")
        host.files[f"{LIST}.sig"] = b"0" * 128
        with pytest.raises(InstallError, match="isn't signed"):
            ask(tmp_path, places, NOW, QUICK)


def test_a_way_without_encryption_is_not_followed() -> None:
    from types import SimpleNamespace

    from yarl import URL

    def hop(frm: str, to: str) -> None:
        answer = SimpleNamespace(headers={"Location": to})
        asyncio.run(_followed(None, None, SimpleNamespace(url=URL(frm), response=answer)))  # type: ignore[arg-type]

    hop("https://one.org/a", "https://two.org/a")
    hop("https://one.org/a", "/b")
    hop("http://one.org/a", "http://two.org/a")
    for to in ("http://one.org/a", "//evil.org/a".replace("//", "http://"), "ftp://one.org/a"):
        with pytest.raises(Fault, match="without encryption"):
            hop("https://one.org/a", to)


def test_a_disk_that_refuses_says_so(host: Host, tmp_path: Path) -> None:
    (tmp_path / known.KNOWN_FILE).mkdir()
    with pytest.raises(InstallError, match="can't be written"):
        look(host, tmp_path)


def test_a_question_is_due_once_a_day() -> None:
    day = 24 * 3600.0
    answered = Known(asked=1000.0, answered=1000.0)
    assert not answered.due(1000.0 + day - 1) and answered.due(1000.0 + day)
    failed = Known(asked=2000.0, answered=1000.0)
    assert not failed.due(2000.0 + 3600) and failed.due(2000.0 + 5 * 3600)
    assert Known().due(1.0) is False or Known().due(day)


class serving_raw:
    """A host that answers every connection with the same bytes and keeps what it was asked."""

    def __init__(self, answer: bytes) -> None:
        self.answer, self.asked = answer, []  # type: ignore[var-annotated]

    def __enter__(self) -> serving_raw:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def _run(self) -> None:
        while True:
            try:
                one, _ = self.socket.accept()
            except OSError:
                return
            with one:
                self.asked.append(one.recv(65536))
                one.sendall(self._answer(self.asked[-1]))

    def _answer(self, asked: bytes) -> bytes:
        return self.answer


class redirecting(serving_raw):
    """A host that sends everybody on to the same name elsewhere."""

    def __init__(self, to: str) -> None:
        super().__init__(b"")
        self._to = to

    def _answer(self, asked: bytes) -> bytes:
        name = asked.split(b" ")[1].decode().lstrip("/")
        head = ["HTTP/1.1 302 Found", f"Location: {self._to}{name}", "Content-Length: 0", "Connection: close"]
        return "\r\n".join([*head, "", ""]).encode()
