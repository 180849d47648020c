"""Single injections: what was struck, what the verdict rests on, and both runs side by side."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stumble.report.marks import shown, words
from stumble.report.outcomes import DETECT, NOT_RATED, OUTCOMES, fault
from stumble.report.sides import Shelf, Sides, sides
from stumble.report.values import Row
from stumble.selection import rows

if TYPE_CHECKING:
    import duckdb

NO_VERDICT = "no verdict"
UNREACHED = {
    "absorbed": "absorbed by the client",
    "ended_before": "not reached",
    "undecided": "not decided",
}
_WORDS = dict(OUTCOMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One injection as the page shows it."""

    id: str
    outcome: str
    """The column it is counted in, for its colour."""
    words: str
    fault: str
    struck: str
    who: str
    task: str
    facts: tuple[tuple[str, str], ...]
    evidence: tuple[str, ...]
    tape: str
    sides: Sides


def examples(
    connection: "duckdb.DuckDBPyConnection",
    name: Callable[[Row], str],
    shelf: Shelf,
    most: int,
) -> tuple[Example, ...]:
    """At most so many injections, some of every kind, the worst first."""
    found = rows(connection, "examples", n=most)
    return tuple(_example(row, name, shelf) for row in found)


def _example(row: Row, name: Callable[[Row], str], shelf: Shelf) -> Example:
    kept = _text(row, "original"), _text(row, "mutated")
    outcome = str(row["class"]) if row["class"] in _WORDS else "unsettled"
    if row["state"] == "absorbed":
        outcome = "absorbed"
    words = _WORDS.get(outcome, NO_VERDICT)
    if outcome == "unsettled":
        words = UNREACHED.get(str(row["state"]), NO_VERDICT)
    run = str(row["trajectory_id"])
    twins = row["twins"]
    return Example(
        id=str(row["injection_id"]),
        outcome=outcome,
        words=words,
        fault=fault(row),
        struck=_struck(row, kept),
        who=name(row),
        task=shown(_text(row, "task")),
        facts=tuple(_facts(row)),
        evidence=tuple(shown(line) for line in _listed(row["evidence"])),
        tape=shelf.path(run).name,
        sides=sides(
            shelf,
            run,
            str(row["injection_id"]),
            tuple(map(str, twins)) if isinstance(twins, list) else (),
            kept,
        ),
    )


def _struck(row: Row, kept: tuple[str, str]) -> str:
    """`get_order, step 7: 1194.86 became 1194.66`."""
    where = shown(f"{row['tool'] or 'a call'}, step {row['step'] or 'not known'}")
    known = words(*kept)
    if sorted(known.values()) == ["lie", "truth"]:
        now, was = sorted(known, key=lambda word: known[word])
        return f"{where}: {shown(was)} became {shown(now)}"
    return where


def _facts(row: Row) -> list[tuple[str, str]]:
    detect = str(row["detect"] or NOT_RATED)
    said = [
        ("what was injected", f"{row['op']} {row['params']}"),
        ("detectability", DETECT.get(detect, detect)),
        ("reached the agent", _consumed(row)),
        ("noticed", _yes(row["noticed"])),
        ("end state right", _yes(row["passed"])),
        ("claims success", _yes(row["claims_success"])),
        ("clean twins pass", _yes(row["baseline_valid"])),
    ]
    said += [("world", str(row["world"]))] if row["world"] else []
    if row["judge_version"] is not None:
        said.append(("judged by", f"version {row['judge_version']} of the rules"))
    return [(key, shown(value)) for key, value in said]


def _consumed(row: Row) -> str:
    if row["state"] == "consumed":
        return "yes"
    why = row["unreached_reason"] or "no reason is known"
    return f"not known ({why})" if row["state"] == "undecided" else f"no ({why})"


def _yes(value: object) -> str:
    return "not known" if value is None else "yes" if value else "no"


def _listed(evidence: object) -> list[str]:
    if not isinstance(evidence, str):
        return []
    said = json.loads(evidence)
    return [str(line) for line in said] if isinstance(said, list) else [str(said)]


def _text(row: Row, name: str) -> str:
    value = row[name]
    return value if isinstance(value, str) else ""
