from __future__ import annotations

import datetime
import hashlib
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from app.install.launcher import environment, install, mirror, pythons, stamp, system
from app.install.launcher.environment import TOOLS
from app.install.launcher.install import ProgressLine
from app.install.launcher.pythons import SetupError
from tests.launcher.conftest import ROOT


@pytest.mark.skipif(sys.platform == "win32", reason="uses a shell script as interpreter")
def test_a_python_without_ensurepip_lends_its_own_pip(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian splits ensurepip off; its system Python may still have pip."""
    if not install.has_pip(pythons.base_python()):
        pytest.skip("this system's Python has no pip to lend")
    python = debian_python(tmp_path)
    folder = tmp_path / "venv"
    environment._make_venv(str(python), folder)
    inside = folder / "bin" / "python"
    assert not install.has_pip(str(inside))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    tools = tmp_path / "tools"
    shutil.copytree(next((ROOT / TOOLS).glob("uv-*")), tools / next((ROOT / TOOLS).glob("uv-*")).name)
    with ProgressLine() as progress:
        installer = install.Installer(str(ROOT), inside, str(python), tools, tmp_path / "log", None)
        installer.install(["--no-index", "tinydep==1.0"], progress)
    assert list(folder.glob("lib/*/site-packages/tinydep/__init__.py"))


@pytest.mark.skipif(sys.platform == "win32", reason="uses a shell script as interpreter")
def test_without_any_pip_the_exact_command_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "has_pip", lambda python: False)
    monkeypatch.setattr(system, "manager", lambda: "apt-get")
    monkeypatch.setattr(system, "privilege", lambda: None)
    version = ".".join(map(str, sys.version_info[:2]))
    monkeypatch.setattr(system, "by_root", lambda command: f"`sudo {command}`")
    command = f"`sudo apt-get install --yes --no-install-recommends python{version}-venv`"
    with pytest.raises(SetupError) as caught:
        environment._make_venv(str(debian_python(tmp_path)), tmp_path / "venv")
    assert command in str(caught.value)


@dataclass
class Index:
    """A package index on this computer that has `wheel`, but first answers what `faults` says: a status, or how
    it changes the wheel's bytes."""

    wheel: Path
    faults: list[int | Callable[[bytes], bytes]]

    @contextmanager
    def serving(self, certificate: trustme.LeafCert | None = None) -> Iterator[str]:
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wheel = self.path.endswith(".whl")
                content = index.wheel.read_bytes() if wheel else index.page()
                fault = index.faults.pop(0) if wheel and index.faults else 200
                self.send_response(fault if isinstance(fault, int) else 200)
                self.send_header("Content-Type", "application/zip" if wheel else "text/html")
                self.end_headers()
                self.wfile.write(content if isinstance(fault, int) else fault(content))

            do_HEAD = do_GET

            def log_message(self, *words: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http{'' if certificate is None else 's'}://localhost:{server.server_port}/simple/"
        server.shutdown()
        server.server_close()

    def page(self) -> bytes:
        return f'<a href="/{self.wheel.name}#sha256={self.digest}">{self.wheel.name}</a>'.encode()

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.wheel.read_bytes()).hexdigest()


@pytest.fixture
def index(wheels: Path) -> Index:
    return Index(wheels / "tinydep-1.0-py3-none-any.whl", [])


@pytest.fixture
def install_from(tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Installs tinydep from an index by its hash, into a new environment, with the real uv."""

    def install_it(address: str) -> None:
        for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", address)
        folder, tools = tmp_path / "venv", tmp_path / "tools"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        uv = next((ROOT / TOOLS).glob("uv-*"))
        shutil.copytree(uv, tools / uv.name, symlinks=True)
        lock = tmp_path / "lock.txt"
        lock.write_text(f"tinydep==1.0 --hash=sha256:{index.digest}\n")
        python = stamp.python_of(str(tmp_path)).replace(".venv", "venv")
        with ProgressLine() as progress:
            installer = install.Installer(
                str(ROOT), Path(python), pythons.base_python(), tools, tmp_path / "log", None
            )
            installer.install(["-r", str(lock), "--require-hashes"], progress)
        assert list(folder.glob("[lL]ib/**/tinydep/__init__.py"))

    return install_it


def cut(content: bytes) -> bytes:
    return content[:200] + bytes([content[200] ^ 1]) + content[201:]


def other(content: bytes) -> bytes:
    """A wheel all the same."""
    return content[:-2] + b"\x01\x00!"


@pytest.mark.parametrize("fault", [503, cut, other])
def test_what_fails_once_is_fetched_again(
    fault: int | Callable[[bytes], bytes], index: Index, install_from: Callable[[str], None]
) -> None:
    index.faults.append(fault)
    with index.serving() as address:
        install_from(address)


def test_a_file_that_stays_another_is_named_by_its_hash(
    index: Index, install_from: Callable[[str], None]
) -> None:
    index.faults += [other] * 9
    wrong = hashlib.sha256(other(index.wheel.read_bytes())).hexdigest()
    with index.serving() as address, pytest.raises(SetupError) as caught:
        install_from(address)
    assert f"tinydep 1.0 came garbled, twice (sha256 {wrong[:12]}..., not {index.digest[:12]}...)" in str(
        caught.value
    )


@pytest.mark.parametrize("days", [(-9, -1), (2, 9)])
def test_a_wrong_clock_is_not_called_a_proxy(
    days: tuple[int, int],
    index: Index,
    install_from: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authority, now = trustme.CA(), datetime.datetime.now(datetime.UTC)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "authority.pem"))
    since, until = (now + datetime.timedelta(day) for day in days)
    certificate = authority.issue_cert("localhost", not_before=since, not_after=until)
    with index.serving(certificate) as address, pytest.raises(SetupError, match="set the clock") as caught:
        install_from(address)
    assert "proxy" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "HTTP status server error (503 Service Unavailable) for url (http://x/)",
            "out of order (it answers 503)",
        ),
        ("ERROR: No matching distribution found for uv==1 (from versions: none)", "server is out of order"),
        ("invalid peer certificate: UnknownIssuer", "PIP_CERT"),
        (
            "cause: Could not persist temporary file `/x`\n  cause: Operation not permitted (os error 1)",
            "move Shoal's folder to another disk",
        ),
    ],
)
def test_what_lasts_is_told_apart(said: str, words: str, tmp_path: Path) -> None:
    assert words in install.explain_failure([said], tmp_path / "log")


def debian_python(folder: Path) -> Path:
    """This Python, with ensurepip taken away."""
    python = folder / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "  *--without-pip*) ;;\n"
        '  *"venv.main"*) echo "ensurepip is not available"; exit 1 ;;\n'
        "esac\n"
        f'exec "{pythons.base_python()}" "$@"\n'
    )
    python.chmod(0o755)
    return python


def test_a_mirror_that_only_uv_knows_is_pips_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "uv.toml").write_text(
        '[[index]]\nurl = "https://of-the-file/simple"\ndefault = true\n[pip]\nfind-links = ["/a", "/b"]\n'
    )
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE", "UV_FIND_LINKS", "UV_NO_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "https://of-pip/simple")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    found = mirror.settings(pythons.base_python())
    pip, uv = mirror.for_pip(found, tmp_path), mirror.for_uv(found, tmp_path)
    assert pip["PIP_INDEX_URL"] == uv["UV_DEFAULT_INDEX"] == "https://of-the-file/simple"
    assert (pip["PIP_FIND_LINKS"], uv["UV_FIND_LINKS"]) == ("/a /b", "/a,/b") and uv["UV_NO_CONFIG"] == "1"
    assert "PYTHONWARNINGS" not in {**pip, **uv}
    for name in ("UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, f"own=https://of-{name}/simple")
        assert mirror.uv_settings()["index-url"] == f"https://of-{name}/simple"


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded", "pypi.org"),
        ("error sending request for url (http://ada:secret@mirror.example:81/simple/)", "mirror.example:81"),
        ("Network is unreachable", "the package server"),
    ],
)
def test_a_server_that_cannot_be_reached_is_named_with_the_settings_of_a_mirror(said: str, named: str) -> None:
    sentence = install.explain_failure([said], Path("log"))
    assert f"because {named} could not be reached" in sentence and "secret" not in sentence
    assert "PIP_INDEX_URL" in sentence and "UV_DEFAULT_INDEX" in sentence


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no lib64")
def test_a_disk_without_links_gets_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As exFAT refuses them (ENOSYS)."""
    unlinked = "import os\ndef symlink(*a, **k): raise OSError(38, 'not implemented')\nos.symlink = symlink\n"
    monkeypatch.setattr(environment, "_VENV", unlinked + environment._VENV)
    assert environment._venv(sys.executable, tmp_path / "venv", "--without-pip") == ""
    python = tmp_path / "venv" / "bin" / "python"
    said = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True)
    assert said.stdout.strip() == str(tmp_path / "venv") and not python.is_symlink()
