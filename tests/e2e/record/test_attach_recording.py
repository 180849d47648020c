"""`stumble_attach.record`: a program that no proxy can observe is recorded from inside."""

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stumble_attach.recording import UNSEEN_LIBRARIES

from tests.support.attached_program import ATTACH, run_attached, serve_echo
from traces.conversation.volatile_fields import VOLATILE_VERSION
from traces.tape.reader import Tape, read_tape

KEY = "sk-ant-api03-abcdefghijklmnop0123456789"
PIN = "h4x0r/77-pin"
EMPTY = "import stumble_attach\nwith stumble_attach.record('x.tape'):\n    pass\n"


@pytest.fixture
def server() -> Iterator[str]:
    with serve_echo() as url:
        yield url


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
def test_requests_and_responses_of_a_client_are_recorded(
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
    code, printed = run_attached(tmp_path, program, server, SHOP_KEY=KEY)
    assert code == 0, printed
    assert KEY in printed or client == "urllib", "the program itself gets the secret"
    tape = read_tape(tmp_path / "x.tape")
    assert (tape.trajectory.agent, tape.trajectory.source) == ("mine", "attach")
    assert tape.trajectory.volatile == VOLATILE_VERSION
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
    """Return all data of a tape, its bodies without their encoding."""
    data = b""
    for x in tape.exchanges:
        data += repr((x.request, x.response)).encode()
        if x.response is not None and x.response.body[:2] == b"\x1f\x8b":
            data += gzip.decompress(x.response.body)
    return data


def test_a_missing_response_and_a_crash_are_recorded(tmp_path: Path, server: str) -> None:
    program = (
        "import sys, httpx, stumble_attach\n"
        "with stumble_attach.record('x.tape'):\n"
        "    assert httpx.get(sys.argv[1] + '/busy', timeout=60).status_code == 429\n"
        "    httpx.get(sys.argv[1] + '/silence')\n"
    )
    code, printed = run_attached(tmp_path, program, server)
    assert (code, "RemoteProtocolError" in printed) == (1, True)
    tape = read_tape(tmp_path / "x.tape")
    busy, silent = tape.exchanges
    assert busy.response is not None
    assert busy.response.status == 429
    assert (silent.response, silent.error) == (None, "unknown: no answer was seen")
    assert tape.ending is not None
    assert tape.ending.ended == "crash"


def test_a_killed_program_leaves_its_exchanges(tmp_path: Path, server: str) -> None:
    program = (
        "import os, sys, httpx, stumble_attach\n"
        "with stumble_attach.record('x.tape'):\n"
        "    httpx.get(sys.argv[1] + '/busy', timeout=60)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    assert run_attached(tmp_path, program, server)[0] == -9
    tape = read_tape(tmp_path / "x.tape")
    assert (len(tape.exchanges), tape.ending, tape.damage) == (1, None, ())


def test_a_connection_that_is_opened_again_repeats_no_request(tmp_path: Path, server: str) -> None:
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
    code, printed = run_attached(tmp_path, program, server)
    assert code == 0, printed
    tape = read_tape(tmp_path / "x.tape")
    assert [(x.request.url.removeprefix(server), x.error) for x in tape.exchanges] == [
        ("/busy", None),
        ("/gzip", None),
    ]


def test_a_response_after_the_block_is_not_recorded(tmp_path: Path, server: str) -> None:
    program = (
        "import sys, http.client, stumble_attach\n"
        "with stumble_attach.record('x.tape') as tape:\n"
        "    server = http.client.HTTPConnection(sys.argv[1].removeprefix('http://'))\n"
        "    server.request('GET', '/busy')\n"
        "mine = open('mine', 'xb')\n"
        "print(server.getresponse().status)\n"
    )
    code, printed = run_attached(tmp_path, program, server)
    assert (code, printed) == (0, "429\n")
    assert (tmp_path / "mine").read_bytes() == b"", "a file that took over a closed one's number"
    assert read_tape(tmp_path / "x.tape").damage == ()


def test_a_key_on_the_command_line_is_not_written(tmp_path: Path) -> None:
    assert run_attached(tmp_path, EMPTY, "--key", KEY, "--pin", PIN, SHOP_TOKEN=PIN)[0] == 0
    command = read_tape(tmp_path / "x.tape").trajectory.command
    assert command[-4::2] == ("--key", "--pin")
    assert not {KEY, PIN} & set(command)


@pytest.mark.parametrize("module", ["websockets", "grpc"])
def test_a_library_that_cannot_be_seen_is_an_error(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text("")
    before = f"import {module}, stumble_attach\nwith stumble_attach.record('x.tape'):\n    pass\n"
    code, printed = run_attached(tmp_path, before, PYTHONPATH=path_with(tmp_path))
    assert (code, f"{UNSEEN_LIBRARIES[module]} is loaded before recording" in printed) == (1, True)
    assert not (tmp_path / "x.tape").exists()
    inside = f"import stumble_attach\nwith stumble_attach.record('x.tape'):\n    import {module}\n"
    code, printed = run_attached(tmp_path, inside, PYTHONPATH=path_with(tmp_path))
    assert (code, f"{UNSEEN_LIBRARIES[module]} was loaded while recording" in printed) == (1, True)
    assert read_tape(tmp_path / "x.tape").ending is not None, "what was seen is kept"
    (tmp_path / "x.tape").unlink()
    allowed = before.replace("'x.tape'", f"'x.tape', allow=['{module}']")
    assert run_attached(tmp_path, allowed, PYTHONPATH=path_with(tmp_path))[0] == 0


def path_with(folder: Path) -> str:
    return f"{folder}:{ATTACH}"


def test_no_tape_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "x.tape").write_text("mine")
    code, printed = run_attached(tmp_path, EMPTY)
    assert (code, "FileExistsError" in printed) == (1, True)
    assert (tmp_path / "x.tape").read_text() == "mine"


def test_without_stumble_nothing_is_recorded(tmp_path: Path) -> None:
    for command, path in (("", "/nowhere"), ("/nowhere/stumble", os.environ["PATH"])):
        code, printed = run_attached(tmp_path, EMPTY, STUMBLE_COMMAND=command, PATH=path)
        assert (code, "uv tool install stumble" in printed) == (1, True)
        assert not (tmp_path / "x.tape").exists()


def test_a_stumble_that_ends_at_once_is_an_error(tmp_path: Path) -> None:
    code, printed = run_attached(tmp_path, EMPTY, STUMBLE_COMMAND=f"{sys.executable} -c pass")
    assert (code, "RecordingLostError" in printed) == (1, True)


def test_a_program_goes_on_if_stumble_dies(tmp_path: Path, server: str) -> None:
    program = (
        "import os, signal, subprocess, sys, httpx, stumble_attach\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "url = sys.argv[1] + '/busy'\n"
        "with stumble_attach.record('x.tape'):\n"
        "    httpx.get(url, timeout=60)\n"
        "    found = subprocess.check_output(['pgrep', '-P', str(os.getpid()), '-f', 'intake'])\n"
        "    os.kill(int(found), 9)\n"
        "    posts = [httpx.post(url, content=b'x' * 10**6, timeout=60) for _ in range(3)]\n"
        "    print([each.status_code for each in posts])\n"
    )
    code, printed = run_attached(tmp_path, program, server)
    assert (code, "[429, 429, 429]" in printed) == (1, True)
    assert printed.count("stumble_attach: x.tape is recorded no further") == 1
    assert "RecordingLostError" in printed
    tape = read_tape(tmp_path / "x.tape")
    assert (len(tape.exchanges), tape.ending) == (1, None)


def test_a_program_goes_on_if_the_disk_is_full(tmp_path: Path, server: str) -> None:
    program = (
        "import os, resource, subprocess, sys, httpx, stumble_attach\n"
        "url = sys.argv[1] + '/busy'\n"
        "with stumble_attach.record('x.tape'):\n"
        "    httpx.get(url, timeout=60)\n"
        "    found = subprocess.check_output(['pgrep', '-P', str(os.getpid()), '-f', 'intake'])\n"
        "    limit = os.path.getsize('x.tape') + 50, resource.RLIM_INFINITY\n"
        "    resource.prlimit(int(found), resource.RLIMIT_FSIZE, limit)\n"
        "    posts = [httpx.post(url, content=b'x' * 10**6, timeout=60) for _ in range(3)]\n"
        "    print([each.status_code for each in posts])\n"
    )
    code, printed = run_attached(tmp_path, program, server)
    assert (code, "[429, 429, 429]" in printed) == (1, True)
    assert printed.count("stumble_attach: x.tape is recorded no further") == 1
    assert "RecordingLostError" in printed
    tape = read_tape(tmp_path / "x.tape")
    assert (len(tape.exchanges), tape.damage) == (1, ())


def test_threads_and_forked_processes_are_recorded(tmp_path: Path, server: str) -> None:
    program = (
        "import os, sys, threading, httpx, stumble_attach\n"
        "def post(first):\n"
        "    for at in range(first, first + 5):\n"
        "        url, body = sys.argv[1] + f'/{at}', b'%d' % at\n"
        "        assert httpx.post(url, content=body, timeout=60).content == body\n"
        "def post_in_threads(first):\n"
        "    starts = range(first, first + 50, 5)\n"
        "    threads = [threading.Thread(target=post, args=(at,)) for at in starts]\n"
        "    for each in threads: each.start()\n"
        "    for each in threads: each.join()\n"
        "with stumble_attach.record('x.tape'):\n"
        "    post(100)\n"
        "    child = os.fork()\n"
        "    post_in_threads(0 if child else 50)\n"
        "    if not child: sys.exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "    post(105)\n"
    )
    code, printed = run_attached(tmp_path, program, server)
    assert code == 0, printed
    tape = read_tape(tmp_path / "x.tape")
    assert (tape.damage, tape.ending is not None) == ((), True)
    numbers = sorted(int(x.request.url.rpartition("/")[2]) for x in tape.exchanges)
    assert numbers == list(range(110))
    assert [x.seq for x in tape.exchanges] == list(range(110))
    for x in tape.exchanges:
        assert x.response is not None
        assert x.response.body == x.request.body == x.request.url.rpartition("/")[2].encode()
    starts = [x.started for x in tape.exchanges]
    assert starts == sorted(starts)


def test_a_large_body_is_recorded(tmp_path: Path, server: str) -> None:
    program = (
        "import sys, httpx, stumble_attach\n"
        "with stumble_attach.record('x.tape'):\n"
        "    httpx.post(sys.argv[1], content=b'lorem 1 ' * 2**20, timeout=60)\n"
    )
    code, printed = run_attached(tmp_path, program, server)
    assert code == 0, printed
    (exchange,) = read_tape(tmp_path / "x.tape").exchanges
    assert exchange.response is not None
    assert exchange.request.body == exchange.response.body == b"lorem 1 " * 2**20


def test_the_plugin_needs_no_vcrpy() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import stumble_attach, sys; sys.exit('vcr' in sys.modules)"],
        env={"PYTHONPATH": path_with(Path("/nowhere"))},
        timeout=30,
    )
    assert ran.returncode == 0
