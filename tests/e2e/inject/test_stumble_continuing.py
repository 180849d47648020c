"""k clean and k faulted continuations of a recording, made by an agent with a shell and helpers."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scenarios.practice.tasks.files import WORKSPACE_TASKS
from scenarios.practice.tasks.shell import write_start_files
from stumble.runs.fork import ForkPlan, find_fork_point
from tests.support.practice_shop import (
    Said,
    Shop,
    shop,
)
from tests.support.request_readings import read_tool_results
from tests.support.servers.replay_server_thread import eventually
from tests.support.stores.scripted_runs import (
    ORDER,
    Telling,
)
from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects import openai_chat
from traces.model import Fault
from traces.tape.reader import read_tape

LIE = ("--fault", "digit", "--where", "tool=Bash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A folder with files to work on, and a recording of an agent that did."""

    shop: Shop
    task: str

    @property
    def folder(self) -> Path:
        return self.shop.folder

    @property
    def tape(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.tape")

    @property
    def agent(self) -> tuple[str, ...]:
        return (sys.executable, "-m", "scenarios.practice.agents.subagents", self.task)

    def fork(self, *options: str) -> Said:
        hosts = self.shop.host_options()
        return self.shop.stumble(
            "fork", str(self.tape), *LIE, *options, *hosts, "--", *self.agent, timeout=240
        )

    def sql(self, question: str) -> Any:
        return self.shop.stumble("sql", "--json", question).json


def room(opened: Shop, task: str) -> Room:
    write_start_files(opened.folder, WORKSPACE_TASKS[task])
    found = Room(shop=opened, task=task)
    hosts = opened.host_options()
    result = opened.stumble("record", "-o", str(found.tape), *hosts, "--", *found.agent)
    assert result.code == 0, result.err
    return found


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "room"
    folder.mkdir()
    with shop(folder) as found:
        yield found


def lanes(tape: Path) -> dict[str, list[tuple[str, bool]]]:
    """(who answered, whether by a cascade) of each model request, by what the lane was first told.

    Only the first words of it.
    """
    found = read_tape(tape)
    told, out = derive_tape_steps(found), dict[int, list[tuple[str, bool]]]()
    names = dict[int, str]()
    for x in found.exchanges:
        placed = told.contexts[x.seq]
        if placed.kind == "model" and placed.lane is not None:
            names.setdefault(placed.lane, " ".join(placed.messages[0].content.split()[:2]))
            out.setdefault(placed.lane, []).append((x.answered_by, x.cascade))
    return {names[lane]: answers for lane, answers in out.items()}


def test_faulted_runs_draw_anew_go_on_at_once_and_a_helper_tells_its_lead(opened: Shop) -> None:
    """The struck helper is live, the lead that hears of it is a cascade, the other one recorded."""
    place = room(opened, "work-lead")
    asked = len(opened.asked())
    said = place.fork("--twins", "3", "--times", "2", "--jobs", "4", "--json")
    assert said.code == 5, f"no verifier was named: {said.err}"
    found = said.json
    assert (found["wanted"], found["finished"], found["diverged"]) == (5, 5, [])
    assert "5 of 5 are over" in said.err
    assert [(run["fired"], run["cascades"], run["drifted"]) for run in found["faulted"]] == [
        (1, 1, None)
    ] * 2
    assert [twin["cascades"] for twin in found["twins"]] == [0, 0, 0]
    assert found["outcomes"] == {"unknown": 2}
    tapes = [Path(run["tape"]) for run in found["faulted"]]
    lies = {read_tape(tape).injections[0].mutated for tape in tapes}
    assert len(lies) == 2, "each run draws its own wrong digit"
    for tape, run in zip(tapes, found["faulted"], strict=True):
        by = lanes(tape)
        struck = [who for who, answers in by.items() if answers[-1] == ("live", False)]
        assert len(struck) == 1
        assert struck[0].startswith("Read")
        assert by["Have two"] == [("recorded", False), ("live", True), ("live", True)]
        (other,) = {who for who in by if who.startswith("Read")} - set(struck)
        assert by[other] == [("recorded", False)] * 2
        assert run["answered"] == {"recorded": 4, "live": 3}
        assert run["saved_model_calls"] == 4
        shown = opened.stumble("show", str(tape), "--exchanges").out.splitlines()
        assert sum("cascade" in line for line in shown) == 2
        assert sum("recorded" in line for line in shown) == 4

    # What was not recorded was paid for, and what was not paid for is counted.
    went_out = len(opened.asked()) - asked
    assert went_out == sum(
        x.answered_by == "live"
        for run in [*found["faulted"], *found["twins"]]
        for x in read_tape(tapes[0].with_name(f"{run['run']}.tape")).exchanges
    )
    assert found["saved"]["model_calls"] == 5 * 7 - went_out
    assert found["saved"]["usd"] is None, "nobody knows the price of a practice model"
    assert found["saved"]["tokens"] > 0
    rows = place.sql(
        "select condition, cascades, drifted, world, cost_usd from trajectories"
        " where source = 'fork' order by all"
    )
    assert [(row["condition"], row["cascades"], row["drifted"]) for row in rows] == [
        *[("clean", 0, 0)] * 3,
        *[("fault", 1, 0)] * 2,
    ]
    assert {row["world"] for row in rows} == {"recorded"}
    forks = opened.stumble("sql", "forks", "--json").json
    assert sum(row["model_calls_saved"] for row in forks) == found["saved"]["model_calls"]
    assert {row["usd_saved"] for row in forks} == {None}


def test_a_helper_that_is_started_after_the_strike_is_live_at_once(opened: Shop) -> None:
    """It is told and asked what was recorded: a player that looks only at that would play it."""
    place = room(opened, "work-survey")
    found = place.fork("--json").json
    assert (found["fired"], found["diverged"], found["cascades"]) == (1, [], 0)
    twin = Path(found["tape"]).with_name(f"{found['twins'][0]['run']}.tape")
    for tape in (Path(found["tape"]), twin):
        by = lanes(tape)
        assert by["Read north.txt,"] == [("recorded", False), *[("live", False)] * 3]
        assert by["Read south.txt"] == [("live", False)] * 2


def test_a_local_tool_that_says_something_else_is_pinned_or_has_left_the_recording(
    opened: Shop,
) -> None:
    """The listing has times in it, and the files are younger now."""
    place = room(opened, "work-stock")
    (place.folder / "stock.txt").unlink()
    for name in ("north.txt", "south.txt"):
        (place.folder / name).touch()
    here = ("--in-place", "--nth", "2", "--reset", "rm -f stock.txt")
    left = place.fork(*here)
    assert left.code == 3
    assert "--pin sends the recorded result" in left.out
    assert "1 of 4 runs were finished" in left.out

    said = place.fork(*here, "--pin")
    assert said.code == 5, said.err
    assert "4 results of local tools drifted and were pinned" in said.out
    rows = place.sql("select condition, drifted, world from trajectories where drifted > 0")
    assert sorted((row["condition"], row["drifted"], row["world"]) for row in rows) == [
        *[("clean", 1, "fresh")] * 3,
        ("fault", 1, "fresh"),
    ]
    calls = place.sql(
        "select distinct tool, arguments like '%ls -l%' as listing from tool_calls where drifted"
    )
    assert calls == [{"tool": "Bash", "listing": True}]
    *_, newest = sorted((place.folder / ".stumble" / "tapes").glob("*.tape"), key=os.path.getmtime)
    tape = read_tape(newest)
    told = [read_tool_results(openai_chat, x.forwarded.body)[0].text for x in tape.exchanges[1:]]
    true = [read_tool_results(openai_chat, x.request.body)[0].text for x in tape.exchanges[1:]]
    assert len(set(told)) == len(set(true)) == 1
    assert told[0] != true[0]
    shown = opened.stumble("show", str(newest), "--exchanges").out
    assert "1 result pinned" in shown


ONCE = """
import os, signal, subprocess, sys, time
up, agent = os.environ["UP"], sys.argv[1:]
open(f"{up}/{os.getpid()}", "w").close()
if len(os.listdir(up)) == 1:
    raise SystemExit(subprocess.call(agent))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
time.sleep(1000)
"""
"""The agent the first time, and then one that does nothing for ever and wants no signal."""


def stopped(place: Room, number: int, *options: str, until: int) -> tuple[Said, list[str], float]:
    """A fork that gets a signal once so many runs have begun; what it left, and how long it took.

    A reset begins one, too.
    """
    up, temporary = (place.folder.with_name(name) for name in ("up", "temporary"))
    for each in (up, temporary):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir()
    hosts = place.shop.host_options()
    running = subprocess.Popen(
        [sys.executable, "-m", "stumble", "fork", str(place.tape), *LIE, *options, *hosts,
         "--", sys.executable, "-c", ONCE, *place.agent],
        cwd=place.folder,
        env=place.shop.environment() | {"UP": str(up), "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert eventually(lambda: len(list(up.iterdir())) == until or running.poll() is not None)
        assert list(temporary.iterdir())
        began = time.monotonic()
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
        took = time.monotonic() - began
    finally:
        running.kill()
        running.wait()
    assert eventually(lambda: not list(temporary.iterdir()))
    left = [each for each in Path("/proc").glob("[0-9]*") if str(up) in _environment(each)]
    return Said(code=running.returncode, out=out, err=err), [each.name for each in left], took


def _environment(process: Path) -> str:
    try:
        return (process / "environ").read_text("utf-8", "replace")
    except OSError:
        return ""


@pytest.mark.timeout(400)
def test_a_signal_in_the_middle_ends_all_agents_and_keeps_what_was_finished(opened: Shop) -> None:
    place = room(opened, "work-stock")
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        said, left, _ = stopped(place, number, "--twins", "3", "--jobs", "1", until=2)
        assert (said.code, left) == (code, []), said.err
        assert "1 of 4 runs were finished and are kept" in said.out
        assert "clean twins: 1, their end state was not checked" in said.out
    rows = place.sql("select ended from trajectories where source = 'fork' order by all")
    assert [row["ended"] for row in rows] == [*["final"] * 2, *["harness"] * 2]

    # Several at once, and all of them told.
    said, left, _ = stopped(place, signal.SIGTERM, "--jobs", "3", until=3)
    assert (said.code, left) == (143, []), said.err
    assert " of 4 runs were finished and are kept" in said.out

    # Where no agent runs: while a world is set back.
    wait = "import os, time; open(os.environ['UP'] + '/r', 'w'); time.sleep(1000)"
    wait = f'{sys.executable} -c "{wait}"'
    said, left, took = stopped(place, signal.SIGTERM, "--reset", wait, "--json", until=1)
    assert (said.code, left) == (143, []), said.err
    assert (said.json["finished"], said.json["outcome"], said.json["tape"]) == (0, None, None)
    assert took < 60


def test_a_world_that_cannot_be_set_back_again_ends_a_fork_and_keeps_what_was_finished(
    opened: Shop,
) -> None:
    place = room(opened, "work-stock")
    mark = place.folder.with_name("mark")
    once = f"sh -c 'test ! -e {mark} && touch {mark}'"
    said = place.fork("--reset", once, "--json")
    assert said.code == 6
    assert "the reset command exited 1" in said.err
    found = said.json
    assert (found["finished"], found["wanted"], len(found["twins"])) == (1, 4, 1)
    assert len(place.sql("select 1 from trajectories where source = 'fork'")) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--times", "0"), "'--times'"),
        (("--twins", "-1"), "'--twins'"),
        (("--jobs", "0"), "'--jobs'"),
        (("--in-place", "--reset", "true", "--jobs", "2"), "one world for all"),
        (("--in-place", "--verify", "true"), "--verify needs --reset"),
        (("--reset", "no-such-command"), "no such command"),
        (("--in-place", "--pin"), "this recording has none"),
    ],
)
def test_what_makes_no_sense_is_one_line_before_anything_starts(
    tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    tape = tmp_path / "a.tape"
    write(tape)
    result = subprocess.run(
        [sys.executable, "-m", "stumble", "fork", str(tape), "--fault", "digit", *options,
         "--", "touch", "started"],
        cwd=tmp_path,
        env=dict(os.environ) | {"STUMBLE_STORE": str(tmp_path / ".stumble")},
        capture_output=True,
        text=True,
        timeout=60,
    )  # fmt: skip
    assert result.returncode == 2, result.stderr
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "started").exists()


def write(path: Path) -> None:
    """A recording whose only tool is reached over HTTP."""
    from traces.tape.writer import TapeWriter

    told = Telling().calls(ORDER).says("DONE").over()
    with TapeWriter(path, told.tape.trajectory) as tape:
        for exchange in told.tape.exchanges:
            tape.write_exchange(exchange)
        assert told.tape.ending is not None
        tape.write_ending(told.tape.ending)


def test_a_design_of_no_twins_and_several_faulted_runs() -> None:
    found = find_fork_point(Telling().calls(ORDER).says("DONE").over().tape, Fault(name="digit"))
    design = ForkPlan(fork_point=found, twins=0, times=3)
    assert [str(each) for each in design.list_runs()] == [
        "faulted run 1 of 3",
        "faulted run 2 of 3",
        "faulted run 3 of 3",
    ]
    assert [design.plan_run(each).rep for each in design.list_runs()] == [0, 1, 2]
    with pytest.raises(ValueError, match="has none"):
        ForkPlan(fork_point=found, pin=True)
