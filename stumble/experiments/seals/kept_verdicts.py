"""What the judge of the day made of each injection of a sealed campaign, kept beside its seal.

A later version reads the same tapes by other rules, and counts them by other definitions.
`NAME.verdicts.csv` beside the seal, and its copy in the store, has the counted values as the
version that was sealed gave them, so the sealed answer can be given again after an upgrade. They
are facts of that day: nothing makes them anew.
"""

import csv
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stumble.experiments.seals.seal_file import ExperimentSeal
from traces.model import JUDGE_VERSION
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    import duckdb

COLUMNS = (
    "injection_id", "judge_version", "class", "state", "settled", "ends_right", "handled", "silent",
)  # fmt: skip
"""Of the view judged_injections; an empty field is NULL."""
_KEPT_SQL = f"""
    SELECT {", ".join(f"j.{name}" for name in COLUMNS)}
    FROM judged_injections AS j JOIN trajectories AS t USING (trajectory_id)
    WHERE t.campaign = $campaign AND t.seal = $seal
    ORDER BY injection_id
"""
_REPLACED_SQL = f"""
    CREATE TABLE judged_then AS
    SELECT j.* REPLACE ({", ".join(f"kept.{name} AS {name}" for name in COLUMNS[1:])})
    FROM judged_injections AS j LEFT JOIN kept_verdicts AS kept USING (injection_id);
    DROP VIEW judged_injections;
    ALTER TABLE judged_then RENAME TO judged_injections
"""


def is_of_this_judge(seal: ExperimentSeal) -> bool:
    """Whether a seal names the judge of this version."""
    return seal.get_part("judge")["version"] == JUDGE_VERSION


def keep_verdicts(seal: ExperimentSeal, folder: Path, store: TraceStore) -> None:
    """Write the verdicts of a sealed campaign, if this judge is the sealed one."""
    if not is_of_this_judge(seal):
        return
    with store.open_locked() as connection:
        given = {"campaign": seal.name, "seal": seal.digest}
        rows = connection.execute(_KEPT_SQL, given).fetchall()
    kept = _stored_path(store, seal.name)
    with kept.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows((COLUMNS, *rows))
    if folder.suffix == ".toml":
        shutil.copyfile(kept, _path_beside(seal.name, folder))


def import_verdicts(seal: ExperimentSeal, folder: Path, store: TraceStore) -> None:
    """Copy the kept verdicts of a campaign and its baseline into a store that has none."""
    for name in (seal.name, str(seal.get_part("analysis")["against"])):
        source, kept = _path_beside(name, folder), _stored_path(store, name)
        if source.exists() and not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, kept)


def replace_verdicts(
    connection: "duckdb.DuckDBPyConnection", names: Iterable[str], store: TraceStore
) -> None:
    """Put the kept verdicts of these campaigns in the place of today's, in a private database.

    An injection without a kept verdict has none then.
    """
    columns = ", ".join(COLUMNS)
    connection.execute(
        f"CREATE TABLE kept_verdicts AS SELECT {columns} FROM judged_injections LIMIT 0"
    )
    for name in names:
        if (path := _stored_path(store, name)).exists():
            connection.execute("INSERT INTO kept_verdicts BY NAME FROM read_csv($1)", [str(path)])
    connection.execute(_REPLACED_SQL)


def _path_beside(name: str, folder: Path) -> Path:
    return folder.absolute().parent / f"{name}.verdicts.csv"


def _stored_path(store: TraceStore, name: str) -> Path:
    return store.root / "campaigns" / name / "verdicts.csv"
