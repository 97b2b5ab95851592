"""Bytes in words, in powers of 1000. app.common.text hands this on to the application."""

from __future__ import annotations


def scaled(count: float) -> tuple[float, str]:
    """
    >>> scaled(999), scaled(2_340), scaled(15_600_000)
    ((999, 'B'), (2.34, 'kB'), (15.6, 'MB'))
    """
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return count, unit
        count /= 1000
    return count, "GB"


def in_bytes(count: float) -> str:
    """
    >>> in_bytes(0), in_bytes(988_097_824), in_bytes(2_340_000_000)
    ('0 B', '988.1 MB', '2.3 GB')
    """
    value, unit = scaled(count)
    return f"{value:,.{0 if unit == 'B' else 1}f} {unit}"
