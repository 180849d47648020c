"""A task whose commands use the network directly: curl, urllib and git.

They fetch from `files.practice`, which the caller of the task must serve.
"""

from collections.abc import Mapping

from scenarios.practice.shell_tool_names import BASH
from scenarios.practice.tasks.files import format_figures, make_shell_step
from scenarios.practice.tasks.plan import PlanStep
from scenarios.practice.tasks.shell import ShellTask, sum_numbers

FILES_HOST = "files.practice"
SERVED_FILES: Mapping[str, str] = {
    "north.txt": format_figures({"lamps": 48271, "ropes": 36915, "sails": 70348}),
    "south.txt": format_figures({"lamps": 18264, "ropes": 59713}),
    "east.txt": format_figures({"lamps": 4127, "sails": 39064}),
}
"""North and south are served as files, east in a git repository `east.git`."""
_NORTH_URL, _SOUTH_URL, _EAST_URL = (
    f"https://{FILES_HOST}/{name}" for name in ("north.txt", "south.txt", "east.git")
)
_FETCH_SCRIPT = """\
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=30) as answer:
    sys.stdout.write(answer.read().decode())
"""

FETCH_TASK = ShellTask(
    id="work-fetch",
    prompt=f"""\
Work in the current folder.
1. Read {_NORTH_URL} with curl, and {_SOUTH_URL} with fetch.py.
2. Clone {_EAST_URL} and read its east.txt; see whether there is a west.txt.
3. Write the sum of all numbers in them into stock.txt, and read it back.
task: work-fetch
""",
    start={"fetch.py": _FETCH_SCRIPT},
    files={"stock.txt": "stock 276702\n"},
    plan=(
        make_shell_step("north", "read the north", f"curl -sS {_NORTH_URL}"),
        make_shell_step("south", "read the south", f"python3 fetch.py {_SOUTH_URL}", beside=True),
        make_shell_step("clone", "clone the east", f"git clone -q {_EAST_URL}"),
        make_shell_step("east", "read the east", "cat east/east.txt"),
        make_shell_step("west", "look for the west", "cat east/west.txt", fails=True),
        PlanStep(
            name="write",
            why="write the sum",
            tool=BASH,
            arguments=lambda seen: {
                "command": "echo stock "
                f"{sum(sum_numbers(seen, side) for side in ('north', 'south', 'east'))} > stock.txt"
            },
        ),
        make_shell_step("figures", "read the sum", "cat stock.txt"),
    ),
)
