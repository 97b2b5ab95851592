"""Signs one program in its place: `sign.py FILE`, with the command in the variable SHOAL_SIGN.

In the command {file} stands for the program. A tool that writes a second file gets its name as {signed}:

    signtool sign /fd SHA256 /td SHA256 /tr http://timestamp.digicert.com /n "The Shoal authors" {file}
    osslsigncode sign -pkcs12 key.p12 -readpass word -h sha256 -n Shoal -in {file} -out {signed}
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

VARIABLE = "SHOAL_SIGN"


class SignError(Exception):
    """A program was not signed; the message says which and why."""


def sign(program: Path, command: str, windows: bool = os.name == "nt") -> None:
    """Signs the program in place with `command`. Raises SignError and leaves the program unchanged."""
    fresh = program.with_name(f"{program.name}.signed")
    try:
        words = [word.format(file=program, signed=fresh) for word in split(command, windows)]
        if not any("{file}" in word for word in split(command, windows)):
            raise SignError(f"{VARIABLE} names no {{file}}: put that where the program's path belongs.")
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            said = done.stdout.decode("utf-8", "replace").strip().splitlines() or ["nothing said"]
            raise SignError(
                f"{program.name} was not signed ({said[-1][:300]}): put that right, then build again."
            )
        if fresh.exists():
            fresh.replace(program)
    except (OSError, KeyError, IndexError, ValueError) as error:
        raise SignError(f"{program.name} was not signed ({error}): put {VARIABLE} right.") from error
    finally:
        fresh.unlink(missing_ok=True)


def split(command: str, windows: bool) -> list[str]:
    """Splits a command into words; with `windows`, a backslash is an ordinary character, as in paths.

    >>> split(r'"C:\\\\Kits 10\\\\signtool.exe" sign /n "The authors" {file}', True)
    ['C:\\\\\\\\Kits 10\\\\\\\\signtool.exe', 'sign', '/n', 'The authors', '{file}']
    """
    lexer = shlex.shlex(command, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    if windows:
        lexer.escape = ""
    return list(lexer)


if __name__ == "__main__":
    try:
        sign(Path(sys.argv[1]), os.environ.get(VARIABLE, ""))
    except SignError as wrong:
        sys.exit(f"packaging/windows/sign.py: {wrong}")
