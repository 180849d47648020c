"""Import cohorts of pipeline runs from CSV: `#` lines, then one row per run.

The layout is defined here. The `#` lines have `cohort: NAME` and the source of the figures
(`source:`), and may have `workload:`, `mode:` and `untouched:`, the six scores of a workspace as it
is handed out; without a cohort, the file name is used. The header names the columns, in any order:
`model` and `t0` to `t5` (0 to 100), and optionally `agent`, `seconds`, `cost_usd`, the four kinds
of tokens, `ramp_tokens`, `stopped_at` (the stage in which a run was cut off) and `stopped_by`. An
empty field is unknown; an unknown score is an error of the grader.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.model_family import find_model_family
from traces.pipeline.failure_causes import (
    PASSING_SCORE,
    classify_provider_error,
    find_spoilt_programs,
    spread_final_failure,
)
from traces.store.schema import make_relation_row, make_relation_table

NAME = "cohorts of pipeline runs (CSV with model and t0 to t5)"

STAGES = tuple(f"T{k}" for k in range(6))
COUNTS = (
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "ramp_tokens",
)
NEEDED = frozenset({"model", *(stage.lower() for stage in STAGES)})
KNOWN = NEEDED | {"agent", "seconds", "cost_usd", *COUNTS, "stopped_at", "stopped_by"}

_SAID = re.compile(r"#\s*(cohort|workload|mode|source|licence|untouched):\s*(.+)")

type Row = tuple[object, ...]
type Entry = Mapping[str, str]


def can_import(path: Path) -> bool:
    """Whether a file begins like such a table."""
    lines = read_file_head(path).decode("utf-8", "replace").splitlines()
    header = next((line for line in lines if line and not line.startswith("#")), "")
    return set(header.split(",")) >= NEEDED


def read_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read the runs as trajectories and stages; ValueError for a bad number or unknown column."""
    lines = read_unpacked_file(path).decode("utf-8").splitlines()
    matches = [match for line in lines if (match := _SAID.match(line))]
    header = {str(match[1]): str(match[2]) for match in matches}
    header.setdefault("cohort", path.name.split(".csv")[0])
    entries = _read_csv_entries(path, lines)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    numbered = [(f"cohort-{digest}-{number}", each) for number, each in enumerate(entries, 1)]
    return {
        "trajectories": make_relation_table(
            "trajectories", (_to_csv_trajectory(*each, header) for each in numbered)
        ),
        "stages": make_relation_table(
            "stages", (stage for each in numbered for stage in _to_csv_stages(*each, header))
        ),
    }


def _read_csv_entries(path: Path, lines: Iterable[str]) -> list[Entry]:
    reader = csv.DictReader(line for line in lines if not line.startswith("#"))
    entries: list[Entry] = list(reader)
    names = reader.fieldnames or ()
    for name in names:
        if name not in KNOWN:
            raise ValueError(f"{path}: no column {name!r}; there are {', '.join(sorted(KNOWN))}")
    for entry in entries:
        if None in entry or None in entry.values():
            raise ValueError(f"{path}: {entry['model']!r} has not {len(names)} fields")
    return entries


def _to_csv_trajectory(trajectory: str, entry: Entry, said: Mapping[str, str]) -> Row:
    scores = [_parse_csv_number(entry, stage.lower()) for stage in STAGES]
    is_complete = None not in scores
    counts = [_parse_csv_count(entry, name) for name in ("prompt_tokens", "completion_tokens")]
    return make_relation_row(
        "trajectories",
        {
            "trajectory_id": trajectory,
            "agent": entry.get("agent") or None,
            "model": entry["model"],
            "model_family": find_model_family(entry["model"]),
            "scenario": said.get("workload"),
            "task": said["cohort"],
            "condition": "clean",
            "world": "fresh",
            "source": "cohort",
            "passed": all(score is not None and score >= PASSING_SCORE for score in scores)
            if is_complete
            else None,
            "ended": _read_csv_ending(entry),
            "cost_usd": _parse_csv_number(entry, "cost_usd"),
            "seconds": _parse_csv_number(entry, "seconds"),
            "tokens": None if None in counts else sum(count or 0 for count in counts),
            "cohort": said["cohort"],
            **{name: _parse_csv_count(entry, name) for name in COUNTS},
        },
    )


def _read_csv_ending(entry: Entry) -> str | None:
    if "stopped_at" not in entry:
        return None
    return "crash" if entry["stopped_at"] else "final"


def _to_csv_stages(trajectory: str, entry: Entry, said: Mapping[str, str]) -> Iterable[Row]:
    scores = {stage: _parse_csv_number(entry, stage.lower()) for stage in STAGES}
    at, by = entry.get("stopped_at"), entry.get("stopped_by")
    untouched = dict(zip(STAGES, map(float, said.get("untouched", "").split()), strict=False))
    failures = dict(find_spoilt_programs(scores, untouched))
    if at and by:
        failures |= spread_final_failure(classify_provider_error(by), at, scores)
    for stage, score in scores.items():
        failure = failures.get(stage)
        fields = {
            "trajectory_id": trajectory,
            "stage": stage,
            "score": score,
            "passed": None if score is None else score >= PASSING_SCORE,
            "outcome": "infrastructure_error" if score is None else None,
            "workload": said.get("workload"),
            "mode": said.get("mode"),
            "failure": failure.cause if failure else None,
            "failure_evidence": failure.evidence if failure else None,
        }
        yield make_relation_row("stages", fields)


def _parse_csv_number(entry: Entry, name: str) -> float | None:
    text = entry.get(name)
    try:
        return float(text) if text else None
    except ValueError:
        raise ValueError(f"{name} of {entry['model']!r} is no number: {text!r}") from None


def _parse_csv_count(entry: Entry, name: str) -> int | None:
    number = _parse_csv_number(entry, name)
    return None if number is None else int(number)
