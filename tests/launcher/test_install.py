from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from app.install.launcher import environment, install, mirror, pythons, system
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


def debian_python(folder: Path) -> Path:
    """This Python, with ensurepip taken away."""
    python = folder / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "  *--without-pip*) ;;\n"
        '  *"-m venv"*) echo "ensurepip is not available"; exit 1 ;;\n'
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
        (
            "HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded",
            "pypi.org",
        ),
        ("error sending request for url (http://ada:secret@mirror.example:81/simple/)", "mirror.example:81"),
        ("Network is unreachable", "the package server"),
    ],
)
def test_a_server_that_cannot_be_reached_is_named_with_the_settings_of_a_mirror(said: str, named: str) -> None:
    sentence = install.explain_failure([said], Path("log"))
    assert f"because {named} could not be reached" in sentence and "secret" not in sentence
    assert "PIP_INDEX_URL" in sentence and "UV_DEFAULT_INDEX" in sentence
