"""An agent with a test key in its source replays elsewhere, from a pack that lacks the key."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from tests.hostile.test_others_commands import User
from tests.support.leak_search import copies
from tests.support.secret_shapes import TOKENS

pytestmark = pytest.mark.gate

AGENT = """
import urllib.request
from pathlib import Path
FIRST = "{first}"
SECOND = "{second}"
for body in (SECOND, FIRST, Path("agent.py").read_text()):
    request = urllib.request.Request("http://model.test/v1/x", f"key {{body}}".encode())
    request.add_header("x-service", SECOND)
    with urllib.request.urlopen(request, timeout=20) as answer:
        print(answer.read().decode())
"""


class Echo(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        answer = b"%d bytes" % len(self.rfile.read(length))
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def test_a_pack_of_a_source_with_a_key_replays_elsewhere(tmp_path: Path) -> None:
    chance = Random(4)
    keys = TOKENS["stripe test"](chance), TOKENS["github"](chance)
    one, other = User(tmp_path / "one"), User(tmp_path / "other")
    one.project.mkdir(parents=True)
    (one.project / "agent.py").write_text(AGENT.format(first=keys[0], second=keys[1]))
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        host = f"model.test=127.0.0.1:{server.server_port}"
        agent = (sys.executable, "agent.py")
        recorded = one.run("record", "-o", "../../a.tape", "--host", host, "--", *agent)
        server.shutdown()
    assert recorded.code == 0, recorded.err
    assert "agent.py kept with placeholders" in recorded.err
    here = one.run("replay", "../../a.tape")
    assert (here.code, here.out) == (0, recorded.out), here.err
    assert "your edits" not in here.err
    packed = one.run("pack", "../../a.tape", "-o", "../../a.stumble")
    assert packed.code == 0, packed.err
    (one.project / "agent.py").unlink()
    there = other.run("replay", "../../a.stumble", "--trust")
    assert (there.code, there.out) == (0, recorded.out), there.err
    assert one.run("scan").code == 0
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert [copies(key.encode(), b"\n".join(written)) for key in keys] == [0, 0]
