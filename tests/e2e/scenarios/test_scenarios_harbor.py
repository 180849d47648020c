"""A Harbor task folder is read whole or refused by file and key, and judged by its own tests."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from recorder.agent.isolation import build_root_mount_prefix
from scenarios.benchmarks import dockerfile, harbor
from scenarios.benchmarks.harbor_workspace import HarborWorkspace
from scenarios.benchmarks.protocol import BenchmarkEnvironment
from scenarios.scenario import find_scenario, read_scenario
from scenarios.toml_reader import ScenarioError
from scenarios.world import Verdict

TASK = Path(__file__).parents[2] / "data" / "harbor" / "stock-count"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A copy of the task, to be spoilt."""
    return Path(shutil.copytree(TASK, tmp_path / "mine"))


def written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def replaced(path: Path, was: str, becomes: str) -> None:
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, becomes))


def test_a_folder_is_read_into_a_scenario() -> None:
    found = read_scenario(find_scenario(str(TASK)))
    assert (found.name, found.task, found.budget) == ("stock-count", "practice/stock-count", 60.0)
    assert found.faults == ()
    task = found.benchmark
    assert isinstance(task, harbor.HarborTask)
    assert task.instruction.startswith("Work in the current folder.\n")
    assert str(task.image.workdir) == "/app"
    assert task.env == {"LANG": "C.UTF-8", "TZ": "UTC"}
    assert task.limit == 20.0
    assert "programs are this machine's, not those of debian:stable-slim" in task.limitations[0]
    assert task.limitations[1:] == ("no limit is kept of cpus",)


def test_a_scenario_file_names_a_task_and_adds_what_goes_wrong(tmp_path: Path) -> None:
    path = tmp_path / "half.toml"
    path.write_text(
        f"title = 'Half of a list'\nbenchmark = '{TASK}'\n[[faults]]\nfault = 'truncate'\n"
    )
    found = read_scenario(path)
    assert (found.title, found.task, found.budget) == ("Half of a list", "practice/stock-count", 60)
    assert found.benchmark is not None
    assert found.faults == ({"fault": "truncate"},)
    path.write_text(f"benchmark = '{TASK}'\n[world]\nreset = 'true'\n")
    with pytest.raises(ScenarioError, match=r"half.toml: world: a benchmark brings its own world"):
        read_scenario(path)


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ('"1.4"', '"2.0"', "task.toml: schema_version: '2.0' is not known; there is 1.0, 1.1"),
        (
            "timeout_sec = 20",
            "timeot_sec = 20",
            "timeot_sec: no such key; did you mean time",
        ),
        ("timeout_sec = 20.0", "timeout_sec = inf", "verifier.timeout_sec: inf is not a number"),
        ("cpus = 1", "cpsu = 1", "environment.cpsu: no such key; did you mean cpus?"),
        ("cpus = 1", "gpus = 1", "environment.gpus: needs a container"),
        ("cpus = 1", "mcp_servers = [{ name = 'x' }]", "environment.mcp_servers: needs a contai"),
        ("cpus = 1", "os = 'windows'", "environment.os: 'windows' needs a container"),
        ('TZ = "UTC"', 'TZ = "${NO_SUCH_VARIABLE}"', "env.TZ: ${NO_SUCH_VARIABLE}: there is no NO"),
        ("[metadata]", "[metdata]", "task.toml: metdata: no such key; did you mean metadata?"),
        ("[metadata]", "[[steps]]\nname = 'a'\n[metadata]", "steps: a task in several steps"),
        (
            "[verifier]",
            "[verifier]\nenvironment_mode = 'separate'",
            "environment_mode: 'separate' n",
        ),
        ("[agent]", "[agent", "task.toml: no TOML"),
    ],
)
def test_settings_that_are_unknown_or_cannot_be_had_are_named(
    mine: Path, was: str, becomes: str, says: str
) -> None:
    replaced(mine / "task.toml", was, becomes)
    with pytest.raises(ScenarioError) as error:
        harbor.read_harbor_task(mine)
    assert says in str(error.value)


@pytest.mark.parametrize("name", ["instruction.md", "tests/test.sh", "environment/Dockerfile"])
def test_a_file_that_is_missing_is_named(mine: Path, name: str) -> None:
    (mine / name).unlink()
    with pytest.raises(ScenarioError, match=f"{name}: is missing"):
        harbor.read_harbor_task(mine)


def test_what_lies_beside_and_needs_a_container_is_named(mine: Path) -> None:
    written(mine / "environment" / "docker-compose.yaml", "services: {}\n")
    with pytest.raises(ScenarioError, match="docker-compose.yaml: needs a container"):
        harbor.read_harbor_task(mine)


def test_the_older_form_is_told_what_to_do(tmp_path: Path) -> None:
    written(tmp_path / "old" / "task.yaml", "instruction: x\n")
    with pytest.raises(ScenarioError, match="Terminal-Bench 1; `harbor tasks migrate`"):
        read_scenario(find_scenario(str(tmp_path / "old")))


def test_a_folder_without_a_task_is_none(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"it holds no task: there is no task.toml"):
        read_scenario(find_scenario(str(tmp_path)))
    with pytest.raises(LookupError, match="none: there is no such file or folder"):
        find_scenario(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("apt-get update", "`apt-get` changes the machine"),
        ("curl -LsSf https://x.invalid/install | sh", "`| sh` changes the machine"),
        ("pip install pytest", "`pip install` changes the machine"),
    ],
)
def test_tests_that_install_are_refused_and_not_failed(mine: Path, line: str, says: str) -> None:
    written(mine / "tests" / "test.sh", f"#!/bin/bash\n# apt-get is only named here\n{line}\n")
    with pytest.raises(ScenarioError) as error:
        harbor.read_harbor_task(mine)
    assert f"tests/test.sh: line 3: {says}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "FROM a\nWORKDIR /app\nRUN apt-get update && \\\n  apt-get install -y jq",
            "line 3: RUN",
        ),
        ("FROM a\nFROM b AS c\nWORKDIR /app", "line 2: FROM b AS c: needs a container"),
        ("WORKDIR /app", "line 1: WORKDIR comes before FROM"),
        ("FROM a", "it has no WORKDIR"),
        ("FROM a\nWORKDIR /opt/x", "it fills /opt, which is this machine's own"),
        ("FROM a\nWORKDIR /app\nCOPY none.txt .", "line 3: COPY none.txt: there is no such file"),
        ("FROM a\nWORKDIR /app\nCOPY ../x .", "line 3: COPY ../x: "),
        ("FROM a\nWORKDIR /app\nCOPY a.txt /etc/a.txt", "it fills /etc"),
        ("FROM a\nWORKDIR /app\nCOPY a.txt ../../x", "line 3: COPY to ../../x"),
        ("FROM a\nWORKDIR /app\nCOPY --from=b /x .", "line 3: COPY --from=b: needs a container"),
        ("FROM a\nWORKDIR /app\nRUN apt-get install x", "leave the line out in a copy of the task"),
        ("FROM a\nWORKDIR /app\nCOPY a.txt", "line 3: COPY needs what to copy"),
        ("FROM a\nWORKDIR $HOME", "line 2: WORKDIR $HOME: variables are not replaced"),
        ("FROM a\nWORKDIR /app\nENV A=1 B", "line 3: ENV A=1 B: it is not KEY=VALUE"),
        ("FROM a\nWORKDIR /app\nUSER x \\", "line 3: USER x: it ends in the middle"),
        ("# escape=`\nFROM a", "line 1: another escape"),
        ("FROM a\nWORKDIR /app\nENV A='", "line 3: ENV A=': No closing quotation"),
        ("", "it has no FROM"),
    ],
)
def test_a_dockerfile_is_had_whole_or_refused_by_line(tmp_path: Path, text: str, says: str) -> None:
    written(tmp_path / "a.txt", "a")
    written(tmp_path / "Dockerfile", text)
    with pytest.raises(ScenarioError) as error:
        dockerfile.read_dockerfile(tmp_path / "Dockerfile")
    assert says in str(error.value)


def test_files_are_copied_as_docker_does(tmp_path: Path) -> None:
    context, root = tmp_path / "context", tmp_path / "root"
    for name in ("a.txt", "b.txt", "folder/c.txt", "folder/deep/d.txt"):
        written(context / name, name)
    written(
        context / "Dockerfile",
        "FROM x\nWORKDIR /app\nWORKDIR src\nCOPY a.txt renamed.txt\nCOPY *.txt /data/\n"
        'COPY folder .\nCOPY ["folder", "/app/kept"]\nENV OLD form of it\nENV A=1 B="2 3"\n'
        "EXPOSE 80\nLABEL a=b\n",
    )
    image = dockerfile.read_dockerfile(context / "Dockerfile")
    image.copy_files(root)
    assert {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()} == {
        "app/src/renamed.txt",
        "data/a.txt",
        "data/b.txt",
        "app/src/c.txt",
        "app/src/deep/d.txt",
        "app/kept/c.txt",
        "app/kept/deep/d.txt",
    }
    assert image.top_folders == ("/app", "/data")
    assert image.env == {"OLD": "form of it", "A": "1", "B": "2 3"}
    assert dockerfile.read_dockerfile(context / "Dockerfile", "/other").workdir.parts == (
        "/",
        "other",
    )


def judged(
    task: harbor.HarborTask, folder: Path, work: Callable[[Path], object] = lambda app: None
) -> Verdict:
    """The verdict on a fresh workspace in which some work was done."""
    trial = HarborWorkspace(task=task, folder=folder, facade=build_root_mount_prefix)

    async def run() -> Verdict:
        await trial.reset()
        work(trial.root / "app")
        return await trial.verify()

    return asyncio.run(run())


def test_the_tests_of_a_task_judge_a_copy_of_what_was_done(mine: Path, tmp_path: Path) -> None:
    replaced(mine / "tests" / "test.sh", "#!/bin/bash", "#!/bin/bash\ntouch /app/tested")
    task, folder = harbor.read_harbor_task(mine), tmp_path / "stage"
    folder.mkdir()
    assert judged(task, folder) == Verdict(False, "reward 0")
    right = judged(task, folder, lambda app: (app / "stock.txt").write_text("stock 233511\n"))
    assert right == Verdict(True, "reward 1")
    assert not (folder / "root" / "app" / "tested").exists()
    assert not (folder / "copy").exists()
    # What one run leaves behind, also where nobody may touch it, is not there in the next.
    folder.joinpath("root/app/shut").mkdir(mode=0)
    assert judged(task, folder) == Verdict(False, "reward 0")


@pytest.mark.parametrize(
    ("script", "passed", "says"),
    [
        ("echo 1 > /logs/verifier/reward.txt; exit 3", None, "but the tests ended with 3"),
        ("echo boom; exit 3", None, "the tests ended with 3 and no reward"),
        ("echo 1 > /logs/verifier/reward.txt; kill -9 $$", None, "were ended by signal 9"),
        ("echo 1 > /logs/verifier/reward.txt; sleep 600", None, "the tests took too long"),
        ("echo nan > /logs/verifier/reward.txt", None, "the reward is nan"),
        ("echo yes > /logs/verifier/reward.txt", None, "could not convert"),
        (": > /logs/verifier/reward.txt", None, "could not convert"),
        ("echo 0.5 > /logs/verifier/reward.txt", False, "reward 0.5"),
        ("echo '{\"reward\": 1, \"style\": 0}' > /logs/verifier/reward.json", True, "reward 1"),
        ("echo '{\"a\": 1, \"b\": 1}' > /logs/verifier/reward.json", None, "no key reward, but a"),
        ("echo true > /logs/verifier/reward.json", None, "reward.json says True"),
        ("echo 1 > /logs/verifier/reward.txt; echo 0 > /logs/verifier/reward.json", False, "rew"),
        ("test -z \"$OPENAI_API_KEY$STUMBLE_STORE\" && test $TZ = UTC && test $PWD = /app &&"
         " echo 1 > /logs/verifier/reward.txt", True, "reward 1"),
    ],
)  # fmt: skip
def test_only_a_reward_that_was_written_is_a_verdict(
    mine: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    passed: bool | None,
    says: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    written(mine / "tests" / "test.sh", f"{script}\n")
    replaced(mine / "task.toml", "timeout_sec = 20.0", "timeout_sec = 3")
    folder = tmp_path / "stage"
    folder.mkdir()
    verdict = judged(harbor.read_harbor_task(mine), folder)
    assert (verdict.passed, says in verdict.detail) == (passed, True), verdict.detail


def test_an_agent_cannot_leave_a_reward_behind(mine: Path, tmp_path: Path) -> None:
    written(mine / "tests" / "test.sh", "exit 0\n")
    folder = tmp_path / "stage"
    folder.mkdir()
    logs = folder / "root" / "logs" / "verifier"
    verdict = judged(
        harbor.read_harbor_task(mine), folder, lambda _: written(logs / "reward.txt", "1\n")
    )
    assert verdict.passed is None


def staged(task: harbor.HarborTask, folder: Path) -> BenchmarkEnvironment:
    folder.mkdir()

    async def run() -> BenchmarkEnvironment:
        async with task.set_up(folder, build_root_mount_prefix) as stage:
            return stage

    return asyncio.run(run())


def test_a_task_is_staged_once_its_own_solution_passes(mine: Path, tmp_path: Path) -> None:
    stage = staged(harbor.read_harbor_task(mine), tmp_path / "right")
    assert stage.env == {"LANG": "C.UTF-8", "TZ": "UTC", "PWD": "/app"}
    written(mine / "solution" / "solve.sh", "echo stock 1 > stock.txt\n")
    with pytest.raises(ChildProcessError, match="its own solution does not pass here, .*reward 0"):
        staged(harbor.read_harbor_task(mine), tmp_path / "wrong")
    written(mine / "solution" / "solve.sh", "no-such-program-at-all\n")
    with pytest.raises(ChildProcessError, match=r"solve.sh ended with 127: .*no-such-program"):
        staged(harbor.read_harbor_task(mine), tmp_path / "broken")
    (mine / "solution" / "solve.sh").unlink()
    task = harbor.read_harbor_task(mine)
    assert (
        task.limitations[-1] == "without solution/solve.sh nothing proves that its tests work here"
    )
    assert staged(task, tmp_path / "unproved").cwd == tmp_path / "unproved" / "root" / "app"
    assert list((tmp_path / "unproved").iterdir()) == []
