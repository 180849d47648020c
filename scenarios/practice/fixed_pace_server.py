"""A server that sends the same bytes at the same pace each time, and a secret split in two
chunks.
"""

import asyncio
from collections.abc import Iterable

from aiohttp import web

PAUSE = 0.2
"""Seconds between two chunks."""
PIECES = (b"a line\n", bytes(range(256)), b"\r\n\r\n", "né \U0001f9fe".encode(), b"\xff" * 3000)


def build_paced_app(secret: str) -> web.Application:
    """POST /pieces sends fixed chunks, POST /secret sends the secret in two chunks."""
    half = len(secret) // 2
    secret_parts = (f'{{"token": "{secret[:half]}'.encode(), f'{secret[half:]}"}}'.encode())

    async def pieces(request: web.Request) -> web.StreamResponse:
        return await _send_paced_parts(request, "application/octet-stream", PIECES)

    async def key(request: web.Request) -> web.StreamResponse:
        return await _send_paced_parts(request, "application/json", secret_parts)

    application = web.Application()
    application.add_routes([web.post("/pieces", pieces), web.post("/secret", key)])
    return application


async def _send_paced_parts(
    request: web.Request, kind: str, parts: Iterable[bytes]
) -> web.StreamResponse:
    await request.read()
    answer = web.StreamResponse(headers={"content-type": kind})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    for number, part in enumerate(parts):
        if number:
            await asyncio.sleep(PAUSE)
        await answer.write(part)
    return answer
