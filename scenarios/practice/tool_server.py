"""The tool server: POST /tools/<name> with JSON arguments, on a real SQLite file.

GET /tools lists the tools, POST /reset {"task": ...} restores a task's start state, GET
/verify?task=... returns the verdict on the end state.
"""

import argparse
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import orjson
import uvloop
from aiohttp import web
from msgspec.structs import asdict

from scenarios.practice import world
from scenarios.practice.http_listen import listen_on_loopback, serve_app_until_stopped
from scenarios.practice.ledger import list_shop_effects
from scenarios.practice.order_book import connect_order_book
from scenarios.practice.tasks.plan import PracticeTask
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.practice.tools.registry import SHOP_TOOLS, call_shop_tool

_PATH_KEY = web.AppKey("path", Path)
_BOOK_KEY = web.AppKey("book", sqlite3.Connection)


@asynccontextmanager
async def serve_tools(db: Path, port: int = 0) -> AsyncIterator[int]:
    """Serve an order book made by `world.set_up_order_book`; yield the port."""
    with closing(connect_order_book(db)) as book:
        async with listen_on_loopback(_build_tool_app(db, book), port) as chosen:
            yield chosen


def _build_tool_app(db: Path, book: sqlite3.Connection) -> web.Application:
    app = web.Application()
    app[_PATH_KEY], app[_BOOK_KEY] = db, book
    app.add_routes(
        [
            web.get("/tools", _list_shop_tools),
            web.post("/tools/{name}", _handle_tool_call),
            web.post("/reset", _handle_reset),
            web.get("/verify", _handle_verify),
            web.get("/ledger", _handle_ledger),
        ]
    )
    return app


def _make_tool_response(value: object, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(value), status=status, content_type="application/json")


def _make_error_response(status: int, code: str, message: str) -> web.Response:
    return _make_tool_response({"error": {"code": code, "message": message}}, status)


async def _list_shop_tools(_: web.Request) -> web.Response:
    return _make_tool_response(
        [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "returns": tool.returns,
                "read_only": not tool.writes,
            }
            for tool in SHOP_TOOLS.values()
        ]
    )


async def _handle_tool_call(request: web.Request) -> web.Response:
    try:
        arguments = orjson.loads(await request.read() or b"{}")
    except ValueError as error:
        return _make_error_response(400, "bad_arguments", f"the body is no JSON: {error}")
    status, body = call_shop_tool(request.app[_BOOK_KEY], request.match_info["name"], arguments)
    return _make_tool_response(body, status)


async def _handle_reset(request: web.Request) -> web.Response:
    try:
        request_body = orjson.loads(await request.read())
    except ValueError as error:
        return _make_error_response(400, "bad_arguments", f"the body is no JSON: {error}")
    task = _find_order_task(request_body.get("task") if isinstance(request_body, dict) else None)
    if task is None:
        return _make_error_response(404, "not_found", "no such task")
    world.reset_order_book(request.app[_PATH_KEY], task)
    return _make_tool_response({"task": task.id})


async def _handle_verify(request: web.Request) -> web.Response:
    task = _find_order_task(request.query.get("task"))
    if task is None:
        return _make_error_response(404, "not_found", "no such task")
    return _make_tool_response(asdict(world.verify_order_book(request.app[_PATH_KEY], task)))


async def _handle_ledger(request: web.Request) -> web.Response:
    task = _find_order_task(request.query.get("task"))
    if task is None:
        return _make_error_response(404, "not_found", "no such task")
    return _make_tool_response(list_shop_effects(request.app[_PATH_KEY], task))


def _find_order_task(id: object) -> PracticeTask | None:
    return ALL_TASKS.get(id) if isinstance(id, str) else None


async def _run_tool_server(db: Path, port: int) -> None:
    with closing(connect_order_book(db)) as book:
        await serve_app_until_stopped(_build_tool_app(db, book), port)


def main() -> None:
    """Set up the file for a task, then serve it."""
    parser = argparse.ArgumentParser(
        prog="python -m scenarios.practice.tool_server", description=__doc__
    )
    parser.add_argument("--db", type=Path, required=True, help="the SQLite file; made if missing")
    parser.add_argument(
        "--task", choices=ALL_TASKS, help="bring the file into this task's start state"
    )
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if options.task or not options.db.exists():
        world.set_up_order_book(options.db, ALL_TASKS[options.task or next(iter(ALL_TASKS))])
    uvloop.run(_run_tool_server(options.db, options.port))


if __name__ == "__main__":
    main()
