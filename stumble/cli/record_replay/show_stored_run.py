"""`stumble show RUN` of an imported conversation: rows of the store, since it has no tape."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from stumble.errors import UsageError

if TYPE_CHECKING:
    from traces.dialects.types import HostedCall
    from traces.exporters.run_model import ExportedCall, ExportedRun, ExportedStep

LINE_WIDTH = 100


def show_stored_run(id: str, number: int | None, *, as_json: bool) -> None:
    """Print the steps of a run of the store, or one step in full. Raises UsageError."""
    from stumble.control_characters import escape_controls

    run = _read_run(id)
    if number is not None and not 1 <= number <= len(run.steps):
        raise UsageError(f"{id} has steps 1 to {len(run.steps)}, but no step {number}")
    chosen = [(place, step) for place, step in enumerate(run.steps, 1) if number in (None, place)]
    if as_json:
        rows = [_to_row(place, step) for place, step in chosen]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    for place, step in chosen:
        for line in _format_step(place, step, full=number is not None):
            click.echo(escape_controls(line))
    if number is None:
        click.echo(escape_controls(_describe_run(run)))


def _read_run(id: str) -> "ExportedRun":
    from stumble.store.open_store import open_indexed_store
    from traces.exporters.stored_run import read_exported_runs

    with open_indexed_store().connect() as connection:
        run = read_exported_runs(connection, [id]).get(id)
    if run is None:
        raise UsageError(f"{id}: no such file, and the store has no run of that id")
    return run


def _describe_run(run: "ExportedRun") -> str:
    """Name what is known of the run, in one line."""
    steps = sum(step.source == "agent" for step in run.steps)
    calls = sum(len(step.calls) for step in run.steps)
    facts = [f"{steps} steps", f"{calls} tool calls", "imported, without its traffic"]
    if run.model:
        facts.insert(0, run.model)
    ended = run.facts.get("ended")
    facts.append("how it ended is not known" if ended is None else f"ended {ended}")
    if (passed := run.facts.get("passed")) is not None:
        facts.append(f"end state {'right' if passed else 'wrong'}")
    return f"{run.id}: {', '.join(facts)}"


def _format_step(number: int, step: "ExportedStep", *, full: bool) -> Iterator[str]:
    end = describe_unusual_end(step.source, step.finish, known=step.finish is not None)
    yield f"{number:3}  {step.source}{f'  {step.model}' if step.model else ''}{end}"
    yield from format_hosted_calls(step.hosted, full)
    if step.message:
        yield indent_step_text(step.message, full)
    for call in step.calls:
        yield indent_step_text(f"-> {call.tool}({call.arguments})", full)
        mark = "!! " if call.is_error else "<- "
        result = "no result was recorded" if call.result is None else call.result
        yield indent_step_text(f"{mark}{result}", full)
        for name, size in call.cut.items():
            yield f"       ({name} shortened, of {size:,} bytes)"


_USUAL_ENDS = frozenset(
    ("stop", "end_turn", "tool_use", "tool_calls", "completed", "tool_call", "complete")
)
"""Reasons to finish, in lower case, of an answer that is whole: with and without calls."""


def describe_unusual_end(source: str, finish: str | None, *, known: bool = True) -> str:
    """Return how an answer ended, for the line of its step; empty if it is whole or unknown."""
    if source != "agent" or not known or (finish or "").lower() in _USUAL_ENDS:
        return ""
    return f"  ended by {finish}" if finish else "  cut off"


def format_hosted_calls(calls: "Iterable[HostedCall]", full: bool) -> Iterator[str]:
    """Yield the lines of what the provider ran."""
    for call in calls:
        mark = {True: "!! ", False: "<- ", None: "<? "}[call.is_error]
        yield indent_step_text(f"-> {call.tool}({call.arguments})", full) + "  (hosted)"
        result = "its result is not in the answer" if call.result is None else call.result
        yield indent_step_text(f"{mark}{result}", full)


def list_hosted_calls(calls: "Iterable[HostedCall]") -> list[dict[str, object]]:
    """Return what the provider ran, for JSON."""
    return [
        {
            "tool": each.tool,
            "arguments": each.arguments,
            "result": each.result,
            "is_error": each.is_error,
        }
        for each in calls
    ]


def indent_step_text(text: str, full: bool) -> str:
    """Return text below its step: whole, or what fits a line."""
    if not full:
        text = " ".join(text.split())
        text = text if len(text) <= LINE_WIDTH else text[: LINE_WIDTH - 1] + "…"
    return "\n".join(f"       {line}" for line in text.splitlines())


def _to_row(number: int, step: "ExportedStep") -> dict[str, object]:
    """The keys of a step on a tape, without those of its traffic."""
    return {
        "step": number,
        "source": step.source,
        "model": step.model,
        "message": step.message,
        "finish_reason": step.finish,
        "hosted": list_hosted_calls(step.hosted),
        "tool_calls": [_to_call_row(call) for call in step.calls],
    }


def _to_call_row(call: "ExportedCall") -> dict[str, object]:
    return {
        "id": call.id,
        "tool": call.tool,
        "arguments": call.arguments,
        "result": call.result,
        "is_error": call.is_error,
        "shortened": dict(call.cut),
    }
