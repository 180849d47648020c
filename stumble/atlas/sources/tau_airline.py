"""tau-bench: the published airline runs of gpt-4o."""

from collections.abc import Iterable, Iterator

from stumble.atlas.recipe import Recipe, RunTotal
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile
from stumble.atlas.sources.imported import read_imported_runs
from traces.importers import tau_bench

RECIPE = Recipe(
    name="tau-airline",
    repository="sierra-research/tau-bench",
    commit="59a200c6d575d595120f1cb70fea53cef0632f6b",
    paths=r"historical_trajectories/gpt-4o-airline\.json",
    files_sha256="d4cd563ed3b67a67b2b2af1eca8235edf865b3743575c31f97946a2b65f33dac",
    licence="MIT",
    licence_path="LICENSE",
    licence_sha256="243d23d45b80122b5ac575586ccef352fdc9c45e6d7d2605449aca8a17478b42",
    describes="tau-bench airline, gpt-4o: 50 tasks, 4 trials each",
    derived="passed: reward 1; is_error: the result begins with Error, as the benchmark's "
    "environment writes every exception of a tool",
    totals={("tau-bench", "gpt-4o"): RunTotal(200, 84)},  # pass^1 42.0 %, README
)


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield all trials."""
    for file in files:
        yield from read_imported_runs(file, tau_bench, source=RECIPE.name, suite="tau-airline")
