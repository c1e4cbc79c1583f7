"""All records of a study as one table for other programs: `index.parquet`, without pyarrow `index.jsonl`. Derived."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tgsr.storage import canonical_json, write_bytes
from tgsr.study._record import Record

PLAIN = (
    "task", "role", "arm", "method", "seed", "run", "outcome", "ok", "sentence", "profile", "budget", "observations",
    "noise", "closures", "allowed", "seconds", "weights",
)  # fmt: skip


def write_index(folder: Path, records: Sequence[Record]) -> Path:
    """Write the index of a study's folder."""
    rows = [row_of(record) for record in records]
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        file = folder / "index.jsonl"
        write_bytes(file, "".join(canonical_json(row, indent=None) for row in rows).encode("ascii"))
        return file
    names = dict.fromkeys([*PLAIN, "options", *(name for row in rows for name in row)])
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in names})
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    file = folder / "index.parquet"
    write_bytes(file, buffer.getvalue())
    return file


def row_of(record: Record) -> dict[str, Any]:
    """A record as one flat row: `error.parameter`, `bound.eps`, `value.eps`, `se.eps`, ..."""
    row = {name: getattr(record, name) for name in PLAIN}
    row["options"] = canonical_json(dict(record.options), indent=None).strip()
    row |= {f"error.{name}": float(value) for name, value in record.errors.items()}
    row |= {f"bound.{name}": float(value) for name, value in record.bounds.items()}
    row |= {f"value.{name}": float(found.value) for name, found in record.unknowns.items()}
    row |= {f"se.{name}": float(found.se) for name, found in record.unknowns.items()}
    return row
