"""`stumble practice`: a shop, a model of known skill and an agent to try everything on."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scenarios.practice import KEY
from stumble.exits import Wrong
from stumble.practice_ports import PracticePorts, free_ports, remember_ports, served_ports

if TYPE_CHECKING:
    from scenarios.practice.plan import Task

MCP = 8903
_BOOK = "Where to keep the order book; a new temporary file by default."


@click.group(short_help="A shop, a model of known skill and an agent to try it all on.")
def practice() -> None:
    """A small world to practise on, without network or key.

    \b
    stumble practice serve refund-1 &
    stumble record -o refund.tape -- stumble practice agent refund-1
    """


@practice.command()
@click.argument("task")
@click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help=_BOOK,
)
def serve(task: str, db: Path | None) -> None:
    """Serve the shop on port 8902 and the model on port 8901 until told to end.

    If one of these ports is taken, two free ones. The other practice commands find them.
    """
    from tempfile import TemporaryDirectory

    from recorder import loop
    from scenarios.practice import provider, server, world

    found = _task(task)
    with TemporaryDirectory(prefix="stumble-practice-") as folder:
        book = db or Path(folder) / "shop.db"
        world.setup(book, found)

        async def run() -> None:
            import asyncio
            import signal

            told, here = asyncio.Event(), asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                here.add_signal_handler(number, told.set)
            ports = free_ports()
            async with (
                server.serving(book, ports.shop) as shop,
                provider.serving(port=ports.model) as model,
            ):
                remember_ports(PracticePorts(shop=shop, model=model))
                click.echo(f"shop on port {shop}, model on port {model}, task {task}")
                await told.wait()

        try:
            loop.run(run())
        except OSError as error:
            raise click.ClickException(f"{error.strerror}: is another practice served?") from None


@practice.command(short_help="Serve the shop's tools over MCP.")
@click.argument("task", default="refund-1")
@click.option("--http", is_flag=True, help=f"Streamable HTTP on port {MCP} instead of stdio.")
@click.option("--port", type=int, default=MCP, show_default=True, help="Another port for --http.")
@click.option("--db", type=click.Path(dir_okay=False, path_type=Path), help=_BOOK)
def mcp(task: str, http: bool, port: int, db: Path | None) -> None:
    """Serve the shop's tools over MCP, on stdin and stdout or with --http, until told to end.

    An order book that is there already is left as it is: it is that of `practice serve --db`.
    """
    import asyncio
    from tempfile import TemporaryDirectory

    from scenarios.practice import world

    found = _task(task)
    try:
        from scenarios.practice import as_mcp
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error}; install stumble[mcp]") from None
    with TemporaryDirectory(prefix="stumble-practice-") as folder:
        book = db or Path(folder) / "shop.db"
        if not book.exists():
            world.setup(book, found)
        try:
            asyncio.run(as_mcp.until_told(book, port) if http else as_mcp.over_stdio(book))
        except OSError as error:
            raise click.ClickException(f"{error.strerror}: is port {port} taken?") from None


@practice.command(context_settings={"ignore_unknown_options": True})
@click.argument("task")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def agent(task: str, options: tuple[str, ...]) -> None:
    """Let the practice agent work on a task: --model practice/naive, retries, verifies, p=0.7."""
    from scenarios.practice import agent as practising

    _task(task)
    ports = served_ports()
    os.environ.setdefault("OPENAI_BASE_URL", f"http://127.0.0.1:{ports.model}/v1")
    os.environ.setdefault("TOOLS_URL", f"http://127.0.0.1:{ports.shop}")
    os.environ.setdefault("MCP_URL", f"http://127.0.0.1:{MCP}/mcp")
    os.environ.setdefault("OPENAI_API_KEY", KEY)
    sys.exit(practising.main([task, *options]))


@practice.command(short_help="Bring the shop into the task's start state.")
@click.argument("task")
def reset(task: str) -> None:
    """Bring the shop into the task's start state."""
    _ask("POST", "/reset", task)


@practice.command()
@click.argument("task")
def verify(task: str) -> None:
    """Exit 0 if the shop is as the task demands, 1 if not, 2 if that cannot be said."""
    said = _ask("GET", f"/verify?task={task}", None)
    click.echo(said["detail"] or "as the task demands")
    sys.exit(2 if said["passed"] is None else not said["passed"])


@practice.command("tasks")
def tasks_() -> None:
    """List the tasks."""
    from scenarios.practice.tasks import EVERY

    for task in EVERY.values():
        click.echo(f"{task.id:10} {task.prompt.strip().splitlines()[0]}")


def _task(name: str) -> "Task":
    from scenarios.practice.tasks import EVERY
    from traces.nearest import nearest

    if name not in EVERY:
        raise Wrong(f"no task is called {name!r}{nearest(name, EVERY)}")
    return EVERY[name]


def _ask(method: str, path: str, task: str | None) -> dict[str, object]:
    import httpx

    url = f"http://127.0.0.1:{served_ports().shop}{path}"
    try:
        with httpx.Client(trust_env=False, timeout=10) as client:
            body = None if task is None else {"task": task}
            answer = client.request(method, url, json=body)
    except httpx.ConnectError:
        raise click.ClickException(
            "no shop is served here; start one with: stumble practice serve TASK"
        ) from None
    if answer.is_error:
        raise click.ClickException(f"the shop answered {answer.status_code}: {answer.text}")
    found: dict[str, object] = answer.json()
    return found
