"""A task whose commands go over the network by themselves: curl, urllib and git.

What they fetch stands at `files.practice`, which whoever tries the task serves.
"""

from collections.abc import Mapping

from scenarios.practice.plan import Step
from scenarios.practice.shell import ShellTask, sum_of
from scenarios.practice.shells import BASH
from scenarios.practice.workspace import listed, step

HOST = "files.practice"
FILES: Mapping[str, str] = {
    "north.txt": listed({"lamps": 48271, "ropes": 36915, "sails": 70348}),
    "south.txt": listed({"lamps": 18264, "ropes": 59713}),
    "east.txt": listed({"lamps": 4127, "sails": 39064}),
}
"""North and south are served as they are, east stands in a git repository `east.git`."""
_NORTH, _SOUTH, _EAST = (
    f"https://{HOST}/{name}" for name in ("north.txt", "south.txt", "east.git")
)
_FETCH = """\
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=30) as answer:
    sys.stdout.write(answer.read().decode())
"""

FETCHING = ShellTask(
    id="work-fetch",
    prompt=f"""\
Work in the current folder.
1. Read {_NORTH} with curl, and {_SOUTH} with fetch.py.
2. Clone {_EAST} and read its east.txt; see whether there is a west.txt.
3. Write the sum of all numbers in them into stock.txt, and read it back.
task: work-fetch
""",
    start={"fetch.py": _FETCH},
    files={"stock.txt": "stock 276702\n"},
    plan=(
        step("north", "read the north", f"curl -sS {_NORTH}"),
        step("south", "read the south", f"python3 fetch.py {_SOUTH}", beside=True),
        step("clone", "clone the east", f"git clone -q {_EAST}"),
        step("east", "read the east", "cat east/east.txt"),
        step("west", "look for the west", "cat east/west.txt", fails=True),
        Step(
            name="write",
            why="write the sum",
            tool=BASH,
            arguments=lambda seen: {
                "command": "echo stock "
                f"{sum(sum_of(seen, side) for side in ('north', 'south', 'east'))} > stock.txt"
            },
        ),
        step("figures", "read the sum", "cat stock.txt"),
    ),
)
