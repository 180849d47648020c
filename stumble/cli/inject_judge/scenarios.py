"""`stumble scenarios`: list the ready scenarios, or explain one."""

import json
import re
from typing import TYPE_CHECKING

import click

from stumble.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from scenarios.benchmarks.protocol import BenchmarkTask
    from stumble.runs.scenario_runner import CheckedScenario


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def scenarios(name: str | None, as_json: bool) -> None:
    """List the ready scenarios, or explain one.

    NAME is a ready scenario, a scenario file, or the folder of a benchmark task.

    \b
    stumble scenarios
    stumble scenarios lost-ack-on-refund
    stumble scenarios mine.toml
    stumble scenarios tasks/fix-ledger
    stumble run lost-ack-on-refund
    """
    from scenarios.scenario import list_ready_scenarios
    from stumble.runs.scenario_runner import load_checked_scenario

    try:
        chosen = (
            [load_checked_scenario(name)]
            if name
            else [load_checked_scenario(path.stem) for path in list_ready_scenarios()]
        )
    except (LookupError, ValueError) as error:
        raise UsageError(str(error.args[0])) from None
    if as_json:
        rows = [_scenario_to_dict(each) for each in chosen]
        click.echo(json.dumps(rows[0] if name else rows))
    elif name:
        click.echo(_explain_scenario(chosen[0]))
    else:
        width = max(len(each.scenario.name) for each in chosen)
        for each in chosen:
            click.echo(f"{each.scenario.name:{width}}  {each.scenario.title}")
        click.echo("\n`stumble scenarios NAME` explains one, `stumble run NAME` runs it.")


def _scenario_to_dict(told: "CheckedScenario") -> dict[str, object]:
    scenario = told.scenario
    return {
        "name": scenario.name,
        "title": scenario.title,
        "about": scenario.about,
        "file": str(scenario.path),
        "practice": {"task": scenario.practice.task, "model": scenario.practice.model,
                     "tools": scenario.practice.tools} if scenario.practice else None,
        "faults": list(scenario.faults),
        "benchmark": {"form": scenario.benchmark.benchmark_format, "task": scenario.benchmark.name,
                      "instruction": scenario.benchmark.instruction,
                      "weaker": list(scenario.benchmark.limitations)}
        if scenario.benchmark else None,
    }  # fmt: skip


def _explain_scenario(told: "CheckedScenario") -> str:
    from scenarios.scenario import LIBRARY

    scenario = told.scenario
    if scenario.benchmark is not None and scenario.path.suffix != ".toml":
        return _explain_benchmark_task(scenario.benchmark, scenario.path)
    text = scenario.path.read_text("utf-8")
    name = scenario.name if scenario.path.parent == LIBRARY else scenario.path
    return "\n".join(
        [
            f"{scenario.name}: {scenario.title}",
            *(["", scenario.about] if scenario.about else []),
            "",
            *(f"    {line}" for line in text[_find_tables_start(text) :].strip().splitlines()),
            "",
            f"stumble run {name}"
            + ("" if scenario.practice or scenario.command else " --command 'python my_agent.py'"),
            f'stumble run {name} --command "python my_agent.py" --where tool=MY_TOOL',
        ]
    )


def _explain_benchmark_task(task: "BenchmarkTask", path: "Path") -> str:
    """Describe a benchmark task in a folder: its instruction and its limitations here."""
    return "\n".join(
        [
            f"{task.name}: a {task.benchmark_format} task",
            "",
            *(f"    {line}" for line in task.instruction.splitlines()),
            "",
            *(f"weaker than in {task.benchmark_format}: {line}" for line in task.limitations),
            "",
            f"stumble run {path} --command 'python my_agent.py' --fault truncate",
        ]
    )


def _find_tables_start(text: str) -> int:
    """Return the offset of the first TOML table in `text`; 0 if there is none."""
    match = re.search(r"^\[", text, re.MULTILINE)
    return match.start() if match else 0
