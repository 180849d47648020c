"""Cohorts of pipeline runs as CSV, in a layout of our own: one row per run, `#` lines before.

The `#` lines say `cohort: NAME`, where the figures are from (`source:`), and may say `workload:`
and `mode:`; without a cohort the file's name is it. The header names the columns, in any order:
`model` and `t0` to `t5` (0 to 100), and where known `agent`, `seconds`, `cost_usd`, the four kinds
of tokens, `ramp_tokens`, `stopped_at` (the stage in which a run was cut off) and `stopped_by`.
A field that is empty is not known; a score that is not known is an error of the grader's.
"""

import csv
import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from traces.failures import PASSED, by_end, of_words
from traces.formats.files import content, head
from traces.relations import row, table

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

_SAID = re.compile(r"#\s*(cohort|workload|mode|source|licence):\s*(.+)")

type Row = tuple[object, ...]
type Entry = Mapping[str, str]


def fits(path: Path) -> bool:
    """Whether a file begins like such a table."""
    lines = head(path).decode("utf-8", "replace").splitlines()
    header = next((line for line in lines if line and not line.startswith("#")), "")
    return set(header.split(",")) >= NEEDED


def tables(path: Path) -> Mapping[str, pa.Table]:
    """The runs as trajectories and stages; ValueError for what is no number or no column."""
    lines = content(path).decode("utf-8").splitlines()
    matched = [found for line in lines if (found := _SAID.match(line))]
    said = {str(found[1]): str(found[2]) for found in matched}
    said.setdefault("cohort", path.name.split(".csv")[0])
    entries = _entries(path, lines)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    named = [(f"cohort-{digest}-{number}", each) for number, each in enumerate(entries, 1)]
    return {
        "trajectories": table("trajectories", (_trajectory(*each, said) for each in named)),
        "stages": table("stages", (stage for each in named for stage in _stages(*each, said))),
    }


def _entries(path: Path, lines: Iterable[str]) -> list[Entry]:
    read = csv.DictReader(line for line in lines if not line.startswith("#"))
    entries: list[Entry] = list(read)
    names = read.fieldnames or ()
    for name in names:
        if name not in KNOWN:
            raise ValueError(f"{path}: no column {name!r}; there are {', '.join(sorted(KNOWN))}")
    for entry in entries:
        if None in entry or None in entry.values():
            raise ValueError(f"{path}: {entry['model']!r} has not {len(names)} fields")
    return entries


def _trajectory(trajectory: str, entry: Entry, said: Mapping[str, str]) -> Row:
    scores = [_number(entry, stage.lower()) for stage in STAGES]
    known = None not in scores
    counts = [_count(entry, name) for name in ("prompt_tokens", "completion_tokens")]
    return row(
        "trajectories",
        {
            "trajectory_id": trajectory,
            "agent": entry.get("agent") or None,
            "model": entry["model"],
            "scenario": said.get("workload"),
            "task": said["cohort"],
            "condition": "clean",
            "world": "fresh",
            "source": "cohort",
            "passed": all(score is not None and score >= PASSED for score in scores)
            if known
            else None,
            "ended": _ended(entry),
            "cost_usd": _number(entry, "cost_usd"),
            "seconds": _number(entry, "seconds"),
            "tokens": None if None in counts else sum(count or 0 for count in counts),
            "cohort": said["cohort"],
            **{name: _count(entry, name) for name in COUNTS},
        },
    )


def _ended(entry: Entry) -> str | None:
    if "stopped_at" not in entry:
        return None
    return "crash" if entry["stopped_at"] else "final"


def _stages(trajectory: str, entry: Entry, said: Mapping[str, str]) -> Iterable[Row]:
    scores = {stage: _number(entry, stage.lower()) for stage in STAGES}
    at, by = entry.get("stopped_at"), entry.get("stopped_by")
    failed = by_end(of_words(by), at, scores) if at and by else {}
    for stage, score in scores.items():
        why = failed.get(stage)
        known = {
            "trajectory_id": trajectory,
            "stage": stage,
            "score": score,
            "passed": None if score is None else score >= PASSED,
            "outcome": "infrastructure_error" if score is None else None,
            "workload": said.get("workload"),
            "mode": said.get("mode"),
            "failure": why.cause if why else None,
            "failure_evidence": why.evidence if why else None,
        }
        yield row("stages", known)


def _number(entry: Entry, name: str) -> float | None:
    text = entry.get(name)
    try:
        return float(text) if text else None
    except ValueError:
        raise ValueError(f"{name} of {entry['model']!r} is no number: {text!r}") from None


def _count(entry: Entry, name: str) -> int | None:
    found = _number(entry, name)
    return None if found is None else int(found)
