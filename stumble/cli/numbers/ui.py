"""`stumble ui`: browse the store, and inject faults, in a browser."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import UsageError

if TYPE_CHECKING:
    from traces.store.trace_store import TraceStore


@click.command(
    epilog="The address holds a token; it opens the pages for this browser, and for nobody else.",
)
@click.argument(
    "paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH]..."
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True,
              help="Port on 127.0.0.1; 0 takes a free one.")  # fmt: skip
@click.option("--open", "opens", is_flag=True, help="Open the address in the browser.")
@click.option(
    "--allow-runs",
    is_flag=True,
    help="Let the pages start runs: forks with faults, which call models and tools. Without it "
    "they show the command only.",
)
@click.option(
    "--export",
    "exported",
    metavar="ID",
    help="Write the page of a run or an injection to a file instead, and serve nothing.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of --export, an HTML page that needs no server; default: ID.html.",
)
def ui(
    paths: tuple[Path, ...],
    port: int,
    opens: bool,
    allow_runs: bool,
    exported: str | None,
    output: Path | None,
) -> None:
    """Browse runs, faults and verdicts in a browser, and inject faults.

    Without PATH it shows the project's store; else another store (a folder), or single tapes.
    It serves 127.0.0.1 alone, sends nothing anywhere, and changes nothing but the index.

    \b
    stumble ui --open
    stumble ui refund.tape
    stumble ui --allow-runs --port 8800
    stumble ui --export 20261121T101500-3f2a -o run.html
    """
    from stumble.ui.serving.server import serve_ui

    if output is not None and exported is None:
        raise UsageError("-o is the file of --export ID")
    with ExitStack() as stack:
        store, start_path = _open_paths(paths, stack)
        if exported is not None:
            _export_run(store, exported, output)
            return
        try:
            serve_ui(
                store,
                port=port,
                start_path=start_path,
                allow_runs=allow_runs,
                opens=opens,
                say=click.echo,
            )
        except OSError as error:
            raise UsageError(f"port {port}: {error.strerror}") from None


def _export_run(store: "TraceStore", id: str, output: Path | None) -> None:
    """Write a run to one file, unless that or a tape behind it holds secrets."""
    from stumble.store.secret_scan import scan_files
    from stumble.ui.export import collect_export, find_exported_run, write_export
    from stumble.user_data.known_secrets import find_known_secrets

    try:
        run = find_exported_run(store, id)
        page = collect_export(store, run)
    except (LookupError, OSError, ValueError) as error:
        raise UsageError(str(error)) from None
    path = output or Path(f"{run}.html")
    part = path.with_name(f".{path.name}.part")
    try:
        write_export(page, part)
        tapes = [store.tapes / f"{each}.tape" for each in page.shown_runs]
        findings = scan_files((part, *filter(Path.exists, tapes)), find_known_secrets())
        if found := next((each for each in findings if each.found or each.unread), None):
            what = f"cannot be scanned ({found.unread})" if found.unread else "holds secrets"
            name = "the page" if found.path == part else str(found.path)
            raise UsageError(
                f"nothing was written: {name} {what}; stumble scan lists them, stumble scrub "
                "removes them from a tape"
            )
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    click.echo(f"{path}: {len(page.items)} steps, {path.stat().st_size / 1000:,.0f} kB, no secrets")


def _open_paths(paths: tuple[Path, ...], stack: ExitStack) -> "tuple[TraceStore, str]":
    """Return the store to show, indexed, and the path of the first page."""
    from recorder.scratch_folder import make_scratch_folder
    from stumble.ui.reading.tape_access import read_tape_head
    from stumble.user_data.paths import store_root
    from traces.store.trace_store import TraceStore

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise UsageError("give one store, or tapes")
    if folders or not paths:
        root = _find_store_in(folders[0]) if folders else store_root()
        if not root.is_dir():
            raise UsageError(
                f"no store at {root}: record a run (stumble record -- COMMAND), or give a store "
                "or tapes: stumble ui PATH"
            )
        store, start_path = TraceStore(root), "/"
    else:
        store = TraceStore(stack.enter_context(make_scratch_folder("stumble-ui-")) / ".stumble")
        try:
            heads = [(path, read_tape_head(path).id) for path in paths]
        except ValueError as error:
            raise UsageError(str(error)) from None
        for path, id in heads:
            shown = store.tapes / f"{id}.tape"
            if not shown.is_symlink():
                shown.symlink_to(path.resolve())
        start_path = f"/runs/{heads[0][1]}" if len(heads) == 1 else "/"
    _index_store(store)
    return store, start_path


def _find_store_in(folder: Path) -> Path:
    """Return the folder, or the store in it. Raises UsageError if it is none."""
    for root in (folder, folder / ".stumble"):
        if root.name == ".stumble" or (root / "tapes").is_dir():
            return root
    raise UsageError(f"{folder} is no store: it has no tapes")


def _index_store(store: "TraceStore") -> None:
    """Index the store in a child: it reads whole tapes, and its memory is gone with it."""
    import subprocess

    from stumble.ui.serving.children import store_environment, stumble_command

    command = stumble_command("sql", "select 1")
    done = subprocess.run(command, env=store_environment(store.root), stdout=subprocess.DEVNULL)
    if done.returncode:
        raise SystemExit(done.returncode)
