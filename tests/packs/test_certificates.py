"""Whom we believe over TLS, with real certificates and a real server."""

from __future__ import annotations

import datetime
import functools
import http.server
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.common import authorities
from app.common.rate import RetryLimit
from app.install import InstallError
from app.install.packs import offered
from tests.packs.wheels import KEYS, encoded, plain, wheel, write_out

trustme = pytest.importorskip("trustme", reason="trustme, which makes certificates, is not installed")

QUICK = RetryLimit(attempts=1, first_s=0.01, silent_s=10.0)
NOW = datetime.datetime.now(datetime.UTC)


@contextmanager
def serving(folder: Path, certificate: object) -> Iterator[str]:
    """The folder over https."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)  # type: ignore[attr-defined]

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=folder)
    ) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"https://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(60)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = dict([wheel("shoal_small")])
    files["cpu.json"], files["cpu.json.sig"] = encoded(plain(files))
    return write_out(files, tmp_path / "served")


@pytest.fixture
def authority(tmp_path: Path) -> tuple[object, Path]:
    made = trustme.CA()
    path = tmp_path / "authority.pem"
    made.cert_pem.write_to_path(str(path))
    return made, path


def believing(bundles: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a program whose own OpenSSL knows nobody, on a system that keeps its authorities in these files."""
    for name in authorities.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
    monkeypatch.setattr(ssl.SSLContext, "set_default_verify_paths", lambda *_: None)
    monkeypatch.setattr(
        authorities, "default_context", functools.cache(lambda: authorities.context_of_files(bundles))
    )


def test_the_systems_own_authorities_are_found(
    folder: Path, authority: tuple[object, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = authority
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("nothing")
    believing((str(tmp_path / "none.pem"), str(damaged), str(path)), monkeypatch)
    with serving(folder, made.issue_cert("localhost")) as address:  # type: ignore[attr-defined]
        assert offered.load_manifest(f"{address}/cpu.json", KEYS, QUICK).manifest.name == "cpu"


def test_a_file_that_was_named_goes_first(
    folder: Path, authority: tuple[object, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, path = authority
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    monkeypatch.setattr(
        authorities, "default_context", functools.cache(lambda: authorities.context_of_files(()))
    )
    with serving(folder, made.issue_cert("localhost")) as address:  # type: ignore[attr-defined]
        assert offered.load_manifest(f"{address}/cpu.json", KEYS, QUICK).manifest.name == "cpu"


@pytest.mark.parametrize("fault", ["clock", "stranger", "nobody", "name"])
def test_a_certificate_that_does_not_hold_is_explained(
    fault: str, folder: Path, authority: tuple[object, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, path = authority
    dates = {"not_before": NOW - datetime.timedelta(9), "not_after": NOW - datetime.timedelta(1)}
    host = "example.org" if fault == "name" else "localhost"
    certificate = made.issue_cert(host, **(dates if fault == "clock" else {}))  # type: ignore[attr-defined]
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    believing({"stranger": (str(other),), "nobody": ()}.get(fault, (str(path),)), monkeypatch)
    with serving(folder, certificate) as address, pytest.raises(InstallError) as caught:
        offered.load_manifest(f"{address}/cpu.json", KEYS, QUICK)
    expected = {"clock": "set the clock", "nobody": "Install the package ca-certificates"}
    said = str(caught.value)
    assert expected.get(fault, "isn't trusted") in said and said.endswith(".") and "\n" not in said


def test_a_clock_that_is_behind_is_named() -> None:
    """OpenSSL's own number for a certificate of tomorrow."""
    error = ssl.SSLCertVerificationError("certificate is not yet valid")
    error.verify_code = 9
    assert "is not valid yet, by this computer's clock: set the clock" in authorities.certificate_problem(
        error, "example.org"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system itself is asked")
def test_the_context_checks_names_and_is_made_once() -> None:
    context = authorities.default_context()
    assert context is authorities.default_context()
    assert context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED
