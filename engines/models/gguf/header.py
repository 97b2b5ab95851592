"""Reads the header of a GGUF file, and checks that the file is as long as the header says.

Read before llama.cpp opens a file, because a damaged one can end the whole process there; and a hundred times
faster than the gguf package's reader, which makes arrays of every word in the vocabulary. A file can come from
anywhere: every claimed size is compared with the file's length before memory is allocated for it. Format:
versions 2 and 3, little-endian (llama.cpp, docs/gguf.md)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import gguf

from engines.contract import EngineError

_FIXED = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9  # GGUF's numbers of these value types
TOKENS_KEY = "tokenizer.ggml.tokens"
_MAX_STRING = 2**20
"""Maximum bytes of a string: the longest chat template has some 20,000."""
_MAX_ENTRIES = 2**16
"""Maximum values, and maximum tensors: the largest models have a thousand or two."""
_MAX_ITEMS = 2**21
"""Maximum strings of an array: the largest vocabularies have a quarter of a million words."""
_MAX_BYTES = 2**28
"""Maximum bytes of the whole header."""
_MAX_NUMBERS = 2**40
"""Maximum numbers in one tensor."""
_MAX_DIMENSIONS = 4  # ggml's limit
_DAMAGED = (OSError, struct.error, UnicodeDecodeError, ValueError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Header:
    """The header of a GGUF file. `values` includes the arrays that were asked for; `tensors` maps a name to
    (dimensions in torch's order, type), `places` a name to (offset, length) in bytes; `bytes` is the length the
    file must have."""

    values: Mapping[str, Any]
    tensors: Mapping[str, tuple[tuple[int, ...], gguf.GGMLQuantizationType]]
    places: Mapping[str, tuple[int, int]]
    bytes: int


def read(path: Path, arrays: Collection[str] = ()) -> Header:
    """Reads and validates the header. `arrays` are the keys of arrays to keep; others are skipped. Raises
    EngineError, one sentence, for anything but a complete GGUF file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header = _Reader(file, path, size, arrays).header()
    except _DAMAGED as error:
        raise _damaged(path) from error
    if header.bytes > size:
        raise EngineError(
            f"{path.name} is cut off ({size} of {header.bytes} bytes): delete it, and it is made or downloaded "
            "again."
        )
    return header


def read_opening(path: Path) -> Header:
    """Reads only the values before the vocabulary, and the number of tokens in it (under TOKENS_KEY): enough
    to list a file. Raises EngineError, and FileNotFoundError."""
    try:
        with path.open("rb") as file:
            return Header(_Reader(file, path, path.stat().st_size, ()).opening(), {}, {}, 0)
    except FileNotFoundError:
        raise
    except _DAMAGED as error:
        raise _damaged(path) from error


def _damaged(path: Path) -> EngineError:
    return EngineError(
        f"{path.name} is no GGUF file or is damaged: delete it, and it is made or downloaded again."
    )


class _Reader:
    def __init__(self, file: IO[bytes], path: Path, size: int, arrays: Collection[str]) -> None:
        self._file = file
        self._path = path
        self._size = min(size, _MAX_BYTES)
        self._arrays = arrays
        self._at = 0

    def opening(self) -> dict[str, Any]:
        """Returns the values before the vocabulary, or all values of a file without one."""
        _, entries = self._counts()
        values: dict[str, Any] = {}
        for _ in range(entries):
            key, kind = self._string(), self._unpack("I")
            if key == TOKENS_KEY and kind == _ARRAY:
                self._unpack("I")
                return {**values, key: self._unpack("Q")}
            value = self._value(kind, False)
            if value is not None:
                values[key] = value
        return values

    def header(self) -> Header:
        tensors, entries = self._counts()
        values: dict[str, Any] = {}
        keys = set()
        for _ in range(entries):
            key = self._string()
            value = self._value(self._unpack("I"), key in self._arrays)
            keys.add(key)
            if value is not None:
                values[key] = value
        infos = [self._tensor() for _ in range(tensors)]
        if len(keys) != entries or len({info[0] for info in infos}) != tensors:
            self._refuse()  # programs disagree on which of the two is meant
        alignment = values.get("general.alignment", gguf.GGUF_DEFAULT_ALIGNMENT)
        if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1) or alignment > 2**20:
            self._refuse()
        start = -(-self._at // alignment) * alignment
        if any(offset % alignment for _, _, _, offset, _ in infos):
            self._refuse()
        ends = 0
        for _, _, _, offset, length in sorted(infos, key=lambda info: info[3]):
            if offset < ends:
                self._refuse()  # overlapping tensors would make a large model of a small file
            ends = offset + length
        return Header(
            values=values,
            tensors={name: (shape, kind) for name, shape, kind, _, _ in infos},
            places={name: (start + offset, length) for name, _, _, offset, length in infos},
            bytes=start + ends if infos else 0,
        )

    def _counts(self) -> tuple[int, int]:
        """Returns the numbers of tensors and of values."""
        if self._take(4) != b"GGUF":
            self._refuse()
        version, tensors, entries = self._unpack("I"), self._unpack("Q"), self._unpack("Q")
        if version not in (2, 3) or tensors > _MAX_ENTRIES or entries > _MAX_ENTRIES:
            self._refuse()
        return int(tensors), int(entries)

    def _tensor(self) -> tuple[str, tuple[int, ...], gguf.GGMLQuantizationType, int, int]:
        name = self._string()
        dimensions = self._unpack("I")
        if not 1 <= dimensions <= _MAX_DIMENSIONS:
            self._refuse()
        shape = tuple(self._unpack("Q") for _ in range(dimensions))[::-1]
        kind = gguf.GGMLQuantizationType(self._unpack("I"))
        offset = self._unpack("Q")
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        count = 1
        for length in shape:
            count *= length
            if not 0 < count <= _MAX_NUMBERS:
                self._refuse()
        if shape[-1] % block:
            self._refuse()
        return name, shape, kind, offset, count // block * block_bytes

    def _value(self, kind: int, kept: bool) -> Any:
        """Reads one value. Returns None for an array, unless it is to be kept."""
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._unpack(_FIXED[kind]) if kind in _FIXED else self._refuse()
        inner, length = self._unpack("I"), self._unpack("Q")
        if length > self._size:
            self._refuse()
        if inner in _FIXED:
            form = f"<{length}{_FIXED[inner]}"
            width = struct.calcsize(f"<{_FIXED[inner]}")
            if kept and length <= _MAX_ITEMS:
                return list(struct.unpack(form, self._take(length * width)))
            self._skip(length * width)
        elif inner == _STRING and length <= _MAX_ITEMS:
            if kept:
                return [self._string() for _ in range(length)]
            for _ in range(length):
                self._skip(self._unpack("Q"))
        else:
            self._refuse()
        return None

    def _string(self) -> str:
        length = self._unpack("Q")
        if length > _MAX_STRING:
            self._refuse()
        return self._take(length).decode("utf-8")

    def _skip(self, count: int) -> None:
        self._reserve(count)
        self._file.seek(self._at)

    def _unpack(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._take(struct.calcsize(f"<{form}")))[0]

    def _take(self, count: int) -> bytes:
        self._reserve(count)
        taken = self._file.read(count)
        if len(taken) != count:
            self._refuse()
        return taken

    def _reserve(self, count: int) -> None:
        """Raises before anything is read or allocated beyond the file's end."""
        self._at += count
        if self._at > self._size:
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise _damaged(self._path)
