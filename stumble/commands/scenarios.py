"""`stumble scenarios`: the ready scenarios."""

import json
import re
from typing import TYPE_CHECKING

import click

from stumble.exits import Wrong

if TYPE_CHECKING:
    from pathlib import Path

    from scenarios.benchmarks.stage import Benchmark
    from stumble.scenes import Scene


@click.command(short_help="List the ready scenarios, or explain one.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def scenarios(name: str | None, as_json: bool) -> None:
    """List the ready scenarios, or explain one by its name, one in a file of yours, or the task of
    a benchmark in a folder.

    \b
    stumble scenarios
    stumble scenarios lost-ack-on-refund
    stumble scenarios mine.toml
    stumble scenarios tasks/fix-ledger
    stumble run lost-ack-on-refund
    """
    from scenarios.file import library
    from stumble.scenes import scene

    try:
        chosen = [scene(name)] if name else [scene(path.stem) for path in library()]
    except (LookupError, ValueError) as error:
        raise Wrong(str(error.args[0])) from None
    if as_json:
        said = [_data(each) for each in chosen]
        click.echo(json.dumps(said[0] if name else said))
    elif name:
        click.echo(_explained(chosen[0]))
    else:
        width = max(len(each.scenario.name) for each in chosen)
        for each in chosen:
            click.echo(f"{each.scenario.name:{width}}  {each.scenario.title}")
        click.echo("\n`stumble scenarios NAME` explains one, `stumble run NAME` runs it.")


def _data(told: "Scene") -> dict[str, object]:
    said = told.scenario
    return {
        "name": said.name,
        "title": said.title,
        "about": said.about,
        "file": str(said.path),
        "practice": {"task": said.practice.task, "model": said.practice.model,
                     "tools": said.practice.tools} if said.practice else None,
        "faults": list(said.faults),
        "benchmark": {"form": said.benchmark.form, "task": said.benchmark.name,
                      "instruction": said.benchmark.instruction,
                      "weaker": list(said.benchmark.weaker)} if said.benchmark else None,
    }  # fmt: skip


def _explained(told: "Scene") -> str:
    from scenarios.file import LIBRARY

    said = told.scenario
    if said.benchmark is not None and said.path.suffix != ".toml":
        return _brought(said.benchmark, said.path)
    text = said.path.read_text("utf-8")
    name = said.name if said.path.parent == LIBRARY else said.path
    return "\n".join(
        [
            f"{said.name}: {said.title}",
            *(["", said.about] if said.about else []),
            "",
            *(f"    {line}" for line in text[_body(text) :].strip().splitlines()),
            "",
            f"stumble run {name}"
            + ("" if said.practice or said.command else " --command 'python my_agent.py'"),
            f'stumble run {name} --command "python my_agent.py" --where tool=MY_TOOL',
        ]
    )


def _brought(task: "Benchmark", path: "Path") -> str:
    """A task that lies in a folder: what it asks for, and what is weaker here."""
    return "\n".join(
        [
            f"{task.name}: a task of the form of {task.form}",
            "",
            *(f"    {line}" for line in task.instruction.splitlines()),
            "",
            *(f"weaker than in {task.form}: {line}" for line in task.weaker),
            "",
            f"stumble run {path} --command 'python my_agent.py' --fault truncate",
        ]
    )


def _body(text: str) -> int:
    """Where the tables of a file begin."""
    found = re.search(r"^\[", text, re.MULTILINE)
    return found.start() if found else 0
