"""Whatever a server does, each client sees the same directly, recorded and replayed."""

import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.e2e.replay.test_reported_programs import run_stumble
from tests.support.servers.reported_programs import program_server
from traces.tape.reader import read_tape

PYTHON = """
import asyncio, sys
import aiohttp, httpx, requests

url, count = sys.argv[1], int(sys.argv[2])

def name(ask):
    try:
        return ask()
    except Exception as error:
        # With a proxy, requests names it in place of the server.
        return type(error).__name__.replace("ProxyError", "ConnectionError")

async def ask_aiohttp(url):
    async with aiohttp.ClientSession(trust_env=True) as session, session.get(url) as answer:
        return answer.status, len(await answer.read())

def ask_httpx(url):
    answer = httpx.get(url, timeout=60)
    return answer.status_code, len(answer.content)

def ask_requests(url):
    answer = requests.get(url, timeout=60)
    return answer.status_code, len(answer.content)

for i in range(count):
    print("httpx", i, name(lambda: ask_httpx(f"{url}/httpx/{i}")))
    print("requests", i, name(lambda: ask_requests(f"{url}/requests/{i}")))
    print("aiohttp", i, name(lambda: asyncio.run(ask_aiohttp(f"{url}/aiohttp/{i}"))))
"""
NODE = """
const [url, count] = process.argv.slice(2)
for (let i = 0; i < Number(count); i++) {
  // A request at once may fail by the connection that Node has not taken for ended yet.
  await new Promise((resolve) => setTimeout(resolve, 60))
  try {
    const answer = await fetch(`${url}/node/${i}`)
    console.log('node', i, answer.status, (await answer.arrayBuffer()).byteLength)
  } catch (error) {
    console.log('node', i, error.name, error.cause?.name)
  }
}
"""
CURL = """
i=0
while [ $i -lt $2 ]; do
  curl -s --max-time 60 "$1/curl/$i" | od -c | tail -1
  curl -s --max-time 60 -o out "$1/curl/$i/status"; echo curl $i $?
  i=$((i + 1))
done
"""
PROGRAMS = {
    "python": (PYTHON, (sys.executable,)),
    "node": (NODE, ("node",)),
    "curl": (CURL, ("sh",)),
}
ANSWERS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nanswer",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nan\r\n1\r\ns\r\n0\r\nA: 1\r\n\r\n",
    b"HTTP/1.1 503 No\r\nConnection: close\r\nRetry-After: 1\r\n\r\nanswer",
    b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    b"220 mail.example.test ESMTP\r\n",
    b"\x16\x03\x03\x00\x02\x02\x28",
)
NOISE = (b"\0", b"\r\n\r\n", b"zz\r\n", b"9", b"\xff\xfe", b": ")


class Deed(NamedTuple):
    """What a server does with one request: pieces with pauses, then how it ends."""

    pieces: tuple[bytes, ...]
    pause: float
    resets: bool


def draw_deeds(count: int, seed: int) -> list[Deed]:
    chance, deeds = Random(seed), []
    for _ in range(count):
        answer = chance.choice(ANSWERS)
        if chance.random() < 0.4:
            at = chance.randrange(len(answer))
            answer = answer[:at] + chance.choice(NOISE) + answer[at:]
        if chance.random() < 0.8:
            answer = answer[: chance.randrange(len(answer) + 1)]
        at = chance.randrange(len(answer) + 1)
        pause = chance.choice([0.0, 0.02])
        deeds.append(Deed((answer[:at], answer[at:]), pause, chance.random() < 0.5))
    return deeds


def serve_deeds(deeds: Sequence[Deed]) -> Callable[[socket.socket], None]:
    """Do for each request what the number in its path says, and end the connection."""

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                end, _ = listener.accept()
            except OSError:
                return
            with end:
                head = b""
                while b"\r\n\r\n" not in head and (data := end.recv(65536)):
                    head += data
                deed = deeds[int(head.split(b"/")[2].split()[0])]
                for piece in deed.pieces:
                    end.sendall(piece)
                    time.sleep(deed.pause)
                time.sleep(0.1)  # a reset at once may destroy what was not read yet
                if deed.resets:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return serve


@pytest.mark.gate
@pytest.mark.programs
@pytest.mark.many(3)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_client_sees_the_same_of_a_broken_server(name: str, seed: int, tmp_path: Path) -> None:
    source, start = PROGRAMS[name]
    deeds = draw_deeds(25, seed)
    (tmp_path / "client.mjs").write_text(source)
    with program_server(serve_deeds(deeds)) as port:
        command = (*start, "client.mjs", f"http://127.0.0.1:{port}", str(len(deeds)))
        direct = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True
        )
        recorded = run_stumble(tmp_path, "record", "--times", "1", "-o", "a.tape", "--", *command)
    assert direct.stdout != ""
    assert recorded.code == 0, recorded.err
    assert recorded.out.splitlines() == direct.stdout.splitlines()
    assert not read_tape(tmp_path / "a.tape").damage
    replayed = run_stumble(tmp_path, "replay", "a.tape")
    assert replayed.code == 0, replayed.err
    assert replayed.out.splitlines() == direct.stdout.splitlines()
