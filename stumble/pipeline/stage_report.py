"""Stages of a pipeline run as plain data and as a table."""

import json
from collections.abc import Iterator, Mapping, Sequence

from stumble.control_characters import escape_controls
from stumble.llm.prices import compute_token_cost
from traces.pipeline.stages import derive_stage_cases
from traces.store.rows import build_tape_rows
from traces.store.schema import SCHEMAS
from traces.tape import Tape

type StageRow = Mapping[str, object]

FULL_SCORE = 100

STAGE_COLUMNS = (
    ("stage", "stage"),
    ("score", "score"),
    ("ramp_score", "ramp"),
    ("outcome", "outcome"),
    ("provenance", "given"),
    ("resurrected", "resurrected"),
    ("cases", "cases"),
    ("reached", "reached"),
    ("solved", "solved"),
    ("calls", "calls"),
    ("tokens", "tokens"),
    ("cost_usd", "cost"),
    ("seconds", "seconds"),
    ("budget", "budget"),
    ("failure", "failure"),
)


def read_stage_rows(tape: Tape) -> tuple[StageRow, ...]:
    """Return the rows of the relation `stages` of a run, by column name."""
    names = SCHEMAS["stages"].names
    return tuple(
        dict(zip(names, row, strict=True))
        for row in build_tape_rows(tape, price=compute_token_cost)["stages"]
    )


def format_stage_table(found: Sequence[StageRow]) -> Iterator[str]:
    """Format the rows as a table."""
    head = tuple(title for _, title in STAGE_COLUMNS)
    body = [tuple(_format_stage_cell(row[name]) for name, _ in STAGE_COLUMNS) for row in found]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    for row in (head, *body):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def describe_silent_provider(found: Sequence[StageRow]) -> str | None:
    """Describe the stages of a run in which no model call was answered in the end; None if some
    stage had answers. Its scores say nothing of the agent.
    """
    failed = [row for row in found if row["failure"] == "provider"]
    if not failed or any(row["tokens"] for row in found):
        return None
    evidence = json.loads(str(failed[0]["failure_evidence"]))
    stages = ", ".join(str(row["stage"]) for row in failed)
    return (
        f"the model did not answer in {stages} ({escape_controls(str(evidence['text']))}): "
        "what was graded is what the agent had by then"
    )


def format_stage_cases(tape: Tape) -> Iterator[str]:
    """Format the cases that are not right, below the count of those that are."""
    cases = tuple(derive_stage_cases(tape.marks))
    for stage in dict.fromkeys(case.stage for case in cases):
        graded = [case for case in cases if case.stage == stage]
        wrong = [case for case in graded if case.score != FULL_SCORE]
        yield f"{stage}: {len(graded) - len(wrong)} of {len(graded)} cases right"
        width = max((len(case.case) for case in wrong), default=0)
        for case in wrong:
            reached = "" if case.reached else " (its input was wrong)"
            reason = escape_controls(case.why or case.result)
            yield f"  {case.case:{width}}  {_format_stage_cell(case.score):>5}  {reason}{reached}"


def _format_stage_cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}" if abs(value) < 1 else f"{value:.1f}"
        case _:
            return str(value)
