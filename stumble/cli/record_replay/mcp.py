"""`stumble mcp`: record a stdio MCP server (`recorder.mcp.tee` does it), or replay one."""

from pathlib import Path

import click

from stumble.cli.tape_path import TapePath
from stumble.errors import ExitCode, UsageError


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Exit code: that of the server (or its signal); 127 if its command was not found. "
    "With --replay: 0 every call was answered from the tape, 3 a call was not.",
)
@click.option("--name", help="Name of the server; default: the name of its command.")
@click.option(
    "--run", metavar="SOCKET", help="Socket of the run to report to; default: the enclosing run."
)
@click.option(
    "--replay",
    "tape",
    type=TapePath(),
    metavar="TAPE",
    help="Replay the MCP server recorded on this tape (selected by --name) and start none.",
)
@click.option("--http", is_flag=True, help="With --replay: serve HTTP instead of stdio.")
@click.option(
    "--port", type=int, default=0, help="With --http: port on 127.0.0.1; default: any free port."
)
@click.option(
    "--speed",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="With --replay: speed factor; 1 keeps the recorded pace, 0 is as fast as possible.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def mcp(
    name: str | None,
    run: str | None,
    tape: Path | None,
    http: bool,
    port: int,
    speed: float,
    command: tuple[str, ...],
) -> None:
    """Record a stdio MCP server; put it before the server's command in the client's MCP settings.

    Inside `stumble record`, `replay` or `fork` the server's messages become part of that run; a
    replay answers them from the tape and does not start the server. Known agents do not need
    this: their servers are wrapped for the run, and their settings stay unchanged. Outside a run
    each session is recorded on its own tape under .stumble.

    With --replay, serve the recorded answers to any MCP client: each answer is given once, in
    recorded order, to the call it belongs to. Any other call is refused, with the nearest
    recorded one.

    \b
    stumble mcp -- npx -y @modelcontextprotocol/server-filesystem /tmp
    stumble mcp --name shop -- python shop_server.py
    claude mcp add shop -- stumble mcp --name shop -- python shop_server.py
    stumble mcp --replay shop.tape
    stumble mcp --replay shop.tape --http --port 8903
    """
    if tape is None:
        raise UsageError("give a server's command after --, or a tape with --replay")
    if command or run:
        raise UsageError("--replay starts no server and reports to no run: omit --run and COMMAND")
    from recorder import event_loop
    from stumble.mcp.replay_server import McpReplayServer, find_recorded_server
    from stumble.store.tape_files import load_tape

    recording = load_tape(tape)
    server = McpReplayServer(
        recording, find_recorded_server(recording, name), http=http, speed=speed
    )
    try:
        event_loop.run_event_loop(server.serve_http(port) if http else server.serve_stdio())
    except OSError as error:
        raise UsageError(f"{error.strerror}: is port {port} taken?") from None
    result = server.result
    counts = f"{result.answered} answered from the tape, {len(result.diverged)} diverged"
    click.echo(f"stumble mcp: {result.name} as on {tape}: {counts}", err=True)
    for why in result.diverged[:3]:
        click.echo(f"diverged: {why}", err=True)
    raise SystemExit(ExitCode.DIVERGED if result.diverged else ExitCode.OK)
