"""`stumble show --tools`: the tools offered to the model, and changes between two tapes."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from stumble.errors import ExitCode
from stumble.store.tape_files import load_tape
from traces.conversation.tool_definitions import (
    ToolChange,
    Toolset,
    collect_tool_definitions,
    compare_toolsets,
)

_MARKS = {"added": "+", "removed": "-", "changed": "~"}
_WIDTH = 160


def show_tools(one: Path, other: Path | None, *, as_json: bool) -> None:
    """Print the tools of one tape, or the changes up to the other; exit with 1 if any changed."""
    was = collect_tool_definitions(load_tape(one).exchanges)
    if other is None:
        lines = _tools_to_json(was) if as_json else "\n".join(_format_tools(was))
        click.echo(lines or f"{one}: no tool was offered")
        return
    now = collect_tool_definitions(load_tape(other).exchanges)
    changes = compare_toolsets(was, now)
    click.echo(
        _tool_changes_to_json(changes)
        if as_json
        else "\n".join(_format_tool_changes(changes, was, now))
    )
    if changes:
        raise SystemExit(ExitCode.FINDING)


def _format_tools(tools: Toolset) -> Iterator[str]:
    for (place, name), definition in tools.items():
        description = str(definition.get("description") or "").strip().partition("\n")[0]
        yield _truncate_tool_line(f"{place}  {name}" + (f": {description}" if description else ""))


def _tools_to_json(tools: Toolset) -> str:
    rows = [
        {"place": place, "tool": name, "definition": definition}
        for (place, name), definition in tools.items()
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def _format_tool_changes(found: Iterable[ToolChange], was: Toolset, now: Toolset) -> Iterator[str]:
    counts = dict.fromkeys(_MARKS, 0)
    for change in found:
        counts[change.how] += 1
        yield f"{_MARKS[change.how]} {change.place}  {change.tool}"
        for path, before, after in change.fields:
            if before is not None:
                yield _truncate_tool_line(f"    - {path}: {before}")
            if after is not None:
                yield _truncate_tool_line(f"    + {path}: {after}")
    summary = ", ".join(f"{number} {how}" for how, number in counts.items() if number)
    yield f"{summary or 'no tool changed'} ({len(was)} tools before, {len(now)} after)"


def _tool_changes_to_json(found: Iterable[ToolChange]) -> str:
    rows = [
        {
            "place": change.place,
            "tool": change.tool,
            "change": change.how,
            "fields": [
                {"path": path, "was": before, "is": after} for path, before, after in change.fields
            ],
        }
        for change in found
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def _truncate_tool_line(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
