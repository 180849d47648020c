"""What `stumble scan` finds after a run was written without its secret: it finds nothing."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import zstandard

from tests.support.practice_shop import Shop, shop
from tests.support.secret_shapes import TOKENS, generated

pytestmark = pytest.mark.gate
CHANCE = Random(7)
TOKEN, PASSWORD = TOKENS["github"](CHANCE), generated(CHANCE)
AGENT = """
import json, sys, urllib.request
print("token {TOKEN}", "curl -u joe:{PASSWORD} http://h/", file=sys.stderr)
open("left.txt", "w").write("password: {PASSWORD}\\n")
for step in range(2):
    asked = {"order_id": "ord-7100", "step": step, "token": "{TOKEN}", "password": "{PASSWORD}"}
    url = "http://shop.practice/tools/get_order?api_key={TOKEN}"
    request = urllib.request.Request(url, json.dumps(asked).encode())
    request.add_header("authorization", "Bearer {TOKEN}")
    print(urllib.request.urlopen(request, timeout=30).read().decode())
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "work"
    folder.mkdir()
    with shop(folder) as opened:
        yield opened


def write_har(path: Path) -> None:
    request = {
        "method": "POST",
        "url": f"https://api.example/v1/x?api_key={TOKEN}",
        "httpVersion": "HTTP/1.1",
        "headers": [{"name": "Authorization", "value": f"Bearer {TOKEN}"}],
        "postData": {"mimeType": "text/plain", "text": f"password: {PASSWORD}"},
    }
    response = {
        "status": 200,
        "statusText": "OK",
        "httpVersion": "HTTP/1.1",
        "headers": [],
        "content": {"mimeType": "text/plain", "text": f"export DB_PASSWORD={PASSWORD}"},
    }
    entry = {
        "startedDateTime": "2026-11-27T12:00:00Z",
        "time": 1,
        "request": request,
        "response": response,
    }
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}))


def write_packed_session(path: Path) -> None:
    """Write a session of a coding agent that has seen the secrets, in UTF-16 and packed."""
    words = f"export DB_PASSWORD={PASSWORD} # {TOKEN}"
    answer = {"role": "assistant", "content": [{"type": "text", "text": words}], "model": "m"}
    lines = (
        {"sessionId": "s", "uuid": "1", "type": "user", "message": {"content": words}},
        {"sessionId": "s", "uuid": "2", "type": "assistant", "message": answer},
    )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_bytes(zstandard.compress(text.encode("utf-16")))


def test_scan_finds_nothing_after_any_kind_of_run(place: Shop, tmp_path: Path) -> None:
    text = AGENT.replace("{TOKEN}", TOKEN).replace("{PASSWORD}", PASSWORD)
    (place.folder / "agent.py").write_text(text)
    write_har(tmp_path / "a.har")
    write_packed_session(tmp_path / "a.zst")
    agent, hosts = ("--", sys.executable, "agent.py", "--password", PASSWORD), place.host_options()
    fault = ("--fault", "digit", "--where", "tool=get_order", *hosts)
    campaign = ("--fault", "digit", "--name", "c", *place.world())
    for words in (
        ("record", "-o", "../a.tape", *hosts, *agent),
        ("replay", "../a.tape", "--json"),
        ("replay", "../a.tape", "--live", "all", *hosts, "--json"),
        ("record", "-o", "../b.tape", *hosts, "--", *place.agent()),
        ("fork", "../b.tape", *fault, *place.world(), "--json"),
        ("campaign", "--traces", "../b.tape", "--jobs", "1", *campaign, *hosts),
        ("import", str(tmp_path / "a.har")),
        ("import", str(tmp_path / "a.zst")),
        ("show", "../a.tape"),
        ("report", "-o", "report.html"),
        ("sql", "select * from steps"),
    ):
        ran = place.stumble(*words)
        assert ran.code not in (2, 6), (words, ran.err)
        scanned = place.stumble("scan")
        assert scanned.code == 0, (words, scanned.out)
