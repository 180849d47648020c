"""A task in a folder that already holds files, as real coding agents meet it.

Its plan has what a recording of such an agent must be able to hold: a listing with times, two
calls made together, a command that fails, a file that is made, and a value that goes from one
result into that file and into the final answer.
"""

from collections.abc import Mapping

from scenarios.practice.plan import Step
from scenarios.practice.shell import ShellTask, sum_of
from scenarios.practice.shells import BASH, DELEGATE

_NORTH = {"lamps": 48271, "ropes": 36915, "sails": 70348}
_SOUTH = {"lamps": 18264, "ropes": 59713}


def listed(figures: Mapping[str, int]) -> str:
    """A line for each figure: its name and its number."""
    return "".join(f"{name} {value}\n" for name, value in figures.items())


def step(name: str, why: str, command: str, *, beside: bool = False, fails: bool = False) -> Step:
    """A step that is one command of the shell."""
    return Step(
        name=name,
        why=why,
        tool=BASH,
        arguments=lambda _: {"command": command},
        beside=beside,
        may_fail=fails,
    )


def _task(id: str) -> ShellTask:
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
        start=_START,
        files={"stock.txt": f"stock {sum(_NORTH.values()) + sum(_SOUTH.values())}\n"},
        plan=(
            step("list", "list the files", "ls -l --time-style=full-iso"),
            step("north", "read the north", "cat north.txt"),
            step("south", "read the south", "cat south.txt", beside=True),
            step("east", "look for the east", "cat east.txt", fails=True),
            Step(
                name="write",
                why="write the sum",
                tool=BASH,
                arguments=lambda seen: {
                    "command": "echo stock "
                    f"{sum_of(seen, 'north') + sum_of(seen, 'south')} > stock.txt"
                },
            ),
            step("figures", "read the sum", "cat stock.txt"),
        ),
    )


def _part(side: str) -> ShellTask:
    """What a helper is asked to do: it reads one file."""
    return ShellTask(
        id=f"work-{side}",
        prompt=f"Read {side}.txt and say the sum of its numbers.\ntask: work-{side}\n",
        files={},
        plan=(step("figures", f"read the {side}", f"cat {side}.txt"),),
    )


def _delegate(task: ShellTask, *, beside: bool = False) -> Step:
    return Step(
        name=task.id,
        why=f"have a helper do {task.id}",
        tool=DELEGATE,
        arguments=lambda _: {
            "description": task.id,
            "prompt": task.prompt,
            "subagent_type": "general-purpose",
            "run_in_background": False,
        },
        beside=beside,
    )


def _lead(helpers: tuple[ShellTask, ...]) -> ShellTask:
    """A task whose model has two helpers read the files, both at once."""
    return ShellTask(
        id="work-lead",
        prompt="Have two helpers read north.txt and south.txt, then check both.\ntask: work-lead\n",
        start=_START,
        files={},
        plan=(
            *(_delegate(task, beside=nth > 0) for nth, task in enumerate(helpers)),
            step("figures", "check both", "cat north.txt south.txt"),
        ),
    )


def _survey(helper: ShellTask) -> ShellTask:
    """A task whose model looks for itself before it has a helper look."""
    return ShellTask(
        id="work-survey",
        prompt="Read north.txt, then have a helper read south.txt.\ntask: work-survey\n",
        start=_START,
        files={},
        plan=(
            step("north", "read the north", "cat north.txt"),
            _delegate(helper),
            step("figures", "read both", "cat north.txt south.txt"),
        ),
    )


_START = {"north.txt": listed(_NORTH), "south.txt": listed(_SOUTH)}
_HELPERS = (_part("north"), _part("south"))
WORKSPACE_TASKS: Mapping[str, ShellTask] = {
    task.id: task
    for task in (_task("work-stock"), *_HELPERS, _lead(_HELPERS), _survey(_HELPERS[1]))
}
