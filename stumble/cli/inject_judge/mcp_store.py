"""`stumble mcp-store`: the store as MCP tools, for coding agents."""

from pathlib import Path

import click


@click.command(
    "mcp-store",
    epilog="Claude Code: claude mcp add stumble -- stumble mcp-store. Other clients: put the "
    'command "stumble", with the argument "mcp-store", into their list of MCP servers.',
)
@click.option(
    "--store",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Store to serve; default: the store of this project.",
)
def mcp_store(store: Path | None) -> None:
    """Serve the store over MCP on stdio, so that a coding agent can debug from recordings.

    Tools: list_runs, list_steps, explain_verdict, list_questions, run_sql, report. They only
    read. The server ends when the client closes its input.

    \b
    stumble mcp-store
    stumble mcp-store --store ../service/.stumble
    """
    from stumble.mcp.store_server import serve_store
    from stumble.store.open_store import open_indexed_store

    serve_store(open_indexed_store(store).root.resolve())
