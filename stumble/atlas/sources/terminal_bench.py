"""Terminal-Bench leaderboard: results of trials without their tool calls.

A submission has summaries with a list of all trials. Files of single trials are not read: some are
missing, and some are there twice. A result has `is_resolved` (null if the tests could not be run or
read), `failure_mode` and, in newer submissions, the agent's start and end. The model is in the name
of the submission alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypedDict

import orjson

from stumble.atlas.recipe import Recipe, RunTotal
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile

_SUBMITTED = r"results/terminal-bench-core[@:]0\.1\.1/[^/]+"
RECIPE = Recipe(
    name="terminal-bench",
    repository="laude-institute/terminal-bench-leaderboard",
    commit="8e1925a397d7ed859c027cc19b3a3d90c16ef8df",
    paths=rf"{_SUBMITTED}/(?:[^/]+/)?[^/]*results\.json",
    files_sha256="024e37ff26e72f258701339250d2aea2385138d77e1bf5e9b8823cd8d4a869cf",
    describes="Terminal-Bench 0.1.1: trials of 13 submissions, 5 for each of 80 tasks",
    derived="passed: is_resolved, null if no test result could be read; ended: budget if the agent "
    "timed out; seconds: the agent's own time; no steps and no calls are published",
    totals={
        ("orchestrator", "claude-opus-4-1"): RunTotal(400, 159),
        ("orchestrator", "claude-sonnet-4"): RunTotal(400, 144),
        ("orchestrator", "qwen3-coder-480b"): RunTotal(400, 77),
        ("openhands", "claude-sonnet-4"): RunTotal(400, 165),
        ("cursor-cli", "claude-sonnet-4"): RunTotal(400, 105),
        ("swe-agent-mini", "claude-sonnet-4"): RunTotal(400, 51),
        ("goose", "claude-opus-4"): RunTotal(400, 181),
        ("goose", "claude-sonnet-4"): RunTotal(400, 165),
        ("chaterm", "claude-sonnet-4"): RunTotal(400, 197),
        ("droid", "claude-opus-4-1"): RunTotal(400, 235),
        ("droid", "claude-sonnet-4"): RunTotal(400, 202),
        ("droid", "gpt-5"): RunTotal(400, 210),
        ("ob1-09-10-25", None): RunTotal(400, 227),
    },
    left_out="a second copy of one summary of swe-agent-mini, in a folder inside another's",
)

_SUBMISSION = re.compile(r"\d{8}_(?P<agent>[^_]+)_(?P<model>.+)")
_MODELS: Mapping[str, str] = {
    "claude-4-sonnet": "claude-sonnet-4",
    "claude-4.1-opus": "claude-opus-4.1",
    "claude-4-1-opus": "claude-opus-4.1",
    "claude-4-opus": "claude-opus-4",
    "qwen-3-coder-480B": "qwen3-coder-480b",
}
"""Spellings of submissions -> one name each."""
_ENDS = {"agent_timeout": "budget", "unknown_agent_error": "crash", "unset": "final"}


class TrialResult(TypedDict, total=False):
    task_id: str
    is_resolved: bool | None
    failure_mode: str
    total_input_tokens: int | None
    total_output_tokens: int | None
    agent_started_at: str | None
    agent_ended_at: str | None


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield the trials of all summaries."""
    trials = Counter[tuple[str, str]]()
    for file in files:
        submission = file.path.split("/")[2]
        match = _SUBMISSION.fullmatch(submission)
        agent, model = (match["agent"], match["model"]) if match else (submission, None)
        results: list[TrialResult] = orjson.loads(file.data)["results"]
        for result in results:
            trials[submission, result["task_id"]] += 1
            trial = trials[submission, result["task_id"]]
            yield PublishedRun(
                run_id=f"{RECIPE.name}/{submission}/{result['task_id']}/{trial}",
                agent=agent,
                model=_MODELS.get(model, model) if model else None,
                suite="terminal-bench-0.1.1",
                task=result["task_id"],
                trial=trial,
                passed=result["is_resolved"],
                ended=_ENDS.get(result.get("failure_mode", ""), "harness"),
                seconds=_measure_seconds(result),
                tokens=_sum_tokens(result),
            )


def _measure_seconds(result: TrialResult) -> float | None:
    began, ended = result.get("agent_started_at"), result.get("agent_ended_at")
    if not (began and ended):
        return None
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def _sum_tokens(result: TrialResult) -> int | None:
    """Return all tokens; harnesses that do not count write 0 or null."""
    counted = [result.get("total_input_tokens"), result.get("total_output_tokens")]
    return sum(each or 0 for each in counted) or None
