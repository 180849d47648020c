"""Tasks in a folder with files, as real coding agents get them.

The plans cover the cases that a recording must handle: a listing with times, two parallel calls, a
failing command, a new file, and a value that flows from one result into that file and into the
final answer.
"""

from collections.abc import Mapping

from scenarios.practice.shell_tool_names import BASH, DELEGATE
from scenarios.practice.tasks.plan import PlanStep
from scenarios.practice.tasks.shell import ShellTask, sum_numbers

_NORTH_FIGURES = {"lamps": 48271, "ropes": 36915, "sails": 70348}
_SOUTH_FIGURES = {"lamps": 18264, "ropes": 59713}


def format_figures(figures: Mapping[str, int]) -> str:
    """Return a line with name and number for each figure."""
    return "".join(f"{name} {value}\n" for name, value in figures.items())


def make_shell_step(
    name: str, why: str, command: str, *, beside: bool = False, fails: bool = False
) -> PlanStep:
    """Return a step that runs one shell command."""
    return PlanStep(
        name=name,
        why=why,
        tool=BASH,
        arguments=lambda _: {"command": command},
        in_parallel=beside,
        may_fail=fails,
    )


def _build_stock_task(id: str) -> ShellTask:
    prompt = f"""\
Work in the current folder.
1. List its files with their times.
2. Read north.txt and south.txt, and see whether there is an east.txt.
3. Write the sum of all numbers in them into stock.txt, and read it back.
task: {id}
"""
    return ShellTask(
        id=id,
        prompt=prompt,
        start=_START_FILES,
        files={
            "stock.txt": f"stock {sum(_NORTH_FIGURES.values()) + sum(_SOUTH_FIGURES.values())}\n"
        },
        plan=(
            make_shell_step("list", "list the files", "ls -l --time-style=full-iso"),
            make_shell_step("north", "read the north", "cat north.txt"),
            make_shell_step("south", "read the south", "cat south.txt", beside=True),
            make_shell_step("east", "look for the east", "cat east.txt", fails=True),
            PlanStep(
                name="write",
                why="write the sum",
                tool=BASH,
                arguments=lambda seen: {
                    "command": "echo stock "
                    f"{sum_numbers(seen, 'north') + sum_numbers(seen, 'south')} > stock.txt"
                },
            ),
            make_shell_step("figures", "read the sum", "cat stock.txt"),
        ),
    )


def _build_helper_task(side: str) -> ShellTask:
    """A subagent's task: read one file."""
    return ShellTask(
        id=f"work-{side}",
        prompt=f"Read {side}.txt and say the sum of its numbers.\ntask: work-{side}\n",
        files={},
        plan=(make_shell_step("figures", f"read the {side}", f"cat {side}.txt"),),
    )


def _make_delegate_step(task: ShellTask, *, beside: bool = False) -> PlanStep:
    return PlanStep(
        name=task.id,
        why=f"have a helper do {task.id}",
        tool=DELEGATE,
        arguments=lambda _: {
            "description": task.id,
            "prompt": task.prompt,
            "subagent_type": "general-purpose",
            "run_in_background": False,
        },
        in_parallel=beside,
    )


def _build_lead_task(helpers: tuple[ShellTask, ...]) -> ShellTask:
    """A task in which two subagents read the files in parallel."""
    return ShellTask(
        id="work-lead",
        prompt="Have two helpers read north.txt and south.txt, then check both.\ntask: work-lead\n",
        start=_START_FILES,
        files={},
        plan=(
            *(_make_delegate_step(task, beside=nth > 0) for nth, task in enumerate(helpers)),
            make_shell_step("figures", "check both", "cat north.txt south.txt"),
        ),
    )


def _build_survey_task(helper: ShellTask) -> ShellTask:
    """A task in which the model reads one file before a subagent reads another."""
    return ShellTask(
        id="work-survey",
        prompt="Read north.txt, then have a helper read south.txt.\ntask: work-survey\n",
        start=_START_FILES,
        files={},
        plan=(
            make_shell_step("north", "read the north", "cat north.txt"),
            _make_delegate_step(helper),
            make_shell_step("figures", "read both", "cat north.txt south.txt"),
        ),
    )


_START_FILES = {
    "north.txt": format_figures(_NORTH_FIGURES),
    "south.txt": format_figures(_SOUTH_FIGURES),
}
_HELPER_TASKS = (_build_helper_task("north"), _build_helper_task("south"))
WORKSPACE_TASKS: Mapping[str, ShellTask] = {
    task.id: task
    for task in (
        _build_stock_task("work-stock"),
        *_HELPER_TASKS,
        _build_lead_task(_HELPER_TASKS),
        _build_survey_task(_HELPER_TASKS[1]),
    )
}
