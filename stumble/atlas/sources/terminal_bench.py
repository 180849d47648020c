"""Terminal-Bench leaderboard: results of trials without their tool calls.

A result file has `is_resolved` (null if the tests could not be run or read), `failure_mode` and,
in newer submissions, the agent's start and end. The model is in the name of the submission alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypedDict

import orjson

from stumble.atlas.recipe import Recipe
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile

RECIPE = Recipe(
    name="terminal-bench",
    repository="laude-institute/terminal-bench-leaderboard",
    commit="8e1925a397d7ed859c027cc19b3a3d90c16ef8df",
    paths=r"results/terminal-bench-core[@:]0\.1\.1/[^/]+/(?:[^/]+/){2,4}results\.json",
    files_sha256="48c8d7b34af1c6acae3bcae3dfaf744210c886d895bfd6d69121a2c27104025b",
    describes="Terminal-Bench 0.1.1: trials of 9 submissions, up to 5 for each of 80 tasks",
    derived="passed: is_resolved, null if no test result could be read; ended: budget if the agent "
    "timed out; seconds: the agent's own time; no steps and no calls are published",
)

_SUBMISSION = re.compile(r"\d{8}_(?P<agent>[^_]+)_(?P<model>.+)")
_MODELS: Mapping[str, str] = {
    "claude-4-sonnet": "claude-sonnet-4",
    "claude-4.1-opus": "claude-opus-4.1",
    "claude-4-1-opus": "claude-opus-4.1",
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
    """Yield the trials; summaries of a submission, which have no task, are left out."""
    trials = Counter[tuple[str, str]]()
    for file in files:
        result: TrialResult = orjson.loads(file.data)
        if "task_id" not in result:
            continue
        _, _, submission, *inner, _ = file.path.split("/")
        match = _SUBMISSION.fullmatch(submission)
        agent, model = (match["agent"], match["model"]) if match else (submission, None)
        trials[submission, result["task_id"]] += 1
        yield PublishedRun(
            run_id=f"{RECIPE.name}/{submission}/{'/'.join(inner)}",
            agent=agent,
            model=_MODELS.get(model, model) if model else None,
            suite="terminal-bench-0.1.1",
            task=result["task_id"],
            trial=trials[submission, result["task_id"]],
            passed=result.get("is_resolved"),
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
