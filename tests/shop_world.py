"""Sets the order book back, or says by exit code whether its end state is right."""

import sys
from pathlib import Path

from scenarios.practice import world
from scenarios.practice.tasks import TASKS

verb, book, task = sys.argv[1], Path(sys.argv[2]), TASKS[sys.argv[3]]
if verb == "reset":
    world.reset(book, task)
else:
    said = world.verify(book, task)
    sys.stdout.write(f"{said.detail or 'as demanded'}\n")
    raise SystemExit(2 if said.passed is None else not said.passed)
