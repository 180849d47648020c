"""Ready scenarios are read, checked and run, and what is wrong in one is said with file and key."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from recorder import event_loop
from scenarios.practice import PRACTICE_KEY
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.scenario import list_ready_scenarios
from scenarios.toml_reader import ScenarioError
from stumble.runs.fork import ForkPlan, find_fork_point
from stumble.runs.fork_report import ForkReport
from stumble.runs.scenario_runner import (
    fork_scenario,
    load_checked_scenario,
    open_practice_scenario,
    record_scenario,
)
from stumble.runs.session import open_replay_session
from tests.support.practice_shop import shop
from traces.store.trace_store import TraceStore

NAMED = {
    "rate-limit-storm",
    "timeout-at-step-34",
    "stale-cache-on-requery",
    "schema-drift-after-deploy",
    "partial-mcp-answer",
    "lost-ack-on-refund",
    "last-page-lost",
    "unit-change",
    "permission-expires",
    "error-page-with-200",
    "flapping-tool",
    "model-overload-mid-stream",
}


@pytest.mark.parametrize("path", list_ready_scenarios(), ids=lambda path: path.stem)
def test_every_ready_scenario_can_be_and_says_what_it_is_about(path: Path) -> None:
    told = load_checked_scenario(path.stem)
    assert told.faults
    assert told.scenario.practice is not None
    assert len(told.scenario.about) > 100
    assert len(told.scenario.title) <= 70


def test_the_incidents_that_were_asked_for_are_there() -> None:
    assert {path.stem for path in list_ready_scenarios()} >= NAMED


FAULT = "[[faults]]\nfault = 'digit'\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "faults: there is none"),
        (
            "[[faults]]\nfault = 'digti'",
            "faults[0]: no fault is called 'digti'; did you mean digit?",
        ),
        (FAULT + "nht = 2", "faults[0]: nht: no such key; did you mean nth?"),
        (FAULT + FAULT + "where = { toll = 'x' }", "faults[1]: where: no selector is called"),
        (FAULT + "where = { args = '@.a >' }", "faults[0]: '@.a >' is no JSONPath"),
        (FAULT + "nth = 2\nwhen = { every = 3 }", "faults[0]: when: every and nth contradict"),
        (
            "[[faults]]\nfault = 'truncate:keep=7'",
            "faults[0]: truncate: keep is 7, not within 0 to",
        ),
        (FAULT + "where = { tool = ' ' }", "faults[0]: where: tool is empty, which fits nothing"),
        (
            FAULT + "where = { tool = 'isue_refund' }\n[practice]\ntask = 'refund-1'",
            "faults[0].where.tool: no tool of the practice world is called 'isue_refund'; did you",
        ),
        (
            "[[faults]]\nfault = 'empty:path=$.ordrs[*]'\nwhere = { tool = 'list_*' }\n"
            "[practice]\ntask = 'refund-1'",
            "faults[0].path: '$.ordrs[*]' fits nothing that list_products, list_orders, ",
        ),
        (FAULT + "[match]\nrules = ['ignore']", "match.rules[0]: 'ignore': a rule is CLASS:PLACE"),
        (FAULT + "[practice]\ntask = 'refnd-1'", "practice.task: no task is called 'refnd-1'; did"),
        (
            FAULT + "[practice]\ntask = 'refund-1'\nmodel = 'gpt'",
            "practice.model: no model is called 'gpt'",
        ),
    ],
)
def test_what_cannot_be_is_said_with_file_and_key(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as error:
        load_checked_scenario(str(path))
    assert str(error.value).startswith(f"{path}: {says}")


@pytest.mark.parametrize("path", ["$.orders[*].amount", "$.orders[4].total", "$..[?@.x > 1]"])
def test_a_path_that_may_be_there_is_left_to_the_run(tmp_path: Path, path: str) -> None:
    mine = tmp_path / "mine.toml"
    fault = f"[[faults]]\nfault = 'empty:path={path}'\nwhere = {{ tool = 'list_orders' }}\n"
    mine.write_text(fault + "[practice]\ntask = 'refund-1'")
    assert load_checked_scenario(str(mine)).faults[0].params["path"] == path


def stumble(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stumble", *words], capture_output=True, text=True, timeout=60
    )


def test_a_file_is_explained_whole_and_run_by_its_path(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("[practice]\ntask = 'refund-1'\n" + FAULT)
    result = stumble("scenarios", str(mine)).stdout
    assert "    [practice]\n    task = 'refund-1'\n    [[faults]]\n" in result
    assert f"\nstumble run {mine}\n" in result
    assert "\nstumble run lost-ack-on-refund\n" in stumble("scenarios", "lost-ack-on-refund").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--command", "python 'x"), '--command "python \'x": No closing quotation'),
        (("--where", "tool=a", "--where", "tool=b"), "'tool' is given twice"),
        ((), "mine.toml is not for the practice world: give --command"),
    ],
)
def test_what_options_get_wrong_is_said_before_anything_runs(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(FAULT)
    result = stumble("run", str(mine), *words)
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--budget", "nan", "nan is not a finite number of seconds."),
        ("--budget", "inf", "inf is not a finite number of seconds."),
        ("--tool", "a=PSOT /x", "--tool a: no method is called 'PSOT'; did you mean POST?"),
    ],
)
def test_what_options_of_a_recording_get_wrong_is_said_before_anything_runs(
    option: str, value: str, says: str
) -> None:
    result = stumble("record", option, value, "--", "true")
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr


def test_options_of_an_agent_of_ones_own_are_refused_where_there_is_none() -> None:
    result = stumble("run", "lost-ack-on-refund", "--reset", "./reset.sh")
    assert (result.returncode, result.stdout) == (2, "")
    assert (
        "--reset, --verify, --state, --ledger and --host need --command: they are for your own "
        "agent" in result.stderr
    )


def test_a_scenario_is_aimed_at_the_tools_of_another_agent() -> None:
    told = load_checked_scenario("slow-and-wrong").retarget_faults({"tool": "fetch_order"})
    assert [fault.where["tool"] for fault in told.faults] == ["fetch_order"] * 2
    with pytest.raises(ValueError, match="no selector is called 'toll'"):
        told.retarget_faults({"toll": "x"})


def test_the_long_task_takes_sixty_steps() -> None:
    """Two that were said, an answer for each call, and the final one."""
    assert 2 + len(ALL_TASKS["audit-1"].plan) + 1 == 60


@pytest.mark.many(4)
@pytest.mark.parametrize("path", list_ready_scenarios(), ids=lambda path: path.stem)
def test_every_ready_scenario_strikes_the_practice_agent(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", PRACTICE_KEY)
    told, store, ca = (
        load_checked_scenario(path.stem),
        TraceStore(tmp_path / "store"),
        tmp_path / "ca",
    )
    practice, scratch = told.scenario.practice, tmp_path / "scratch"
    scratch.mkdir()
    assert practice is not None

    async def run() -> ForkReport:
        async with open_practice_scenario(told.scenario, practice, scratch) as at:
            recording = await record_scenario(told, at, store, ca=ca, scratch=scratch)
            async with open_replay_session(
                ca=ca, scratch=scratch, hosts=at.hosts, out=True
            ) as house:
                design = ForkPlan(
                    fork_point=find_fork_point(recording, told.faults),
                    twins=0,
                    world=at.world,
                )
                return await fork_scenario(design, at, house, store)

    said = event_loop.run_event_loop(run()).to_dict()
    assert said["diverged"] == []
    assert said["fired"] >= len(told.faults)  # type: ignore[operator]
    assert said["passed"] is not None


def test_a_ready_scenario_runs_by_its_name_and_is_judged(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        result = world.stumble("run", "lost-ack-on-refund", "--json", timeout=115)
        assert result.code == 0, result.err
        found = result.json
        assert (found["fired"], found["diverged"], found["baseline_valid"]) == (1, [], True)
        assert (found["outcome"], found["passed"]) == ("noticed_wrong", False)
        rows = world.stumble("sql", "--json", "select distinct scenario from trajectories").json
        assert rows == [{"scenario": "lost-ack-on-refund"}]


def test_a_scenario_runs_with_an_agent_of_ones_own(tmp_path: Path) -> None:
    """Whose tools have other names than those in the file."""
    mine = tmp_path.with_name(f"{tmp_path.name}-mine.toml")
    mine.write_text("[[faults]]\nfault = 'http_status'\nwhere = { tool = 'pay_back' }\n")
    with shop(tmp_path) as world:
        mine_is = ("--command", " ".join(world.agent("practice/naive")), "--twins", "0")
        result = world.stumble(
            "run", str(mine), *mine_is, *world.world(), *world.host_options(), "--json",
        )  # fmt: skip
        assert result.code == 4
        assert "no fault fired: the recording has no call of tool 'pay_back'" in result.err
        result = world.stumble(
            "run", str(mine), *mine_is, *world.world(), *world.host_options(), "--json",
            "--where", "tool=issue_refund",
        )  # fmt: skip
        assert result.json["fired"] == 1, result.err
        assert result.json["passed"] is False


@pytest.mark.parametrize(
    "judge",
    [
        "verify = 'grep -q DONE answer.txt'",
        pytest.param("answer = '^DONE'", marks=pytest.mark.thorough),
    ],
)
def test_a_scenario_without_a_reset_is_judged_in_fresh_copies(judge: str, tmp_path: Path) -> None:
    mine = tmp_path.with_name(f"{tmp_path.name}-mine.toml")
    fault = "[[faults]]\nfault = 'delay:ms=50'\nwhere = { tool = 'get_order' }\n"
    with shop(tmp_path) as world:
        agent = (
            f"{world.world()[1]} && {shlex.join(world.agent('practice/naive'))} | tee answer.txt"
        )
        mine.write_text(f"command = {['sh', '-c', agent]}\n[world]\n{judge}\n{fault}")
        given = ("run", str(mine), *world.host_options(), "--twins", "0", "--json")
        result = world.stumble(*given)
        assert (result.json["fired"], result.json["passed"]) == (1, True), result.err
        result = world.stumble(*given, "--in-place")
        assert result.code == 2
        assert "needs --reset, or runs in a fresh copy" in result.err


def test_a_recording_that_is_there_is_struck_and_its_agent_started_again(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        assert world.record("a.tape", "practice/naive").code == 0
        tapes = {path.name for path in (tmp_path / ".stumble").rglob("*.tape")}
        result = world.stumble(
            "run", "lost-ack-on-refund", "--tape", "a.tape", "--twins", "0",
            *world.world(), *world.host_options(), "--json",
        )  # fmt: skip
        assert result.json["fired"] == 1, result.err
        made = {path.name for path in (tmp_path / ".stumble").rglob("*.tape")} - tapes
    assert ": recording" not in result.err
    assert len(made) == 1
