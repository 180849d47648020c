"""Who&When: failed runs of several agents, in which people dated the decisive mistake."""

from collections.abc import Iterable, Iterator

import orjson

from stumble.atlas.recipe import Recipe, RunTotal
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile

RECIPE = Recipe(
    name="who-and-when",
    repository="mingyin1/Agents_Failure_Attribution",
    commit="3d9d568840f004b389638f97adf3e0ab8b5a9514",
    paths=r"Who&When/(Algorithm-Generated|Hand-Crafted)/\d+\.json",
    files_sha256="a0cb5a19a5899490350751300bd78116234c4755ff74038b6a4840dad6d99d57",
    licence="MIT",
    licence_path="LICENSE",
    licence_sha256="d82c84135b6bbb59e541aa9a81727e0a6c5f55d4e9247dafc054a632a74a6ab0",
    describes="Who&When: 184 failed runs of teams of agents, with the decisive mistake",
    derived="passed: false, as all runs were chosen because they failed: no rate of failures; "
    "steps: turns of the conversation; mistake_step: as annotated, counted from 0",
    totals={("captain-agent", None): RunTotal(126, 0), ("magentic-one", None): RunTotal(58, 0)},
)


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield all runs; `suite` says how the team was made."""
    for file in files:
        _, made, name = file.path.split("/")
        run = orjson.loads(file.data)
        yield PublishedRun(
            run_id=f"{RECIPE.name}/{made}/{name.removesuffix('.json')}",
            agent="captain-agent" if made == "Algorithm-Generated" else "magentic-one",
            model=None,
            suite=f"who-and-when-{made.lower()}",
            task=run["question_ID"],
            passed=False,
            steps=len(run["history"]),
            mistake_step=int(run["mistake_step"]),
        )
