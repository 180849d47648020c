"""mini-swe-agent's trajectories with the reports of SWE-bench's evaluation beside them."""

from collections.abc import Iterable, Iterator
from copy import replace

import orjson

from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile
from stumble.atlas.sources.imported import read_imported_runs
from traces.importers import mini_swe_agent

SUITE = "swe-bench-verified"


def read_graded_runs(files: Iterable[SourceFile], *, source: str) -> Iterator[PublishedRun]:
    """Yield the runs of all `.traj.json` files, graded by the `report.json` of their task."""
    trajectories: list[SourceFile] = []
    resolved: dict[str, bool] = {}
    for file in files:
        if file.path.endswith("report.json"):
            resolved |= read_report(file)
        else:
            trajectories.append(file)
    for file in trajectories:
        runs = read_imported_runs(file, mini_swe_agent, source=source, suite=SUITE)
        for run in runs:
            passed = resolved.get(run.task)
            yield replace(run, passed=passed, reward=None if passed is None else float(passed))


def read_report(file: SourceFile) -> dict[str, bool]:
    """Return task -> resolved; a report without names is about the task of its folder."""
    report = orjson.loads(file.data)
    if "resolved" in report:
        return {file.path.split("/")[-2]: bool(report["resolved"])}
    return {task: bool(each["resolved"]) for task, each in report.items()}
