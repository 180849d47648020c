"""Single injections: the changed result, the evidence of the verdict, and both runs."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from stumble.report.outcomes import (
    DETECTABILITY_LABELS,
    NOT_RATED,
    OUTCOME_LABELS,
    format_fault_label,
)
from stumble.report.side_by_side import RunsSideBySide, StoreTapeCache, build_side_by_side
from stumble.report.text_diff import find_replaced_words, sanitize_text
from stumble.store.filter import ReportRow, fetch_question_rows

if TYPE_CHECKING:
    import duckdb

NO_VERDICT = "no verdict"
UNREACHED = {
    "absorbed": "absorbed by the client",
    "ended_before": "not reached",
    "undecided": "not decided",
}
_WORDS = dict(OUTCOME_LABELS)


class InjectionExample(Struct, frozen=True, kw_only=True):
    """One injection as shown on the page."""

    id: str
    outcome: str
    """The outcome column, which gives its colour."""
    words: str
    fault: str
    struck: str
    who: str
    task: str
    facts: tuple[tuple[str, str], ...]
    evidence: tuple[str, ...]
    tape: str
    sides: RunsSideBySide


def build_injection_examples(
    connection: "duckdb.DuckDBPyConnection",
    name: Callable[[ReportRow], str],
    shelf: StoreTapeCache,
    most: int,
) -> tuple[InjectionExample, ...]:
    """Return at most `most` injections, some of every kind, the worst first."""
    rows = fetch_question_rows(connection, "examples", n=most)
    return tuple(_build_injection_example(row, name, shelf) for row in rows)


def _build_injection_example(
    row: ReportRow, name: Callable[[ReportRow], str], shelf: StoreTapeCache
) -> InjectionExample:
    results = _read_example_text(row, "original"), _read_example_text(row, "mutated")
    outcome = str(row["class"]) if row["class"] in _WORDS else "unsettled"
    if row["state"] == "absorbed":
        outcome = "absorbed"
    words = _WORDS.get(outcome, NO_VERDICT)
    if outcome == "unsettled":
        words = UNREACHED.get(str(row["state"]), NO_VERDICT)
    run = str(row["trajectory_id"])
    twins = row["twins"]
    return InjectionExample(
        id=str(row["injection_id"]),
        outcome=outcome,
        words=words,
        fault=format_fault_label(row),
        struck=_describe_injection(row, results),
        who=name(row),
        task=sanitize_text(_read_example_text(row, "task")),
        facts=tuple(_list_injection_facts(row)),
        evidence=tuple(sanitize_text(line) for line in _parse_evidence_lines(row["evidence"])),
        tape=shelf.tape_path(run).name,
        sides=build_side_by_side(
            shelf,
            run,
            str(row["injection_id"]),
            tuple(map(str, twins)) if isinstance(twins, list) else (),
            results,
        ),
    )


def _describe_injection(row: ReportRow, kept: tuple[str, str]) -> str:
    """Format an injection as `get_order, step 7: 1194.86 became 1194.66`."""
    where = sanitize_text(f"{row['tool'] or 'a call'}, step {row['step'] or 'not known'}")
    words = find_replaced_words(*kept)
    if sorted(words.values()) == ["lie", "truth"]:
        mutated, original = sorted(words, key=lambda word: words[word])
        return f"{where}: {sanitize_text(original)} became {sanitize_text(mutated)}"
    return where


def _list_injection_facts(row: ReportRow) -> list[tuple[str, str]]:
    detect = str(row["detect"] or NOT_RATED)
    facts = [
        ("what was injected", f"{row['op']} {row['params']}"),
        ("detectability", DETECTABILITY_LABELS.get(detect, detect)),
        ("reached the agent", _describe_consumption(row)),
        ("noticed", _format_yes_no(row["noticed"])),
        ("end state right", _format_yes_no(row["passed"])),
        ("claims success", _format_yes_no(row["claims_success"])),
        ("clean twins pass", _format_yes_no(row["baseline_valid"])),
    ]
    facts += [("world", str(row["world"]))] if row["world"] else []
    if row["judge_version"] is not None:
        facts.append(("judged by", f"version {row['judge_version']} of the rules"))
    return [(key, sanitize_text(value)) for key, value in facts]


def _describe_consumption(row: ReportRow) -> str:
    if row["state"] == "consumed":
        return "yes"
    why = row["unreached_reason"] or "no reason is known"
    return f"not known ({why})" if row["state"] == "undecided" else f"no ({why})"


def _format_yes_no(value: object) -> str:
    return "not known" if value is None else "yes" if value else "no"


def _parse_evidence_lines(evidence: object) -> list[str]:
    if not isinstance(evidence, str):
        return []
    lines = json.loads(evidence)
    return [str(line) for line in lines] if isinstance(lines, list) else [str(lines)]


def _read_example_text(row: ReportRow, name: str) -> str:
    value = row[name]
    return value if isinstance(value, str) else ""
