"""The property of strict matching, over a recording of requests in every dialect."""

import json
import re
from collections.abc import Iterator
from copy import replace
from pathlib import Path
from random import Random

from tests.support.request_mutations import (
    changed,
    same,
)
from tests.support.strict_replay import (
    StrictReplay,
    asked,
    recorded,
    secrets_of,
)
from traces.model import Request

FREE = re.compile(
    rb"(?P<key>\"(?:progressToken|clientInfo)\":\s*)"
    rb"(?:\{(?:\"(?:[^\"\\]|\\.)*\"|[^}\"])*\}|[^,}]*)(?=[,}])"
    rb"|(?P<id>\"id\":\s*)[^,}]*(?=,\s*\"method\")"
    rb"|[0-9A-Fa-f][0-9A-Fa-f-]{20,}|date is \d{4}-\d\d-\d\d"
    rb"|Chunk ID: [0-9a-f]+|Wall time: [\d.]+|cch=[0-9a-f]+"
)
"""Permitted differences: a run's ids, a day at its place, a known secret, an MCP client's count."""
DATA = Path(__file__).resolve().parent.parent / "data"
OWN = ("authorization",)
"""Fields in which another user is no difference."""
KEY = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx012345"[:38]


def requests() -> list[Request]:
    """Return one or more requests of each dialect, over HTTP, MCP and WebSocket; bodies are
    latin-1.
    """
    document = json.loads((DATA / "strict_requests.json").read_text())
    return [
        asked(
            each["method"],
            each["url"],
            each["body"].encode("latin-1"),
            tuple((name, value) for name, value in each["headers"]),
        )
        for each in document
    ]


def _without_free(request: Request) -> Request:
    headers = tuple(each for each in request.headers if each[0] not in OWN)
    body = FREE.sub(lambda found: (found["key"] or found["id"] or b"") + b"0", request.body)
    return replace(request, headers=headers, body=body)


def is_same(one: Request, two: Request) -> bool:
    """Return True if two requests differ only in spacing, key order and permitted values."""
    return same(one, two) or same(_without_free(one), _without_free(two))


def wrong_answers(folder: Path, count: int, seed: int = 1) -> Iterator[tuple[Request, Request]]:
    """Yield (recorded, asked) for each changed request that a strict replay answered
    nevertheless.
    """
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
