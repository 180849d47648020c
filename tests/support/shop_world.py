"""Reset the order book, check its end state by exit code, or print the refunds."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from scenarios.practice import world
from scenarios.practice.tasks.registry import ORDER_TASKS

verb, book, task = sys.argv[1], Path(sys.argv[2]), ORDER_TASKS[sys.argv[3]]
if verb == "reset":
    world.reset_order_book(book, task)
elif verb == "refunds":
    with closing(sqlite3.connect(book)) as opened:
        rows = opened.execute("select * from refunds order by refund_id").fetchall()
    json.dump({"refunds": rows}, sys.stdout)
else:
    said = world.verify_order_book(book, task)
    sys.stdout.write(f"{said.detail or 'as demanded'}\n")
    raise SystemExit(2 if said.passed is None else not said.passed)
