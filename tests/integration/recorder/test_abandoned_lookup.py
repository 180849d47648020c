"""An agent that leaves while a name is looked up causes no word on the user's terminal."""

import asyncio
import gc
import socket
from contextlib import suppress
from typing import Any, cast

import pytest
import uvloop

from recorder.proxy.origin_connection import OriginConnection
from recorder.proxy.upstream import _connect_to_any

NOBODY = "no-such-host.invalid"


async def abandon_lookup() -> list[str]:
    loop, reported = asyncio.get_running_loop(), list[str]()

    def report(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        reported.append(context["message"])

    loop.set_exception_handler(report)
    connecting = asyncio.create_task(_connect_to_any(cast(OriginConnection, None), NOBODY, 1))
    await asyncio.sleep(0)
    connecting.cancel()
    with suppress(asyncio.CancelledError):
        await connecting
    del connecting
    for _ in range(3):  # until the lookup is over, whose answer nobody waits for
        with pytest.raises(socket.gaierror):
            await loop.getaddrinfo(NOBODY, 1)
    gc.collect()
    return reported


def test_a_lookup_that_is_given_up_is_not_reported() -> None:
    assert uvloop.run(abandon_lookup()) == []
