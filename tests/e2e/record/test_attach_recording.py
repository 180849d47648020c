"""`stumble_attach.record`: a program that no proxy can stand before writes a tape from inside."""

import gzip
import json
import os
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from stumble_attach import redaction as theirs
from stumble_attach.recording import UNSEEN_LIBRARIES, VOLATILE_VERSION
from stumble_attach.tape import AttachTape as Attached

from traces.conversation import volatile_fields
from traces.model import Chunk, Exchange, Headers, Request, Response, RunEnding, Trajectory
from traces.tape import Tape, TapeWriter, read_tape

KEY = "sk-ant-api03-abcdefghijklmnop0123456789"
PIN = "h4x0r/77-pin"
JSON: Headers = (("Content-Type", "application/json"),)


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was sent; a path may ask for gzip, a status, or silence."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/silence":
            self.close_connection = True
            return
        packed = self.path == "/gzip"
        said = gzip.compress(body) if packed else body
        self.send_response(429 if self.path == "/busy" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{served.server_port}"
        finally:
            served.shutdown()
            thread.join()


def attached(folder: Path, program: str, *arguments: str, **env: str) -> tuple[int, str]:
    """Run a user's program, which imports none of `stumble`."""
    (folder / "program.py").write_text(program)
    site = Path(__file__).resolve().parents[3] / "attach"
    ran = subprocess.run(
        [sys.executable, "-P", "program.py", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(site)} | env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ran.returncode, ran.stdout + ran.stderr


CLIENTS = {
    "urllib": "import urllib.request as u\n"
    "def post(url, data, **h):\n"
    "    return u.urlopen(u.Request(url, data=data, headers=h)).read()\n",
    "requests": "import requests\n"
    "def post(url, data, **h):\n    return requests.post(url, data=data, headers=h).content\n",
    "httpx": "import httpx\n"
    "def post(url, data, **h):\n    return httpx.post(url, content=data, headers=h).content\n",
    "httpx2": "import httpx2\n"
    "def post(url, data, **h):\n    return httpx2.post(url, content=data, headers=h).content\n",
    "aiohttp": "import aiohttp, asyncio\n"
    "async def _post(url, data, h):\n"
    "    async with aiohttp.ClientSession() as s, s.post(url, data=data, headers=h) as r:\n"
    "        return await r.read()\n"
    "def post(url, data, **h):\n    return asyncio.run(_post(url, data, h))\n",
}


@pytest.mark.many(4)
@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_client_says_and_hears_is_on_the_tape(
    tmp_path: Path, server: str, client: str
) -> None:
    program = CLIENTS[client] + (
        "import os, sys, stumble_attach\n"
        "key = os.environ['SHOP_KEY']\n"
        "with stumble_attach.record('x.tape', agent='mine') as tape:\n"
        "    url, body = sys.argv[1] + '/v1/chat/completions', b'{\"messages\": []}'\n"
        "    one = post(url, body, **{'x-api-key': key})\n"
        "    two = post(sys.argv[1] + '/gzip', b'{\"is\": \"' + key.encode() + b'\"}')\n"
        "print(one, two)\n"
    )
    code, said = attached(tmp_path, program, server, SHOP_KEY=KEY)
    assert code == 0, said
    assert KEY in said or client == "urllib", "the program itself hears what was said"
    tape = read_tape(tmp_path / "x.tape")
    assert (tape.trajectory.agent, tape.trajectory.source) == ("mine", "attach")
    assert tape.ending is not None
    assert tape.ending.ended == "final"
    asked, packed = tape.exchanges
    assert asked.request.url == f"{server}/v1/chat/completions"
    assert asked.response is not None
    assert (asked.response.status, asked.response.body) == (200, b'{"messages": []}')
    assert asked.started <= asked.response.at <= packed.started
    assert packed.redacted
    assert KEY.encode() not in decoded(tape)


def decoded(tape: Tape) -> bytes:
    """All that a tape says, its bodies without their encoding."""
    said = b""
    for x in tape.exchanges:
        said += repr((x.request, x.response)).encode()
        if x.response is not None and x.response.body[:2] == b"\x1f\x8b":
            said += gzip.decompress(x.response.body)
    return said


def test_an_answer_that_never_came_and_a_crash_are_facts(tmp_path: Path, server: str) -> None:
    program = (
        "import sys, httpx, stumble_attach\n"
        "with stumble_attach.record('x.tape'):\n"
        "    assert httpx.get(sys.argv[1] + '/busy').status_code == 429\n"
        "    httpx.get(sys.argv[1] + '/silence')\n"
    )
    code, said = attached(tmp_path, program, server)
    assert (code, "RemoteProtocolError" in said) == (1, True)
    tape = read_tape(tmp_path / "x.tape")
    busy, silent = tape.exchanges
    assert busy.response is not None
    assert busy.response.status == 429
    assert (silent.response, silent.error) == (None, "unknown: no answer was seen")
    assert tape.ending is not None
    assert tape.ending.ended == "crash"


def test_a_killed_program_leaves_what_was_said(tmp_path: Path, server: str) -> None:
    program = (
        "import os, sys, httpx, stumble_attach\n"
        "with stumble_attach.record('x.tape'):\n"
        "    httpx.get(sys.argv[1] + '/busy')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    assert attached(tmp_path, program, server)[0] == -9
    tape = read_tape(tmp_path / "x.tape")
    assert (len(tape.exchanges), tape.ending, tape.damage) == (1, None, ())


def test_a_connection_that_is_opened_again_asks_nothing_twice(tmp_path: Path, server: str) -> None:
    program = (
        "import sys, http.client, stumble_attach\n"
        "with stumble_attach.record('x.tape'):\n"
        "    server = http.client.HTTPConnection(sys.argv[1].removeprefix('http://'))\n"
        "    for path in ('/busy', '/gzip'):\n"
        "        server.connect()\n"
        "        server.request('GET', path)\n"
        "        server.getresponse().read()\n"
        "        server.close()\n"
    )
    code, said = attached(tmp_path, program, server)
    assert code == 0, said
    tape = read_tape(tmp_path / "x.tape")
    assert [(x.request.url.removeprefix(server), x.error) for x in tape.exchanges] == [
        ("/busy", None),
        ("/gzip", None),
    ]


def test_what_is_answered_after_the_block_disturbs_nobody(tmp_path: Path, server: str) -> None:
    program = (
        "import sys, http.client, stumble_attach\n"
        "with stumble_attach.record('x.tape') as tape:\n"
        "    server = http.client.HTTPConnection(sys.argv[1].removeprefix('http://'))\n"
        "    server.request('GET', '/busy')\n"
        "mine = open('mine', 'xb')\n"
        "print(server.getresponse().status)\n"
    )
    code, said = attached(tmp_path, program, server)
    assert (code, said) == (0, "429\n")
    assert (tmp_path / "mine").read_bytes() == b"", "a file that took over a closed one's number"
    assert read_tape(tmp_path / "x.tape").damage == ()


def test_a_key_on_the_command_line_is_not_written(tmp_path: Path) -> None:
    program = "import stumble_attach\nwith stumble_attach.record('x.tape'):\n    pass\n"
    assert attached(tmp_path, program, "--key", KEY, "--pin", PIN, SHOP_TOKEN=PIN)[0] == 0
    command = read_tape(tmp_path / "x.tape").trajectory.command
    assert command[-4::2] == ("--key", "--pin")
    assert not {KEY, PIN} & set(command)


@pytest.mark.parametrize("module", ["websockets", "grpc"])
def test_a_library_that_cannot_be_seen_is_an_error(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text("")
    before = f"import {module}, stumble_attach\nwith stumble_attach.record('x.tape'):\n    pass\n"
    code, said = attached(tmp_path, before, PYTHONPATH=path_with(tmp_path))
    assert (code, f"{UNSEEN_LIBRARIES[module]} is loaded before recording" in said) == (1, True)
    assert not (tmp_path / "x.tape").exists()
    inside = f"import stumble_attach\nwith stumble_attach.record('x.tape'):\n    import {module}\n"
    code, said = attached(tmp_path, inside, PYTHONPATH=path_with(tmp_path))
    assert (code, f"{UNSEEN_LIBRARIES[module]} was loaded while recording" in said) == (1, True)
    assert read_tape(tmp_path / "x.tape").ending is not None, "what was seen is kept"
    (tmp_path / "x.tape").unlink()
    allowed = before.replace("'x.tape'", f"'x.tape', allow=['{module}']")
    assert attached(tmp_path, allowed, PYTHONPATH=path_with(tmp_path))[0] == 0


def path_with(folder: Path) -> str:
    return f"{folder}:{Path(__file__).resolve().parents[3] / 'attach'}"


def test_no_tape_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "x.tape").write_text("mine")
    program = "import stumble_attach\nwith stumble_attach.record('x.tape'):\n    pass\n"
    code, said = attached(tmp_path, program)
    assert (code, "FileExistsError" in said) == (1, True)
    assert (tmp_path / "x.tape").read_text() == "mine"


def bodies() -> Iterator[bytes]:
    yield b""
    yield b'{"messages": [{"role": "user", "content": "of session q7w8e9r0t1y2u3i4"}]}'
    yield json.dumps({"pin": PIN, "again": PIN}).encode()
    escaped, in_url = PIN.replace("/", chr(92) + "/"), quote(PIN, safe="")
    yield f'{{"escaped": "{escaped}", "url": "{in_url}"}}'.encode()
    yield b'{"access_token": "ya29.a0AfB_byC1234567890abcdef", "id": "token: of nobody at all"}'
    yield b'{"say": "authorization: Bearer abcdefghijklmnopqrstuvwxyz"}'
    yield b'{"api_key": "0x77777777777777777777"}'
    block = b"-----BEGIN PRIVATE KEY-----" + b"MIIEvQIBADANBgkq" * 4 + b"-----END PRIVATE KEY-----"
    yield b'{"private_key": "' + block + b'"}'
    yield b"grant_type=x&client_secret=GOCSPX-abcdefghij0123456789"
    yield b'{"looks": "ghp_abcdefghij0123456789ABCDEFGHIJ", "key": "' + KEY.encode() + b'"}'


def fields() -> Iterator[Headers]:
    yield JSON
    yield (*JSON, ("Authorization", f"Bearer {KEY}"))
    yield (("x-api-key", PIN), ("Cookie", "session=q7w8e9r0t1y2u3i4; theme=dark"))
    yield (("Idempotency-Key", "0123456789abcdef0123"), ("X-Request-Id", "r-1"))


def exchanges() -> Iterator[Exchange]:
    at = 0.0
    for seq, (headers, body) in enumerate((h, b) for h in fields() for b in bodies()):
        at += 1.0
        url = (
            f"https://h/v1/x?api_key={quote(PIN, safe='')}" if seq % 3 else "https://u:p4ssw0rd1@h/"
        )
        said = tuple((Chunk(at=at, data=body),) if body else ())
        answer = Response(status=200, reason="OK", headers=JSON, chunks=said, at=at, ended=at)
        request = Request(method="POST", url=url, headers=headers, body=body)
        failed = seq % 7 == 3
        yield Exchange(
            seq=seq,
            request=request,
            started=at,
            response=None if failed else answer,
            error="eof" if failed else None,
        )


def test_it_writes_what_the_real_writer_writes(tmp_path: Path) -> None:
    head = {"id": "t", "recorded_at": 1.5, "source": "attach", "volatile": VOLATILE_VERSION}
    one = Attached(tmp_path / "attached.tape", head, theirs.SecretRedactor([PIN]))
    trajectory = Trajectory(id="t", recorded_at=1.5, source="attach", volatile=VOLATILE_VERSION)
    with TapeWriter(tmp_path / "own.tape", trajectory, secrets=[PIN]) as two:
        for x in exchanges():
            asked, answer = x.request, x.response
            one.write_request(x.seq, x.started, asked.method, asked.url, asked.headers, asked.body)
            if answer is None:
                one.write_error(x.seq, str(x.error))
            else:
                said = (answer.status, answer.reason, answer.headers, answer.body)
                one.write_response(x.seq, answer.at, *said)
            two.write_exchange(x)
        one.write_ending("final", 99.0, None)
        two.write_ending(RunEnding(ended="final", at=99.0))
    was, now = read_tape(tmp_path / "own.tape"), read_tape(tmp_path / "attached.tape")
    assert now.trajectory == was.trajectory
    assert now.ending == was.ending
    for theirs_, ours in zip(now.exchanges, was.exchanges, strict=True):
        assert theirs_ == ours
    assert PIN.encode() not in decoded(now)


def test_a_secret_in_base64_is_none_any_more(tmp_path: Path) -> None:
    known = theirs.SecretRedactor([PIN])
    for before in (b"", b"a", b"ab"):
        said = known.redact_bytes(b64encode(before + PIN.encode() + b" and more"))
        assert PIN.encode() not in said
        assert b64encode(before + PIN.encode())[4:16] not in said


def test_it_says_by_which_list_its_tapes_are_matched() -> None:
    assert volatile_fields.VOLATILE_VERSION == VOLATILE_VERSION


def test_what_cannot_be_looked_into_is_not_written(tmp_path: Path, server: str) -> None:
    program = (
        "import sys, httpx, stumble_attach\n"
        "with stumble_attach.record('x.tape'):\n"
        "    headers = {'content-encoding': 'br'}\n"
        "    httpx.post(sys.argv[1] + '/busy', content=b'\\x0b\\x02\\x80hello', headers=headers)\n"
    )
    code, said = attached(tmp_path, program, server)
    assert code == 0, said
    (x,) = read_tape(tmp_path / "x.tape").exchanges
    assert (x.request.body, x.redacted) == (b"", True)


def test_the_plugin_needs_no_vcrpy() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import stumble_attach, sys; sys.exit('vcr' in sys.modules)"],
        env={"PYTHONPATH": path_with(Path("/nowhere"))},
        timeout=30,
    )
    assert ran.returncode == 0
