"""`stumble import`: bring in runs that others recorded."""

from pathlib import Path

import click


@click.command("import", short_help="Bring in runs that others recorded.")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def import_(paths: tuple[Path, ...]) -> None:
    """Bring trajectories or pipeline scores of other tools into the store.

    Reads runs of tau-bench and mini-swe-agent and RAMP cohorts, as JSON or JSON lines, gzipped or
    not. The source file is
    kept in the store, so that the index can be rebuilt; importing twice stores once.

    \b
    stumble import gpt-4o-airline.json.gz
    stumble import runs/*/*.traj.json
    """
    from stumble.home import store_root
    from traces import formats
    from traces.store import Store

    store, failed = Store(store_root()), 0
    for path in paths:
        try:
            tables = formats.read(path)
        except ValueError as error:
            why = str(error).removeprefix(f"{path}: ")
            click.echo(f"refused {path}: {why}", err=True)
            failed += 1
            continue
        kept = store.keep(path)
        store.write(kept.parent.name, tables)
        counts = ", ".join(
            f"{tables[name].num_rows:,} {name.replace('_', ' ')}"
            for name in ("trajectories", "tool_calls", "stages")
            if name in tables and tables[name].num_rows
        )
        click.echo(f"imported {path}: {counts}")
    if failed:
        raise SystemExit(2)
