"""Live-SWE-agent on 50 tasks of SWE-bench Verified: runs of GPT-5 mini, grades of three others.

The summary of the evaluation lists every submitted task, `preds.json` those of GPT-5 mini. A task
whose patch was empty has not passed; of one on which the evaluation failed nothing is known.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import replace

import orjson

from stumble.atlas.recipe import Recipe, RunTotal
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile
from stumble.atlas.sources.swe_bench import SUITE, read_graded_runs

RECIPE = Recipe(
    name="live-swe",
    repository="RussellRyanH/CSCI-635-LiveSWE-Agent",
    commit="2813cfb19465bb9f57d50ebd0798550480a2f836",
    paths=r"results/(llm-ablation/gpt-5-mini/(preds\.json|.+(\.traj|/report)\.json)"
    r"|[^/]+_subset/[^/]+\.json)",
    files_sha256="839a4fdfd9a4f066193207506cc0e5e4a68bf2e85533941e4c555af3b5f7a90b",
    describes="Live-SWE-agent, 4 models, 43 to 50 tasks of SWE-bench Verified",
    derived="passed: resolved by the summary of the evaluation, false for an empty patch, null if "
    "the evaluation failed; of GPT-5 mini: resolved in the report of the task; "
    "only its trajectories are published, so the others have no steps and no calls",
    totals={
        ("live-swe-agent", "claude-haiku-4-5"): RunTotal(50, 32),
        ("live-swe-agent", "claude-sonnet-4-6"): RunTotal(43, 29),
        ("live-swe-agent", "gemini-3-1-pro"): RunTotal(50, 29),
    },
)

_SUMMARY = re.compile(r"results/(?P<subset>[^/]+_subset)/[^/]+")
_MODELS: Mapping[str, str] = {
    "claude_4.5_haiku_subset": "claude-haiku-4.5",
    "claude_4.6_sonnet_subset": "claude-sonnet-4.6",
    "gemini_3.1_pro_subset": "gemini-3.1-pro",
}
_ABLATED = "gpt-5-mini-2025-08-07"
_AGENT = "live-swe-agent"
"""It is mini-swe-agent with another prompt, and its files name the latter."""


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield runs of which only the grade is known, then those with their calls."""
    with_calls: list[SourceFile] = []
    patches: dict[str, str] = {}
    for file in files:
        if match := _SUMMARY.fullmatch(file.path):
            yield from _read_summary(file.data, match["subset"])
        elif file.path.endswith("/preds.json"):
            patches = {task: each["model_patch"] for task, each in orjson.loads(file.data).items()}
        else:
            with_calls.append(file)
    runs = {run.task: run for run in read_graded_runs(with_calls, source=RECIPE.name)}
    for task, patch in patches.items():
        run = runs.get(task) or PublishedRun(
            run_id=f"{RECIPE.name}/{task}", agent=_AGENT, model=_ABLATED, suite=SUITE, task=task
        )
        passed = run.passed if patch else False
        reward = None if passed is None else float(passed)
        yield replace(run, agent=_AGENT, passed=passed, reward=reward)


def _read_summary(data: bytes, subset: str) -> Iterator[PublishedRun]:
    summary = orjson.loads(data)
    unknown = set(summary["error_ids"])
    for task in summary["submitted_ids"]:
        passed = None if task in unknown else task in summary["resolved_ids"]
        yield PublishedRun(
            run_id=f"{RECIPE.name}/{subset}/{task}",
            agent=_AGENT,
            model=_MODELS[subset],
            suite=SUITE,
            task=task,
            passed=passed,
            reward=None if passed is None else float(passed),
        )
