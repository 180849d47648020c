"""Servers and agents of problems that people reported to other projects, and which work here.

Each server keeps a state of its own, so that a second one begins as the first did.
"""

import hashlib
import json
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, override

type Answer = Callable[[str, bytes, int], tuple[int, Any]]
"""From path, body and the request's number, from 0, to a status and a value of JSON."""


@dataclass(frozen=True, slots=True)
class Program:
    """A client as Python's source, whose argument is the port, and what serves it."""

    client: str
    serve: Callable[[socket.socket], None]


@contextmanager
def program_server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Listen on a port of its own for the block, and serve each connection in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]
        # A thread that accepts is woken by the end of the socket, not by its closing.
        listener.shutdown(socket.SHUT_RDWR)


def answer_json(answer: Answer) -> Callable[[socket.socket], None]:
    """Answer each HTTP request by JSON on connections that are kept."""

    def serve(listener: socket.socket) -> None:
        numbers = count()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            @override
            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, value = answer(self.path, body, next(numbers))
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False) as server:
            server.socket.close()
            server.socket = listener
            with suppress(OSError, ValueError):
                server.serve_forever(poll_interval=0.05)

    return serve


def _poll_job(path: str, body: bytes, number: int) -> tuple[int, Any]:
    return 200, {"state": ("queued", "running", "done")[min(number, 2)], "poll": number}


def _embed_slowly(path: str, body: bytes, number: int) -> tuple[int, Any]:
    time.sleep(random.random() / 20)
    if path == "/tick":
        return 200, {"tick": number}
    word = json.loads(body)["input"]
    return 200, {"word": word, "embedding": hashlib.sha256(word.encode()).hexdigest()}


def _count_bytes(path: str, body: bytes, number: int) -> tuple[int, Any]:
    return 200, {"text": "hello from audio", "got": len(body)}


def _refuse_half_pairs(path: str, body: bytes, number: int) -> tuple[int, Any]:
    try:
        json.loads(body)["messages"][-1]["content"][-1]["content"].encode()
    except UnicodeEncodeError:
        return 400, {"error": {"message": "no low surrogate in string"}}
    except (AttributeError, TypeError):
        pass
    call = {"type": "tool_use", "id": "toolu_1", "name": "ask", "input": {"text": "보유 \ud83d"}}
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1"}
    return 200, {**answer, "stop_reason": "tool_use", "content": [call]}


def _answer_chats(path: str, body: bytes, number: int) -> tuple[int, Any]:
    request = json.loads(body)
    tools = [{"id": "call_1", "type": "function", "function": WEATHER}]
    if side := request.get("response_format"):
        message = {"content": side["json_schema"]["name"]}
    elif any(each["role"] == "tool" for each in request["messages"]):
        message = {"content": "Rain in Bonn."}
    else:
        message = {"content": None, "tool_calls": tools}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return 200, {"id": "c", "object": "chat.completion", "model": "m-1", "choices": [choice]}


WEATHER = {"name": "weather", "arguments": '{"city": "Bonn"}'}
CALL = {"index": 0, "id": "call_1", "type": "function"}
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def end_a_stream(how: str) -> Callable[[socket.socket], None]:
    """Stream half a tool call, then a `reset`, an end (`fin`), or a `clean` end of the body.

    Each further request gets a whole answer.
    """

    def answer(connection: socket.socket, number: int) -> bool:
        connection.sendall(CHUNKED)
        if number == 0:
            for text in ('{"path": "a.txt",', '"content": "line one'):
                named = {"name": "write_file"} if text.startswith("{") else {}
                call = {**CALL, "function": {**named, "arguments": text}}
                connection.sendall(_build_chunk({"tool_calls": [call]}))
            if how == "reset":
                # What was sent must have arrived: a reset throws away what is under way.
                time.sleep(0.3)
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            if how != "clean":
                return False
        else:
            for word in ("All ", "done."):
                connection.sendall(_build_chunk({"content": word}))
            connection.sendall(_build_chunk({}, "stop"))
        connection.sendall(b"0\r\n\r\n")
        return True

    return _serve_requests(answer)


def _build_chunk(delta: Any, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
    line = b"data: %s\n\n" % json.dumps({**event, "choices": [choice]}).encode()
    return b"%x\r\n%s\r\n" % (len(line), line)


def _drop_kept_connections(connection: socket.socket, number: int) -> bool:
    """Answer the first request of a connection; take the second one, and end without a word."""
    if number:
        return False
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nkeep-alive: timeout=9\r\n\r\nok")
    return True


def _serve_requests(
    answer: Callable[[socket.socket, int], bool], *, numbered_by_server: bool = True
) -> Callable[[socket.socket], None]:
    """Answer requests until `answer` returns False, which ends the connection."""

    def serve(listener: socket.socket) -> None:
        total = count()

        def serve_connection(connection: socket.socket) -> None:
            own = count()
            with connection, suppress(ConnectionError):
                while _skip_request(connection):
                    number = next(total if numbered_by_server else own)
                    if not answer(connection, number):
                        return

        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve_connection, args=(connection,), daemon=True).start()

    return serve


def _skip_request(connection: socket.socket) -> bool:
    """Read a request; False if the client ended the connection before."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return False
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = sum(int(line.partition(b":")[2]) for line in lengths) - len(body)
    while missing > 0:
        missing -= len(connection.recv(missing))
    return True


START = "import asyncio, httpx, json, os, random, sys\nURL = f'http://127.0.0.1:{sys.argv[1]}'\n"
POLLING = """
import aiohttp
async def main():
    async with aiohttp.ClientSession(trust_env=True) as session:
        state = ""
        while state != "done":
            async with session.get(URL + "/job/1") as response:
                state = (await response.json())["state"]
                print(state)
asyncio.run(main())
"""
FAN_OUT = """
async def main():
    async with httpx.AsyncClient() as client:
        async def embed(word):
            await asyncio.sleep(random.random() / 20)
            found = (await client.post(URL + "/v1/embeddings", json={"input": word})).json()
            assert found["word"] == word
            return found["embedding"]
        words = ["dog", "cat", "owl", "ant", "whale"]
        random.shuffle(words)
        print(sorted(await asyncio.gather(*map(embed, words))))
        ticks = await asyncio.gather(*(client.get(URL + "/tick") for _ in range(5)))
        print(sorted(tick.json()["tick"] for tick in ticks))
asyncio.run(main())
"""
UPLOADS = """
import openai, requests
sound = b"RIFF\\x24\\x08\\x00\\x00WAVEfmt " + random.Random(7).randbytes(300_000)
sound += b"one more" * ("CHANGED" in os.environ)
audio = openai.OpenAI(base_url=URL + "/v1", api_key="sk-test", max_retries=0).audio
print(audio.transcriptions.create(model="whisper-1", file=("a.wav", sound, "audio/wav")).text)
image = ("bild.png", b"\\x89PNG\\r\\n\\x1a\\n" + sound[:5000], "image/png")
fields = {"name": "Jürgen 🦉", "note": "x=1&y=2"}
print(requests.post(URL + "/upload", files={"file": image}, data=fields).json())
print(httpx.post(URL + "/upload", files=[("a", ("ä.pdf", b"%PDF", None))]).json())
print(httpx.post(URL + "/raw", content=sound[:2000], headers={"content-type": "image/jpeg"}).json())
"""
HALF_PAIRS = """
messages = [{"role": "user", "content": "보유현황?"}]
for turn in range(3):
    request = {"model": "m-1", "max_tokens": 50, "messages": messages}
    data = json.dumps({**request, "tools": [{"name": "ask", "input_schema": {"type": "object"}}]})
    response = httpx.post(URL + "/v1/messages", content=data, headers={"x-api-key": "k"})
    print(response.status_code, ascii(response.json()))
    if response.status_code == 200:
        cut = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "cut \\ud83d"}
        messages += [{"role": "assistant", "content": response.json()["content"]}]
        messages += [{"role": "user", "content": [cut]}]
"""
CHATS = """
import openai
client = openai.AsyncOpenAI(base_url=URL + "/v1", api_key="x", max_retries=0)
first = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Bonn?"}]
async def ask(messages, **more):
    await asyncio.sleep(random.random() / 20)
    found = await client.chat.completions.create(model="m-1", messages=messages, **more)
    return found.choices[0].message
async def side(name):
    form = {"type": "json_schema", "json_schema": {"name": name, "schema": {"type": "object"}}}
    return (await ask(first, response_format=form)).content
async def main_loop():
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    call = await ask(first, tools=tools)
    result = {"role": "tool", "tool_call_id": call.tool_calls[0].id, "content": "rain"}
    return (await ask([*first, call.model_dump(exclude_none=True), result], tools=tools)).content
async def main():
    print(*await asyncio.gather(main_loop(), side("title"), side("suggestions")))
asyncio.run(main())
"""
STREAMS = """
import openai
client = openai.OpenAI(base_url=URL + "/v1", api_key="x", max_retries=0)
for turn in range(2):
    written, finish, error = "", None, None
    messages = [{"role": "user", "content": f"write it, try {turn}"}]
    try:
        for event in client.chat.completions.create(model="m-1", stream=True, messages=messages):
            delta = event.choices[0].delta
            written += delta.content or ""
            written += "".join(call.function.arguments for call in delta.tool_calls or [])
            finish = event.choices[0].finish_reason or finish
    except Exception as failed:
        error = type(failed).__name__
    print(repr(written), finish, error)
"""
KEPT_CONNECTIONS = """
with httpx.Client() as client:
    for number in range(3):
        try:
            print(client.post(URL + "/pay", json={"number": number}).text)
        except httpx.HTTPError as error:
            print(type(error).__name__)
"""
PROGRAMS: dict[str, Program] = {
    "equal requests get other answers": Program(POLLING, answer_json(_poll_job)),
    "requests side by side, in random order": Program(FAN_OUT, answer_json(_embed_slowly)),
    "random boundaries of forms, binary bodies": Program(UPLOADS, answer_json(_count_bytes)),
    "half of a pair of surrogates": Program(HALF_PAIRS, answer_json(_refuse_half_pairs)),
    "side conversations with the same messages": Program(CHATS, answer_json(_answer_chats)),
    "a stream is reset within a call": Program(STREAMS, end_a_stream("reset")),
    "a stream ends within a call": Program(STREAMS, end_a_stream("fin")),
    "a stream ends as if it were whole": Program(STREAMS, end_a_stream("clean")),
    "a kept connection ends without an answer": Program(
        KEPT_CONNECTIONS, _serve_requests(_drop_kept_connections, numbered_by_server=False)
    ),
}
"""By what happens in them."""
