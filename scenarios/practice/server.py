"""The tool server: POST /tools/<name> with JSON arguments, on a real SQLite file.

GET /tools lists the tools, POST /reset {"task": ...} brings the file into a task's start
state, GET /verify?task=... says what the final state says.
"""

import argparse
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict
from pathlib import Path

import orjson
import uvloop
from aiohttp import web

from scenarios.practice import world
from scenarios.practice.book import connect
from scenarios.practice.plan import Task
from scenarios.practice.serving import listening, until_told
from scenarios.practice.tasks import EVERY
from scenarios.practice.tools import TOOLS, call

_PATH = web.AppKey("path", Path)
_BOOK = web.AppKey("book", sqlite3.Connection)


@asynccontextmanager
async def serving(db: Path, port: int = 0) -> AsyncIterator[int]:
    """Serve an order book that `world.setup` has made; gives the port."""
    with closing(connect(db)) as book:
        async with listening(_app(db, book), port) as chosen:
            yield chosen


def _app(db: Path, book: sqlite3.Connection) -> web.Application:
    app = web.Application()
    app[_PATH], app[_BOOK] = db, book
    app.add_routes(
        [
            web.get("/tools", _list),
            web.post("/tools/{name}", _call),
            web.post("/reset", _reset),
            web.get("/verify", _verify),
        ]
    )
    return app


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _refused(status: int, code: str, message: str) -> web.Response:
    return _json({"error": {"code": code, "message": message}}, status)


async def _list(_: web.Request) -> web.Response:
    return _json(
        [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "returns": tool.returns,
                "read_only": not tool.writes,
            }
            for tool in TOOLS.values()
        ]
    )


async def _call(request: web.Request) -> web.Response:
    try:
        arguments = orjson.loads(await request.read() or b"{}")
    except ValueError as error:
        return _refused(400, "bad_arguments", f"the body is no JSON: {error}")
    status, body = call(request.app[_BOOK], request.match_info["name"], arguments)
    return _json(body, status)


async def _reset(request: web.Request) -> web.Response:
    try:
        asked = orjson.loads(await request.read())
    except ValueError as error:
        return _refused(400, "bad_arguments", f"the body is no JSON: {error}")
    task = _task(asked.get("task") if isinstance(asked, dict) else None)
    if task is None:
        return _refused(404, "not_found", "no such task")
    world.reset(request.app[_PATH], task)
    return _json({"task": task.id})


async def _verify(request: web.Request) -> web.Response:
    task = _task(request.query.get("task"))
    if task is None:
        return _refused(404, "not_found", "no such task")
    return _json(asdict(world.verify(request.app[_PATH], task)))


def _task(id: object) -> Task | None:
    return EVERY.get(id) if isinstance(id, str) else None


async def _run(db: Path, port: int) -> None:
    with closing(connect(db)) as book:
        await until_told(_app(db, book), port)


def main() -> None:
    """Set up the file for a task, then serve it."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.server", description=__doc__
    )
    parser.add_argument("--db", type=Path, required=True, help="the SQLite file; made if missing")
    parser.add_argument("--task", choices=EVERY, help="bring the file into this task's start state")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if options.task or not options.db.exists():
        world.setup(options.db, EVERY[options.task or next(iter(EVERY))])
    uvloop.run(_run(options.db, options.port))


if __name__ == "__main__":
    main()
