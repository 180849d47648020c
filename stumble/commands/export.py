"""`stumble export`: runs in the formats of others."""

import errno
import json
import os
from collections.abc import Iterable, Iterator
from itertools import batched
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.exits import Exits, Wrong

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from traces.exports import LeftOut
    from traces.exports.told import Told
    from traces.store import Store
    from traces.tape import Tape

AT_ONCE = 64
"""Runs whose rows are in memory together."""
FORMATS = ("atif", "otel", "har", "vcr", "parquet")
SUFFIXES = {"atif": ".atif.json", "otel": ".spans.jsonl", "har": ".har", "vcr": ".yaml"}


@click.command(short_help="Write runs in the formats of others.")
@click.argument("runs", nargs=-1)
@click.option("--to", "form", type=click.Choice(FORMATS), required=True, help="The format.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="A new file for one run, a folder for several and for parquet.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what became of each run as JSON.")
def export(runs: tuple[str, ...], form: str, output: Path, as_json: bool) -> None:
    """Write runs of the store, or tapes, in a format that other tools read.

    RUNS are ids of the store or paths of tapes (parquet: only ids); without any it is every run of
    the store. atif is Harbor's trajectory, otel spans of OpenTelemetry, har and vcr what crossed
    the wire (only of tapes), parquet the relations of the store. A run that a format cannot hold is
    refused with its reason, and what cannot be said of one is left out by name; the exit code is
    then 1.

    \b
    stumble export refund.tape --to har -o refund.har
    stumble export --to atif -o trajectories/
    stumble export --to parquet -o warehouse/
    """
    from stumble import indexing
    from stumble.home import store_root
    from traces.exports import parquet
    from traces.store import Store

    if output.exists() and not output.is_dir():
        raise Wrong(f"{output} is there already; it is not written over")
    store = Store(store_root())
    for line in indexing.refresh(store):
        click.echo(f"warning: {line}", err=True)
    if form == "parquet":
        if output.exists() and any(output.iterdir()):
            raise Wrong(f"{output} is not empty; rows are written to a folder of their own")
        with store.connect() as connection:
            if unknown := _unknown(connection, runs):
                raise Wrong(f"{', '.join(unknown)}: no such run in the store; parquet takes ids")
            counts = parquet.write(connection, output, runs or None)
        click.echo(json.dumps(counts) if as_json else _counted(counts))
        return
    done = list(_all(store, runs or tuple(_every(store)), form, output))
    _report(done, as_json)


def _unknown(connection: "DuckDBPyConnection", runs: tuple[str, ...]) -> tuple[str, ...]:
    asked = "select trajectory_id from trajectories where trajectory_id in (select unnest(?))"
    known = {id for (id,) in connection.execute(asked, [list(runs)]).fetchall()}
    return tuple(run for run in runs if run not in known)


def _every(store: "Store") -> Iterator[str]:
    with store.connect() as connection:
        found = "select trajectory_id from trajectories order by 1"
        yield from (id for (id,) in connection.execute(found).fetchall())


def _all(
    store: "Store", runs: tuple[str, ...], form: str, output: Path
) -> Iterator[dict[str, object]]:
    from traces.exports.told import of_rows

    one = len(runs) == 1 and not output.is_dir()
    with store.connect() as connection:
        for some in batched(runs, AT_ONCE, strict=False):
            taped = {run: path for run in some if (path := _tape(store, run)).exists()}
            rest = [run for run in some if run not in taped]
            kept = of_rows(connection, rest) if rest else {}
            for run in some:
                row: dict[str, object] = {"run": run, "path": None, "left_out": [], "why": None}
                try:
                    name, text, left = _written(run, taped.get(run), kept.get(run), form)
                    name = name.replace("/", "_")  # of a tape that somebody gave us
                    path = output if one else output / f"{name}{SUFFIXES[form]}"
                    _write(path, text)
                except FileExistsError as error:
                    row["why"] = f"{error.filename} is there already; it is not written over"
                except OSError as error:
                    row["why"] = f"{error.filename or path}: {error.strerror}"
                except ValueError as error:
                    row["why"] = str(error)
                else:
                    row["path"] = str(path)
                    row["left_out"] = [{"what": each.what, "why": each.why} for each in left]
                yield row


def _write(path: Path, text: Iterable[str]) -> None:
    """Write a new file, which has its name only when it is whole. FileExistsError, OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("w", encoding="utf-8") as file:
            file.writelines(text)
        aside.rename(path)
    finally:
        aside.unlink(missing_ok=True)


def _tape(store: "Store", run: str) -> Path:
    return Path(run) if run.endswith(".tape") else store.tapes / f"{run}.tape"


def _written(
    run: str, path: Path | None, kept: "Told | None", form: str
) -> tuple[str, Iterator[str], tuple["LeftOut", ...]]:
    """The id of a run, its text, and what of it is not there; ValueError where there is none."""
    from traces.exports import atif, otel, told
    from traces.tape import read

    tape = read(path) if path is not None else None
    if tape is None and kept is None:
        raise ValueError("there is no such run in the store, nor such a tape")
    if form in ("har", "vcr"):
        if tape is None:
            raise ValueError("it was no traffic but a conversation: there is no tape of it")
        return tape.trajectory.id, *_wire(tape, form)
    found = told.of_tape(tape) if tape is not None else kept
    assert found is not None
    if not found.steps:
        raise ValueError("it has no steps")
    if form == "atif":
        return found.id, iter([_json(atif.document(found), indent=2)]), ()
    spans = list(otel.spans(found))
    return found.id, (f"{_json(span)}\n" for span in spans), ()


def _wire(tape: "Tape", form: str) -> tuple[Iterator[str], tuple["LeftOut", ...]]:
    from stumble.imports.documents import dump
    from traces.exports import cassette, har

    if form == "har":
        document, left = har.document(tape)
        return iter([_json(document, indent=1)]), left
    document, left = cassette.document(tape)
    return iter([dump(document)]), left


def _json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=True)


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())


def _report(done: list[dict[str, object]], as_json: bool) -> None:
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
        raise SystemExit(Exits.FINDING)
