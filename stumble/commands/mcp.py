"""`stumble mcp`: what a person is told of it; the work is done by `recorder.tee`."""

import click


@click.command(
    short_help="Stand between an MCP client and a stdio server, and record.",
    context_settings={"allow_interspersed_args": False},
    epilog="The exit code, or the signal, is the server's own; 127 if its command was not found.",
)
@click.option("--name", help="What to call the server; by default its command's name.")
@click.option("--run", metavar="SOCKET", help="The run to report to; by default the one around us.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def mcp(name: str | None, run: str | None, command: tuple[str, ...]) -> None:
    """Put this before the command of a stdio server in the MCP settings of a client.

    Inside `stumble record`, `replay` or `fork` the server's messages become part of that run; a
    replay answers them from the tape and does not start the server. Known agents need none of
    this by hand: their servers are wrapped for the run, and their settings stay as they are.
    Without a run each session is recorded on a tape of its own under .stumble.

    \b
    stumble mcp -- npx -y @modelcontextprotocol/server-filesystem /tmp
    stumble mcp --name shop -- python shop_server.py
    claude mcp add shop -- stumble mcp --name shop -- python shop_server.py
    """
    raise AssertionError("the front door has a wicket for this")
