"""Live-SWE-agent on 50 tasks of SWE-bench Verified: runs of GPT-5 mini, grades of three others."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from stumble.atlas.recipe import Recipe
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile
from stumble.atlas.sources.swe_bench import SUITE, read_graded_runs, read_report

RECIPE = Recipe(
    name="live-swe",
    repository="RussellRyanH/CSCI-635-LiveSWE-Agent",
    commit="2813cfb19465bb9f57d50ebd0798550480a2f836",
    paths=r"results/(llm-ablation/gpt-5-mini/.+(\.traj|/report)\.json"
    r"|[^/]+/run[ _]evaluation/.+/report\.json)",
    files_sha256="e6be4496adb372d975cd33bc01b9a9eb41fb7a73bdb21dbb0894eadb67f5ce90",
    describes="Live-SWE-agent, 4 models, up to 50 tasks of SWE-bench Verified",
    derived="passed: resolved in the report of the task, null without one; only GPT-5 mini's "
    "trajectories are published, so the others have no steps and no calls",
)

_GRADED = re.compile(r"results/(?P<subset>[^/]+)/run[ _]evaluation/")
_MODELS: Mapping[str, str] = {
    "claude_4.5_haiku_subset": "claude-haiku-4.5",
    "claude_4.6_sonnet_subset": "claude-sonnet-4.6",
    "gemini_3.1_pro_subset": "gemini-3.1-pro",
}


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield runs with their calls, then those of which only the grade is known."""
    with_calls: list[SourceFile] = []
    for file in files:
        match = _GRADED.match(file.path)
        if match is None:
            with_calls.append(file)
            continue
        for task, resolved in read_report(file).items():
            yield PublishedRun(
                run_id=f"{RECIPE.name}/{match['subset']}/{task}",
                agent="live-swe-agent",
                model=_MODELS[match["subset"]],
                suite=SUITE,
                task=task,
                passed=resolved,
                reward=float(resolved),
            )
    # Live-SWE-agent is mini-swe-agent with another prompt, and its files name the latter.
    for run in read_graded_runs(with_calls, source=RECIPE.name):
        yield replace(run, agent="live-swe-agent")
