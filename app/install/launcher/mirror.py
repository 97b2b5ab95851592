"""Where packages come from: what the user told pip or uv about indexes, proxies and certificates.

Both get only these settings: a `target` or `prefix` in pip's configuration would put packages in another place.
A mirror that only uv knows counts for pip too, because pip downloads uv."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from app.common.process.surroundings import PYTHONS_OWN

PASSED_ON = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "trusted-host": "UV_INSECURE_HOST",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
"""pip's settings that also apply here, with uv's environment variable for each."""

_SHARED = tuple(name for name in PASSED_ON.values() if name and not name.startswith("UV_"))
"""Variables that other programs read too. uv gets them as they are, pip only what is in its own settings."""

_FROM_UV = {"UV_INDEX_URL": "index-url", "UV_EXTRA_INDEX_URL": "extra-index-url"} | {
    variable: name for name, variable in PASSED_ON.items() if variable.startswith("UV_")
}
_NAMES = {"allow-insecure-host": "trusted-host"} | {name: name for name in PASSED_ON}
"""pip's names for the keys of uv.toml."""


def settings(python: str) -> dict[str, str]:
    """Returns the user's settings of a mirror by pip's names: uv's, else pip's."""
    return {**pip_settings(python), **uv_settings()}


def uv_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns uv's settings by pip's names: from UV_* variables, else from the user's uv.toml, else from the
    system's. A file that cannot be read counts as empty; an index's name, which pip does not know, is left out.

    >>> uv_settings({"UV_NO_CONFIG": "1", "UV_INDEX": "own=https://a/simple", "UV_FIND_LINKS": "/b,/c"})
    {'extra-index-url': 'https://a/simple', 'find-links': '/b /c'}
    """
    found: dict[str, str] = {}
    for file in [] if environment.get("UV_NO_CONFIG") else _uv_files(environment):
        try:
            found |= _in_file(tomllib.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue
    for variable, name in _FROM_UV.items():
        if text := environment.get(variable, "").replace(",", " "):
            found[name] = " ".join(re.sub(r"^[\w.-]+=(?=\w+:|[/.])", "", word) for word in text.split())
    return found


def _uv_files(environment: Mapping[str, str]) -> list[Path]:
    """Returns the places of uv.toml, the system's first."""
    if own := environment.get("UV_CONFIG_FILE"):
        return [Path(own)]
    if sys.platform == "win32":
        folders = [environment.get("PROGRAMDATA"), environment.get("APPDATA")]
    else:
        home = environment.get("HOME")
        folders = ["/etc", environment.get("XDG_CONFIG_HOME") or (home and f"{home}/.config")]
    return [Path(folder, "uv", "uv.toml") for folder in folders if folder]


def _in_file(content: Mapping[str, object]) -> dict[str, str]:
    """Returns the settings in the content of a uv.toml.

    >>> _in_file({"index": [{"url": "https://a", "default": True}, {"url": "https://b"}], "cache-dir": "/c"})
    {'index-url': 'https://a', 'extra-index-url': 'https://b'}
    """
    pip = content.get("pip")
    found: dict[str, str] = {}
    for key, value in [*content.items(), *(pip.items() if isinstance(pip, dict) else ())]:
        if name := _NAMES.get(key):
            found[name] = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    indexes = content.get("index")
    named = [one for one in indexes if isinstance(one, dict)] if isinstance(indexes, list) else []
    for name, default in (("index-url", True), ("extra-index-url", False)):
        if urls := [str(one["url"]) for one in named if one.get("url") and bool(one.get("default")) is default]:
            found[name] = " ".join(urls)
    return found


def pip_settings(python: str) -> dict[str, str]:
    """Returns the user's pip settings that are in PASSED_ON, by their long names: from PIP_* variables, else
    from a configuration file for `install`, else for all commands. Empty if pip fails."""
    done = subprocess.run(
        [python, "-I", "-m", "pip", "config", "list"],
        cwd=os.path.dirname(python),  # one's own may be gone, or hold a file with the name of a module
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=without_pythons_own(os.environ),
    )
    found: dict[str, tuple[int, str]] = {}
    for line in done.stdout.splitlines():
        place, _, text = line.partition("=")
        section, _, name = place.rpartition(".")
        rank = {"global": 0, "install": 1, ":env:": 2}.get(section)
        if rank is None or name not in PASSED_ON or found.get(name, (-1, ""))[0] > rank:
            continue
        try:
            found[name] = (rank, str(ast.literal_eval(text)))
        except (SyntaxError, ValueError):
            continue
    return {name: text for name, (_, text) in found.items() if text}


def for_pip(settings: Mapping[str, str], tmp: Path) -> dict[str, str]:
    """Returns the environment variables for a pip that uses these settings and no others."""
    variables = without_pythons_own(os.environ, "PIP_", "UV_")
    variables.update({"PIP_" + name.upper().replace("-", "_"): text for name, text in settings.items()})
    return {
        **variables,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_USER": "0",
        "PYTHONUNBUFFERED": "1",
        "PYTHONUTF8": "1",
        "TMPDIR": str(tmp),
    }


def for_uv(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Returns the environment variables for a uv that uses these settings, by pip's names, and nothing
    else. Its cache and temporary files are below `folder`.

    >>> for_uv({"find-links": "/a /b", "target": "/c"}, Path("/d"))["UV_FIND_LINKS"]
    '/a,/b'
    """
    own = {name: text for name, text in os.environ.items() if name in (*_SHARED, "UV_NATIVE_TLS")}
    told = {
        PASSED_ON[name]: ",".join(text.split()) if name == "find-links" else " ".join(text.split())
        for name, text in settings.items()
        if PASSED_ON.get(name)
    }
    return {
        **without_pythons_own(os.environ, "PIP_", "UV_"),
        **told,
        **own,
        "UV_NO_CONFIG": "1",
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip does; every file's hash is known beforehand
        "UV_CACHE_DIR": str(folder / "cache"),
        "UV_NO_PROGRESS": "1",
        "TMPDIR": str(folder / "tmp"),
    }


def without_pythons_own(variables: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    return {
        name: text
        for name, text in variables.items()
        if name not in PYTHONS_OWN and not name.startswith(prefixes or ("\0",))
    }
