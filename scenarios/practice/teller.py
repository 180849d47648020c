"""A server that says the same bytes at the same pace each time, and a secret cut in two."""

import asyncio
from collections.abc import Iterable

from aiohttp import web

PAUSE = 0.2
"""Seconds between two pieces."""
PIECES = (b"a line\n", bytes(range(256)), b"\r\n\r\n", "né \U0001f9fe".encode(), b"\xff" * 3000)


def app(secret: str) -> web.Application:
    """POST /pieces tells the pieces, POST /secret tells the secret, in two chunks."""
    half = len(secret) // 2
    told = (f'{{"token": "{secret[:half]}'.encode(), f'{secret[half:]}"}}'.encode())

    async def pieces(request: web.Request) -> web.StreamResponse:
        return await _said(request, "application/octet-stream", PIECES)

    async def key(request: web.Request) -> web.StreamResponse:
        return await _said(request, "application/json", told)

    application = web.Application()
    application.add_routes([web.post("/pieces", pieces), web.post("/secret", key)])
    return application


async def _said(request: web.Request, kind: str, parts: Iterable[bytes]) -> web.StreamResponse:
    await request.read()
    answer = web.StreamResponse(headers={"content-type": kind})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    for number, part in enumerate(parts):
        if number:
            await asyncio.sleep(PAUSE)
        await answer.write(part)
    return answer
