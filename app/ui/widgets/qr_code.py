"""A short text as a QR code (ISO/IEC 18004): always version 4, error correction L, bytes, mask 0. That is one
block of 100 codewords in 33 x 33 modules, enough for the six words of a private swarm.
"""

from __future__ import annotations

from collections.abc import Iterator

SIDE = 33
MOST = 78
"""Bytes that fit."""
_DATA, _CHECKS = 80, 20
_FORMAT = 0b111011111000100
"""Level L and mask 0 with their own check bits, as the standard's table has them."""
_PRIMITIVE = 0x11D
_ALIGNED = 26

Modules = list[list[bool]]


def encode(text: str) -> Modules:
    """Rows of modules, True is dark, without the quiet zone of four around them. Raises ValueError for more
    than MOST bytes."""
    raw = text.encode()
    if len(raw) > MOST:
        raise ValueError(f"a QR code of this size holds {MOST} bytes")
    codewords = _codewords(raw)
    codewords += checks(codewords, _CHECKS)
    bits = (bool(word >> bit & 1) for word in codewords for bit in range(7, -1, -1))
    modules, fixed = _patterns()
    for row, column in _path():
        if not fixed[row][column]:
            modules[row][column] = next(bits, False) ^ ((row + column) % 2 == 0)
    return modules


def _codewords(raw: bytes) -> list[int]:
    """Mode, length and bytes, closed by four zero bits and filled up as the standard says."""
    number, length = 0b0100 << 8 | len(raw), 12
    number, length = number << 8 * len(raw) | int.from_bytes(raw), length + 8 * len(raw)
    number, length = number << 4, length + 4
    found = list(number.to_bytes(length // 8))
    return found + [(0xEC, 0x11)[at % 2] for at in range(_DATA - len(found))]


def checks(data: list[int], count: int) -> list[int]:
    """Reed-Solomon check codewords over GF(256): the remainder of the data by the generator polynomial.

    >>> checks([32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17], 10)
    [196, 35, 39, 119, 235, 215, 231, 226, 93, 23]
    """
    generator, root = [1], 1
    for _ in range(count):
        shifted = [*generator, 0]
        generator = [a ^ _times(b, root) for a, b in zip(shifted, [0, *generator], strict=True)]
        root = _times(root, 2)
    rest = [*data, *[0] * count]
    for at in range(len(data)):
        factor = rest[at]
        for step, coefficient in enumerate(generator):
            rest[at + step] ^= _times(factor, coefficient)
    return rest[len(data) :]


def _times(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (_PRIMITIVE if a & 0x80 else 0)
        b >>= 1
    return product


def _patterns() -> tuple[Modules, Modules]:
    """What every code of this version has, and which modules that takes."""
    modules, fixed = ([[False] * SIDE for _ in range(SIDE)] for _ in range(2))

    def put(row: int, column: int, dark: bool) -> None:
        if 0 <= row < SIDE and 0 <= column < SIDE:
            modules[row][column], fixed[row][column] = dark, True

    for at in range(SIDE):
        put(6, at, at % 2 == 0)
        put(at, 6, at % 2 == 0)
    for top, left in ((0, 0), (0, SIDE - 7), (SIDE - 7, 0)):
        for row in range(-1, 8):
            for column in range(-1, 8):
                ring = max(abs(row - 3), abs(column - 3))
                put(top + row, left + column, ring not in (2, 4))
    for row in range(-2, 3):
        for column in range(-2, 3):
            put(_ALIGNED + row, _ALIGNED + column, max(abs(row), abs(column)) != 1)
    for bit, places in enumerate(_format_places()):
        for row, column in places:
            put(row, column, bool(_FORMAT >> (14 - bit) & 1))
    put(SIDE - 8, 8, True)
    return modules, fixed


def _format_places() -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Both places of every bit, the highest first."""
    near = [(8, at) for at in (0, 1, 2, 3, 4, 5, 7, 8)] + [(at, 8) for at in (7, 5, 4, 3, 2, 1, 0)]
    far = [(SIDE - 1 - at, 8) for at in range(7)] + [(8, SIDE - 8 + at) for at in range(8)]
    yield from zip(near, far, strict=True)


def _path() -> Iterator[tuple[int, int]]:
    """From the lower right, two columns at a time, up and down; the column of the timing is left out."""
    upward = True
    for right in [*range(SIDE - 1, 6, -2), 5, 3, 1]:
        rows = range(SIDE - 1, -1, -1) if upward else range(SIDE)
        for row in rows:
            yield row, right
            yield row, right - 1
        upward = not upward
