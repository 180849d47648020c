"""An agent that only sends requests; through the proxy of HTTP_PROXY, if that is set.

    python -m tests.bench.agent KIND PORT FIRST COUNT SIZE

    answers        COUNT requests whose answers differ, of about SIZE bytes each
    chats          COUNT unrelated chat requests of about SIZE bytes
    conversation   COUNT steps, each with the full history and a new tool result of SIZE bytes

PORT is that of `tests.bench.serving`. Bodies are numbered from FIRST; equal numbers give equal
bodies.
"""

import json
import os
import sys
from collections.abc import Callable
from urllib.parse import urlsplit

from tests.bench.asking import CHAT_PATH, Client, Way
from tests.bench.traffic import (
    READ_TOOL,
    make_chat_request,
    make_differing_body,
    make_differing_text,
)

REQUEST_SIZE = 1_000


def request_answers(client: Client, numbers: range, size: int) -> None:
    for number in numbers:
        body = make_differing_body(number, REQUEST_SIZE)
        client.send(client.way.request(f"/{number}/{size}", body))


def request_chats(client: Client, numbers: range, size: int) -> None:
    for number in numbers:
        client.send(client.way.request(CHAT_PATH, make_chat_request(number, size)))


def converse(client: Client, numbers: range, size: int) -> None:
    system = {"role": "system", "content": make_differing_text(numbers.stop, 4_000)}
    messages = [system, {"role": "user", "content": "Read all parts."}]
    for number in numbers:
        value = {"model": "m", "tools": [READ_TOOL], "messages": messages}
        answer = json.loads(client.send(client.way.request(CHAT_PATH, json.dumps(value).encode())))
        message = answer["choices"][0]["message"]
        call_id, content = message["tool_calls"][0]["id"], make_differing_text(number, size)
        messages += [message, {"role": "tool", "tool_call_id": call_id, "content": content}]


KINDS: dict[str, Callable[[Client, range, int], None]] = {
    "answers": request_answers,
    "chats": request_chats,
    "conversation": converse,
}


def main(kind: str, server: int, first: int, count: int, size: int) -> None:
    proxy = urlsplit(os.environ.get("HTTP_PROXY", "")).port
    client = Client(Way(server=server, port=proxy))
    KINDS[kind](client, range(first, first + count), size)
    client.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:6]))
