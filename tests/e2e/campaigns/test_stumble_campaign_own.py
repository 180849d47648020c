"""Campaigns with an agent and a world of the user's own: money, no site, a stuck verifier."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.campaign_folder import Bench
from tests.support.servers.scripted_model import (
    Script,
    serving,
)
from tests.support.warm_stumble import CommandResult

AGENT = """
import json, re, urllib.request
from pathlib import Path

def ask(said):
    body = json.dumps({"model": "gpt-4o", "input": said, "stream": True}).encode()
    headers = {"content-type": "application/json"}
    wanted = urllib.request.Request("http://model.test/v1/responses", body, headers)
    with urllib.request.urlopen(wanted, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    return json.loads(lines[-2].removeprefix("data: "))["response"]["output"][0]

talk = [{"role": "user", "content": "what does order 7 cost?"}]
call = ask(talk)
price = json.dumps({"order": "7", "price": 4312})
told = {"type": "function_call_output", "call_id": call["call_id"], "output": price}
ask([*talk, call, told])
Path("world.txt").open("a").write("looked up\\n")
"""
WORLD = """
import sys
from pathlib import Path
book = Path("world.txt")
if sys.argv[1] == "reset":
    book.write_text("")
raise SystemExit(book.read_text() not in ("", "looked up\\n"))
"""
SCENARIO = f"""
title = "Look up an order"
about = "One call of a tool, and an answer."
task = "look-up"
command = ["{sys.executable}", "agent.py"]
[world]
reset = "{sys.executable} world.py reset"
verify = "{sys.executable} world.py verify"
"""
RUN = 9 * 2.5e-6 + 5 * 10e-6
"""What gpt-4o takes for one answer of the scripted model, in US dollars."""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A folder with an agent, its world, a scenario, and a campaign that costs too much."""
    bench = Bench(tmp_path_factory.mktemp("own"))
    bench.write("agent.py", AGENT)
    bench.write("world.py", WORLD)
    bench.write("look.toml", SCENARIO)
    with serving(Script(tool="get_order", arguments={"order_id": "7"})) as url:
        bench.write("mine.toml", campaign(url))
        bench.write("stuck.toml", campaign(url))
        yield bench


def campaign(url: str) -> str:
    host = url.removeprefix("http://")
    return f"""
traces = ["./look.toml"]
in_place = true
twins = 3
[hosts]
"model.test" = "{host}"
[[faults]]
fault = "digit"
[[faults]]
fault = "digit"
where = {{ tool = "get_*" }}
persist = "same_args"
"""


@pytest.fixture(scope="module", autouse=True)
def stopped(own: Bench) -> CommandResult:
    """The campaign, when its money was spent: a recording of two answers, and one run."""
    return own.stumble("campaign", "mine.toml", "--max-cost", f"{RUN * 3.5:.8f}")


@pytest.fixture(scope="module")
def recording(own: Bench, stopped: CommandResult) -> str:
    """The tape of a recording that the other campaigns begin from."""
    return next(run.id for run in own.runs() if run.cell == "record")


def test_a_campaign_stops_at_its_cost_and_goes_on_with_more(
    own: Bench, stopped: CommandResult, recording: str
) -> None:
    assert stopped.code == 124, stopped.err
    assert "5 runs are left" in stopped.out
    assert "go on with: stumble campaign mine --max-cost USD" in stopped.out
    mine = "select cell from trajectories where campaign = 'mine' order by recorded_at"
    assert own.ask(mine) == [("record",), ("get_order#1@model-boundary/clean/0",)]

    spent = own.stumble("campaign", "mine", "--json")
    assert (spent.code, spent.json["done_now"], spent.json["recorded_now"]) == (124, 0, 0)
    assert spent.json["cost_usd"] == pytest.approx(RUN * 3)

    finished = own.stumble("campaign", "mine", "--max-cost", "1", "--json")
    assert finished.code == 5, finished.err
    assert finished.json["finished"]
    assert (finished.json["done_now"], finished.json["recorded_now"]) == (5, 0)
    runs = "select count(*), count(distinct cell) from trajectories where campaign = 'mine'"
    assert own.ask(runs) == [(7, 7)]
    ends = "select distinct world, passed from trajectories where campaign = 'mine'"
    assert own.ask(ends) == [("fresh", True)]

    other = own.stumble(
        *("campaign", "--name", "other", "--traces", f".stumble/tapes/{recording}.tape"),
        *("--fault", "digit", "--host", host_of(own), "--json"),
        *("--reset", f"{sys.executable} world.py reset"),
    )
    assert other.code == 5, other.err
    assert (other.json["wanted"], other.json["done_now"]) == (5, 5)
    assert [row["fired"] for row in other.json["recovery"]] == [1]
    twins = "select len(twins) from outcomes join injections using (injection_id) join trajectories"
    assert own.ask(f"{twins} using (trajectory_id) where campaign = 'other'") == [(3,), (3,)]
    mine_again = own.stumble("campaign", "mine", "--max-cost", "1", "--json").json
    assert (mine_again["wanted"], [row["fired"] for row in mine_again["recovery"]]) == (6, [2])


def test_where_nothing_can_be_struck_nothing_fired(own: Bench, recording: str) -> None:
    result = own.stumble(
        *("campaign", "--name", "none", "--traces", f".stumble/tapes/{recording}.tape"),
        *("--fault", "digit", "--where", "tool=refund*"),
    )
    assert result.code == 4, result.err
    assert "no site: " in result.out
    assert "nothing fired" in result.out


def test_an_agent_that_is_not_there_is_said_in_a_line(own: Bench) -> None:
    result = own.stumble("campaign", "mine.toml", "--name", "gone", "--command", "./nobody")
    assert result.code == 127
    assert "nobody could not be used" in result.err
    assert "Traceback" not in result.err


def test_a_name_is_no_path(own: Bench) -> None:
    result = own.stumble("campaign", "mine.toml", "--name", "../elsewhere")
    assert result.code == 2
    assert "name: '../elsewhere'" in result.err


@pytest.mark.timeout(120)
def test_a_verifier_that_hangs_is_ended_with_the_campaign(own: Bench, tmp_path: Path) -> None:
    at = tmp_path / "verifier.pid"
    own.write("stuck.sh", f"echo $$ > {at}.part; mv {at}.part {at}; exec sleep 1000\n")
    command = own.start(
        *("campaign", "stuck.toml", "--reset", "true", "--verify", "/bin/sh stuck.sh")
    )
    deadline = time.monotonic() + 60
    while not at.exists():
        assert command.poll() is None, command.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(command.pid, signal.SIGTERM)
    _, err = command.communicate(timeout=45)
    assert command.returncode == 143, err
    with pytest.raises(ProcessLookupError):
        os.kill(int(at.read_text()), 0)


def host_of(own: Bench) -> str:
    text = (own.folder / "mine.toml").read_text()
    return text.partition("[hosts]\n")[2].partition("\n")[0].replace('"', "").replace(" ", "")
