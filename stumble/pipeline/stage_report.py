"""Stages of a pipeline run as plain data and as a table."""

import json
from collections.abc import Iterator, Mapping, Sequence

from scenarios.pipeline.compiler.programs.grammar import BANDS
from stumble.control_characters import escape_controls
from stumble.llm.prices import compute_token_cost
from traces.pipeline.stages import StageCase, derive_stage_cases
from traces.store.rows import build_tape_rows
from traces.store.schema import SCHEMAS
from traces.tape.reader import Tape

type StageRow = Mapping[str, object]

FULL_SCORE = 100
LEAST_UNWRITTEN, MOST_UNWRITTEN = 4096, 0.5
"""A program is named if more of its text is in no answer of the model: in bytes, and as a share."""
MANY_UNWRITTEN = 64 << 10
"""Bytes from which it is named whatever its share, which more text of the model makes small: tcc
has 95 KiB, packed.
"""

STAGE_COLUMNS = (
    ("stage", "stage"),
    ("score", "score"),
    ("chain_score", "chain"),
    ("ramp_score", "ramp"),
    ("outcome", "outcome"),
    ("provenance", "given"),
    ("resurrected", "resurrected"),
    ("cases", "cases"),
    ("reached", "reached"),
    ("solved", "solved"),
    ("tries", "attempts"),
    ("calls", "calls"),
    ("tokens", "tokens"),
    ("cost_usd", "cost"),
    ("seconds", "seconds"),
    ("budget", "budget"),
    ("unwritten", "unwritten"),
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
    rows = [
        {**row, "unwritten": _compute_unwritten_share(row), "tries": _format_attempts(row)}
        for row in found
    ]
    body = [tuple(_format_stage_cell(row[name]) for name, _ in STAGE_COLUMNS) for row in rows]
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


def describe_unwritten_programs(found: Sequence[StageRow]) -> Iterator[str]:
    """Describe the programs of which the model wrote less than a half, with their files."""
    for row in found:
        unwritten, share = row["unwritten_bytes"], _compute_unwritten_share(row)
        if share is None or not isinstance(unwritten, int):
            continue
        if unwritten < MANY_UNWRITTEN and (unwritten < LEAST_UNWRITTEN or share <= MOST_UNWRITTEN):
            continue
        files = json.loads(str(row["unwritten_files"]))
        named = ", ".join(f"{escape_controls(name)} {size:,}" for name, size in files.items())
        yield (
            f"{row['stage']}: {share:.0%} of its program ({unwritten:,} bytes) "
            f"is in no answer of the model: {named}"
        )


def _format_attempts(row: StageRow) -> str | None:
    """Format the attempts made and allowed: `2 of 3`."""
    made, allowed = row["attempts"], row["attempts_allowed"]
    return None if made is None else f"{made} of {allowed}"


def _compute_unwritten_share(row: StageRow) -> float | None:
    size, unwritten = row["program_bytes"], row["unwritten_bytes"]
    return (
        unwritten / size if isinstance(size, int) and isinstance(unwritten, int) and size else None
    )


def format_stage_cases(tape: Tape) -> Iterator[str]:
    """Format the cases that are not right, below the count of those that are."""
    cases = tuple(derive_stage_cases(tape.marks))
    for stage in dict.fromkeys(case.stage for case in cases):
        graded = [case for case in cases if case.stage == stage]
        wrong = [case for case in graded if case.score != FULL_SCORE]
        right = f"{len(graded) - len(wrong)} of {len(graded)} cases right"
        yield f"{stage}: {right}{_format_bands(graded)}"
        width = max((len(case.case) for case in wrong), default=0)
        for case in wrong:
            reached = "" if case.reached else " (its input was wrong)"
            reason = escape_controls(case.why or case.result)
            yield f"  {case.case:{width}}  {_format_stage_cell(case.score):>5}  {reason}{reached}"


def _format_bands(graded: Sequence[StageCase]) -> str:
    """Format how many programs of each band of difficulty are right; empty for other workloads."""
    if not all(case.case.startswith(tuple(BANDS)) for case in graded):
        return ""
    parts = []
    for band in BANDS:
        scores = [case.score for case in graded if case.case.startswith(band)]
        parts.append(f"{band} {sum(score == FULL_SCORE for score in scores)} of {len(scores)}")
    return f" ({', '.join(parts)})"


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
