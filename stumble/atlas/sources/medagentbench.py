"""MedAgentBench: one model at a time reads and writes a FHIR server by GET and POST lines."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from stumble.atlas.recipe import Recipe, RunTotal
from stumble.atlas.rows import PublishedCall, PublishedRun
from stumble.atlas.source_files import SourceFile

RECIPE = Recipe(
    name="medagentbench",
    repository="WhissleAI/tau2-bench-w",
    commit="bfcb460d2b790a2c742cdc579bea9215409ec6e2",
    paths=r"results/whissle/medagentbench/brain-parity_(mab_100|sweep25_\w+)/"
    r"(SUMMARY\.json|tasks/.+\.json)",
    files_sha256="7f3a1a5becabd8f2234747c32a67df61bef1506d6fbacf4b62796f0b07e9d9fd",
    licence="MIT",
    licence_path="LICENSE",
    licence_sha256="e67c5aa0074dfcaefd3c3a1aedb94cb539234aecd15d5a972574e3200e6252fe",
    describes="MedAgentBench, 7 models on 25 tasks and one run of 100",
    derived="passed: the grade against the server's state, null if the infrastructure failed; "
    "is_error: the request was refused or failed; an invalid line is no call",
    totals={
        ("whissle", None): RunTotal(100, 54),
        ("whissle", "claude-haiku-4-5"): RunTotal(25, 17),
        ("whissle", "claude-sonnet-5"): RunTotal(25, 13),
        ("whissle", "claude-opus-5"): RunTotal(25, 18),
        ("whissle", "claude-fable-5"): RunTotal(25, 15),
        ("whissle", "gemini-3-5-flash"): RunTotal(25, 18),
        ("whissle", "gemini-3-5-flash-lite"): RunTotal(25, 17),
        ("whissle", "gemini-3-flash-preview"): RunTotal(25, 13),
    },
)

_RUN = re.compile(r"results/whissle/medagentbench/brain-parity_(?P<run>\w+)/(?P<rest>.+)")
_FAILED = ("Error in sending", "Invalid POST")
_ENDS = {"completed": "final", "agent_invalid_action": "crash", "infra_fail": "harness"}


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield the tasks of each sweep; its summary, which sorts before them, names the model."""
    models: dict[str, str | None] = {}
    for file in files:
        match = _RUN.fullmatch(file.path)
        assert match
        document = orjson.loads(file.data)
        if match["rest"] == "SUMMARY.json":
            models[match["run"]] = document["run"].get("model")
        else:
            yield _to_run(document, match["run"], models.get(match["run"]))


def _to_run(task: dict[str, Any], run: str, model: str | None) -> PublishedRun:
    calls = (turn for turn in task["turns"] if turn["action_kind"] in ("get", "post"))
    return PublishedRun(
        run_id=f"{RECIPE.name}/{run}/{task['task_id']}",
        agent="whissle",
        model=model,
        suite="medagentbench",
        task=task["task_id"],
        passed=None if task["infra_fail"] else task["correct"],
        reward=None if task["infra_fail"] else float(task["correct"]),
        ended=_ENDS.get(task["status"]),
        steps=task["rounds"] or None,
        seconds=task["duration_ms"] / 1000,
        calls=tuple(_to_call(turn) for turn in calls),
    )


def _to_call(turn: dict[str, Any]) -> PublishedCall:
    return PublishedCall(
        step=turn["round"] + 1,
        tool=turn["action_kind"],
        arguments=turn["agent_reply"],
        result=turn["observation"],
        is_error=turn["observation"].startswith(_FAILED) if turn["observation"] else None,
    )
