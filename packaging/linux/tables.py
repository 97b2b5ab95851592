"""Removes the data from ICU's library that Qt does not read.

Qt uses ICU to sort names and for time zones; for everything else it has its own data. The ICU data library is
32 MB, mostly names of languages and currencies, converters and dictionaries. This leaves 5 MB, and 1.1 MB
instead of 8.4 in a compressed package. ICU supports reduced data: what is missing falls back to the root
locale.

The library is one constant: a header, then a table of contents (count, then two offsets each: of a name and
of its table, both relative to the count), names, and tables aligned to 16 bytes, the contents sorted by name
(ICU's ucmndata.h)."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

_ALIGNED = 16
_LANGUAGE = re.compile(r"([a-z]{2,3})(_\w+)?\.res")
_FORMAT = 12
"""Offset of "CmnD" in the header."""


def wanted(name: str, languages: Collection[str]) -> bool:
    """Returns whether Qt may read a table; `name` is without the package's name.

    >>> [wanted(name, {"en", "de"}) for name in ("coll/sv.res", "zone/de.res", "zone/sv.res", "pool.res")]
    [True, True, False, True]
    >>> [wanted(name, {"en", "de"}) for name in ("curr/de.res", "brkitr/thai.dict", "euc-jp.cnv", "uts46.nrm")]
    [False, False, False, True]
    """
    folder, _, last = name.rpartition("/")
    if folder not in ("", "coll", "zone"):
        return False
    language = _LANGUAGE.fullmatch(last)
    if folder == "coll" or language is None:
        return last.endswith((".res", ".nrm")) or last in ("ucadata.icu", "cnvalias.icu")
    return language[1] in languages


def read(content: bytes) -> tuple[bytes, dict[str, bytes]]:
    """Parses a data package into its header and its tables by name. Raises ValueError."""
    if content[_FORMAT : _FORMAT + 4] != b"CmnD":
        raise ValueError("This is no package of ICU's tables.")
    (size,) = struct.unpack_from("<H", content)
    body = content[size:]
    (count,) = struct.unpack_from("<I", body)
    places = [struct.unpack_from("<II", body, 4 + 8 * at) for at in range(count)]
    ends = [*(start for _, start in places[1:]), len(body)]
    names = [body[name : body.index(b"\0", name)].decode("ascii") for name, _ in places]
    return content[:size], {
        name: body[start:end] for name, (_, start), end in zip(names, places, ends, strict=True)
    }


def write(header: bytes, tables: Mapping[str, bytes]) -> bytes:
    """Returns a data package with these tables.

    >>> one = write(bytes(12) + b"CmnD" + bytes(16), {"icudt/b.res": b"two", "icudt/a.res": b"one"})
    >>> write(*read(struct.pack("<H", 32) + one[2:])) == struct.pack("<H", 32) + one[2:]
    True
    """
    names = sorted(tables, key=str.encode)
    start = 4 + 8 * len(names)
    spelled, places = b"", []
    for name in names:
        places.append(start + len(spelled))
        spelled += name.encode("ascii") + b"\0"
    contents, body = struct.pack("<I", len(names)), b""
    first = len(header) + start + len(spelled)
    gap = -first % _ALIGNED
    for name, place in zip(names, places, strict=True):
        contents += struct.pack("<II", place, start + len(spelled) + gap + len(body))
        body += tables[name] + bytes(-len(tables[name]) % _ALIGNED)
    return header + contents + spelled + bytes(gap) + body


def shrink(library: Path, languages: Collection[str]) -> None:
    """Replaces an ICU data library by one with only the wanted tables. Raises ValueError if it is not such a
    library, OSError and subprocess.CalledProcessError if the linker is missing or fails."""
    whole = library.read_bytes()
    at = whole.find(b"CmnD") - _FORMAT
    found = re.search(r"libicudata\.so\.(\d+)", library.name)
    if at < 0 or found is None:
        raise ValueError(f"{library.name} holds no package of ICU's tables.")
    header, tables = read(whole[at : at + _extent(library, at)])
    kept = {name: table for name, table in tables.items() if wanted(name.partition("/")[2], languages)}
    with tempfile.TemporaryDirectory() as place:
        data, object_, script = Path(place) / "data", Path(place) / "data.o", Path(place) / "script"
        data.write_bytes(write(header, kept))
        symbol = f"icudt{found[1]}_dat"
        script.write_text(f"{{ global: {symbol}; local: *; }};", "ascii")
        binary: list[str | Path] = ["-b", "binary", "-r", "-z", "noexecstack", "-o", object_, "data"]
        subprocess.run(["ld", *binary], cwd=place, check=True, capture_output=True)
        renamed = [
            *("--rename-section", ".data=.rodata,alloc,load,readonly,data,contents"),
            *("--set-section-alignment", f".data={_ALIGNED}"),
            *("--redefine-sym", f"_binary_data_start={symbol}"),
        ]
        subprocess.run(["objcopy", *renamed, object_], check=True, capture_output=True)
        linked: list[str | Path] = [
            *("-shared", "-s", "-soname", library.name, "--version-script", script),
            *("-z", "noexecstack", "-z", "relro", "--build-id=sha1", "--hash-style=gnu"),
        ]
        subprocess.run(["ld", *linked, "-o", library, object_], check=True, capture_output=True)


def _extent(library: Path, at: int) -> int:
    """Returns the length in bytes of the constant, from the library's symbol table."""
    said = subprocess.run(
        ["readelf", "-W", "--dyn-syms", library], check=True, capture_output=True, text=True
    ).stdout
    for line in said.splitlines():
        words = line.split()
        if len(words) == 8 and words[7].startswith("icudt"):
            return int(words[2], 0)
    raise ValueError(f"{library.name} does not name its tables.")
