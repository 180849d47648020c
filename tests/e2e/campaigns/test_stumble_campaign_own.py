"""Campaigns with an agent and a world of the user's own: money, no site, a stuck verifier."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.campaign_folder import Bench
from tests.support.practice_shop import Said
from tests.support.servers.scripted_model import (
    Script,
    serving,
)

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


@pytest.fixture(scope="module")
def stopped(own: Bench) -> Said:
    """The campaign, when its money was spent: a recording of two answers, and one run."""
    return own.stumble("campaign", "mine.toml", "--max-cost", f"{RUN * 3.5:.8f}")


def test_it_stops_before_it_costs_too_much_and_says_how_to_go_on(own: Bench, stopped: Said) -> None:
    assert stopped.code == 124, stopped.err
    assert "5 runs are left" in stopped.out
    assert "go on with: stumble campaign mine --max-cost USD" in stopped.out
    assert [run.cell for run in own.runs()] == ["record", "get_order#1@model-boundary/clean/0"]


def test_what_was_spent_before_counts(own: Bench, stopped: Said) -> None:
    said = own.stumble("campaign", "mine", "--json")
    assert (said.code, said.json["done_now"], said.json["recorded_now"]) == (124, 0, 0)
    assert said.json["cost_usd"] == pytest.approx(RUN * 3)


def test_it_goes_on_in_its_own_world_on_the_same_recording(own: Bench, stopped: Said) -> None:
    said = own.stumble("campaign", "mine", "--max-cost", "1", "--json")
    assert said.code == 5, said.err
    assert said.json["finished"]
    assert (said.json["done_now"], said.json["recorded_now"]) == (5, 0)
    assert own.ask("select count(*), count(distinct cell) from trajectories") == [(7, 7)]
    assert own.ask("select distinct world, passed from trajectories") == [("fresh", True)]
    assert own.ask("select count(*) from outcomes") == [(3,)]


def test_another_campaign_on_its_tape_counts_its_own_runs_alone(own: Bench, stopped: Said) -> None:
    [tape] = [run.id for run in own.runs() if run.cell == "record"]
    said = own.stumble(
        *("campaign", "--name", "other", "--traces", f".stumble/tapes/{tape}.tape"),
        *("--fault", "digit", "--host", host_of(own), "--json"),
        *("--reset", f"{sys.executable} world.py reset"),
    )
    assert said.code == 5, said.err
    assert (said.json["wanted"], said.json["done_now"]) == (5, 5)
    assert [row["fired"] for row in said.json["recovery"]] == [1]
    twins = "select len(twins) from outcomes join injections using (injection_id) join trajectories"
    assert own.ask(f"{twins} using (trajectory_id) where campaign = 'other'") == [(3,), (3,)]
    mine = own.stumble("campaign", "mine", "--max-cost", "1", "--json").json
    assert (mine["wanted"], [row["fired"] for row in mine["recovery"]]) == (6, [2])


def test_where_nothing_can_be_struck_nothing_fired(own: Bench, stopped: Said) -> None:
    [tape] = [run.id for run in own.runs() if run.cell == "record"]
    said = own.stumble(
        *("campaign", "--name", "none", "--traces", f".stumble/tapes/{tape}.tape"),
        *("--fault", "digit", "--where", "tool=refund*"),
    )
    assert said.code == 4, said.err
    assert "no site: " in said.out
    assert "nothing fired" in said.out


def test_an_agent_that_is_not_there_is_said_in_a_line(own: Bench, stopped: Said) -> None:
    said = own.stumble("campaign", "mine.toml", "--name", "gone", "--command", "./nobody")
    assert said.code == 127
    assert "nobody could not be used" in said.err
    assert "Traceback" not in said.err


def test_a_name_is_no_path(own: Bench) -> None:
    said = own.stumble("campaign", "mine.toml", "--name", "../elsewhere")
    assert said.code == 2
    assert "name: '../elsewhere'" in said.err


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
