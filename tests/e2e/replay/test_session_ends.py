"""A request that is pending when its MCP session ends also ends with the session in a replay."""

import sys
from pathlib import Path

import pytest

from tests.support.practice_shop import Shop
from traces.tape.reader import read_tape

SERVER = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "subscriptions/listen":
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"n": message["method"]}}
    print(json.dumps(answer), flush=True)
    if message["method"] == "tools/call" and sys.argv[1] == "exits":
        os._exit(3)
    if message["method"] == "tools/call" and sys.argv[1] == "out of memory":
        os.kill(os.getpid(), 9)
"""
CLIENT = """
import json, subprocess, sys
how = sys.argv[1]
command = ["stumble", "mcp", "--", sys.executable, "server.py", how]
server = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
def send(id, method):
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {}}
    server.stdin.write(json.dumps(message) + "\\n")
    server.stdin.flush()
send(0, "subscriptions/listen")
for id, method in enumerate(("tools/list", "tools/call"), 1):
    send(id, method)
    print(server.stdout.readline().strip() or "EOF")
if how == "terminated":
    server.terminate()
elif how == "killed":
    server.kill()
elif how == "closed":
    server.stdin.close()
print(repr(server.stdout.read()))
code = server.wait()
if how in ("exits", "out of memory"):
    print("code", code)
"""


@pytest.mark.programs
@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("terminated", "cancelled: the session was over"),
        ("killed", "cancelled: the session was over"),
        ("closed", "cancelled: the session was over"),
        ("exits", "eof: the server ended with 3"),
        ("out of memory", "eof: the server ended with -9"),
    ],
)
def test_a_listening_request_lasts_as_long_as_its_session(
    tmp_path: Path, how: str, error: str
) -> None:
    shop = Shop(folder=tmp_path, book=tmp_path, log=tmp_path, hosts=(), task="none")
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "client.py").write_text(CLIENT)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    command = ("record", "--times", "1", "-o", "a.tape", "--", sys.executable, "client.py", how)
    recorded = shop.stumble(*command, env={"PATH": path})
    assert recorded.code == 0, recorded.err
    assert [each.error for each in read_tape(tmp_path / "a.tape").exchanges] == [
        None,
        error,
        None,
        None,
    ]
    replayed = shop.stumble("replay", "a.tape", env={"PATH": path})
    assert (replayed.code, replayed.out) == (0, recorded.out), replayed.err
