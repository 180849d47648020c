"""The result of a check as lines of a terminal, plain data, and cases for CI services."""

import shlex
from collections.abc import Iterator

from stumble.check.behaviour import CARRIED_OUT
from stumble.check.findings import (
    BEHAVIOUR_WORDS,
    FAULT_WORDS,
    CheckFinding,
    FaultCell,
)
from stumble.check.result import CheckResult
from stumble.gate.check_case import CheckCase

MAX_WORST, MAX_LEFT_OUT = 3, 2
NOTHING_FOUND = "nothing found"
UNSTEADY = ": what a fault adds to that cannot be told from so few; mend the clean runs first"


def format_check_lines(result: CheckResult) -> Iterator[str]:
    """Yield the page of the terminal."""
    yield f"check {result.name}: {_describe_headline(result)}"
    yield from (f"  {note}" for note in (*result.notes, *result.warnings))
    if result.has_unsteady_runs:
        few = "" if any(cell.judged for cell in result.cells) else UNSTEADY
        failed = f"{result.clean_failed} of {result.clean} runs do not end right"
        yield f"  without any fault, {failed}{few}"
    for finding in result.findings:
        yield f"  {finding.sentence}"
    yield from (f"  no finding, but {line}" for line in _list_false_failures(result.cells))
    if result.cells:
        yield ""
        yield from _format_table(result.cells)
    yield from _format_worst(result.findings)
    yield from _format_unknown(result.cells)
    if result.left_out:
        yield ""
        yield f"not tried ({len(result.left_out)}):"
        yield from (f"  {line}" for line in result.left_out[:MAX_LEFT_OUT])
        if len(result.left_out) > MAX_LEFT_OUT:
            yield f"  and {len(result.left_out) - MAX_LEFT_OUT} more; --json has all"
    yield ""
    yield (
        f"{result.runs} runs, {result.clean} of them clean, in {result.seconds:.0f} s; "
        f"known cost ${result.cost:.4f}"
    )
    yield from (f"next: {command}" for command in list_next_commands(result))


def _list_false_failures(cells: tuple[FaultCell, ...]) -> Iterator[str]:
    for cell in cells:
        if times := sum(run.reason == CARRIED_OUT for run in cell.runs):
            what = FAULT_WORDS.get(cell.fault, cell.fault)
            yield f"when {cell.tool} {what}, {CARRIED_OUT}: {times} of {cell.judged}"


def _describe_headline(result: CheckResult) -> str:
    count = len(result.findings)
    found = f"{count} finding{'' if count == 1 else 's'}" if count else NOTHING_FOUND
    stopped = f"; stopped by {result.stopped_by}" if result.stopped_by else ""
    unknown = sum(cell.counts["unknown"] for cell in result.cells)
    judged = sum(cell.judged for cell in result.cells)
    if not judged:
        found = "not enough evidence" if not count else found
    more = f", {unknown} unknown" if unknown else ""
    return f"{found} in {judged} judged runs{more}{stopped}"


def _format_table(cells: tuple[FaultCell, ...]) -> Iterator[str]:
    rows = [("tool", "fault", "right or reported", "the agent")]
    rows += [(cell.tool, cell.fault, cell.describe(), cell.describe_behaviours()) for cell in cells]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield "  " + "  ".join(padded).rstrip()


def _format_worst(findings: tuple[CheckFinding, ...]) -> Iterator[str]:
    for finding in findings[:MAX_WORST]:
        reason = finding.worst.reason or BEHAVIOUR_WORDS[finding.behaviour]
        yield ""
        yield f"worst: {finding.tool}, {finding.fault}: {reason}"
        yield f"  stumble why {finding.worst.injection}"
        yield f"  stumble ui, /injections/{finding.worst.injection}"


def _format_unknown(cells: tuple[FaultCell, ...]) -> Iterator[str]:
    for cell in cells:
        reasons = dict.fromkeys(run.reason for run in cell.runs if run.behaviour == "unknown")
        for reason in reasons:
            yield f"unknown: {cell.tool}, {cell.fault}: {reason}"


def list_next_commands(result: CheckResult) -> tuple[str, ...]:
    """Return what is worth running next: the pages, a gate for CI, and one more run like it."""
    if not result.cells or not result.tapes:
        return tuple(f"stumble show {tape}" for tape in result.tapes[:1])
    name, first = shlex.quote(result.name), next(iter(result.findings), None)
    again = f"stumble report --campaign {name}"
    if first is not None and result.reset:
        tool, nth = first.worst.call
        where = f"--where {shlex.quote(f'tool={tool}')} --nth {nth}"
        again = (
            f"stumble fork {result.tapes[0]} --fault {first.fault} {where} "
            f"--reset {shlex.quote(result.reset)}"
        )
    return ("stumble ui --open", f"stumble gate --max-silent 0.1 --campaign {name}", again)


def check_to_dict(result: CheckResult) -> dict[str, object]:
    """Return the result as plain data; what is not known is counted, never left out."""
    return {
        "campaign": result.name,
        "findings": [
            {
                "tool": each.tool,
                "fault": each.fault,
                "behaviour": each.behaviour,
                "times": each.times,
                "judged": each.judged,
                "unknown": each.unknown,
                "sentence": each.sentence,
                "worst": each.worst.injection,
            }
            for each in result.findings
        ],
        "cells": [
            {
                "tool": cell.tool,
                "fault": cell.fault,
                "runs": len(cell.runs),
                "judged": cell.judged,
                "right_or_reported": cell.good,
                "least": cell.bounds[0],
                "most": cell.bounds[1],
                "behaviours": dict(cell.counts),
                "injections": [run.injection for run in cell.runs],
                "reasons": list(dict.fromkeys(run.reason for run in cell.runs if run.reason)),
            }
            for cell in result.cells
        ],
        "clean": result.clean,
        "clean_failed": result.clean_failed,
        "touch": {
            "models": list(result.touch.models),
            "read": list(result.touch.read),
            "written": list(result.touch.written),
            "servers": list(result.touch.servers),
            "local": list(result.touch.local),
        },
        "not_tried": list(result.left_out),
        "notes": list(result.notes),
        "warnings": list(result.warnings),
        "stopped_by": result.stopped_by or None,
        "seconds": round(result.seconds, 1),
        "runs": result.runs,
        "cost_usd": result.cost,
        "next": list(list_next_commands(result)),
        "exit": int(result.code),
    }


def list_check_cases(result: CheckResult) -> list[CheckCase]:
    """Return a case for each tool and fault, for the files of CI services."""
    cases = []
    for cell in result.cells:
        bad = next(
            (f for f in result.findings if (f.tool, f.fault) == (cell.tool, cell.fault)), None
        )
        unknown = "" if cell.judged else next((run.reason for run in cell.runs), "")
        cases.append(
            CheckCase(
                classname=f"stumble.{cell.tool}",
                name=f"{cell.tool}: {FAULT_WORDS.get(cell.fault, cell.fault)}",
                verdict="fail" if bad else "pass" if cell.judged else "unknown",
                message=bad.sentence if bad else unknown,
            )
        )
    return cases
