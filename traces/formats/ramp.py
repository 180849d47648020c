"""RAMP score files: a cohort of pipeline runs with a score per stage, as its boards publish them.

A board is a JSON list of rows, or an object with that list under `models`; its rows have `model`,
`task0` to `task5` (0 to 100) and, depending on the board, time, cost and tokens. Its published
means are not read: they are views here. The cohort is the name of the file without `.json`.
Cost 0 or a missing cost is unknown. Where somebody put a sum instead of a number into a file it
is not JSON; that number is taken as unknown, since its currency is not stated.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import orjson
import pyarrow as pa

from traces.failures import PASSED, Failure, by_end, of_words
from traces.formats.files import content, head
from traces.relations import row, table

NAME = "RAMP score files (JSON objects with model and task0 to task5)"

type Row = tuple[object, ...]
type Entry = Mapping[str, object]

_SUM = re.compile(rb'(": )[\d.]+[-+*/(][-+*/().\d]*(?=,?\s*\n)')


def fits(path: Path) -> bool:
    """Whether a file begins like a board."""
    start = head(path)
    return start.lstrip()[:1] in (b"[", b"{") and all(
        key in start for key in (b'"model"', b'"task0"', b'"task5"')
    )


def tables(path: Path) -> Mapping[str, pa.Table]:
    """The runs as trajectories and stages."""
    board = orjson.loads(_SUM.sub(rb"\1null", content(path)))
    entries: list[Entry] = board["models"] if isinstance(board, dict) else board
    cohort = path.name.split(".json")[0]
    named = [(_name(cohort, entry), entry) for entry in entries]
    return {
        "trajectories": table("trajectories", (_trajectory(*each, cohort) for each in named)),
        "stages": table("stages", (stage for each in named for stage in _stages(*each))),
    }


def _name(cohort: str, entry: Entry) -> str:
    whole = orjson.dumps([cohort, entry], option=orjson.OPT_SORT_KEYS)
    return f"ramp-{hashlib.sha256(whole).hexdigest()[:16]}"


def _trajectory(trajectory: str, entry: Entry, cohort: str) -> Row:
    scores = [score for k in range(6) if (score := _number(entry.get(f"task{k}"))) is not None]
    known = {
        "trajectory_id": trajectory,
        "agent": entry.get("backend"),
        "model": entry["model"],
        "scenario": "ramp",
        "task": cohort,
        "condition": "clean",
        "world": "fresh",
        "recorded_at": _when(entry.get("started_at")),
        "source": "ramp",
        "passed": all(score >= PASSED for score in scores) if len(scores) == 6 else None,
        "ended": _ended(entry.get("termination_status")),
        "cost_usd": _number(entry.get("run_llm_cost_usd")) or None,
        "seconds": _number(entry.get("elapsed_seconds", entry.get("elapsed"))),
        "tokens": _both(entry),
        "prompt_tokens": entry.get("run_llm_prompt_tokens"),
        "cached_tokens": entry.get("run_llm_cache_read_tokens"),
        "completion_tokens": entry.get("run_llm_completion_tokens"),
        "reasoning_tokens": entry.get("run_llm_reasoning_tokens"),
        "ramp_tokens": entry.get("run_llm_total_tokens"),
        "cohort": cohort,
    }
    return row("trajectories", known)


def _both(entry: Entry) -> int | None:
    """Tokens of prompts and completions; the published total has some of them twice."""
    counts = entry.get("run_llm_prompt_tokens"), entry.get("run_llm_completion_tokens")
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if len(known) == len(counts) else None


def _stages(trajectory: str, entry: Entry) -> list[Row]:
    flags = entry.get("resurrected")
    resurrected = flags if isinstance(flags, list) else [None] * 6
    scores = {f"T{k}": _number(entry.get(f"task{k}")) for k in range(6)}
    failed = _failed(entry, scores)
    known = [
        {
            "trajectory_id": trajectory,
            "stage": stage,
            "score": score,
            "passed": score >= PASSED,
            "resurrected": flag,
            "workload": "ramp",
            "mode": _mode(entry),
            "failure": failed[stage].cause if stage in failed else None,
            "failure_evidence": failed[stage].evidence if stage in failed else None,
        }
        for (stage, score), flag in zip(scores.items(), resurrected, strict=True)
        if score is not None
    ]
    return [row("stages", each) for each in known]


def _failed(entry: Entry, scores: Mapping[str, float | None]) -> Mapping[str, Failure]:
    """The causes that the end of a run shows: in the last stage with rounds, and in all after it.

    A model that ended by itself, and scored too little, shows none.
    """
    rounds = [k for k in range(6) if isinstance(entry.get(f"task{k}_agent_llm_rounds"), int)]
    said = str(entry.get("last_error_detail") or entry.get("termination_detail") or "")
    status = str(entry.get("termination_status"))
    if not rounds or not status.startswith("error_"):
        return {}
    if status == "error_container_timeout" or "maximum iterations" in said:
        ended = Failure(cause="budget", text=said or status)
    elif status.startswith("error_llm_"):
        ended = of_words(said or status)
    else:
        return {}
    return by_end(ended, f"T{rounds[-1]}", scores)


def _mode(entry: Entry) -> str | None:
    """One persistent conversation is `progressive`, whatever a board calls it."""
    if entry.get("context_mode") == "pipeline" or entry.get("context") == "persistent":
        return "progressive"
    named = {"Guided": "guided", "Semi-Guided": "progressive", "Autonomous": "autonomous"}
    return named.get(str(entry.get("workload")))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _when(value: object) -> float | None:
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None


def _ended(status: object) -> str | None:
    if not isinstance(status, str):
        return None
    if status == "success_model_finished":
        return "final"
    return "budget" if status == "error_container_timeout" else "crash"
