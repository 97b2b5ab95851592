"""Puts files of wheels in place: the program that the pack's Python runs, several at a time. It reads an order
from standard input and tells bytes on standard output; it ends when no one listens any more.

    {"wheels": [{"path": FILE, "sha256": DIGEST, "members": [[NAME IN THE WHEEL, FILE TO WRITE], ...],
                 "records": {NAME IN THE WHEEL: TEXT TO WRITE INSTEAD, ...}}, ...]}

    1048576
    {"damaged": FILE}
    {"errno": 28, "strerror": "No space left on device", "path": FILE}

Only the standard library is used, for any Python that a pack can have. What goes where was decided, and
checked, by app.install.packs.wheels; here the digest of each wheel is checked once more, on the very file
that is then unpacked.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import zipfile
import zlib
from typing import Any

PIECE = 2**18
"""Bytes that are unpacked at a time."""
TELL = 2**22
"""Bytes between two reports."""


def main() -> int:
    order = json.load(sys.stdin)
    told = 0
    for wheel in order["wheels"]:
        try:
            told = unpack(wheel, told)
        except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError):
            say({"damaged": wheel["path"]})
            return 1
        except BrokenPipeError:
            return 1
        except OSError as error:
            said = {"errno": error.errno, "strerror": error.strerror or str(error)}
            say({**said, "path": error.filename or wheel["path"]})
            return 1
    say(told)
    return 0


def unpack(wheel: dict[str, Any], told: int) -> int:
    """Writes a wheel's files and returns the bytes not reported yet."""
    made: set[str] = set()
    with open(wheel["path"], "rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != wheel["sha256"]:
            raise zipfile.BadZipFile
        with zipfile.ZipFile(file) as archive:
            for name, to in wheel["members"]:
                folder = os.path.dirname(to)
                if folder not in made:
                    os.makedirs(folder, exist_ok=True)
                    made.add(folder)
                info = archive.getinfo(name)
                told += info.file_size
                if name in wheel["records"]:
                    with open(to, "wb") as out:
                        out.write(wheel["records"][name].encode("utf-8"))
                    continue
                told = write(archive, info, to, told)
                if info.external_attr >> 16 & 0o111:
                    os.chmod(to, 0o755)
    return told


def write(archive: zipfile.ZipFile, info: zipfile.ZipInfo, to: str, told: int) -> int:
    with archive.open(info) as member, open(to, "wb", buffering=0) as out:
        while piece := member.read(PIECE):
            view = memoryview(piece)
            while view:
                view = view[out.write(view) :]
            if info.file_size > TELL:
                say(len(piece))
                told -= len(piece)
    if told > TELL:
        say(told)
        told = 0
    return told


def say(what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    sys.exit(main())
