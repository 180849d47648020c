"""mini-swe-agent with Gemini 3 Pro on SWE-bench Verified, graded by the benchmark's own reports."""

from collections.abc import Iterable, Iterator

from stumble.atlas.recipe import Recipe, RunTotal
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile
from stumble.atlas.sources.swe_bench import read_graded_runs

_FOLDER = "swebench_results/20251118_gemini-3-pro-74pct"

RECIPE = Recipe(
    name="mini-swe-gemini",
    repository="gruckion/mini-swe-agent",
    commit="d12a71affd95403b036b2bdbd827349b77bfffb9",
    paths=rf"{_FOLDER}/(trajs/.+\.traj\.json|logs/.+/report\.json)",
    files_sha256="330d4f74b014fe36dc8b9e5c19c6ecdb2e05a601cffccd7754d4f00faf89fed3",
    licence="MIT",
    licence_path="LICENSE.md",
    licence_sha256="0f796e58f91d1c07bb2c1b1d0f8bf3a83017c3a5dec1bdc6fae733b2cd2e875b",
    describes="mini-swe-agent, Gemini 3 Pro, SWE-bench Verified: 500 tasks, one trial each",
    derived="passed: resolved in the report of the task; is_error: a return code other than 0, or "
    "a time-out",
    totals={("mini-swe-agent", "gemini-3-pro-preview"): RunTotal(500, 371)},
)


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield all runs. A task without a report has no grade."""
    yield from read_graded_runs(files, source=RECIPE.name)
