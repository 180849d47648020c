"""`stumble show --tools`: the tools that were offered, and what changed in them."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from stumble.exits import Exits
from stumble.tapes import load
from traces.toolsets import Change, Toolset, changes, toolset

_MARKS = {"added": "+", "removed": "-", "changed": "~"}
_WIDTH = 160


def show_tools(one: Path, other: Path | None, *, as_json: bool) -> None:
    """Print the tools of one tape, or what changed up to the other; exit 1 where something did."""
    was = toolset(load(one).exchanges)
    if other is None:
        lines = _listed_json(was) if as_json else "\n".join(_listed(was))
        click.echo(lines or f"{one}: no tool was offered")
        return
    now = toolset(load(other).exchanges)
    found = changes(was, now)
    click.echo(_changed_json(found) if as_json else "\n".join(_changed(found, was, now)))
    if found:
        raise SystemExit(Exits.FINDING)


def _listed(tools: Toolset) -> Iterator[str]:
    for (place, name), definition in tools.items():
        said = str(definition.get("description") or "").strip().partition("\n")[0]
        yield _cut(f"{place}  {name}" + (f": {said}" if said else ""))


def _listed_json(tools: Toolset) -> str:
    rows = [
        {"place": place, "tool": name, "definition": definition}
        for (place, name), definition in tools.items()
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def _changed(found: Iterable[Change], was: Toolset, now: Toolset) -> Iterator[str]:
    counts = dict.fromkeys(_MARKS, 0)
    for change in found:
        counts[change.how] += 1
        yield f"{_MARKS[change.how]} {change.place}  {change.tool}"
        for path, before, after in change.fields:
            if before is not None:
                yield _cut(f"    - {path}: {before}")
            if after is not None:
                yield _cut(f"    + {path}: {after}")
    told = ", ".join(f"{number} {how}" for how, number in counts.items() if number)
    yield f"{told or 'no tool changed'} ({len(was)} tools before, {len(now)} after)"


def _changed_json(found: Iterable[Change]) -> str:
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


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
