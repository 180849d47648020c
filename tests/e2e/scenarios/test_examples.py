"""The examples of examples/, run as their pages say: without network, key or installation."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from faults.specs.spec_parser import parse_fault
from scenarios.scenario import read_scenario
from stumble.store.index import refresh_index
from stumble.store.query import QueryLimits, run_query
from tests.support.warm_stumble import run_stumble
from tests.unit.test_docs import find_unknown, list_commands
from traces.store.trace_store import TraceStore

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
GOLDEN = ROOT / "tests/data/golden"
TAPES: dict[str, str] = json.loads((GOLDEN / "tapes.json").read_text())
"""The run that each golden tape is."""


def read_statements() -> list[str]:
    """The numbered statements of the SQL tour."""
    text = (EXAMPLES / "sql/tour.sql").read_text()
    return re.findall(r"^/\* \d\..*?;$", text, re.MULTILINE | re.DOTALL)


USED_ACTION = re.compile(r"uses: (?!OWNER/)([\w./-]+)@(.*)")
PINNED = re.compile(r"[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """A copy of the example agent, and the environment of a user who serves the practice world."""
    folder = tmp_path
    shutil.copytree(EXAMPLES / "agent", folder / "agent")
    given = {
        k: v for k, v in os.environ.items() if not k.startswith(("OPENAI", "TOOLS", "STUMBLE"))
    }
    home = {"HOME": str(folder), "STUMBLE_STORE": str(folder / ".stumble")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**given, **home, "PATH": path}
    serve = [sys.executable, "-m", "stumble", "practice", "serve", "refund-1"]
    server = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, cwd=folder, env=env)
    try:
        assert server.stdout is not None
        shop, model = re.findall(r"port (\d+)", server.stdout.readline())
        urls = {
            "TOOLS_URL": f"http://127.0.0.1:{shop}",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model}/v1",
        }
        yield folder / "agent", env | urls
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_the_agent_is_recorded(served: tuple[Path, dict[str, str]]) -> None:
    folder, env = served
    agent = (sys.executable, "agent.py")
    result = run_stumble(
        ("record", "-o", "run.tape", "--", *agent), cwd=folder, env=env, timeout=90
    )
    assert result.code == 0, result.err
    assert result.out.startswith("DONE: refund ref-5048 pays 231.94 GBP")
    assert "11 tool calls" in result.err


@pytest.mark.programs
def test_the_scenario_is_run_and_judged(served: tuple[Path, dict[str, str]]) -> None:
    folder, env = served
    result = run_stumble(("run", "--json", "./scenario.toml"), cwd=folder, env=env, timeout=110)
    assert result.code == 0, result.err
    assert '"silent_wrong"' in result.out


def test_the_scenario_and_its_fault_are_valid() -> None:
    scenario = read_scenario(EXAMPLES / "agent/scenario.toml")
    assert [parse_fault(each).name for each in scenario.faults] == ["digit"]
    assert (EXAMPLES / "agent" / scenario.command[1]).is_file()


def test_the_plug_in_is_found_explained_and_run(tmp_path: Path) -> None:
    plug_in = EXAMPLES / "operator_plugin"
    project = tomllib.loads((plug_in / "pyproject.toml").read_text())["project"]
    # What installing it leaves behind, without building it.
    info = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    [(group, names)] = project["entry-points"].items()
    lines = (f"{name} = {module}\n" for name, module in names.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{''.join(lines)}")
    path = os.pathsep.join([str(tmp_path), str(plug_in)])
    result = subprocess.run(
        [sys.executable, "-m", "stumble", "faults", "V90", "--json"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["name"], document["params"]) == (
        "round_off",
        {"decimals": 0, "path": "", "copy": "both"},
    )
    before, after = (
        re.findall(r"[\d.]+", document["example"][when]) for when in ("before", "after")
    )
    [(true, rounded)] = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert "." in true
    assert int(rounded) == round(float(true))


def test_the_tour_runs_on_a_store(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / ".stumble")
    store.tapes.mkdir(parents=True, exist_ok=True)
    for name in ("http", "fork_digit_twin_0", "fork_digit"):
        shutil.copyfile(GOLDEN / f"{name}.tape", store.tapes / f"{TAPES[name]}.tape")
    refresh_index(store)
    statements = read_statements()
    assert len(statements) == 7
    for statement in statements:
        rows = run_query(store, statement, None, QueryLimits(), lambda answer: answer.fetchall())
        assert rows != [], statement
    env = {**os.environ, "STUMBLE_STORE": str(store.root)}
    result = run_stumble(("sql", statements[1]), cwd=tmp_path, env=env, timeout=60)
    assert result.code == 0, result.err
    assert "get_order" in result.out


def test_the_workflow_and_the_pages_name_real_commands() -> None:
    workflow = yaml.safe_load((EXAMPLES / "ci/stumble.yml").read_text())
    action = yaml.safe_load((EXAMPLES.parent / "action.yml").read_text())
    given = [step.get("with", {}) for step in workflow["jobs"]["faults"]["steps"]]
    assert set(given[-1]) <= set(action["inputs"])
    commands = list(list_commands((EXAMPLES / "README.md").read_text()))
    assert commands
    assert [unknown for each in commands for unknown in find_unknown(*each)] == []


def test_actions_of_others_are_pinned_by_commit() -> None:
    root = EXAMPLES.parent
    files = [root / "action.yml", *root.glob(".github/workflows/*.yml")]
    files += [*EXAMPLES.glob("ci/*.yml"), *EXAMPLES.glob("**/.github/workflows/*.yml")]
    used = [(f.name, *u) for f in files for u in USED_ACTION.findall(f.read_text("utf-8"))]
    assert len(used) > 10
    assert [each for each in used if not PINNED.fullmatch(each[2])] == []


def test_init_writes_a_scenario_that_runs(served: tuple[Path, dict[str, str]]) -> None:
    folder, env = served
    mine = folder.parent / "mine"
    shutil.copytree(EXAMPLES / "agent", mine)
    (mine / "scenario.toml").unlink()
    result = run_stumble(("init", "--json"), cwd=mine, env=env, timeout=60)
    assert result.code == 0, result.err
    assert result.json["command"] == ["python3", "agent.py"]
    assert result.json["variables"] == ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
    run = ("-v", "run", "./stumble-scenario.toml", "--json")
    secret = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz12345"
    log = {"STUMBLE_LOG": str(mine / "log"), "OPENAI_API_KEY": secret}
    ran = run_stumble(run, cwd=mine, env=env | log, timeout=120)
    assert ran.json["fired"] == 1, ran.err
    text = (mine / "log").read_text()
    for said in ("joined by", "matched exchange", "answered by fault, status 503", "injection "):
        assert said in text
    assert secret not in text
    assert "joined by" not in ran.err


def test_the_log_is_off_unless_asked_for_and_shows_no_secret(
    served: tuple[Path, dict[str, str]],
) -> None:
    folder, env = served
    secret = "hunter2-Zq8vTn4wLm"
    program = "import sys, urllib.request as u; u.urlopen(sys.argv[1]).read()"
    url = f"{env['TOOLS_URL']}/tools?api_key={secret}"
    command = ("record", "-o", "secret.tape", "--", sys.executable, "-c", program, url)
    quiet = run_stumble(command, cwd=folder, env=env, timeout=60)
    assert "answered by" not in quiet.err
    (folder / "secret.tape").unlink()
    loud = run_stumble(("-v", *command), cwd=folder, env=env, timeout=60)
    assert "answered by live, status 200" in loud.err
    assert secret not in loud.err
