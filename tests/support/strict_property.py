"""The property of strict matching, over a recording of requests in every dialect."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.support.mutations import changed, same
from tests.support.strict import StrictReplay, asked, recorded, secrets_of
from traces.model import Request

FREE = re.compile(
    rb"[0-9A-Fa-f][0-9A-Fa-f-]{20,}|date is \d{4}-\d\d-\d\d"
    rb"|\"progressToken\": [^,}]*|\"id\": [^,}]*, \"method\"|\"clientInfo\": \{[^}]*\}"
    rb"|Chunk ID: [0-9a-f]+|Wall time: [\d.]+|cch=[0-9a-f]+"
)
"""What may differ: ids of a run, a day at its place, a known secret, the count of an MCP client."""
DATA = Path(__file__).resolve().parent.parent / "data"
OWN = ("authorization",)
"""Fields in which another user is no difference."""
KEY = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx012345"[:38]


def requests() -> list[Request]:
    """One or more of each dialect, over HTTP, MCP and WebSocket; bodies are latin-1 there."""
    said = json.loads((DATA / "strict_requests.json").read_text())
    return [
        asked(
            each["method"],
            each["url"],
            each["body"].encode("latin-1"),
            tuple((name, value) for name, value in each["headers"]),
        )
        for each in said
    ]


def _without_free(request: Request) -> Request:
    headers = tuple(each for each in request.headers if each[0] not in OWN)
    return replace(request, headers=headers, body=FREE.sub(b"", request.body))


def is_same(one: Request, two: Request) -> bool:
    """True if two requests differ in nothing but spacing, key order and what is free."""
    return same(one, two) or same(_without_free(one), _without_free(two))


def wrong_answers(folder: Path, count: int, seed: int = 1) -> Iterator[tuple[Request, Request]]:
    """(recorded, asked) for each changed request that a strict replay answered all the same."""
    secrets, bases = secrets_of(SHOP_KEY=KEY), requests()
    tape, chance = recorded(folder / "a.tape", bases, secrets), Random(seed)
    replay = StrictReplay(tape, secrets)
    for number in range(count):
        request = changed(chance, bases[number % len(bases)])
        found = replay.find(request)
        if found is None:
            continue
        replay, own = StrictReplay(tape, secrets), bases[found.exchange.seq]
        if not is_same(own, request):
            yield own, request
