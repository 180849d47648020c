"""A recording is replayed in another time zone: the agent and its tools have the recorded one."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.practice_shop import Shop, shop

AGENT = """
import json, subprocess, sys, urllib.request
listed = subprocess.run(["ls", "-l", "--time-style=full-iso"], capture_output=True).stdout
asked = {"order_id": "ord-7100", "said": listed.decode()}
url = "http://shop.practice/tools/get_order"
request = urllib.request.Request(url, json.dumps(asked).encode())
try:
    print(urllib.request.urlopen(request, timeout=30).status)
except urllib.error.HTTPError as error:
    raise SystemExit(error.code == 422) from None
"""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    with shop(folder) as opened:
        yield opened


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "Pacific/Auckland", None])
def test_what_tools_print_is_as_in_the_recorded_zone(agent: Shop, zone: str | None) -> None:
    recorded, again = {"TZ": "Europe/Berlin"}, {"TZ": zone} if zone else {}
    command = ("--", sys.executable, "agent.py")
    options = ("-o", "../a.tape", *agent.host_options())
    assert agent.stumble("record", *options, *command, env=recorded).code == 0
    result = agent.stumble("replay", "../a.tape", *command, env=again)
    assert result.code == 0, result.err
    assert "0 upstream, 0 diverged" in result.err
    assert "time zone of the agent: Europe/Berlin, as recorded" in result.err
    here = agent.stumble("replay", "../a.tape", *command, env=recorded)
    assert here.code == 0, here.err
    assert "time zone" not in here.err
