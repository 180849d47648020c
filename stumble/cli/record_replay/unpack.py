"""`stumble unpack`: put the recordings of a pack into a store or a folder."""

import json
from pathlib import Path

import click


@click.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the tapes and other files, which becomes a project with a store of its own; "
    "default: the current store.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file.")
def unpack(files: tuple[Path, ...], output: Path | None, as_json: bool) -> None:
    """Put the tapes of packs into the store, with their workspaces.

    Packs need not be unpacked to be replayed, forked, shown or exported. A tape that is there
    already is left as it is; another one of the same name is never overwritten. A pack with a
    damaged byte is refused, and named with the part.

    \b
    stumble unpack refund.stumble
    stumble unpack refund.stumble -o refund/
    """
    from stumble.packs.pack_cache import open_packed_files
    from stumble.packs.unpack_store import unpack_into_folder, unpack_into_store
    from stumble.user_data.paths import store_root
    from traces.store.store_dir import StoreDirectory

    for file in files:
        opened = open_packed_files(file)
        if output is None:
            written = unpack_into_store(opened, StoreDirectory(store_root()))
        else:
            written = unpack_into_folder(opened, output)
        if as_json:
            paths = [str(each) for each in written]
            click.echo(json.dumps({"pack": str(file), "written": paths}))
        else:
            for path in written:
                click.echo(path)
            if not written:
                click.echo(f"{file}: everything of it is there already", err=True)
