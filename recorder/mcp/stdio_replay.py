"""Replay a stdio MCP server without running it: taps answer on this process's stdin and stdout."""

import asyncio
import itertools
import threading
import time
from collections.abc import Sequence
from socket import socketpair

from recorder.mcp.stdio import McpStdioContext, MessageRewriter, StdioTimingFn
from recorder.mcp.tee import McpTee, RunGoneError, TeeChannel, run_tee_session
from traces.clock import RunClock
from traces.taps import TapChain


async def replay_stdio_server(
    taps: TapChain,
    name: str,
    command: Sequence[str],
    *,
    cues: StdioTimingFn,
    retold: MessageRewriter,
) -> None:
    """Answer messages on stdin until its end, as the server that `command` would start.

    Raises what a tap raises.
    """
    tee_socket, run_socket = socketpair()
    clock, failures = RunClock(time.monotonic()), list[BaseException]()
    stdio = McpStdioContext(
        taps=taps,
        clock=clock,
        seqs=itertools.count(),
        decides=True,
        way_out=False,
        cues=cues,
        retold=retold,
        fail=failures.append,
    )
    session = stdio.open_session()
    await asyncio.get_running_loop().create_connection(lambda: session, sock=run_socket)

    def run_tee() -> None:
        with tee_socket:
            try:
                run_tee_session(McpTee(TeeChannel(tee_socket), command), name, alone=False)
            except RunGoneError:
                return  # a tap failed; the exception is raised below

    # A thread that waits for stdin cannot be stopped, and must not delay the exit.
    threading.Thread(target=run_tee, daemon=True).start()
    try:
        await session.over.wait()
    finally:
        stdio.drop_sessions()
        clock.close()
    if failures:
        raise failures[0]
