"""The main job on real processes: record, replay, fork, judge, ask."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from copy import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.practice_shop import (
    Shop,
    shop,
)
from traces.model import Response, find_header
from traces.tape.reader import read_tape


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Shop]:
    """A shop of a test's own, whose servers it may stop."""
    with shop(tmp_path) as open_shop:
        yield open_shop


@pytest.fixture(scope="module")
def open_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("shop")) as found:
        assert found.record().code == 0
        yield found


@pytest.fixture
def recorded(open_shop: Shop, tmp_path: Path) -> Shop:
    """The shop that tests share, and a folder of a test's own with a recording in it."""
    shutil.copy(open_shop.folder / "a.tape", tmp_path)
    kept = Path(".stumble") / "snapshots"
    for each in (kept, Path("home") / ".local"):
        shutil.copytree(open_shop.folder / each, tmp_path / each)
    return replace(open_shop, folder=tmp_path)


DONE = "DONE: refund"


def answers(tape: Path) -> list[tuple[int, bytes]]:
    """Status and body of each answer, in the order in which they were asked for."""
    return [
        (x.response.status, x.response.body)
        for x in read_tape(tape).exchanges
        if x.response is not None
    ]


def test_a_run_is_recorded_whole_and_replays_byte_for_byte_without_the_network(
    world: Shop,
) -> None:
    said = world.record(model="practice/verifies")
    assert said.code == 0, said.err
    assert said.out.startswith("DONE")
    assert world.passed()
    logged = world.asked()
    tape = read_tape(world.folder / "a.tape")
    models = [x for x in tape.exchanges if "model.practice" in x.request.url]
    assert len(models) == len(logged)
    assert f"{len(tape.exchanges)} exchanges ({len(models)} model" in said.err

    world.stop("shop")
    world.stop("model")
    again = world.stumble("replay", "a.tape", "--json", "--", *world.agent("practice/verifies"))

    assert again.code == 0, again.err
    result = json.loads(again.out)
    assert result["upstream"] == 0
    assert result["diverged"] == []
    assert answers(Path(result["tape"])) == answers(world.folder / "a.tape")
    assert Path(result["agent_output"]).read_text() == said.out


def test_streams_are_recorded_chunk_by_chunk_and_replay_the_same(tmp_path: Path) -> None:
    with shop(tmp_path, "refund-1", "--gap-ms", "3") as world:
        assert world.record("a.tape", "practice/retries", "--stream").code == 0
        streams = [
            x.response.chunks
            for x in read_tape(tmp_path / "a.tape").exchanges
            if x.response and len(x.response.chunks) > 3
        ]
        assert streams
        agent = world.agent("practice/retries", "--stream")
        result = json.loads(
            world.stumble("replay", "a.tape", "--json", "--", *agent).out.splitlines()[-1]
        )
        replayed = read_tape(Path(result["tape"])).exchanges
        assert [
            [chunk.data for chunk in x.response.chunks]
            for x in replayed
            if x.response and len(x.response.chunks) > 3
        ] == [[chunk.data for chunk in chunks] for chunks in streams]


# What a strict replay proves: three truths that hold on any player that does not guess.


def test_truth_1_with_the_tools_stopped_a_strict_replay_says_nothing_about_recovery(
    world: Shop,
) -> None:
    recorded = world.record()
    world.stop("shop")
    result = world.stumble("replay", "a.tape", "--", *world.agent())

    assert result.code == 0
    assert result.out == recorded.out
    assert "tools were not contacted: this says nothing about recovery" in result.err
    assert "0 upstream, 0 diverged" in result.err
    rows = world.stumble("sql", "--json", "select * from outcomes").json
    assert rows == []
    passed = world.stumble("sql", "--json", "select passed from trajectories where source='replay'")
    assert passed.json == [{"passed": None}]


def test_truth_2_with_live_tools_that_are_down_the_recorded_answer_is_never_reached(
    world: Shop,
) -> None:
    recorded = world.record()
    world.stop("shop")
    result = world.stumble(
        "replay", "a.tape", "--live", "tools", *world.host_options(), "--", *world.agent()
    )

    assert result.code == 3
    assert recorded.out not in result.out
    assert "diverged: " in result.err


def test_truth_3_a_permanent_503_without_a_fork_diverges(recorded: Shop) -> None:
    result = recorded.stumble(
        "replay", "a.tape", "--fault", "http_status:code=503", "--persist", "permanent",
        "--", *recorded.agent(),
    )  # fmt: skip

    assert result.code == 3
    assert DONE not in result.out
    assert "HTTP 503" in result.err
    assert "nearest is exchange" in result.err


def fork(world: Shop, *options: str, agent: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
    result = world.stumble(
        "fork", "a.tape", *options, *world.world(), *world.host_options(), "--json",
        "--", *(agent or world.agent()),
    )  # fmt: skip
    assert result.out, result.err
    return result.code, json.loads(result.out.splitlines()[-1])


LATE = ("--fault", "http_status:code=503", "--where", "tool=update_order")


def test_a_fork_whose_prefix_holds_a_write_passes_on_a_fresh_world(recorded: Shop) -> None:
    tools = [use["tool_calls"] for use in recorded.stumble("show", "a.tape", "--json").json]
    called = [call["tool"] for calls in tools for call in calls]
    assert called.index("issue_refund") < called.index("update_order")

    code, result = fork(recorded, *LATE)

    assert code == 0
    assert result["outcome"] == "recovered"
    assert result["passed"] is True
    assert result["baseline_valid"] is True
    assert result["saved_model_calls"] == called.index("update_order") + 1
    assert "N1" in str(result["evidence"])


def test_a_fork_on_a_used_world_is_not_taken_for_a_good_one(recorded: Shop) -> None:
    assert recorded.record("use-it-up.tape").code == 0
    used = [word if "shop_world.py reset" not in word else "true" for word in recorded.world()]
    completed = recorded.stumble(
        "fork", "a.tape", *LATE, *used, *recorded.host_options(), "--json", "--", *recorded.agent()
    )
    result = json.loads(completed.out.splitlines()[-1])

    assert completed.code == 3
    assert result["diverged"]
    assert result["outcome"] is None
    assert result["baseline_valid"] is not True


def test_a_wrong_digit_is_delivered_by_who_believes_it_and_caught_by_who_reads_twice(
    recorded: Shop,
) -> None:
    injection = ("--fault", "digit:field=amount", "--where", "tool=get_order", "--seed", "7")
    code, result = fork(recorded, *injection)
    assert (code, result["outcome"]) == (0, "silent_wrong")

    (recorded.folder / "a.tape").unlink()
    recorded.record(model="practice/verifies")
    code, result = fork(recorded, *injection, agent=recorded.agent("practice/verifies"))
    assert (code, result["outcome"]) == (0, "recovered")

    rows = recorded.stumble(
        "sql", "--json", "select model, op, consumed, recovery_rate, lo, reason from recovery"
    ).json
    assert {(row["model"], row["recovery_rate"]) for row in rows} == {
        ("practice/retries", 0.0),
        ("practice/verifies", 1.0),
    }
    assert {(row["lo"], row["reason"]) for row in rows} == {(None, "few_traces")}


def test_an_end_state_is_judged_by_those_of_clean_twins(recorded: Shop) -> None:
    def forked(code: int, *strike: str) -> dict[str, Any]:
        said = recorded.stumble(
            "fork", "a.tape", *strike, *recorded.by_state(), *recorded.host_options(), "--json",
            "--", *recorded.agent(),
        )  # fmt: skip
        assert said.code == code, said.err
        result: dict[str, Any] = json.loads(said.out.splitlines()[-1])
        return result

    wrong = forked(0, "--fault", "digit:field=amount", "--where", "tool=get_order", "--seed", "7")
    assert (wrong["outcome"], wrong["passed"], wrong["baseline_valid"]) == (
        "silent_wrong", False, True,
    )  # fmt: skip
    [where] = [line for line in wrong["evidence"] if line.startswith("end state: $.refunds[")]
    assert ", in clean twins " in where
    completed = recorded.stumble("why", wrong["run"])
    assert where in completed.out

    sham = forked(0, "--fault", "sham", "--where", "tool=get_order")
    assert (sham["passed"], sham["baseline_valid"]) == (True, True)

    asks = "select t.passed, o.passed as derived from trajectories t join outcomes o"
    rows = recorded.stumble(
        "sql", "--json", f"{asks} on o.injection_id like t.trajectory_id || '/%' order by derived"
    ).json
    assert [(row["passed"], row["derived"]) for row in rows] == [(False, False), (True, True)]


def test_a_sham_fork_is_a_clean_one(recorded: Shop) -> None:
    code, result = fork(recorded, "--fault", "sham", "--where", "tool=get_order")
    runs = [Path(str(result["tape"]))]
    runs += [runs[0].with_name(f"{twin['run']}.tape") for twin in result["twins"]]

    assert code == 0
    assert result["outcome"] == "masked"
    assert result["noticed"] is False
    asked = [[x.forwarded.body for x in read_tape(run).exchanges] for run in runs]
    assert all(each == asked[0] for each in asked)
    assert all(answers(run) == answers(runs[0]) for run in runs)


def test_a_plan_that_never_fires_gives_exit_4_and_no_rate(recorded: Shop) -> None:
    code, result = fork(recorded, "--fault", "digit:min_digits=15", "--where", "tool=get_order")
    assert code == 4
    assert result["fired"] == 0
    assert result["outcome"] is None
    assert recorded.stumble("sql", "--json", "select recovery_rate from recovery").json == []


def test_without_a_world_the_end_state_is_unknown(recorded: Shop) -> None:
    completed = recorded.stumble(
        "fork", "a.tape", *LATE, *recorded.host_options(), "--json", "--", *recorded.agent()
    )
    result = json.loads(completed.out.splitlines()[-1])
    assert result["passed"] is None
    assert result["outcome"] is None


def test_the_same_seed_makes_the_same_lie(recorded: Shop) -> None:
    injection = ("--fault", "digit", "--where", "tool=get_order", "--twins", "0", "--seed")
    lies = []
    for seed in ("7", "7", "8"):
        _, result = fork(recorded, *injection, seed)
        lies.append(read_tape(Path(str(result["tape"]))).injections[0].mutated)
    assert lies[0] == lies[1] != lies[2]


# Bad input and faults of the world.


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--fault", "htp_status"), "did you mean http_status?"),
        (("--fault", "delay:mss=3"), "did you mean ms?"),
        (("--fault", "digit", "--where", "toll=x"), "did you mean tool?"),
        (("--fault", "digit", "--where", "tool=get_ordr"), "did you mean get_order?"),
        (("--fault", "digit", "--nth", "99"), "is too many"),
    ],
)
def test_a_wrong_fault_is_one_line_before_anything_starts(
    recorded: Shop, options: tuple[str, ...], says: str
) -> None:
    result = recorded.stumble("fork", "a.tape", *options, "--", "touch", "started")
    assert result.code == 2
    assert says in result.err
    assert "Traceback" not in result.err
    assert not (recorded.folder / "started").exists()


def test_a_command_that_is_not_there_is_127_and_leaves_no_tape(world: Shop) -> None:
    result = world.stumble("record", "-o", "x.tape", "--", "no-such-agent")
    assert (result.code, "command not found" in result.err) == (127, True)
    assert not (world.folder / "x.tape").exists()
    assert not list((world.folder).glob(".stumble/tapes/*"))


def test_record_returns_the_agents_own_code_and_passes_its_output_through(world: Shop) -> None:
    result = world.stumble(
        "record", "-o", "x.tape", "--", sys.executable, "-c", "print('hi'); raise SystemExit(5)"
    )
    assert (result.code, result.out) == (5, "hi\n")
    assert "no traffic at all was seen" in result.err


@pytest.mark.parametrize("bad", ["cut", "flipped", "other"])
def test_a_damaged_tape_is_read_as_far_as_it_goes_and_the_rest_is_named(
    recorded: Shop, bad: str
) -> None:
    data = bytearray((recorded.folder / "a.tape").read_bytes())
    path = recorded.folder / f"{bad}.tape"
    if bad == "flipped":
        data[len(data) // 2] ^= 8
    path.write_bytes(bytes({"cut": data[:-100], "flipped": data, "other": b"hello"}[bad]))

    result = recorded.stumble("show", str(path))

    assert "Traceback" not in result.err
    if bad == "other":
        assert (result.code, "not a tape" in result.err) == (2, True)
    else:
        assert result.code == 0
        assert "could not be read" in result.err or "was not closed" in result.err
        assert "agent" in result.out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_agent_and_keeps_what_was_seen(
    world: Shop, number: signal.Signals, code: int
) -> None:
    slow = "import time, sys, urllib.request as u; " + (
        "u.urlopen('http://shop.practice/tools').read(); print('asked', flush=True); time.sleep(60)"
        f"  # {(name := unique_name())}"
    )
    command = [sys.executable, "-m", "stumble", "record", "-o", "x.tape", *world.host_options()]
    running = subprocess.Popen(
        [*command, "--", sys.executable, "-c", slow],
        cwd=world.folder,
        env=world.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == b"asked\n"
    running.send_signal(number)
    running.communicate(timeout=20)

    assert running.returncode == code
    tape = read_tape(world.folder / "x.tape")
    assert len(tape.exchanges) == 1
    assert tape.ending is not None
    assert not _left(name)


def unique_name() -> str:
    """What no other process has in its command line, other tests' included."""
    return f"test-{uuid.uuid4().hex}"


def _left(words: str) -> list[str]:
    """Command lines of processes that still run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if words in line and folder.name != str(os.getpid()) and "pytest" not in line:
            found.append(line)
    return found


def _whole(answer: Response) -> bool:
    """True if all bytes came; the agent goes on with them before the end was noted."""
    return len(answer.body) == int(find_header(answer.headers, "content-length") or -1)


def test_killed_while_recording_every_answer_the_agent_had_is_on_the_tape(tmp_path: Path) -> None:
    asks = (
        "import urllib.request as u\n"
        "for n in range(10_000):\n"
        "    u.urlopen('http://shop.practice/tools').read(); print(n, flush=True)\n"
    )
    asks += f"# {(mark := unique_name())}"
    chance = random.Random(5)
    with shop(tmp_path) as world:
        for round in range(6):
            name = f"{round}.tape"
            command = [sys.executable, "-m", "stumble", "record", "-o", name, *world.host_options()]
            running = subprocess.Popen(
                [*command, "--", sys.executable, "-c", asks],
                cwd=tmp_path,
                env=world.environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert running.stdout is not None
            running.stdout.readline()
            time.sleep(chance.random() * 0.2)
            running.kill()
            rest, _ = running.communicate(timeout=20)
            had = int(rest.split()[-1]) if rest.split() else 0

            tape = read_tape(tmp_path / name)
            whole = [x for x in tape.exchanges if x.response is not None and _whole(x.response)]
            assert len(whole) >= had + 1
    assert not _left(mark)


def test_every_run_is_in_the_store_once_and_asking_again_reads_nothing_anew(world: Shop) -> None:
    assert world.stumble("record", *world.host_options(), "--", *world.agent()).code == 0
    ask = (
        "sql",
        "--json",
        "select count(*) runs, count(distinct trajectory_id) ids from trajectories",
    )
    assert world.stumble(*ask).json == [{"runs": 1, "ids": 1}]
    (rows,) = (world.folder / ".stumble" / "index" / "trajectories").glob("2*.parquet")
    written = rows.stat().st_mtime_ns
    assert world.stumble(*ask).json == [{"runs": 1, "ids": 1}]
    assert rows.stat().st_mtime_ns == written


def test_an_agent_that_does_less_than_it_did_has_left_the_recording(recorded: Shop) -> None:
    result = recorded.stumble("replay", "a.tape", "--", "true")
    assert result.code == 3
    assert "left early: 23 recorded requests never came" in result.err


def test_a_signal_ends_a_fork_and_nothing_is_judged(recorded: Shop) -> None:
    command = [sys.executable, "-m", "stumble", "fork", "a.tape", "--in-place", "--fault", "digit"]
    name = unique_name()
    slow = [sys.executable, "-c", f"import time; open('up', 'w').close(); time.sleep(61)  # {name}"]
    running = subprocess.Popen(
        [*command, "--where", "tool=get_order", "--", *slow],
        cwd=recorded.folder,
        env=recorded.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    lines = [running.stderr.readline() for _ in range(3)]
    assert "clean twin 1" in lines[2]
    while not (recorded.folder / "up").exists():
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    _, rest = running.communicate(timeout=20)
    assert running.returncode == 143
    assert "clean twin 2" not in rest
    ended = recorded.stumble("sql", "--json", "select ended, passed from trajectories").json
    assert ended == [{"ended": "harness", "passed": None}]
    assert not _left(name)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("--reset", "no-such-reset"), 2, "no such command"),
        (("--reset", "un'balanced"), 2, "No closing quotation"),
        (("--reset", "false"), 6, "the reset command exited 1"),
        (("--in-place", "--verify", "true"), 2, "--verify needs --reset"),
        (("--in-place", "--state", "true"), 2, "--state needs --reset"),
        (("--reset", "true", "--state", "no-such-dump"), 2, "no such command"),
    ],
)
def test_a_world_that_cannot_be_had_is_one_line(
    recorded: Shop, options: tuple[str, ...], code: int, says: str
) -> None:
    result = recorded.stumble(
        "fork", "a.tape", "--fault", "digit", "--where", "tool=get_order", *options, "--", "true"
    )
    assert (result.code, says in result.err, "Traceback" in result.err) == (code, True, False)


def test_a_tape_goes_nowhere_it_cannot_go(recorded: Shop) -> None:
    for path, says in (("no/such/a.tape", "does not exist"), ("a.tape", "exists already")):
        result = recorded.stumble("record", "-o", path, "--", "true")
        assert (result.code, says in result.err) == (2, True)


def test_a_store_keeps_its_tapes_when_files_move(recorded: Shop) -> None:
    ask = ("sql", "--json", "select count(*) n from trajectories")
    assert recorded.stumble("record", "-o", "b.tape", "--", "true").code == 0
    (recorded.folder / "b.tape").unlink()
    assert recorded.stumble("sql", "--rebuild", ask[2], "--json").json == [{"n": 1}]


def test_explain_says_of_each_request_what_it_matched(recorded: Shop) -> None:
    result = recorded.stumble("replay", "a.tape", "--explain", "--json", "--", *recorded.agent())
    assert result.code == 0, result.err
    lines = result.json["matching"]
    assert len(lines) == result.json["answered"]
    assert all(": exchange " in line and line.endswith("same bytes") for line in lines)


def test_replays_of_one_command_are_runs_of_their_own(recorded: Shop) -> None:
    result = recorded.stumble("replay", "a.tape", "--times", "3", "--json", "--", *recorded.agent())
    assert (result.code, result.json["followed"]) == (0, 3), result.err
    runs = result.json["runs"]
    assert len({run["run"] for run in runs}) == 3
    assert len({run["answered"] for run in runs}) == 1
    assert [answers(Path(run["tape"])) for run in runs] == [answers(recorded.folder / "a.tape")] * 3


def test_of_several_replays_the_worst_is_the_exit_code(
    recorded: Shop, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seen = tmp_path_factory.mktemp("seen") / "once"
    leaves_at_once = f'test -e {seen} || {{ touch {seen}; exec true; }}; exec "$@"'
    agent = ("sh", "-c", leaves_at_once, "sh", *recorded.agent())
    result = recorded.stumble("replay", "a.tape", "--times", "2", "--", *agent)
    assert result.code == 3, result.err
    assert "1/2: left early" in result.err
    assert "2/2: followed the recording" in result.err
    assert "2 of 2 times: 1 followed the recording, 1 diverged" in result.err


def test_a_miss_can_end_the_agent_at_once(recorded: Shop) -> None:
    other = recorded.agent("practice/verifies")
    refused = recorded.stumble("replay", "a.tape", "--json", "--", *other)
    halted = recorded.stumble("replay", "a.tape", "--json", "--on-miss", "halt", "--", *other)
    assert [refused.code, halted.code] == [3, 3], halted.err
    assert len(halted.json["diverged"]) == 1


def test_a_miss_can_go_live_and_is_counted(recorded: Shop) -> None:
    recorded.reset()
    result = recorded.stumble(
        "replay", "a.tape", "--json", "--on-miss", "live", *recorded.host_options(), "--",
        *recorded.agent("practice/verifies"),
    )  # fmt: skip
    assert result.json["diverged"] == []
    assert result.json["upstream"] > 0


def test_a_rule_that_is_none_is_refused_before_anything_starts(recorded: Shop) -> None:
    result = recorded.stumble("replay", "a.tape", "--match", "ignroe:body.x")
    assert result.code == 2
    assert "did you mean ignore?" in result.err
