"""Sessions of Claude Code on tau2-bench's retail tasks, without a simulated user."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import orjson

from stumble.atlas.recipe import Recipe, RunTotal
from stumble.atlas.rows import PublishedCall, PublishedRun
from stumble.atlas.source_files import SourceFile

RECIPE = Recipe(
    name="tau2-mermaid",
    repository="codesque16/tau2-mermaid",
    commit="6c0f8a540ce9c40173c376cf7c614b3e444af905",
    paths=r"results/(sonnet_run|haiku_run|haiku_base_solo)_complete_dataset/"
    r"(task_\d+\.jsonl|eval_results\.json)",
    files_sha256="91d4589266922b2c41c0092d5492318941a0c9fd084c579de3435d885de538cb",
    describes="Claude Code on tau2 retail, 2 models, 114 tasks, one set with plain prompts",
    derived="passed: db_match, the end state of the order database; is_error: the flag of the "
    "tool result, or a result that begins with Error; steps: responses of the model; a session "
    "without any response of a model is the harness's failure, and has no grade",
    totals={
        ("claude-code", "claude-haiku-4-5"): RunTotal(114, 102),
        ("claude-code-base", "claude-haiku-4-5"): RunTotal(114, 93),
    },
    left_out="the grades of 8 sessions with Sonnet 4.6 without any response: the source counts one "
    "of them as passed, and so 98 of 114",
)

_FILE = re.compile(r"results/(?P<set>[^/]+)_complete_dataset/(?P<name>.+)")
_FAILED = ("Error", '{"result":"Error', '{"error"')


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield all sessions; `eval_results.json`, which sorts before them, has the grades."""
    grades: dict[tuple[str, str], bool | None] = {}
    for file in files:
        match = _FILE.fullmatch(file.path)
        assert match
        if match["name"] == "eval_results.json":
            for each in orjson.loads(file.data):
                grades[match["set"], each["task_id"]] = each.get("db_match")
        else:
            task = match["name"].removeprefix("task_").removesuffix(".jsonl")
            grade = grades.get((match["set"], task))
            yield _to_run(file.data, match["set"], task, grade)


def _to_run(data: bytes, name: str, task: str, passed: bool | None) -> PublishedRun:
    lines = [orjson.loads(line) for line in data.splitlines() if line.strip()]
    replies = [line["message"] for line in lines if line.get("type") == "assistant"]
    models = [each["model"] for each in replies if not each["model"].startswith("<")]
    passed = passed if models else None
    order = {each["id"]: None for each in replies}
    steps = {each: place for place, each in enumerate(order, 1)}
    return PublishedRun(
        run_id=f"{RECIPE.name}/{name}/{task}",
        agent="claude-code" if "base_solo" not in name else "claude-code-base",
        model=models[-1] if models else None,
        suite="tau2-retail-solo",
        task=task,
        passed=passed,
        reward=None if passed is None else float(passed),
        ended="final" if models else "harness",
        steps=len(steps) if models else None,
        seconds=_measure_seconds(lines),
        calls=tuple(_find_calls(replies, steps, _find_results(lines))),
    )


def _find_calls(
    replies: list[dict[str, Any]], steps: dict[str, int], results: dict[str, dict[str, Any]]
) -> Iterator[PublishedCall]:
    for reply in replies:
        for block in reply["content"]:
            if block["type"] != "tool_use":
                continue
            result = results.get(block["id"])
            text = None if result is None else _read_text(result.get("content"))
            yield PublishedCall(
                step=steps[reply["id"]],
                tool=block["name"],
                arguments=orjson.dumps(block["input"], option=orjson.OPT_SORT_KEYS).decode(),
                result=text,
                is_error=None
                if result is None or text is None
                else bool(result.get("is_error")) or text.startswith(_FAILED),
            )


def _find_results(lines: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return call id -> tool_result block."""
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        content = line["message"].get("content") if line.get("type") == "user" else None
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_result":
                found[block["tool_use_id"]] = block
    return found


def _read_text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part.get("text", "") for part in parts if isinstance(part, dict))


def _measure_seconds(lines: list[dict[str, Any]]) -> float | None:
    times = [datetime.fromisoformat(line["timestamp"]) for line in lines if "timestamp" in line]
    return (max(times) - min(times)).total_seconds() if times else None
