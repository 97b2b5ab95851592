from __future__ import annotations

import sys
from pathlib import Path

import pytest

from app.install.launcher import environment, install, pythons, system
from app.install.launcher.progress import ProgressLine, clock
from app.install.launcher.pythons import SetupError

LOG = Path("/somewhere/shoal-setup.log")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            [
                "Collecting numpy==2.4.6",
                "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError'",
                "ERROR: Could not find a version that satisfies the requirement numpy==2.4.6 (from versions:)",
                "ERROR: No matching distribution found for numpy==2.4.6",
            ],
            "could not download numpy 2.4.6 because the package server could not be reached",
        ),
        (
            ["ERROR: No matching distribution found for torch==2.13.0"],
            "found no ready-made build of torch 2.13.0 for",
        ),
        (
            ["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"],
            "could not install its packages because the disk, or the folder for temporary files, is full",
        ),
        (
            ["WARNING: Retrying (Retry(total=4)) SSLError(CERTIFICATE_VERIFY_FAILED)", "ERROR: No matching"],
            "set PIP_CERT",
        ),
        (["ERROR: Something new", "note: more about it"], "for pip stopped (ERROR: Something new)"),
        ([], "for pip stopped (nothing said)"),
    ],
)
def test_what_pip_says_becomes_one_sentence(said: list[str], sentence: str) -> None:
    explained = install.explain(said, LOG)
    assert sentence in explained
    assert explained.startswith("Shoal ") and explained.endswith("start Shoal again: it continues from here.")
    assert "\n" not in explained


def test_progress_counts_packages_and_widens_for_those_that_come_along(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ProgressLine(total=2) as progress:
        for line in (
            "Requirement already satisfied: msgspec==0.22.0 in /somewhere",
            "Collecting torch==2.13.0 (from -r base.txt (line 3))",
            "  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (31 kB)",
            "Collecting nvidia-cublas<14,>=13 (from torch==2.13.0->-r base.txt (line 3))",
            "  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (900.1 MB)",
            "Installing collected packages: nvidia-cublas, torch",
        ):
            install.show(line, progress)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split("  ")[-1] for line in err.splitlines()] == [
        "2 of 2: torch 2.13.0",
        "3 of 3: nvidia-cublas",
        "downloading torch (900.1 MB)",
        "putting 2 packages in place",
        "done",
    ]


def test_elapsed_time_reads_as_minutes_and_seconds() -> None:
    assert [clock(seconds) for seconds in (0, 9.9, 75, 3600)] == ["0:00", "0:09", "1:15", "60:00"]


@pytest.mark.skipif(sys.platform == "win32", reason="uses a shell script as interpreter")
def test_a_python_without_ensurepip_lends_its_own_pip(
    tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian splits ensurepip off; its system Python may still have pip."""
    python = debian_python(tmp_path)
    folder = tmp_path / "venv"
    environment._make_venv(str(python), folder)
    inside = folder / "bin" / "python"
    assert not install.has_pip(str(inside))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    with ProgressLine(1) as progress:
        pip = install.pip_of(inside, str(python))
        install.install(pip, ["--no-index", "tinydep==1.0"], progress, tmp_path / "log")
    assert list(folder.glob("lib/*/site-packages/tinydep/__init__.py"))


@pytest.mark.skipif(sys.platform == "win32", reason="uses a shell script as interpreter")
def test_without_any_pip_the_exact_command_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "has_pip", lambda python: False)
    monkeypatch.setattr(system, "manager", lambda: "apt-get")
    monkeypatch.setattr(system, "privilege", lambda: None)
    version = ".".join(map(str, sys.version_info[:2]))
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
        f'exec "{pythons.own()}" "$@"\n'
    )
    python.chmod(0o755)
    return python
