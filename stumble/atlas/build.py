"""Build an atlas: read sources by their recipes and write their rows as Parquet files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from stumble.atlas.recipe import Recipe, SourceRefused, find_differences
from stumble.atlas.rows import sum_runs, to_tables
from stumble.atlas.source_files import read_source_files
from stumble.atlas.sources import SOURCES, Source
from traces.did_you_mean import suggest_nearest_name

RELATIONS = ("run", "call")


class BuiltSource(Struct, frozen=True, kw_only=True):
    """Rows of a source that were written."""

    name: str
    runs: int
    calls: int


def find_sources(names: Sequence[str]) -> Sequence[Source]:
    """Return the sources of these names, or all. Raises ValueError for an unknown one."""
    known = {source.RECIPE.name: source for source in SOURCES}
    for name in names:
        if name not in known:
            raise ValueError(
                f"no source {name!r}{suggest_nearest_name(name, known)}; stumble atlas sources "
                "lists them"
            )
    return [known[name] for name in names] or SOURCES


def find_clone(recipe: Recipe, folder: Path) -> Path:
    """Return the folder of a source below `folder`, or `folder` itself if it is the source.

    Names that are tried: `name`, `owner+name`, `owner/name` and `owner-name`, each also as a bare
    repository. Raises SourceRefused with the commands that clone it.
    """
    owner, _, name = recipe.repository.partition("/")
    tried = [folder / each for each in (name, f"{owner}+{name}", f"{owner}/{name}")]
    tried += [folder / f"{owner}-{name}", folder / f"{name}.git"]
    for each in tried:
        for inner in (each, each / "repo"):
            if (inner / ".git").exists() or (inner / "objects").is_dir():
                return inner
    for each in tried:
        if each.is_dir():
            return each
    if folder.resolve().name == name:
        return folder
    raise SourceRefused(
        f"{recipe.name}: {recipe.repository} is not in {folder}; clone it there: "
        f"{recipe.clone_command}"
    )


def build_source(source: Source, clone: Path, atlas: Path) -> BuiltSource:
    """Read a source and replace its rows. Raises SourceRefused, and writes nothing then."""
    recipe = source.RECIPE
    found = tuple(source.read_runs(read_source_files(recipe, clone)))
    if differences := tuple(find_differences(recipe, sum_runs(found))):
        raise SourceRefused(f"{recipe.name}: {'; '.join(differences)}")
    tables = to_tables(found, recipe.name)
    for relation, table in zip(RELATIONS, tables, strict=True):
        _replace_parquet(atlas / relation / f"{recipe.name}.parquet", table)
    runs, calls = tables
    return BuiltSource(name=recipe.name, runs=runs.num_rows, calls=calls.num_rows)


def list_built(atlas: Path) -> tuple[str, ...]:
    """Return the names of the sources that an atlas has, sorted."""
    return tuple(sorted(path.stem for path in (atlas / RELATIONS[0]).glob("*.parquet")))


def _replace_parquet(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}.new")
    try:
        pq.write_table(table, fresh, compression="zstd")
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def build_sources(
    sources: Sequence[Source], folder: Path, atlas: Path
) -> Iterator[BuiltSource | SourceRefused]:
    """Build each source from its clone in a folder; a refused one is yielded as its error."""
    for source in sources:
        try:
            yield build_source(source, find_clone(source.RECIPE, folder), atlas)
        except SourceRefused as refused:
            yield refused
