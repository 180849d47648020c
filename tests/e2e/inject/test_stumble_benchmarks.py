"""The tasks of benchmarks run on the engine: recorded, struck, and judged by what they bring."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.practice_shop import (
    Shop,
    shop,
)
from tests.support.servers import lending_model
from traces.tape.reader import read_tape

DATA = Path(__file__).parents[2] / "data"
STOCK = DATA / "harbor" / "stock-count"
LENDING = f"{DATA / 'tau' / 'lending'}#settle-1"


def agent(model: str, *more: str) -> str:
    module = ("-m", "scenarios.practice.agents.openai_agent", "--model", model)
    return shlex.join((sys.executable, *module, "--prompt", "{instruction}", *more))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Shop]:
    with shop(tmp_path) as opened:
        yield opened


@pytest.mark.timeout(240)
def test_a_task_folder_is_struck_and_judged_by_its_own_tests(place: Shop) -> None:
    """The third result is one of the two lists: half of it makes another sum."""
    result = place.stumble(
        "run", str(STOCK), "--json", *place.host_options(),
        "--command", agent("practice/naive", "--tools", "shell"),
        "--fault", "truncate:keep=0.5", "--where", "tool=bash", "--nth", "3", timeout=200,
    )  # fmt: skip
    assert result.code == 0, result.err
    found = result.json
    assert (found["scenario"], found["fired"]) == ("stock-count", 1)
    assert found["strike"].startswith("bash (step 4) at model-boundary with truncate(keep=0.5")
    assert [twin["passed"] for twin in found["twins"]] == [True] * 3
    assert (found["outcome"], found["passed"]) == ("silent_wrong", False)
    assert "weaker than in Harbor: no container: programs are this machine's" in result.err
    ended = "select task, source, passed, condition from trajectories order by recorded_at"
    rows = place.stumble("sql", ended, "--format", "json").json
    assert [tuple(row.values()) for row in rows] == [
        ("practice/stock-count", "record", True, "clean"),
        *[("practice/stock-count", "fork", True, "clean")] * 3,
        ("practice/stock-count", "fork", False, "fault"),
    ]


@pytest.mark.timeout(240)
def test_a_tool_set_is_struck_at_mcp_and_judged_by_its_end_state(place: Shop) -> None:
    with lending_model.serving() as model:
        result = place.stumble(
            "run", LENDING, "--json", "--host", f"model.practice={model}",
            "--command", agent("any", "--tools", "mcp"),
            "--fault", "digit:path=$.fee", "--where", "side=read", timeout=200,
        )  # fmt: skip
    assert result.code == 0, result.err
    found = result.json
    assert (found["scenario"], found["fired"]) == ("lending#settle-1", 1)
    assert found["strike"].startswith("get_loan (step 3) at mcp with digit")
    assert [twin["passed"] for twin in found["twins"]] == [True] * 3
    assert (found["outcome"], found["passed"]) == ("silent_wrong", False)
    assert "weaker than in tau2-bench: no user is simulated" in result.err
    ending = read_tape(Path(found["tape"])).ending
    assert ending is not None
    assert ending.detail == "the data differ in loans, settled; never said: 37.45"


def test_a_task_is_recorded_and_struck_live_and_its_tape_is_run_again(place: Shop) -> None:
    command = shlex.split(agent("practice/naive", "--tools", "shell"))
    words = ("--scenario", str(STOCK), *place.host_options())
    result = place.stumble("record", "-o", "stock.tape", *words, "--", *command)
    assert result.code == 0, result.err
    clean = read_tape(place.folder / "stock.tape")
    assert clean.ending is not None
    assert (clean.ending.passed, clean.ending.detail) == (True, "reward 1")
    assert clean.trajectory.task == "practice/stock-count"
    assert clean.trajectory.workspace is None
    fault = ("--fault", "truncate:keep=0.5", "--where", "tool=bash", "--nth", "3")
    result = place.stumble("record", "-o", "live.tape", *words, *fault, "--", *command)
    assert result.code == 0, result.err
    struck = read_tape(place.folder / "live.tape")
    assert struck.ending is not None
    assert (len(struck.injections), struck.ending.passed) == (1, False)
    result = place.stumble(
        "run", str(STOCK), "--tape", "stock.tape", *fault, "--twins", "0", "--json",
        *place.host_options(),
    )  # fmt: skip
    assert (result.json["fired"], result.json["diverged"], result.json["passed"]) == (1, [], False)


def test_tests_that_cannot_pass_here_stop_the_run_before_the_agent(
    place: Shop, tmp_path: Path
) -> None:
    mine = Path(shutil.copytree(STOCK, tmp_path / "mine"))
    (mine / "tests" / "test.sh").write_text("no-such-program && echo 1 > /logs/verifier/reward.txt")
    result = place.stumble(
        "run", str(mine), "--command", "touch agent-was-here", "--fault", "truncate"
    )
    assert (result.code, result.out) == (6, "")
    assert "its own solution does not pass here" in result.err
    assert "no-such-program: command not found" in result.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--command", "true"), "is a task without a fault: give --fault"),
        (("--fault", "truncate"), "give --command"),
        (
            ("--fault", "truncate", "--command", "true", "--reset", "true"),
            "has its own world: omit --reset, --verify, --state and --ledger",
        ),
        (("--fault", "trunkate", "--command", "true"), "did you mean truncate?"),
    ],
)
def test_what_is_asked_of_a_task_in_vain_is_said_before_anything_runs(
    place: Shop, words: tuple[str, ...], says: str
) -> None:
    result = place.stumble("run", str(STOCK), *words)
    assert (result.code, result.out) == (2, "")
    assert says in result.err


def test_a_task_is_explained_with_what_is_weaker_here(place: Shop) -> None:
    result = place.stumble("scenarios", str(STOCK), "--json").json
    assert result["benchmark"]["form"] == "Harbor"
    assert result["benchmark"]["instruction"].endswith("task: work-stock")
    words = place.stumble("scenarios", str(STOCK)).out
    assert "weaker than in Harbor: no limit is kept of cpus" in words
    assert f"stumble run {STOCK} --command" in words
