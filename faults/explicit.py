"""E: the tool says that it failed."""

import json
from http import HTTPStatus
from random import Random
from typing import Annotated

from faults.body import answer
from faults.operator import Between, operator
from traces.model import Exchange


@operator("E1", forwards=False, channel="http")
def http_status(
    exchange: Exchange,
    rng: Random,
    *,
    code: Annotated[int, Between(400, 599)] = 503,
    retry_after: Annotated[int, Between(0, 86_400)] = 0,
) -> Exchange:
    """Answer with this status in place of the tool, which never sees the request.

    Incident: a deploy, an overload, a quota. `retry_after` in seconds adds that header.
    """
    try:
        phrase = HTTPStatus(code).phrase
    except ValueError:
        phrase = "Error"
    body = json.dumps({"error": {"code": code, "message": phrase}}).encode()
    headers = (("retry-after", str(retry_after)),) if retry_after else ()
    return answer(exchange, code, body, *headers)
