"""`stumble mcp`: before a server and recording, which `recorder.tee` does, or in its place."""

from pathlib import Path

import click

from stumble.exits import Exits, Wrong


@click.command(
    short_help="Stand between an MCP client and a stdio server, or in the place of one.",
    context_settings={"allow_interspersed_args": False},
    epilog="The exit code, or the signal, is the server's own; 127 if its command was not found. "
    "With --replay: 0 all came from the tape, 3 something did not.",
)
@click.option("--name", help="What to call the server; by default its command's name.")
@click.option("--run", metavar="SOCKET", help="The run to report to; by default the one around us.")
@click.option(
    "--replay",
    "tape",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="TAPE",
    help="Be the server that is on this tape (--name says which), and start none.",
)
@click.option("--http", is_flag=True, help="With --replay: over HTTP instead of stdio.")
@click.option(
    "--port", type=int, default=0, help="With --http: which port of 127.0.0.1; any if left out."
)
@click.option(
    "--speed",
    type=click.FloatRange(0),
    default=0.0,
    help="With --replay: 1 keeps the recorded pace, 0 (as it is) is as fast as possible.",
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
    """Put this before the command of a stdio server in the MCP settings of a client.

    Inside `stumble record`, `replay` or `fork` the server's messages become part of that run; a
    replay answers them from the tape and does not start the server. Known agents need none of
    this by hand: their servers are wrapped for the run, and their settings stay as they are.
    Without a run each session is recorded on a tape of its own under .stumble.

    With --replay it is an MCP server itself, for any client: each answer on the tape is given once,
    in its order, to the call that it was given to; any other call is refused with what is nearest.

    \b
    stumble mcp -- npx -y @modelcontextprotocol/server-filesystem /tmp
    stumble mcp --name shop -- python shop_server.py
    claude mcp add shop -- stumble mcp --name shop -- python shop_server.py
    stumble mcp --replay shop.tape
    stumble mcp --replay shop.tape --http --port 8903
    """
    if tape is None:
        raise Wrong("put a server's command behind --, or name a tape by --replay")
    if command or run:
        raise Wrong("with --replay nothing is started and no run is reported to")
    from recorder import loop
    from stumble.stand_in import Play, cast
    from stumble.tapes import load

    recording = load(tape)
    play = Play(recording, cast(recording, name), http=http, speed=speed)
    try:
        loop.run(play.on_port(port) if http else play.on_stdio())
    except OSError as error:
        raise Wrong(f"{error.strerror}: is port {port} taken?") from None
    given = play.given
    said = f"{given.answered} answered from the tape, {len(given.diverged)} diverged"
    click.echo(f"stumble mcp: {given.name} as on {tape}: {said}", err=True)
    for why in given.diverged[:3]:
        click.echo(f"diverged: {why}", err=True)
    raise SystemExit(Exits.DIVERGED if given.diverged else Exits.OK)
