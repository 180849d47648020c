"""Sets the order book back, says by exit code whether its end state is right, or tells refunds."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from scenarios.practice import world
from scenarios.practice.tasks import TASKS

verb, book, task = sys.argv[1], Path(sys.argv[2]), TASKS[sys.argv[3]]
if verb == "reset":
    world.reset(book, task)
elif verb == "refunds":
    with closing(sqlite3.connect(book)) as opened:
        rows = opened.execute("select * from refunds order by refund_id").fetchall()
    json.dump({"refunds": rows}, sys.stdout)
else:
    said = world.verify(book, task)
    sys.stdout.write(f"{said.detail or 'as demanded'}\n")
    raise SystemExit(2 if said.passed is None else not said.passed)
