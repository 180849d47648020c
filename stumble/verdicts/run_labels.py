"""Labels of runs by people, by which the judge's own error is measured."""

import csv
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import decode, encode

from stumble.errors import UsageError

if TYPE_CHECKING:
    import duckdb

_BOOLEAN_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class RunLabel(Struct, frozen=True):
    """What a person read in the run of an injection; None if the file says nothing of it."""

    injection_id: str
    noticed: bool | None
    claims_success: bool | None


def read_run_labels(path: Path) -> tuple[RunLabel, ...]:
    """Read a CSV file with the columns injection_id and noticed, and perhaps claims_success.

    An empty cell is no label. Raises UsageError if a column is missing, a value is neither true
    nor false, or an injection has two rows.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: it is no text in UTF-8") from None
    with StringIO(text, newline="") as file:
        reader = csv.DictReader(file)
        missing = {"injection_id", "noticed"} - set(reader.fieldnames or ())
        if missing:
            raise UsageError(f"{path}: the column {min(missing)} is missing")
        labels: dict[str, RunLabel] = {}
        for row in reader:
            where = f"{path}: line {reader.line_num}"
            label = RunLabel(
                (row["injection_id"] or "").strip(),
                _read_boolean(row, "noticed", where),
                _read_boolean(row, "claims_success", where),
            )
            if label.injection_id in labels:
                raise UsageError(f"{where}: {label.injection_id} has two labels")
            labels[label.injection_id] = label
    return tuple(labels.values())


def encode_run_labels(path: Path) -> str:
    """Return the labels of a file as the JSON that the question `gate` takes."""
    return encode(read_run_labels(path)).decode()


def check_label_ids(connection: "duckdb.DuckDBPyConnection", labels: str) -> None:
    """Raise UsageError with the first injection that the store does not have; `labels` is JSON."""
    known = {id for (id,) in connection.execute("SELECT injection_id FROM injections").fetchall()}
    for label in decode(labels, type=list[RunLabel]):
        if label.injection_id not in known:
            raise UsageError(f"--labels: {label.injection_id!r} is no injection of this store")


def _read_boolean(row: dict[str, str | None], column: str, where: str) -> bool | None:
    word = (row.get(column) or "").strip().lower()
    if word and word not in _BOOLEAN_WORDS:
        raise UsageError(f"{where}: {column} is {word!r}, not true or false")
    return _BOOLEAN_WORDS.get(word)
