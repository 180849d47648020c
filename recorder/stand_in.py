"""A stdio server that is not there: on our own stdin and stdout the taps speak for it."""

import asyncio
import itertools
import threading
import time
from collections.abc import Sequence
from socket import socketpair

from recorder.stdio import Cues, Retold, Stdio
from recorder.tee import Channel, Gone, Tee, session
from traces.clock import Clock
from traces.taps import Taps


async def stand_in(
    taps: Taps, name: str, command: Sequence[str], *, cues: Cues, retold: Retold
) -> None:
    """Answer what comes on stdin until it ends, as the server that `command` would start.

    Raises what a tap raises.
    """
    ours, theirs = socketpair()
    clock, failures = Clock(time.monotonic()), list[BaseException]()
    stdio = Stdio(
        taps=taps,
        clock=clock,
        seqs=itertools.count(),
        decides=True,
        way_out=False,
        cues=cues,
        retold=retold,
        fail=failures.append,
    )
    run = stdio.session()
    await asyncio.get_running_loop().create_connection(lambda: run, sock=theirs)

    def speak() -> None:
        with ours:
            try:
                session(Tee(Channel(ours), command), name, alone=False)
            except Gone:
                return  # a tap failed, which is told by who awaits us

    # A thread that waits for stdin cannot be ended, and must not hold up our own end.
    threading.Thread(target=speak, daemon=True).start()
    try:
        await run.over.wait()
    finally:
        stdio.close()
        clock.close()
    if failures:
        raise failures[0]
