"""`stumble export`: write runs as ATIF, spans, HAR, vcrpy cassettes, Parquet or a database."""

import errno
import json
import os
from collections.abc import Iterable, Iterator
from itertools import batched
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli.tape_path import find_tape
from stumble.errors import ExitCode, UsageError
from stumble.packs.pack_manifest import PACK_SUFFIX

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from traces.exporters import ExportOmission
    from traces.exporters.run_model import ExportedRun
    from traces.store.trace_store import TraceStore
    from traces.tape.reader import Tape

EXPORT_BATCH_RUNS = 64
"""Number of runs whose rows are in memory at once."""
EXPORT_FORMATS = ("atif", "otel", "otel-protobuf", "har", "vcr", "parquet", "duckdb")
OF_RELATIONS = ("parquet", "duckdb")
"""Formats of the rows of the store, whatever their tapes."""
EXPORT_SUFFIXES = {
    "atif": ".atif.json",
    "otel": ".otlp.json",
    "otel-protobuf": ".otlp.pb",
    "har": ".har",
    "vcr": ".yaml",
}


@click.command()
@click.argument("runs", nargs=-1)
@click.option(
    "--to", "form", type=click.Choice(EXPORT_FORMATS), required=True, help="Output format."
)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="PATH|s3://BUCKET/PREFIX",
    required=True,
    help="New file for one run; folder for several runs; for parquet a folder or a bucket.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result for each run as JSON.")
def export(runs: tuple[str, ...], form: str, target: str, as_json: bool) -> None:
    """Write runs of the store, or tapes, in a format of other tools.

    RUNS are ids of the store or paths of tapes or packs (parquet, duckdb: only ids); default:
    every run of the store. Formats: atif, Harbor's trajectories; otel and otel-protobuf,
    OpenTelemetry spans as OTLP, which collectors take; har and vcr, HTTP traffic (tapes only);
    parquet, the relations of the store; duckdb, one file with these and all views, for any client
    since DuckDB 1.0. Runs that a format cannot represent are refused with a reason, and omitted
    parts are listed; the exit code is then 1.

    \b
    stumble export refund.tape --to har -o refund.har
    stumble export --to atif -o trajectories/
    stumble export --to otel-protobuf -o spans/
    stumble export --to parquet -o warehouse/
    stumble export --to duckdb -o runs.duckdb
    stumble export --to parquet -o s3://our-bucket/tables

    In a bucket, parquet is partitioned by day and source, and the rows of these runs replace those
    that are there: exporting again, after a break or beside others, changes nothing else.
    `stumble sql --store s3://...` reads it. Needs the extra `s3`.
    """
    from stumble.store.open_store import open_indexed_store
    from stumble.user_data.paths import store_root
    from traces.exporters import duckdb_file, parquet
    from traces.store.trace_store import TraceStore

    if "://" in target:
        if form != "parquet":
            raise UsageError(f"-o {target}: only --to parquet is written to a bucket")
        _export_to_bucket(runs, target, as_json)
        return
    output = Path(target)
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} exists already; it is not overwritten")
    are_files = form not in OF_RELATIONS and runs and all(map(_is_file_name, runs))
    store = TraceStore(store_root()) if are_files else open_indexed_store()
    if form in OF_RELATIONS:
        write = duckdb_file.write_database if form == "duckdb" else parquet.write_relations
        if form == "duckdb" and output.exists():
            raise UsageError(f"{output} is a folder; duckdb needs the name of a new file")
        if output.exists() and any(output.iterdir()):
            raise UsageError(f"{output} is not empty; parquet needs a new or empty folder")
        with store.connect() as connection:
            _check_known_runs(connection, runs)
            counts = write(connection, output, runs or None)
        click.echo(json.dumps(counts) if as_json else _format_left_out_counts(counts))
        return
    done = list(_export_runs(store, runs or tuple(_list_run_ids(store)), form, output))
    _print_export_report(done, as_json)


def _check_known_runs(connection: "DuckDBPyConnection", runs: tuple[str, ...]) -> None:
    query = "select trajectory_id from trajectories where trajectory_id in (select unnest(?))"
    known = {id for (id,) in connection.execute(query, [list(runs)]).fetchall()}
    if unknown := [run for run in runs if run not in known]:
        raise UsageError(f"{', '.join(unknown)}: no such run in the store; give ids")


def _export_to_bucket(runs: tuple[str, ...], address: str, as_json: bool) -> None:
    from stumble.store.open_store import open_indexed_store
    from stumble.team.object_store import ObjectStore
    from stumble.team.shared_tables import export_tables
    from stumble.terminal_progress import show_terminal_progress
    from stumble.user_data.known_secrets import find_known_secrets

    remote, store = ObjectStore(address), open_indexed_store()
    with store.connect() as connection:
        _check_known_runs(connection, runs)
    with show_terminal_progress("exporting days") as tell:
        done = export_tables(store, remote, tuple(find_known_secrets()), tell, runs or None)
    if as_json:
        click.echo(json.dumps(done.to_dict()))
    else:
        click.echo(
            f"{address}: {done.written} parts written, {done.unchanged} had all of it; "
            + _format_left_out_counts(done.rows)
        )
        for line in done.refused:
            click.echo(f"not exported: {line}", err=True)
    if done.refused:
        raise SystemExit(ExitCode.FINDING)


def _list_run_ids(store: "TraceStore") -> Iterator[str]:
    with store.connect() as connection:
        query = "select trajectory_id from trajectories order by 1"
        yield from (id for (id,) in connection.execute(query).fetchall())


def _export_runs(
    store: "TraceStore", runs: tuple[str, ...], form: str, output: Path
) -> Iterator[dict[str, object]]:
    from traces.exporters.stored_run import read_exported_runs

    one = len(runs) == 1 and not output.is_dir()
    with store.connect() as connection:
        for some in batched(runs, EXPORT_BATCH_RUNS, strict=False):
            tape_paths = {
                run: path for run in some if (path := _export_tape_path(store, run)).exists()
            }
            untaped = [run for run in some if run not in tape_paths]
            stored_runs = read_exported_runs(connection, untaped) if untaped else {}
            for run in some:
                row: dict[str, object] = {"run": run, "path": None, "left_out": [], "why": None}
                try:
                    name, text, left = _format_run_export(
                        run, tape_paths.get(run), stored_runs.get(run), form
                    )
                    name = name.replace("/", "_")  # the id of a foreign tape is untrusted
                    path = output if one else output / f"{name}{EXPORT_SUFFIXES[form]}"
                    _write_export(path, text)
                except FileExistsError as error:
                    row["why"] = f"{error.filename} exists already; it is not overwritten"
                except OSError as error:
                    row["why"] = f"{error.filename or path}: {error.strerror}"
                except ValueError as error:
                    row["why"] = str(error)
                else:
                    row["path"] = str(path)
                    row["left_out"] = [{"what": each.what, "why": each.why} for each in left]
                yield row


def _write_export(path: Path, parts: Iterable[str | bytes]) -> None:
    """Write a new file under a temporary name, then rename it. Raises FileExistsError, OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as file:
            file.writelines(part.encode() if isinstance(part, str) else part for part in parts)
        aside.rename(path)
    finally:
        aside.unlink(missing_ok=True)


def _export_tape_path(store: "TraceStore", run: str) -> Path:
    if not _is_file_name(run):
        return store.tapes / f"{run}.tape"
    return find_tape(Path(run))


def _is_file_name(run: str) -> bool:
    return run.endswith((".tape", PACK_SUFFIX))


def _format_run_export(
    run: str, path: Path | None, kept: "ExportedRun | None", form: str
) -> tuple[str, Iterator[str | bytes], tuple["ExportOmission", ...]]:
    """Return the id of a run, its content, and the omissions. Raises ValueError if the run is
    unknown or the format cannot represent it.
    """
    from stumble.llm.prices import compute_token_cost
    from traces.exporters import atif, otel, run_model
    from traces.otlp import messages, protobuf
    from traces.tape.reader import read_tape

    tape = read_tape(path) if path is not None else None
    if tape is None and kept is None:
        raise ValueError("no such run in the store, and no such tape")
    if form in ("har", "vcr"):
        if tape is None:
            raise ValueError("imported conversation without HTTP traffic: it has no tape")
        return tape.trajectory.id, *_format_wire_traffic(tape, form)
    exported = run_model.to_exported_run(tape, compute_token_cost) if tape is not None else kept
    assert exported is not None
    if not exported.steps:
        raise ValueError("it has no steps")
    if form == "atif":
        return exported.id, iter([_dump_export_json(atif.to_atif_document(exported), indent=2)]), ()
    document, left = otel.to_otlp_document(exported)
    if form == "otel-protobuf":
        return exported.id, iter([protobuf.encode_protobuf(document, messages.TRACES)]), left
    return exported.id, iter([f"{_dump_export_json(document)}\n"]), left


def _format_wire_traffic(
    tape: "Tape", form: str
) -> tuple[Iterator[str], tuple["ExportOmission", ...]]:
    from stumble.imports.safe_yaml import dump_yaml
    from traces.exporters import har, vcr

    if form == "har":
        document, left = har.to_har_document(tape)
        return iter([_dump_export_json(document, indent=1)]), left
    document, left = vcr.to_vcr_document(tape)
    return iter([dump_yaml(document)]), left


def _dump_export_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=True)


def _format_left_out_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())


def _print_export_report(done: list[dict[str, object]], as_json: bool) -> None:
    refused = [row for row in done if row["why"] is not None]
    partly = [row for row in done if row["left_out"]]
    if as_json:
        click.echo(json.dumps(done, indent=2))
    else:
        written = len(done) - len(refused)
        click.echo(f"exported {written:,} run{'' if written == 1 else 's'}")
        for row in refused:
            click.echo(f"refused {row['run']}: {row['why']}", err=True)
        for row in partly:
            for each in row["left_out"]:  # type: ignore[attr-defined]
                click.echo(f"left out of {row['path']}: {each['what']}: {each['why']}", err=True)
    if refused or partly:
        raise SystemExit(ExitCode.FINDING)
