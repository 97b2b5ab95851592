"""The beginning of a GGUF file: what it says it is, and whether the file is as long as that needs.

Read before llama.cpp sees a file, because a damaged one can end the whole process there; and in a hundredth of
the time of the gguf package's reader, which makes arrays of every word in the vocabulary. Format: version 3,
little-endian (llama.cpp, docs/gguf.md).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import gguf

from engines.contract import EngineError

_FIXED = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MOST_STRING = 2**24
_MOST_ENTRIES = 2**22


@dataclass(frozen=True)
class Header:
    """`values` without arrays; `tensors` from name to (dimensions as torch orders them, type)."""

    values: Mapping[str, Any]
    tensors: Mapping[str, tuple[tuple[int, ...], gguf.GGMLQuantizationType]]
    bytes: int


def read(path: Path) -> Header:
    """Raises EngineError, one sentence, for what is not a whole GGUF file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header = _Reader(file, path, size).header()
    except (OSError, struct.error, UnicodeDecodeError, ValueError, OverflowError, MemoryError) as error:
        raise _damaged(path) from error
    if header.bytes > size:
        raise EngineError(
            f"{path.name} is cut off ({size} of {header.bytes} bytes): delete it, and it is made or fetched "
            "again."
        )
    return header


def _damaged(path: Path) -> EngineError:
    return EngineError(
        f"{path.name} is no GGUF file or is damaged: delete it, and it is made or fetched again."
    )


class _Reader:
    def __init__(self, file: IO[bytes], path: Path, size: int) -> None:
        self._file = file
        self._path = path
        self._size = size

    def header(self) -> Header:
        if self._take(4) != b"GGUF":
            self._refuse()
        version, tensors, entries = self._unpack("I"), self._unpack("Q"), self._unpack("Q")
        if version != 3 or tensors > _MOST_ENTRIES or entries > _MOST_ENTRIES:
            self._refuse()
        values = {}
        for _ in range(entries):
            key = self._string()
            value = self._value(self._unpack("I"))
            if value is not None:
                values[key] = value
        infos = [self._tensor() for _ in range(tensors)]
        alignment = int(values.get("general.alignment", gguf.GGUF_DEFAULT_ALIGNMENT))
        if alignment < 1:
            self._refuse()
        start = -(-self._file.tell() // alignment) * alignment
        end = max((start + offset + length for _, _, _, offset, length in infos), default=start)
        return Header(values, {name: (shape, kind) for name, shape, kind, _, _ in infos}, end)

    def _tensor(self) -> tuple[str, tuple[int, ...], gguf.GGMLQuantizationType, int, int]:
        name = self._string()
        dimensions = self._unpack("I")
        if dimensions > 8:
            self._refuse()
        shape = tuple(self._unpack("Q") for _ in range(dimensions))[::-1]
        kind = gguf.GGMLQuantizationType(self._unpack("I"))
        offset = self._unpack("Q")
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        count = 1
        for length in shape:
            count *= length
        return name, shape, kind, offset, count // block * block_bytes

    def _value(self, kind: int) -> Any:
        """A single value, or None for an array, which is passed over."""
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._unpack(_FIXED[kind]) if kind in _FIXED else self._refuse()
        inner, length = self._unpack("I"), self._unpack("Q")
        if length > self._size:
            self._refuse()
        if inner in _FIXED:
            self._skip(length * struct.calcsize(f"<{_FIXED[inner]}"))
        elif inner == _STRING:
            for _ in range(length):
                self._skip(self._unpack("Q"))
        else:
            self._refuse()
        return None

    def _string(self) -> str:
        length = self._unpack("Q")
        if length > _MOST_STRING:
            self._refuse()
        return self._take(length).decode("utf-8")

    def _skip(self, count: int) -> None:
        if self._file.tell() + count > self._size:
            self._refuse()
        self._file.seek(count, 1)

    def _unpack(self, form: str) -> Any:
        return struct.unpack(f"<{form}", self._take(struct.calcsize(f"<{form}")))[0]

    def _take(self, count: int) -> bytes:
        taken = self._file.read(count)
        if len(taken) != count:
            self._refuse()
        return taken

    def _refuse(self) -> NoReturn:
        raise _damaged(self._path)
