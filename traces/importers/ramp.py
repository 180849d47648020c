"""Import RAMP score files: a cohort of pipeline runs with a score per stage, as published.

A board is a JSON list of rows, or an object with that list under `models`. Its rows have `model`,
`task0` to `task5` (0 to 100) and, depending on the board, time, cost and tokens. Its published
means are not read: views compute them. The cohort is the file name without `.json`. Cost 0 or a
missing cost is unknown. A file with an arithmetic expression instead of a number is not JSON; that
number is taken as unknown, since its currency is not stated.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import orjson
import pyarrow as pa

from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.model_family import find_model_family
from traces.pipeline.failure_causes import (
    PASSING_SCORE,
    StageFailure,
    classify_provider_error,
    spread_final_failure,
)
from traces.store.schema import make_relation_row, make_relation_table

NAME = "RAMP score files (JSON objects with model and task0 to task5)"

type Row = tuple[object, ...]
type Entry = Mapping[str, object]

_SUM = re.compile(rb'(": )[\d.]+[-+*/(][-+*/().\d]*(?=,?\s*\n)')


def can_import(path: Path) -> bool:
    """Whether a file begins like a board."""
    start = read_file_head(path)
    return start.lstrip()[:1] in (b"[", b"{") and all(
        key in start for key in (b'"model"', b'"task0"', b'"task5"')
    )


def read_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read the runs as trajectories and stages."""
    board = orjson.loads(_SUM.sub(rb"\1null", read_unpacked_file(path)))
    entries: list[Entry] = board["models"] if isinstance(board, dict) else board
    cohort = path.name.split(".json")[0]
    identified = [(_make_ramp_run_id(cohort, entry), entry) for entry in entries]
    return {
        "trajectories": make_relation_table(
            "trajectories", (_to_ramp_trajectory(*each, cohort) for each in identified)
        ),
        "stages": make_relation_table(
            "stages", (stage for each in identified for stage in _to_ramp_stages(*each))
        ),
    }


def _make_ramp_run_id(cohort: str, entry: Entry) -> str:
    canonical = orjson.dumps([cohort, entry], option=orjson.OPT_SORT_KEYS)
    return f"ramp-{hashlib.sha256(canonical).hexdigest()[:16]}"


def _to_ramp_trajectory(trajectory: str, entry: Entry, cohort: str) -> Row:
    scores = [
        score for k in range(6) if (score := _to_optional_float(entry.get(f"task{k}"))) is not None
    ]
    fields = {
        "trajectory_id": trajectory,
        "agent": entry.get("backend"),
        "model": entry["model"],
        "model_family": find_model_family(entry["model"]),
        "scenario": "ramp",
        "task": cohort,
        "condition": "clean",
        "world": "fresh",
        "recorded_at": _parse_ramp_time(entry.get("started_at")),
        "source": "ramp",
        "passed": all(score >= PASSING_SCORE for score in scores) if len(scores) == 6 else None,
        "ended": _read_ramp_ending(entry.get("termination_status")),
        "cost_usd": _to_optional_float(entry.get("run_llm_cost_usd")) or None,
        "seconds": _to_optional_float(entry.get("elapsed_seconds", entry.get("elapsed"))),
        "tokens": _add_token_counts(entry),
        "prompt_tokens": entry.get("run_llm_prompt_tokens"),
        "cached_tokens": entry.get("run_llm_cache_read_tokens"),
        "completion_tokens": entry.get("run_llm_completion_tokens"),
        "reasoning_tokens": entry.get("run_llm_reasoning_tokens"),
        "ramp_tokens": entry.get("run_llm_total_tokens"),
        "cohort": cohort,
    }
    return make_relation_row("trajectories", fields)


def _add_token_counts(entry: Entry) -> int | None:
    """Return prompt plus completion tokens; the published total counts some of them twice."""
    counts = entry.get("run_llm_prompt_tokens"), entry.get("run_llm_completion_tokens")
    integers = [count for count in counts if isinstance(count, int)]
    return sum(integers) if len(integers) == len(counts) else None


def _to_ramp_stages(trajectory: str, entry: Entry) -> list[Row]:
    flags = entry.get("resurrected")
    resurrected = flags if isinstance(flags, list) else [None] * 6
    scores = {f"T{k}": _to_optional_float(entry.get(f"task{k}")) for k in range(6)}
    failures = _find_stage_failures(entry, scores)
    rows = [
        {
            "trajectory_id": trajectory,
            "stage": stage,
            "score": score,
            "passed": score >= PASSING_SCORE,
            "resurrected": flag,
            "workload": "ramp",
            "mode": _to_ramp_mode(entry),
            "failure": failures[stage].cause if stage in failures else None,
            "failure_evidence": failures[stage].evidence if stage in failures else None,
        }
        for (stage, score), flag in zip(scores.items(), resurrected, strict=True)
        if score is not None
    ]
    return [make_relation_row("stages", each) for each in rows]


def _find_stage_failures(
    entry: Entry, scores: Mapping[str, float | None]
) -> Mapping[str, StageFailure]:
    """Return the failure causes that the end of a run shows, by stage: the last with rounds, and
    all after it.

    A model that ended by itself with too low a score shows none.
    """
    rounds = [k for k in range(6) if isinstance(entry.get(f"task{k}_agent_llm_rounds"), int)]
    detail = str(entry.get("last_error_detail") or entry.get("termination_detail") or "")
    status = str(entry.get("termination_status"))
    if not rounds or not status.startswith("error_"):
        return {}
    if status == "error_container_timeout" or "maximum iterations" in detail:
        failure = StageFailure(cause="budget", text=detail or status)
    elif status.startswith("error_llm_"):
        failure = classify_provider_error(detail or status)
    else:
        return {}
    return spread_final_failure(failure, f"T{rounds[-1]}", scores)


def _to_ramp_mode(entry: Entry) -> str | None:
    """Return the mode; one persistent conversation is `progressive`, whatever the board has."""
    if entry.get("context_mode") == "pipeline" or entry.get("context") == "persistent":
        return "progressive"
    modes = {"Guided": "guided", "Semi-Guided": "progressive", "Autonomous": "autonomous"}
    return modes.get(str(entry.get("workload")))


def _to_optional_float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _parse_ramp_time(value: object) -> float | None:
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None


def _read_ramp_ending(status: object) -> str | None:
    if not isinstance(status, str):
        return None
    if status == "success_model_finished":
        return "final"
    return "budget" if status == "error_container_timeout" else "crash"
