"""An archive as a data set: one row per group, in the columns that researchers ask of a swarm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.common import files
from app.sapo.groups import GroupRecord
from app.swarm.library.records import SeaError

WHOLE, TEXTS = "int64", "list<string>"
COLUMNS = {
    "family": "string",
    "level": WHOLE,
    "seed": WHOLE,
    "index": WHOLE,
    "version": "string",
    "question": "string",
    "completions": TEXTS,
    "rewards": "list<int64>",
    "author": "string",
    "key": "string",
    "model": "string",
    "created_ms": WHOLE,
}
"""Names and Arrow types of the columns. `family` to `version` are the question's coordinates; `rewards` are
this computer's, 0 or 1 in the order of `completions`; `author` is the name made from `key` (hex)."""


def rows(groups: Iterable[GroupRecord]) -> list[dict[str, Any]]:
    """Returns one mapping of COLUMNS per group."""
    return [
        {
            **msgspec.structs.asdict(one.coordinates),
            "question": one.question,
            "completions": list(one.completions_G),
            "rewards": list(one.rewards_G),
            "author": one.author,
            "key": one.key,
            "model": one.model,
            "created_ms": one.created_ms,
        }
        for one in groups
    ]


def write(path: Path, table: Sequence[dict[str, Any]]) -> int:
    """Writes rows as Parquet or as JSON lines, by the name's ending, in one step; returns their number. Raises
    SeaError for another ending or without pyarrow, and OSError."""
    if path.suffix == ".jsonl":
        files.write(path, b"".join(msgspec.json.encode(row) + b"\n" for row in table))
    elif path.suffix == ".parquet":
        _write_parquet(path, table)
    else:
        raise SeaError(f"{path.name} can't be written: end its name in .parquet or .jsonl.")
    return len(table)


def _write_parquet(path: Path, table: Sequence[dict[str, Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise SeaError(
            "Parquet files need pyarrow, which isn't installed: run pip install pyarrow, or end "
            "the file's name in .jsonl."
        ) from error
    kinds = {"string": pyarrow.string(), WHOLE: pyarrow.int64()}
    kinds |= {TEXTS: pyarrow.list_(kinds["string"]), "list<int64>": pyarrow.list_(kinds[WHOLE])}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.staged(path) as fresh:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(table), schema=schema), fresh)
