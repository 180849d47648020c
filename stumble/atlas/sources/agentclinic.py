"""AgentClinic: a model questions a simulated patient and diagnoses."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from stumble.atlas.recipe import Recipe, RunTotal
from stumble.atlas.rows import PublishedRun
from stumble.atlas.source_files import SourceFile

RECIPE = Recipe(
    name="agentclinic",
    repository="WhissleAI/tau2-bench-w",
    commit="bfcb460d2b790a2c742cdc579bea9215409ec6e2",
    paths=r"results/whissle/agentclinic/[^/]+-sweep25_\w+/cases/.+\.json",
    files_sha256="27b58e9313357c24d55ddff122caa127611b54f584f2cdaad3a5e2b1a7f880b8",
    licence="MIT",
    licence_path="LICENSE",
    licence_sha256="e67c5aa0074dfcaefd3c3a1aedb94cb539234aecd15d5a972574e3200e6252fe",
    describes="AgentClinic (MedQA), 7 models, 25 cases each",
    derived="passed: the judged diagnosis, null if the infrastructure failed; steps: questions of "
    "the model; a refusal to diagnose is abstain; there are no tool calls",
    totals={
        ("whissle", "claude-haiku-4-5"): RunTotal(25, 21),
        ("whissle", "claude-sonnet-5"): RunTotal(25, 22),
        ("whissle", "claude-opus-5"): RunTotal(25, 23),
        ("whissle", "claude-fable-5"): RunTotal(25, 24),
        ("whissle", "gemini-3-5-flash"): RunTotal(25, 21),
        ("whissle", "gemini-3-5-flash-lite"): RunTotal(25, 23),
        ("whissle", "gemini-3-flash-preview"): RunTotal(25, 15),
    },
)

_CASE = re.compile(r"results/whissle/agentclinic/[^/]+-sweep25_(?P<key>\w+)/cases/.+")
_MODELS: Mapping[str, str] = {
    "haiku": "claude-haiku-4-5",
    "sonnet5": "claude-sonnet-5",
    "opus5": "claude-opus-5",
    "fable5": "claude-fable-5",
    "g35f": "gemini-3.5-flash",
    "g35fl": "gemini-3.5-flash-lite",
    "g3fp": "gemini-3-flash-preview",
}
"""Keys of sweeps -> models, as the summaries of the same sweeps of MedAgentBench name them."""


def read_runs(files: Iterable[SourceFile]) -> Iterator[PublishedRun]:
    """Yield all cases."""
    for file in files:
        match = _CASE.fullmatch(file.path)
        assert match
        yield _to_run(orjson.loads(file.data), match["key"])


def _to_run(case: dict[str, Any], key: str) -> PublishedRun:
    score = case["score"] or {}
    passed = None if case["infra_fail"] else score.get("correctness")
    return PublishedRun(
        run_id=f"{RECIPE.name}/{key}/{case['scenario_id']}",
        agent="whissle",
        model=_MODELS[key],
        suite="agentclinic",
        task=case["scenario_id"],
        passed=passed,
        reward=None if passed is None else float(passed),
        ended="harness" if case["infra_fail"] else "abstain" if score.get("declined") else "final",
        steps=case["inferences_used"] or None,
        seconds=case["wall_s"],
    )
